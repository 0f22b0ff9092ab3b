"""What several test files share: every rendered notebook, executed once for all of them."""

import os

import pytest

from course_build import run

# One thread, before torch is imported: sums then have one order, and busy cores stay usable.
os.environ["OMP_NUM_THREADS"] = "1"


@pytest.fixture(scope="session")
def executed(request):
    """All notebooks of both editions, run as `make run` runs them: {(edition, language, name)}."""
    outcomes = run.run_course(run.find_course())
    request.config.stash[OUTCOMES] = outcomes
    return {(o.job.edition, o.job.language, o.job.name): o for o in outcomes}


OUTCOMES = pytest.StashKey[list[run.Outcome]]()


def pytest_terminal_summary(terminalreporter, config):
    outcomes = config.stash.get(OUTCOMES, [])
    if outcomes:
        terminalreporter.section("notebooks")
        terminalreporter.line(run.table(outcomes))
