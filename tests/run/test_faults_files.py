"""Notebooks that are broken as files: each is told in a sentence, and the others run."""

import json
import os

import nbformat
import pytest

from course_build.run.outcome import Limits, Plan
from course_build.run.pool import run_jobs
from course_build.run.reports import describe

from .leftovers import nothing_left
from .notebooks import job_of, make_checkout, make_job, run_checkout

pytestmark = [pytest.mark.delivery, pytest.mark.xdist_group("faults files")]

LIMITS = Limits(start=60, cell=60, wall=90, grace=5)
CELL = {"cell_type": "code", "id": "a", "metadata": {}, "outputs": [], "execution_count": None}
SPEC = {"kernelspec": {"name": "python3", "display_name": "p", "language": "python"}}
V4 = {"nbformat": 4, "nbformat_minor": 5, "metadata": SPEC}


def as_json(**changes):
    cells = {"cells": [CELL | {"source": "print(1)"}]}
    return json.dumps(V4 | cells | changes).encode()


BYTES = {  # what is in the file, and words of what is told
    "empty": (b"", "not a notebook"),
    "not_json": (b"# a text", "not a notebook"),
    "cut_off": (as_json()[:-20], "not a notebook"),
    "not_utf8": (as_json().replace(b"print", b"\xff"), "not a notebook"),
    "a_list": (b"[1, 2]", "not a notebook"),
    "a_number": (b"7", "not a notebook"),
    "another_object": (b'{"a": 1}', "not a notebook"),
    "cells_are_a_text": (as_json(cells="print(1)"), "not a notebook"),
    "cell_of_no_type": (as_json(cells=[{"source": "1"}]), "not a notebook"),
    "old_format": (b'{"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": []}', "3"),
    "newer_format": (as_json(nbformat=99), "99"),
    "no_cells": (as_json(cells=[]), "no code"),
    "no_code": (as_json(cells=[CELL | {"source": " \n"}]), "no code"),
    "papermills_own_tag": (
        as_json(
            cells=[
                CELL | {"source": "print(1)"},
                CELL
                | {
                    "id": "b",
                    "source": "assert False",
                    "metadata": {"tags": ["papermill-error-cell-tag"]},
                },
            ]
        ),
        "a tag that papermill keeps for itself",
    ),
    "no_kernelspec": (as_json(metadata={}), "kernel"),
}


def put(folder, name, content):
    path = folder / "in" / "en" / f"{name}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return job_of(folder, path)


def odd_paths(folder):
    """Return jobs for paths that are no files."""
    here = folder / "in" / "en"
    (here / "a_folder.ipynb").mkdir(parents=True)
    (here / "loop.ipynb").symlink_to("loop.ipynb")
    (here / "dangling.ipynb").symlink_to("nowhere.ipynb")
    os.mkfifo(here / "a_pipe.ipynb")
    return [job_of(folder, path) for path in sorted(here.iterdir())]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    with nothing_left():
        jobs = odd_paths(folder)
        jobs += [put(folder, name, content) for name, (content, _) in BYTES.items()]
        jobs.append(job_of(folder, folder / "in" / "en" / "gone.ipynb"))
        jobs.append(make_job(folder, "honest", ["print(1)"]))
        jobs.append(make_job(folder, "huge_cell", ["text = '''" + "ы" * 5_000_000 + "'''", "1"]))
        done = run_jobs(jobs, Plan(limits=LIMITS))
    return {outcome.job.name: outcome for outcome in done}


@pytest.mark.parametrize("name", [*BYTES, "a_folder", "loop", "dangling", "a_pipe", "gone"])
def test_a_file_that_is_no_notebook_is_told_in_a_sentence(outcomes, name):
    outcome = outcomes[name]
    words = BYTES[name][1] if name in BYTES else "cannot be read"
    assert outcome.status == "failed", describe(outcome)
    assert words in outcome.failure.reason, describe(outcome)
    assert "Traceback" not in describe(outcome)
    assert len(describe(outcome).splitlines()) <= 4, describe(outcome)


@pytest.mark.parametrize("name", ["honest", "huge_cell"])
def test_an_honest_notebook_beside_them_passes(outcomes, name):
    assert outcomes[name].status == "passed", describe(outcomes[name])
    nbformat.read(str(outcomes[name].job.executed), 4)


def test_the_command_reports_broken_files_beside_honest_notebooks(tmp_path, clean_room):
    folder = make_checkout(tmp_path / "course", {"module_01_honest": ["print(1)"]})
    odd_paths(tmp_path / "odd")
    (tmp_path / "odd" / "in" / "en").rename(folder / "notebooks" / "ru")
    (folder / "notebooks" / "ru" / "text.ipynb").write_bytes(b"# a text")
    done = run_checkout(folder, "--cache")
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    report = json.loads((folder / "build" / "executed" / "report.json").read_text("utf-8"))
    told = {one["notebook"]: one["status"] for one in report["notebooks"]}
    assert told.pop("module_01_honest") == "passed"
    assert told == dict.fromkeys(["a_folder", "a_pipe", "dangling", "loop", "text"], "failed")
