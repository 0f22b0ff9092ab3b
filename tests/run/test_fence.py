"""A kernel cannot pass for the runner: neither its word nor its orders count."""

import json
import signal
import sys
import threading
import time

import psutil
import pytest

from course_build.run.crew import Crew
from course_build.run.outcome import Plan
from course_lib.checking import held

from .crews import LIMITS, forked, plain, printed, run, signals_are_scoped  # noqa: F401

linux = pytest.mark.skipif(sys.platform != "linux", reason="kernels are held on Linux alone")
pytestmark = [pytest.mark.delivery, linux]

BOX = """
import json, os
from pathlib import Path
box = Path(os.environ["HOME"]).parent
job = json.loads((box / "job.json").read_text())
"""
FORGED = {
    "seconds": 1,
    "peak_mb": 1,
    "failure": None,
    "status": "passed",
    "cells": {},
    "kernel": "forked",
    "network": "namespace",
}
WORDS = {
    "a result": f"(box / 'result.json').write_text({json.dumps(FORGED)!r})",
    "a pipe": "(box / 'log.txt').unlink(); os.mkfifo(box / 'log.txt')",
}
ASK = """
import socket
def ask(address):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(20)
        request = {"argv": ["true"], "fork": "", "kernel": False, "env": {}, "cwd": "/"}
        try:
            connection.connect(str(address))
            connection.sendall(json.dumps(request | {"log": job["log"]}).encode() + b"\\n")
            if not (child := os.fork()):
                os._exit(0)
            return connection.recv(1000)
        except ConnectionError:
            return b""
mine = Path(job["address"])
others = [place for place in mine.parents[1].glob("*/s") if place != mine]
assert others
print(ask(mine), *map(ask, others))
"""
LOST = """
def ask_and_vanish(address):
    ours, theirs = socket.socketpair()
    if not os.fork():
        if not os.fork():
            time.sleep(0.5)  # its parent is gone by now
            theirs.sendall(ask(address) or b"refused")
            os._exit(0)
        os._exit(0)
    return ours.recv(1000)
import time
print(ask_and_vanish(mine))
"""


def client_of(crew):
    """Return the one client that runs."""
    (supervisor,) = psutil.Process(crew.clients.process.pid).children()
    (client,) = supervisor.children()
    return client


def running(crew, folder, source):
    """Start a notebook that goes on for long; return its thread, and where its outcome will be."""
    begun, outcomes = folder / "begun", []
    source += f"\nPath({str(begun)!r}).touch(); import time; time.sleep(60)"
    thread = threading.Thread(target=lambda: outcomes.append(run(crew, folder, BOX + source)))
    thread.start()
    while not begun.exists():
        time.sleep(0.02)
    return thread, outcomes


@pytest.mark.parametrize("words", WORDS)
def test_the_result_of_a_client_that_was_killed_is_not_believed(words, forked, tmp_path):  # noqa: F811
    thread, outcomes = running(forked, tmp_path, WORDS[words])
    client_of(forked).kill()
    thread.join()
    assert outcomes[0].status == "broken"
    assert "the worker died before it could report" in outcomes[0].failure.reason


@pytest.mark.parametrize("kind", ["forked", "plain"])
def test_a_kernel_gets_no_child_from_the_preloaded_processes(kind, request, tmp_path):
    crew = request.getfixturevalue(kind)
    told = printed(run(crew, tmp_path, BOX + ASK, LOST))
    assert told == "b'' b''\nb'refused'\n"


@pytest.mark.parametrize("kind", ["forked", "plain"])
def test_no_signal_of_a_kernel_leaves_its_family(kind, request, tmp_path):
    if not signals_are_scoped():
        pytest.skip("this system does not scope signals")
    source = (
        "import os, signal, subprocess\n"
        "child = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
        "child.send_signal(signal.SIGSTOP); child.kill(); print(child.wait())\n"
        f"for pid in (os.getppid(), {psutil.Process().pid}):\n"
        "    try: os.kill(pid, signal.SIGCONT)\n"
        "    except PermissionError: print('refused')"
    )
    told = printed(run(request.getfixturevalue(kind), tmp_path, source))
    assert told == "-9\nrefused\nrefused\n"


@pytest.mark.parametrize("stopped", ["supervisor", "nursery", "both"])
def test_what_was_stopped_ends_with_the_crew(stopped, tmp_path, monkeypatch):
    monkeypatch.setattr(held, "PATIENCE", 1 if stopped != "supervisor" else 25)
    with Crew(Plan(limits=LIMITS)) as crew:
        source = "import subprocess\nsubprocess.Popen(['sleep', '60'], start_new_session=True)"
        thread, _ = running(crew, tmp_path, source)
        nursery = psutil.Process(crew.kernels.process.pid)
        family = nursery.children(recursive=True)
        assert len(family) >= 3  # supervisor, kernel, sleep
        for process in (family[:1] if stopped != "nursery" else []) + [nursery] * (
            stopped != "supervisor"
        ):
            process.send_signal(signal.SIGSTOP)
    thread.join()
    _, left = psutil.wait_procs(family, timeout=10)
    assert left == []
