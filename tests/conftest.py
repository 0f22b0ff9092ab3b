"""What several test files share: every rendered notebook, executed once for all of them."""

import gc
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import PurePath

import pytest
from hypothesis import settings

from course_build.run.jobs import ROOT, find_course
from course_build.run.outcome import Outcome
from course_build.run.reports import table
from course_build.run.session import run_course
from course_build.weight.measures import SECONDS
from tests.touched import changed_files, is_out_of_reach

# One thread, before torch is imported: sums then have one order, and busy cores stay usable.
os.environ["OMP_NUM_THREADS"] = "1"

# A busy machine is no failure: no example of a property has a time limit.
settings.register_profile("course", deadline=None)
settings.load_profile("course")


# In the background of a script the proof is deaf to Ctrl-C, and so would be all that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Of each module two runs stand for all four where nothing is delivered: code twins differ in their
# strings alone, and both editions are there.
SAMPLE = {("solved", "en"), ("learner", "ru")}


def pytest_addoption(parser):
    parser.addoption(
        "--touched",
        action="store_true",
        help="leave out what the changes since the push can't reach",
    )


@pytest.fixture(scope="session")
def executed(request):
    """The notebooks, run as `make run` runs them: {(edition, language, name)}.

    All of both editions if a test of the delivery asks for them, else a sample.
    """
    asking = [item for item in request.session.items if "executed" in item.fixturenames]
    whole = any(item.get_closest_marker("delivery") for item in asking)
    jobs = find_course()
    run = run_course([j for j in jobs if whole or (j.edition, j.language) in SAMPLE])
    if run.ended != "complete":
        raise KeyboardInterrupt
    outcomes = run.outcomes
    request.config.stash[OUTCOMES] = outcomes
    return {(o.job.edition, o.job.language, o.job.name): o for o in outcomes}


@pytest.fixture(scope="session")
def site(executed):
    """The folder of the pages, built once from the notebooks that were executed for all tests."""
    command = [sys.executable, "-m", "course_build.site"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ROOT / "build" / "site"


@pytest.fixture(scope="session")
def toy(tmp_path_factory):
    """A small course whose job told its address and its repository, and its pages."""
    from tests.toy_site import PLACED, build_toy  # Sphinx too: most tests need none

    return build_toy(tmp_path_factory.mktemp("моя папка & a space"), **PLACED)


OUTCOMES = pytest.StashKey[list[Outcome]]()


@pytest.hookimpl(tryfirst=True)  # before marks are chosen and xdist reads the groups
def pytest_collection_modifyitems(config, items):
    """What shares costly work stays together (-n); what costs minutes is the delivery's."""
    changed = config.getoption("--touched") and changed_files()
    for item in items:
        params = item.callspec.params if hasattr(item, "callspec") else {}
        costly = {"executed": "notebooks", "toy": "toy", "browser": item.path.stem}
        found = [costly[name] for name in costly if name in item.fixturenames]
        contract = params.get("contract")
        if item.path.parent.name == "contracts":  # which reads verdicts of the contract it is about
            contract = contract or item.path.stem.removeprefix("test_")
        if found or contract:
            item.add_marker(pytest.mark.xdist_group((*found, contract)[0]))
        if needs_delivery(item, params) or is_trial(item) and not is_touched(item, changed):
            item.add_marker(pytest.mark.delivery)
    if changed:
        left = [item for item in items if not is_touched(item, changed)]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in set(left)]


def needs_delivery(item, params):
    """Whether a test needs a browser, the whole site, or more notebooks than the sample."""
    if {"browser", "context", "site"} & {*item.fixturenames}:
        return True
    run = params.get("edition", "learner"), params.get("language")
    return "executed" in item.fixturenames and run not in SAMPLE


def is_trial(item):
    """Whether a test holds contracts to hundreds of right and wrong functions each."""
    trials = ("test_trials.py", "test_mutants.py", "test_score.py", "test_search.py")
    return item.path.name in trials


def is_touched(item, changed):
    """Whether a known change can reach a test."""
    contract = hasattr(item, "callspec") and item.callspec.params.get("contract")
    return bool(changed) and not is_out_of_reach(item.module.__name__, contract, changed)


def pytest_collection_finish():
    """What collecting has made stays to the end: to look through it for garbage costs a third."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item):
    """Let the report of a test carry the table of the notebooks, also from another process."""
    outcomes = item.config.stash.get(OUTCOMES, [])
    if outcomes and "executed" in item.fixturenames:
        item.user_properties.append(("notebooks", table(outcomes)))


def record_seconds(config, reports):
    """Write down what each folder of tests took in a whole run of one command: for make weigh."""
    options, whole = config.option, config.args_source is config.ArgsSource.TESTPATHS
    if not whole or options.keyword or options.collectonly or config.getoption("lf", False):
        return
    seconds = Counter()
    for report in reports:
        folder = "/".join(PurePath(report.nodeid.partition("::")[0]).parts[:-1])
        seconds[folder] += getattr(report, "duration", 0)
    path = config.rootpath / SECONDS
    path.parent.mkdir(exist_ok=True)
    known = json.loads(path.read_bytes()) if path.exists() else {}
    known[options.markexpr] = {folder: round(spent, 1) for folder, spent in seconds.items()}
    path.write_text(json.dumps(known))


def pytest_terminal_summary(terminalreporter, exitstatus, config):
    reports = [report for some in terminalreporter.stats.values() for report in some]
    if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        record_seconds(config, [r for r in reports if isinstance(r, pytest.TestReport)])
    told = [
        found
        for reports in terminalreporter.stats.values()
        for report in reports
        for found in getattr(report, "user_properties", [])
    ]
    scores = sorted({str(value): value for name, value in told if name == "score"}.values())
    if scores:
        terminalreporter.section(
            "mutation score: refused of wrong, named, mutants, refused of right"
        )
        for contract, *pairs in scores:
            cells = "".join(f"{some}/{of}".rjust(12) for some, of in pairs)
            terminalreporter.line(contract.ljust(18) + cells)
    for shown in {value for name, value in told if name == "notebooks"}:
        terminalreporter.section("notebooks")
        terminalreporter.line(shown)
