"""Proof that a run leaves nothing behind: no process, thread, open file, folder or socket.

While a test runs, its process adopts every orphan among its descendants (PR_SET_CHILD_SUBREAPER),
so that no new session and no double fork hides one.
"""

import contextlib
import ctypes
import gc
import os
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil


class LeftBehind(AssertionError):
    """Something of a run outlived it; the message names it."""


PR_SET_CHILD_SUBREAPER = 36
PATIENCE = 10.0  # seconds that what was ended may take to be gone


def adopt_orphans():
    """Make this process the parent of every orphan among its descendants (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def living():
    """Return {pid: process} of the descendants that have not ended."""
    found = {}
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE:
                found[process.pid] = process
    return found


def bury(known):
    """Collect the ended orphans that this process adopted."""
    for process in psutil.Process().children():
        if process.pid not in known:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)


def open_files():
    """Return how many files, pipes and sockets this process holds open."""
    return len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0


def tell(process):
    """Name a process for the failure's message."""
    try:
        return f"{process.pid}: {' '.join(process.cmdline())[:200]}"
    except psutil.Error:
        return f"{process.pid}: gone meanwhile"


def _wait(until):
    deadline = time.monotonic() + PATIENCE
    while not until() and time.monotonic() < deadline:
        time.sleep(0.05)


@contextlib.contextmanager
def nothing_left():
    """Give a fresh TMPDIR; at the end fail if a process, thread, open file or path is left."""
    folder = Path(tempfile.mkdtemp(prefix="f-", dir="/tmp" if os.name == "posix" else None))
    before, kept = os.environ.get("TMPDIR"), tempfile.tempdir
    os.environ["TMPDIR"], tempfile.tempdir = str(folder), None
    adopt_orphans()
    processes, threads, files = living(), set(threading.enumerate()), open_files()
    try:
        yield folder
        _check(folder, processes, threads, files)
    finally:
        for process in (new := [p for pid, p in living().items() if pid not in processes]):
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(new, timeout=PATIENCE)
        bury(processes)
        tempfile.tempdir = kept
        os.environ.pop("TMPDIR") if before is None else os.environ.update(TMPDIR=before)
        shutil.rmtree(folder, ignore_errors=True)


def _check(folder, processes, threads, files):
    gc.collect()
    _wait(lambda: living().keys() <= processes.keys())
    _wait(lambda: not any(folder.iterdir()))
    _wait(lambda: set(threading.enumerate()) <= threads and open_files() <= files)
    left = [f"process {tell(one)}" for pid, one in living().items() if pid not in processes]
    left += [str(thread) for thread in set(threading.enumerate()) - threads]
    left += [f"TMPDIR/{path.relative_to(folder)}" for path in folder.rglob("*")]
    if open_files() > files:
        left.append(f"{open_files() - files} open files")
    if left:
        raise LeftBehind("; ".join(left))
