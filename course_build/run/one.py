"""Run one notebook in a worker process of its own, under the limits."""

import contextlib
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

from course_build.run.environment import HERE, furnish, kernel_environment
from course_build.run.outcome import Failure, Job, Limits, Outcome, Plan


def family(pid: int) -> list[psutil.Process]:
    """List a process and all that descend from it (the kernel has a process group of its own)."""
    try:
        parent = psutil.Process(pid)
        return [*parent.children(recursive=True), parent]
    except psutil.NoSuchProcess:
        return []


def end_family(worker: subprocess.Popen, grace: float) -> None:
    """Ask a worker to save what it has and leave, then kill whatever of its family is left."""
    processes = family(worker.pid)
    worker.terminate()
    try:
        worker.wait(grace)
    except subprocess.TimeoutExpired:
        processes = family(worker.pid)
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    worker.wait()
    psutil.wait_procs(processes, timeout=grace)


def _wait(worker: subprocess.Popen, limits: Limits, stop: threading.Event) -> bool:
    """Wait for a worker, and return whether it had to be ended."""
    deadline = time.monotonic() + limits.wall
    while True:
        try:
            worker.wait(0.2)
            return False
        except subprocess.TimeoutExpired:
            if stop.is_set() or time.monotonic() > deadline:
                end_family(worker, limits.grace)
                return True


def _outcome(box: Path, job: Job, seconds: float, ended: bool, limits: Limits) -> Outcome:
    result = box / "result.json"
    if result.exists():
        told = json.loads(result.read_text(encoding="utf-8"))
        failure = Failure(**told["failure"]) if told["failure"] else None
        return Outcome(job, "failed" if failure else "passed", seconds, told["peak_mb"], failure)
    if ended:
        reason = f"the notebook ran longer than its limit of {limits.wall} s"
        return Outcome(job, "failed", seconds, failure=Failure(reason))
    log = (box / "log.txt").read_text(encoding="utf-8", errors="replace").strip()
    reason = "the worker died before it could report; the end of its log:\n" + log[-2000:]
    return Outcome(job, "broken", seconds, failure=Failure(reason))


def run_job(job: Job, plan: Plan, stop: threading.Event) -> Outcome:
    """Run one notebook in a worker process of its own, under the limits."""
    job.executed.parent.mkdir(parents=True, exist_ok=True)
    job.executed.unlink(missing_ok=True)
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="course-", ignore_cleanup_errors=True) as name:
        box = Path(name)
        furnish(box, job, plan)
        with (box / "log.txt").open("wb") as log:
            worker = subprocess.Popen(
                [sys.executable, "-P", str(HERE / "client.py"), str(box / "job.json")],
                cwd=box / "cwd",
                env=kernel_environment(box),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            ended = _wait(worker, plan.limits, stop)
        return _outcome(box, job, round(time.perf_counter() - begun, 1), ended, plan.limits)
