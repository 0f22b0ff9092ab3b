"""A learner in an empty folder, and contracts that pass, break or are not attempted."""

import pytest

from course_lib import text
from course_lib.practice.progress import Progress
from course_lib.report import ClauseResult, ContractReport, ContractViolation

from .shown import collect

EXERCISES = {
    "mask": ("warm-up", "Write the mask"),
    "attention": ("core", "Write attention"),
    "planted": ("stretch", "Find the bug"),
}
ROWS = (ClauseResult("rows", "rows sum to 1", 0.0, 1e-9), ClauseResult("masks", "kept", 0.0, 0))


def judge(candidate, *more):
    """A contract: hands back or raises what the candidate says."""
    if candidate == "right":
        return ContractReport("check_it", ROWS)
    if candidate == "stub":
        return ContractReport("check_it", attempted=False)
    if candidate == "surprise":
        return ContractReport("check_it", ROWS, headline="○ check_it: a surprise")
    raise ContractViolation("check_it", ROWS[0], mistakes=("not_scaled", "mask_inverted"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of the notebook, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def begin(folder):
    """Start a kernel: make the notebook's Progress."""
    return lambda: Progress("module_03", EXERCISES)


@pytest.fixture
def progress(begin):
    return begin()


@pytest.fixture
def outputs(monkeypatch):
    """What is displayed, where nobody can click."""
    return collect(monkeypatch)


@pytest.fixture
def russian(monkeypatch):
    """The Russian notebook."""
    monkeypatch.setattr(text, "LANGUAGE", "ru")
