"""A run that is stopped: by Ctrl-C, by SIGTERM, by SIGKILL, by a reader that goes away.

Its processes are gone within seconds, what had ended is kept, and the report tells of it.
"""

import contextlib
import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import time

import psutil
import pytest

from .notebooks import environment, make_checkout, run_command

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process its orphans")
pytestmark = [pytest.mark.delivery, linux]

ENDLESS = (
    "import pathlib, signal, subprocess, sys\n"
    "for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP): signal.signal(n, signal.SIG_IGN)\n"
    "kept = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
    "pathlib.Path({started!r}).touch()\n"
    "while True: pass"
)


@contextlib.contextmanager
def running(folder, *arguments, **options):
    """Start the runner on one quick notebook and two endless ones; wait until both kinds ran."""
    started = folder.parent / "started"
    endless = ["1", ENDLESS.format(started=str(started))]
    quick = ["print('done')  # the longest code comes first" + " " * 1000]
    notebooks = {"module_01_quick": quick, "module_02_endless": endless}
    course = make_checkout(folder, notebooks | {"module_03_endless": endless})
    executed = course / "build" / "executed"
    with (folder.parent / "log").open("w+b") as log:
        command = run_command(*arguments)
        options = {"stdout": log, "stderr": log, "start_new_session": True} | options
        parent = subprocess.Popen(command, cwd=course, env=environment(), **options)
        try:
            quick = executed / "learner" / "en" / "module_01_quick.ipynb"
            deadline = time.monotonic() + 100
            while not (started.exists() and quick.exists()):
                told = (folder.parent / "log").read_text("utf-8")
                assert parent.poll() is None, told
                assert time.monotonic() < deadline, told
                time.sleep(0.1)
            yield parent, executed
        finally:
            if parent.poll() is None:
                parent.kill()
            parent.wait()


def interrupt_group(parent):
    os.killpg(parent.pid, signal.SIGINT)  # as a terminal does


def interrupt_twice(parent):
    interrupt_group(parent)
    time.sleep(0.3)
    with contextlib.suppress(ProcessLookupError):
        interrupt_group(parent)


STOPS = {
    "ctrl_c": (interrupt_group, 130),
    "ctrl_c_twice": (interrupt_twice, 130),
    "sigint_to_the_parent_alone": (lambda parent: parent.send_signal(signal.SIGINT), 130),
    "sigterm": (lambda parent: parent.send_signal(signal.SIGTERM), 143),
}


@pytest.mark.parametrize("name", STOPS)
def test_a_stopped_run_keeps_what_had_ended_and_reports_it(name, tmp_path, clean_room):
    stop, code = STOPS[name]
    with running(tmp_path / "course") as (parent, executed):
        stop(parent)
        assert parent.wait(60) == code
    log = (tmp_path / "log").read_text("utf-8")
    assert "Traceback" not in log, log
    report = json.loads((executed / "report.json").read_text("utf-8"))
    told = {one["notebook"]: one["status"] for one in report["notebooks"]}
    assert told.pop("module_01_quick") == "passed"
    assert set(told.values()) <= {"stopped", "not run"}, told
    kept = json.loads((executed / "learner/en/module_01_quick.ipynb").read_text("utf-8"))
    assert kept["cells"][0]["outputs"][0]["text"] == ["done\n"]


def test_a_run_that_is_killed_outright_leaves_nothing(tmp_path, clean_room):
    with running(tmp_path / "course") as (parent, _):
        assert len(psutil.Process(parent.pid).children(recursive=True)) > 2
        parent.kill()


def test_a_run_whose_terminal_goes_away_leaves_nothing(tmp_path, clean_room):
    ours, its = pty.openpty()
    options = dict.fromkeys(("stdin", "stdout", "stderr"), its)

    def take_terminal():
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup would hand on its deafness
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    with running(tmp_path / "course", preexec_fn=take_terminal, **options) as (parent, executed):
        os.close(its)
        os.close(ours)  # the kernel sends SIGHUP, and every write fails from now on
        assert parent.wait(60) != 0
    assert (executed / "learner" / "en" / "module_01_quick.ipynb").exists()


def test_a_run_whose_reader_goes_away_ends_without_a_traceback(tmp_path, clean_room):
    notebooks = {f"module_{n:02d}_quick": ["print(1)"] for n in range(1, 4)}
    course = make_checkout(tmp_path / "course", notebooks)
    command = run_command()
    with (tmp_path / "log").open("wb") as log:
        parent = subprocess.Popen(
            command, cwd=course, env=environment(), stdout=subprocess.PIPE, stderr=log
        )
        parent.stdout.close()
        parent.wait(120)
    assert "Traceback" not in (tmp_path / "log").read_text("utf-8")
    assert parent.returncode != 0
