"""Notebooks of a few cells, run by a crew, and what their cells printed."""

import ctypes
import json
import threading

import pytest

from course_build.run.crew import Crew
from course_build.run.outcome import Job, Limits, Plan
from course_build.run.reports import describe

from .notebooks import write_notebook

LIMITS = Limits(start=120, cell=40, wall=100, grace=10)


def signals_are_scoped():
    """Say whether this system keeps a kernel's signals to its own family (Landlock)."""
    return ctypes.CDLL(None).syscall(444, None, 0, 1) >= 6  # the version of its interface


def run(crew, folder, *sources, name="notebook"):
    """Run a notebook, and return its outcome."""
    path = write_notebook(folder / f"{name}.ipynb", sources)
    job = Job(path, "learner", "en", folder / "out" / f"{name}.ipynb")
    return crew.run(job, threading.Event())


def outputs(outcome):
    """Return the outputs of each cell of the executed copy."""
    notebook = json.loads(outcome.job.executed.read_text(encoding="utf-8"))
    return [cell.get("outputs", []) for cell in notebook["cells"]]


def printed(outcome):
    """Return what the cells of a notebook that passed have printed."""
    assert outcome.status == "passed", describe(outcome)
    return "".join("".join(out.get("text", "")) for cell in outputs(outcome) for out in cell)


@pytest.fixture(scope="module")
def forked():
    """A crew whose kernels are forked."""
    with Crew(Plan(limits=LIMITS)) as crew:
        yield crew


@pytest.fixture(scope="module")
def plain():
    """A crew whose kernels are fresh interpreters."""
    with Crew(Plan(limits=LIMITS, kernels="plain")) as crew:
        yield crew
