"""The runner on a dask cluster of two worker processes: the same bytes, and no notebook lost."""

import functools
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from course_build.run import cli
from course_build.run.on_dask import ClusterError, run_on_dask
from course_build.run.outcome import Limits, Plan
from course_build.run.pool import run_jobs
from course_build.run.reports import describe

from .leftovers import adopt_orphans, living, tell
from .notebooks import job_of, make_job

PLAN = Plan({}, Limits(start=120, cell=100, wall=200))
CASES = {
    "plots": ["import matplotlib.pyplot as plt\nplt.plot([1, 2]);", "print('тест')"],
    "fails": ["1", "undefined"],
    "leaves": ["import sys; sys.exit(0)", "1"],
}


def others(before):
    """Name the descendants that are new, the tracker apart that Python keeps to its own end."""
    words = [tell(process) for pid, process in living().items() if pid not in before]
    return [told for told in words if "resource_tracker" not in told]


@pytest.fixture
def cluster():
    from distributed import LocalCluster

    adopt_orphans()
    before = living()
    # a free port even without a dashboard: a cluster of another process may hold the usual one
    options = {"dashboard_address": ":0", "scheduler_kwargs": {"dashboard": False}}
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **options) as cluster:
        yield cluster
    deadline = time.monotonic() + 20
    while others(before) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not others(before)


@pytest.mark.notebooks
def test_a_cluster_gives_the_same_outcomes_and_bytes_as_this_machine(cluster, tmp_path):
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    here, there = (
        [make_job(tmp_path / name, *case) for case in CASES.items()] for name in ("here", "there")
    )
    there.append(job_of(tmp_path / "there", tmp_path / "gone.ipynb"))
    heard = []
    far = run_on_dask(cluster.scheduler_address, there, PLAN, heard.append)
    *far, gone = far
    assert gone.status == "failed"
    assert "cannot be read" in gone.failure.reason
    assert len(heard) == 4
    for near, away in zip(run_jobs(here, PLAN), far, strict=True):
        assert (near.status, near.failure) == (away.status, away.failure), describe(away)
        assert near.job.executed.read_bytes() == away.job.executed.read_bytes()
        assert away.cells.keys() == near.cells.keys()


@pytest.mark.notebooks
def test_a_notebook_whose_worker_is_killed_runs_again(cluster, tmp_path):
    started = tmp_path / "started"
    wait = (
        "import pathlib, time\n"
        f"started = pathlib.Path({str(started)!r})\n"
        "again = started.exists()\nstarted.touch()\ntime.sleep(0 if again else 90)"
    )
    job = make_job(tmp_path, "killed", [wait, "print(again)"])

    def kill_its_worker():
        from distributed import Client

        with Client(cluster) as client:
            pids = client.run(os.getpid)
            while not started.exists():
                time.sleep(0.1)
            (busy,) = [worker for worker, tasks in client.processing().items() if tasks]
        os.kill(pids[busy], signal.SIGKILL)

    with ThreadPoolExecutor() as pool:
        killer = pool.submit(kill_its_worker)
        (outcome,) = run_on_dask(cluster.scheduler_address, [job], PLAN)
        killer.result()
    assert outcome.status == "passed", describe(outcome)
    assert "True" in job.executed.read_text("utf-8")


def test_a_scheduler_that_is_not_there_is_a_sentence():
    with pytest.raises(ClusterError, match="no dask scheduler answers at somewhere: "):
        run_on_dask("somewhere", [])


def test_a_missing_distributed_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ClusterError, match="pip install distributed"):
        run_on_dask("tcp://127.0.0.1:1", [])


def test_the_command_line_hands_the_jobs_to_the_cluster(monkeypatch, capsys, tmp_path):
    job = make_job(tmp_path, "a", ["1"])
    monkeypatch.setattr(cli, "choose", lambda options: [job])
    assert cli.main(["--dask", "somewhere", "--output", str(tmp_path / "out")]) == 2
    assert "no dask scheduler answers at somewhere" in capsys.readouterr().err
    assert isinstance(cli.executor("x"), functools.partial)
