"""Many kernels at once, and many notebooks in one run."""

import json
import subprocess
import sys

import pytest

from course_build.run.outcome import Limits, Plan
from course_build.run.pool import run_jobs
from course_build.run.reports import describe

from .notebooks import ROOT, environment, make_job, write_notebook

pytestmark = pytest.mark.delivery


@pytest.mark.parametrize("kernels", ["forked", "plain"])
def test_twenty_kernels_at_once_get_each_its_own_channels(kernels, tmp_path, clean_room):
    jobs = [make_job(tmp_path, f"n{n:02d}", [f"x = {n}", "print(x)"]) for n in range(20)]
    plan = Plan(limits=Limits(start=120, cell=120, wall=280), workers=20, kernels=kernels)
    for number, outcome in enumerate(run_jobs(jobs, plan)):
        assert outcome.status == "passed", describe(outcome)
        cells = json.loads(outcome.job.executed.read_text("utf-8"))["cells"]
        assert cells[1]["outputs"][0]["text"] == [f"{number}\n"]


MULTIPLY = """
import os, time
for _ in range(8):
    os.fork()
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="supervisors are of Linux")
def test_a_family_that_multiplies_is_over_its_limit_and_gone(tmp_path, clean_room):
    """As root, whom no limit of processes binds, too: clean_room looks for what is left."""
    job = make_job(tmp_path, "multiplies", ["1", MULTIPLY])
    (outcome,) = run_jobs([job], Plan(limits=Limits(start=120, cell=60, wall=120)))
    assert outcome.status == "failed"
    assert "processes" in outcome.failure.reason or "unavailable" in outcome.failure.reason


COUNT = """
import gc, json, sys
from pathlib import Path
import psutil
from course_build.run.jobs import find_jobs
from course_build.run.pool import run_jobs

me, seen, looks = psutil.Process(), [], {}

def look(outcome):
    assert outcome.status == "passed", outcome.failure
    seen.append(outcome)
    if len(seen) in (50, 200):
        gc.collect()
        for process in [me, *me.children()]:
            with process.oneshot():
                size = process.memory_info().rss  # not uss: a forked child shares pages
                found = {"rss": size, "files": process.num_fds(), "threads": process.num_threads()}
            looks.setdefault(process.pid, []).append(found)

folder = Path(sys.argv[1])
run_jobs(find_jobs({"learner": folder / "in"}, folder / "out", [], []), None, look)
print(json.dumps([both for both in looks.values() if len(both) == 2]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts what Linux tells of a process")
def test_two_hundred_notebooks_take_no_more_memory_files_and_threads_than_fifty(
    tmp_path, clean_room
):
    for number in range(200):
        write_notebook(tmp_path / "in" / "en" / f"n{number:03d}.ipynb", [f"print({number})"])
    command = [sys.executable, "-c", COUNT, str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=580
    )
    assert done.returncode == 0, done.stderr
    lasting = json.loads(done.stdout)  # the main process and the preloaded ones
    assert lasting
    for at_50, at_200 in lasting:
        assert at_200["rss"] < 1.1 * at_50["rss"] + 2e6, lasting
        assert at_200["files"] <= at_50["files"] + 3, lasting  # those of notebooks under way
        assert at_200["threads"] <= at_50["threads"] + 1, lasting
    assert len(list((tmp_path / "out").rglob("*.ipynb"))) == 200
