"""Cells that end, break, flood or outlast their kernel: each is reported, and nothing is left.

All of them run at once in two runs, so that each costs one kernel.
"""

import re
from dataclasses import dataclass

import nbformat
import pytest

from course_build.run.outcome import Limits, Plan
from course_build.run.pool import run_jobs
from course_build.run.reports import describe

from .leftovers import LeftBehind, nothing_left
from .notebooks import make_job

pytestmark = [pytest.mark.delivery, pytest.mark.xdist_group("faults cells")]

# Real faults end by themselves; these limits only keep a broken runner from waiting for ever.
LIMITS = Limits(start=60, cell=60, wall=90, grace=5, memory_mb=700, file_mb=50, output_mb=10)
SHORT = Limits(start=60, cell=4, wall=40, grace=5, output_mb=10)


@dataclass(frozen=True)
class Fault:
    """Cells and what must come of them: a status, words of the reason, the cell to blame."""

    sources: list[str]
    reason: str = ""  # a pattern; empty: the notebook passes
    cell: int | None = 2  # counted from 1


def second(source, reason="", cell=2):
    """A fault in the second of three cells."""
    return Fault(["print('before')", source, "print('after')"], reason, cell)


DIED = "kernel died"
FLOOD = "printed and showed more than its limit of 10 MB"
OURS = {
    # the cell leaves
    "exit_0": second(
        "import sys; sys.exit(0)", r"sys.exit\(0\).* 1 code cells? after it never ran"
    ),
    "exit_1": second("import sys; sys.exit(1)", r"sys.exit\(1\)"),
    "exit_last": Fault(["1", "raise SystemExit"], r"sys.exit\(\)"),
    "quit": Fault(["quit()", "import time; time.sleep(1)", "1", "2"], "never ran|" + DIED, None),
    "os_exit": second("import os; os._exit(0)", DIED),
    "interrupt": second("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "input": second("input('name? ')", "StdinNotImplementedError"),
    # the kernel is killed
    "sigkill": second("import os; os.kill(os.getpid(), 9)", DIED),
    "sigterm": second("import os; os.kill(os.getpid(), 15); print('alive')", DIED),
    "segfault": second("import ctypes; ctypes.string_at(0)", DIED),
    "abort": second("import os; os.abort()", DIED),
    "kills_parent": second(  # its signals reach its own family alone, where Landlock says so
        "import os, time; os.kill(os.getppid(), 9); time.sleep(5)",
        f"{DIED}|Operation not permitted",
    ),
    "kills_group": second("import os; os.killpg(0, 9)", DIED),
    # more than the limits allow
    "memory": second(
        "hoard = [bytearray(10**7) for _ in range(150)]",
        "MemoryError|more memory than its limit of 700 MB",
    ),
    "memory_of_children": second(
        "import subprocess, sys, time\n"
        "code = 'hoard = bytearray(3 * 10**8); import time; time.sleep(30)'\n"
        "crowd = [subprocess.Popen([sys.executable, '-c', code]) for _ in range(4)]\n"
        "[child.wait() for child in crowd]",
        "more memory than its limit of 700 MB",
    ),
    "file": second(
        "with open('big', 'wb') as file:\n    for _ in range(100): file.write(bytes(10**6))",
        "File too large|EFBIG",
    ),
    "crowd": second(
        "import subprocess, time\n"
        "crowd = [subprocess.Popen(['sleep', '60']) for _ in range(150)]\n"
        "time.sleep(30)",
        "processes|Resource temporarily unavailable",
    ),
    # floods
    "flood": second("for _ in range(1000): print('x' * 100_000)", FLOOD),
    "flood_stderr": second(
        "import sys\nfor _ in range(1000): sys.stderr.write('x' * 100_000)", FLOOD
    ),
    "flood_of_child": second(
        "import subprocess\n"
        "done = subprocess.run('head -c 100000000 /dev/zero | tr \"\\\\0\" y', shell=True)",
        FLOOD,
    ),
    "huge_display": second(
        "from IPython.display import HTML, display\ndisplay(HTML('x' * 50_000_000))", FLOOD
    ),
    "huge_result": second("'x' * 50_000_000", FLOOD),
    "huge_error": second("raise ValueError('x' * 5_000_000)", "ValueError: xxx"),
    # streams and descriptors
    "close_stdout": second("import sys; sys.stdout.close()", "closed file", 3),
    "close_fds_1_and_2": second("import os; os.close(1); os.close(2)"),
    "close_stdin": second("import os; os.close(0)"),
    "not_utf8": second("import os; os.write(1, b'\\xff\\xfe\\n')"),
    "lone_surrogate": second("print('\\udcff')", "", None),
    "surrogate_result": second("'\\udcff'", "", None),
    "enormous_error": second("raise ValueError('x' * 20_000_000)", FLOOD),
    "lone_surrogate_in_error": second("raise ValueError('\\udcff')", "ValueError"),
    "error_without_words": second(
        "class Mute(Exception):\n    def __str__(self): raise TypeError('mute')\nraise Mute", "mute"
    ),
    # children
    "zombies": second(
        "import subprocess\nchildren = [subprocess.Popen(['true']) for _ in range(10)]"
    ),
    "child_holds_stdout": second("import subprocess\nkept = subprocess.Popen(['sleep', '600'])"),
    "deaf_child": second(
        "import subprocess, sys\n"
        "code = 'import signal, time\\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\\n'\n"
        "kept = subprocess.Popen([sys.executable, '-c', code + 'time.sleep(600)'])"
    ),
    "daemon": second(
        "import os\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        os.chdir('/')\n"
        "        os.closerange(0, 1000)\n"
        "        os.execve('/bin/sleep', ['innocent', '600'], {})\n"
        "    os._exit(0)\n"
        "else: os.wait()"
    ),
    "fork_of_kernel": second(
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\n    os._exit(0)"
    ),
    # the end of the kernel
    "thread_at_exit": second(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()"
    ),
    "atexit_hangs": second("import atexit, time; atexit.register(time.sleep, 600)"),
    "deaf_kernel": second("import signal\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)"),
    "lock_at_exit": second(
        "import atexit, threading\n"
        "lock = threading.Lock()\nlock.acquire()\natexit.register(lock.acquire)"
    ),
    # its folders
    "removes_its_folder": second(
        "import os, shutil\nshutil.rmtree(os.getcwd())", "No such file", 3
    ),
    "locked_folder": second(
        "import os, pathlib\n"
        "for home in (pathlib.Path.cwd(), pathlib.Path.home()):\n"
        "    (home / 'a' / 'b').mkdir(parents=True)\n    (home / 'a').chmod(0)"
    ),
}

SLOW = {
    "loop": second("while True: pass", "longer than its limit of 4 s"),
    "deaf_loop": second(
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "longer than its limit of 4 s",
    ),
    "waits": second("import threading; threading.Event().wait()", "longer than its limit of 4 s"),
    "slow_printer": second(
        "import time\nwhile True: print('tick', flush=True); time.sleep(0.1)",
        "longer than its limit of 4 s",
    ),
    "stopped": second("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", "limit of 4 s"),
    "becomes_another": second("import os; os.execv('/bin/sleep', ['sleep', '600'])", "4 s|" + DIED),
    "closes_all": second("import os; os.closerange(3, 1000)", "4 s|" + DIED),
    "closes_sockets": second(
        "import gc, zmq\n"
        "for thing in gc.get_objects():\n"
        "    if isinstance(thing, zmq.Socket): thing.close(0)",
        "4 s|" + DIED,
        None,
    ),
    "no_stdout": second("import sys; sys.stdout = sys.stderr = None", "4 s|NoneType", None),
    "busy_thread": second(
        "import threading\ndef spin():\n    while True: pass\n"
        "threading.Thread(target=spin, daemon=True).start()"
    ),
}


def run_all(folder, faults, limits):
    jobs = [make_job(folder, name, fault.sources) for name, fault in faults.items()]
    return {outcome.job.name: outcome for outcome in run_jobs(jobs, Plan(limits=limits))}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run all faults; return the outcomes by name, and what was left behind (None: nothing)."""
    outcomes, left = {}, None
    folder = tmp_path_factory.mktemp("faults")
    try:
        with nothing_left():
            outcomes |= run_all(folder, OURS, LIMITS)
            outcomes |= run_all(folder, SLOW, SHORT)
    except LeftBehind as error:
        left = error
    return outcomes, left


def test_nothing_is_left_of_any_of_them(run):
    assert run[1] is None


@pytest.mark.parametrize("name", [*OURS, *SLOW])
def test_a_fault_is_told_as_it_is_and_kept_to_its_notebook(run, name):
    fault, outcome = (OURS | SLOW)[name], run[0][name]
    if not fault.reason:
        assert outcome.status == "passed", describe(outcome)
        return
    assert outcome.status == "failed", describe(outcome)
    assert re.search(fault.reason, outcome.failure.reason), describe(outcome)
    if fault.cell:
        assert outcome.failure.cell == fault.cell, describe(outcome)
    assert len(describe(outcome)) < 10_000
    nbformat.read(str(outcome.job.executed), 4)  # what ran is kept, as a notebook
