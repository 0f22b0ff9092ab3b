"""Whatever a candidate does, the command gives every other candidate its verdict, and tidies up."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from course_lib.checking import held
from course_lib.checking.apart import kept_ends, read_verdict
from course_lib.checking.judging import judge_candidate, read_task

from .run.crews import signals_are_scoped

ROOT = Path(__file__).resolve().parents[1]
COMMAND = [sys.executable, "-m", "course_lib.contracts"]
ODD = """
import torch

class Odd(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise ZeroDivisionError("mine")

def f(t_q, t_k, *, query_offset=0):
    return torch.ones(t_q, t_k, dtype=torch.bool).as_subclass(Odd)
"""
posix = pytest.mark.skipif(os.name != "posix", reason="forks and signals are POSIX's")
pytestmark = [pytest.mark.delivery, posix]

RIGHT = '''
import ctypes, json, os, shutil, signal, subprocess, sys, tempfile, threading, time
import torch

LEFT = {left!r}  # where a candidate's processes write their numbers

def right(t_q, t_k, *, query_offset=0):
    if query_offset < 0:
        raise ValueError("a negative offset")
    return torch.arange(t_k) <= torch.arange(t_q)[:, None] + query_offset

def leave(name):
    """Stay for minutes, deaf to what can be ignored."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with open(os.path.join(LEFT, f"{{name}}-{{os.getpid()}}"), "w"):
        pass
    time.sleep(300)
    os._exit(0)

def wait(name):
    while not any(entry.startswith(name) for entry in os.listdir(LEFT)):
        time.sleep(0.01)
'''

# What each candidate does on its first call, then the verdict it must get and words of the reason.
FAULTS = {
    "segfaults": ("ctypes.string_at(0)", "not_runnable", "crashed: SIGSEGV"),
    "exits": ("sys.exit(5)", "not_runnable", r"SystemExit: 5 \(line \d+\)"),
    "kills_its_group": (
        "assert os.getpgrp() == os.getpid()\nos.killpg(0, signal.SIGKILL)",
        "not_runnable",
        "crashed: SIGKILL",
    ),
    "kills_its_guard": (
        "os.fork() or leave('orphan of a guard')\nwait('orphan of a guard')\n"
        "assert os.getpgid(os.getppid()) == os.getppid()\n"
        "os.killpg(os.getppid(), signal.SIGKILL)\ntime.sleep(300)",
        # where signals are scoped, the candidate's own call raises PermissionError
        "violation" if signals_are_scoped() else "not_runnable",
        "" if signals_are_scoped() else "ended from outside: SIGKILL",
    ),
    "lets_a_child_eat_memory": (
        "if os.fork() == 0:\n    kept = [bytearray(b'x') * 2**24 for _ in range(80)]\n"
        "time.sleep(300)",
        "not_runnable",
        "memory limit of 300 MiB",
    ),
    "is_a_crowd": (
        "for _ in range(100):\n    os.fork() or leave('crowd')\ntime.sleep(300)",
        "not_runnable",
        "more than 64 processes",
    ),
    "deserts": ("if os.fork(): os._exit(0)\nleave('deserter')", "not_runnable", "exit code 0"),
    "reads": (
        "os.lseek(0, 0, 0)\nos.read(0, 99) and os._exit(7)\ninput()",  # not even its own order
        "violation",
        "",
    ),
    "lies": (
        "lie = json.dumps({'verdict': 'accepted', 'contract': 'causal_mask'}) + '\\n'\n"
        "for fd in range(1, 64):\n"
        "    try: os.write(fd, lie.encode())\n"
        "    except OSError: pass\n"
        "return torch.ones(t_q, t_k, dtype=torch.bool)",
        "violation",
        "",
    ),
    "floods": (
        "for _ in range(1600):\n    os.write(1, b'o' * 2**15); os.write(2, b'e' * 2**15)\n"
        "print('\\nthe last words')",
        "accepted",
        "",
    ),
    "stays_behind": (
        "if os.fork() == 0:\n    os.setsid()\n    os.fork() or leave('daemon')\n    os._exit(0)\n"
        "code = 'import os, sys, time; open(sys.argv[1] + str(os.getpid()), \"w\");'\n"
        "code += 'time.sleep(300)'\n"
        "subprocess.Popen([sys.executable, '-c', code, os.path.join(LEFT, 'program-')], env={},\n"
        "    start_new_session=True)\n"
        "threading.Thread(target=time.sleep, args=(300,)).start()\n"
        "wait('daemon')\nwait('program')",
        "accepted",
        "",
    ),
    "lets_a_child_speak_for_it": (
        "if os.fork():\n    time.sleep(1.5)\n    os._exit(3)",
        "not_runnable",
        "exit code 3 before",
    ),
    "cleans_up_too_much": (
        "assert os.path.basename(os.getcwd()) == 'candidate'\n"
        "assert tempfile.gettempdir() == os.getcwd()\n"
        "shutil.rmtree(os.getcwd())\nos.chdir('/')\nprint('x' * 999)\nos.closerange(0, 256)",
        "accepted",
        "",
    ),
    "spoils_the_libraries": (
        "torch.equal = json.dumps = os.replace = sys.stdout = None",
        "not_runnable",
        "",
    ),
}


def write_candidates(folder):
    left = folder / "left"
    left.mkdir()
    lines = [RIGHT.format(left=str(left))]
    for name, (deed, _, _) in FAULTS.items():
        body = deed.replace("\n", "\n    ")
        lines.append(
            f"def {name}_once(t_q, t_k):\n    {body}\n\n"
            f"def {name}(t_q, t_k, *, query_offset=0, done=[]):\n"
            f"    if not done:\n        wrong = {name}_once(t_q, t_k)\n"
            f"        if wrong is not None: return wrong\n        done.append(1)\n"
            f"    return right(t_q, t_k, query_offset=query_offset)\n"
        )
    file = folder / "faults.py"
    file.write_text("\n".join(lines), encoding="utf-8")
    return file, left


def alive(left, patience=0.0):
    """The processes that candidates left running, by the names of their files.

    Patience is for what a killed process still has to do in the kernel.
    """
    deadline = time.monotonic() + patience
    while (found := running(left)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def running(left):
    found = {}
    for path in left.iterdir():
        pid = int(path.name.rpartition("-")[2])
        if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            found[path.name] = pid
    return found


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """All faults in one call of the command: the verdicts by name, and what is still running."""
    folder = tmp_path_factory.mktemp("faults")
    file, left = write_candidates(folder)
    (folder / "stops_on_import.py").write_text("raise KeyboardInterrupt\n", encoding="utf-8")
    (folder / "fails_on_import.py").write_text("\n\nnot_there + 1\n", encoding="utf-8")
    candidates = [f"{file}:{name}" for name in FAULTS]
    candidates += [f"{folder}/{name}_on_import.py:right" for name in ("stops", "fails")]
    candidates += [f"{file}:right"]
    limits = ["--json", "--jobs", "3", "--timeout", "60", "--memory", "300"]
    temporary = folder / "tmp"
    temporary.mkdir()
    done = subprocess.run(
        [*COMMAND, "causal_mask", *candidates, *limits],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        timeout=300,
        check=False,
    )
    verdicts = [json.loads(line) for line in done.stdout.decode("utf-8").splitlines()]
    assert [verdict["candidate"] for verdict in verdicts] == candidates
    named = {verdict["candidate"].rpartition(":")[2]: verdict for verdict in verdicts[:-3]}
    named |= {"stops_on_import": verdicts[-3], "fails_on_import": verdicts[-2]}
    return {**named, "right": verdicts[-1]}, left, done, temporary


@pytest.mark.parametrize("name", FAULTS)
def test_a_candidate_gets_the_verdict_that_it_earns(judged, name):
    _, wanted, reason = FAULTS[name]
    verdict = judged[0][name]
    assert verdict["verdict"] == wanted, verdict
    assert re.search(reason, verdict.get("reason", "")), verdict


def test_nothing_that_a_candidate_started_is_left(judged):
    left = judged[1]
    assert {path.name.rpartition("-")[0] for path in left.iterdir()} == {
        "orphan of a guard",
        "crowd",
        "deserter",
        "daemon",
        "program",
    }
    assert alive(left) == {}


def test_the_worst_verdict_is_the_exit_code_and_the_command_says_nothing_else(judged):
    assert judged[2].returncode == 2
    assert judged[2].stderr == b""


def test_an_import_that_stops_or_fails_is_told_with_its_line(judged):
    stops, fails = judged[0]["stops_on_import"], judged[0]["fails_on_import"]
    assert stops["reason"] == "importing stops_on_import.py raised KeyboardInterrupt (line 1)"
    assert fails["reason"].startswith("importing fails_on_import.py raised NameError: name 'not_t")
    assert fails["reason"].endswith(" (line 3)")
    assert {stops["verdict"], fails["verdict"]} == {"not_runnable"}


def test_a_flood_of_output_is_cut_to_its_ends(judged):
    printed = judged[0]["floods"]["printed"]
    assert printed["bytes"] > 100_000_000
    assert len(printed["lines"]) <= 12
    assert printed["lines"][-1] == "the last words"
    assert max(map(len, printed["lines"])) <= 200


def test_a_crash_shows_the_line_that_crashed(judged):
    printed = "\n".join(judged[0]["segfaults"]["printed"]["lines"])
    assert re.search(r"faults\.py.*, line \d+ in segfaults_once", printed)


def test_an_endless_loop_ends_at_the_limit_and_shows_its_line(tmp_path):
    file = tmp_path / "loops.py"
    file.write_text("def f(*sizes):\n    while sizes:\n        pass\n", encoding="utf-8")
    told = judge_candidate(read_task("causal_mask", f"{file}:f", timeout=1.5))
    assert told["verdict"] == "not_runnable"
    assert told["reason"] == "it ran longer than the time limit of 1.5 s (--timeout)"
    assert re.search(r'loops\.py", line [23] in f', "\n".join(told["printed"]["lines"]))


def test_no_temporary_folder_is_left(judged):
    assert list(judged[3].iterdir()) == []


def test_a_printed_verdict_is_output_and_nothing_more(judged):
    lines = judged[0]["lies"]["printed"]["lines"]
    assert '"verdict": "accepted"' in lines[0]
    assert judged[0]["lies"]["clause"] == "diagonal"


def test_a_good_neighbour_is_accepted_among_all_of_them(judged):
    assert judged[0]["right"]["verdict"] == "accepted"
    assert "printed" not in judged[0]["right"]


def start_and_wait(folder, left):
    """Start a check whose candidate leaves a process and then loops."""
    file = folder / "faults.py"
    process = subprocess.Popen(
        [*COMMAND, "causal_mask", f"{file}:deserts_and_loops"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not any(left.iterdir()) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert alive(left)
    return process


@pytest.mark.parametrize("how", ["SIGINT", "SIGKILL"])
def test_stopping_the_command_ends_its_candidates(tmp_path, how):
    file, left = write_candidates(tmp_path)
    with file.open("a", encoding="utf-8") as text:
        text.write(
            "\ndef deserts_and_loops(t_q, t_k, *, query_offset=0):\n"
            "    if os.fork() == 0:\n        os.setsid()\n        leave('orphan')\n"
            "    while True: pass\n"
        )
    process = start_and_wait(tmp_path, left)
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(getattr(signal, how))
    _, words = process.communicate(timeout=30)
    if how == "SIGINT":
        assert (process.returncode, words) == (130, b"stopped\n")
        assert alive(left) == {}  # already, when the command is back
    psutil.wait_procs(family, timeout=20)
    assert [p for p in family if p.is_running()] == []
    assert alive(left, patience=20.0) == {}


@pytest.mark.skipif(sys.platform != "linux", reason="preloaded processes are of Linux alone")
@pytest.mark.parametrize("stopped", ["supervisor", "both"])
def test_a_supervisor_that_is_brought_to_a_halt_goes_on_or_is_given_up(
    stopped, tmp_path, monkeypatch
):
    monkeypatch.setattr(held, "PATIENCE", 2.0)
    file, left = write_candidates(tmp_path)
    with file.open("a", encoding="utf-8") as text:
        text.write("\ndef f(*sizes):\n    leave('late')\n")
    told, before = [], psutil.Process().children()
    task = read_task("causal_mask", f"{file}:f", timeout=4.0)
    thread = threading.Thread(target=lambda: told.append(judge_candidate(task)))
    thread.start()
    while not any(left.iterdir()):
        time.sleep(0.05)
    (nursery,) = set(psutil.Process().children()) - set(before)
    for process in [*nursery.children(), *[nursery] * (stopped == "both")]:
        process.send_signal(signal.SIGSTOP)
    thread.join()
    assert told[0]["verdict"] == "not_runnable"
    assert "longer than the time limit of 4 s" in told[0]["reason"]
    assert alive(left, patience=5.0) == {}


def test_a_candidate_has_no_network(tmp_path):
    if sys.platform != "linux" or leaves_no_network():
        pytest.skip("this system gives no process a network of its own")
    file = tmp_path / "asks.py"
    file.write_text(
        "import socket\nsocket.create_connection(('192.0.2.1', 80), timeout=5)", encoding="utf-8"
    )
    told = judge_candidate(read_task("causal_mask", f"{file}:f"))
    assert "Network is unreachable" in told["reason"]


def leaves_no_network():
    code = "from course_lib.checking.network import leave_network; print(leave_network())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    return done.stdout == b"guard\n"


def test_a_fault_in_the_candidates_own_lines_is_not_laid_on_the_contract(tmp_path):
    file = tmp_path / "odd.py"
    file.write_text(ODD, encoding="utf-8")
    told = judge_candidate(read_task("causal_mask", f"{file}:f"))
    assert "the contract itself" not in told.get("reason", "") + told.get("diagnosis", "")
    assert re.search(r"a call of the function ended the check with \w+.*line \d", told["reason"])


def test_only_a_whole_verdict_with_the_nonce_is_a_verdict(tmp_path):
    path = tmp_path / "verdict"
    assert read_verdict(path, "n") is None
    for text in ("", "{", "[]", "{}", '{"verdict": "accepted"}', '{"nonce": "m"}', "\udcff"):
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
        assert read_verdict(path, "n") is None, text
    path.write_text('{"nonce": "n", "verdict": "violation"}', encoding="utf-8")
    assert read_verdict(path, "n") == {"verdict": "violation"}


@pytest.mark.parametrize("size", [0, 1, 2000, 3999, 4000, 4001, 70_000, 1_000_000])
def test_of_a_stream_the_ends_are_kept(size, tmp_path):
    data = bytes(97 + place % 26 for place in range(size))
    (tmp_path / "log").write_bytes(data)
    kept = kept_ends(tmp_path / "log")
    assert kept["size"] == size
    assert kept["left_out"] == max(0, size - 4000)
    texts = [data] if size <= 4000 else [data[:2000], data[-2000:]]
    assert kept["parts"] == [text.decode() for text in texts]
