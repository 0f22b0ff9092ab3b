"""One client as a plain process, where there are no nurseries: not on Linux."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil

from course_build.run.environment import HERE
from course_build.run.outcome import Limits


def family(pid: int) -> list[psutil.Process]:
    """List a process and all that descend from it (the kernel has a process group of its own)."""
    try:
        parent = psutil.Process(pid)
        return [*parent.children(recursive=True), parent]
    except psutil.NoSuchProcess:
        return []


def end_family(worker: subprocess.Popen, grace: float, signum: int = signal.SIGTERM) -> None:
    """Ask a worker to save what it has and leave, then kill whatever of its family is left."""
    processes = family(worker.pid)
    worker.send_signal(signum)
    try:
        worker.wait(grace)
    except subprocess.TimeoutExpired:
        processes = family(worker.pid)
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    worker.wait()
    psutil.wait_procs(processes, timeout=grace)


def run_client(box: Path, env: dict[str, str], limits: Limits, stop: threading.Event) -> bool:
    """Run the client whose box is furnished; return whether it had to be ended."""
    with (box / "log.txt").open("ab") as log:
        worker = subprocess.Popen(
            [sys.executable, "-P", str(HERE / "client.py"), str(box / "job.json")],
            cwd=box / "cwd",
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=os.name == "posix",
        )
    deadline = time.monotonic() + limits.wall
    while True:
        try:
            worker.wait(0.2)
            return False
        except subprocess.TimeoutExpired:
            if stop.is_set() or time.monotonic() > deadline:
                told = stop.is_set() and os.name == "posix"  # Windows has but one way to end it
                end_family(worker, limits.grace, signal.SIGINT if told else signal.SIGTERM)
                return True
