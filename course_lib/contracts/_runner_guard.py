"""Watch over one checking process: time, memory, output, and every process it leaves behind.

Between the command and a candidate stands this small process. It is run by its path, so it imports
nothing from the course (and no torch); the checking process is its child. On Linux, orphans of
that child come back to it (PR_SET_CHILD_SUBREAPER); everywhere, all that descend from the child
carry a mark in their environment by which they are found. This holds off accidents. It is no
security sandbox: a candidate that means harm has the rights of whoever runs the command.
"""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import psutil

MARK = "COURSE_CONTRACT_CHECK"  # the variable by which a candidate's processes are known
GUARD_START = 180.0  # seconds for importing torch, on a busy machine too
GUARD_CROWD = 64  # processes at once
_GUARD_KEPT = 2000  # bytes kept of the beginning of the output, and as many of its end
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_SIGKILL = 9  # a name that Windows does not have
_WORKER_CODE = """
import sys
if sys.argv[1] not in sys.path:
    sys.path.insert(0, sys.argv[1])
from course_lib.contracts._runner_worker import work
work()
"""


def guard() -> None:
    """Read an order from stdin, have it done, write the outcome to stdout.

    Whoever gave the order keeps stdin open; when it is closed, the check is stopped.
    """
    order = json.loads(sys.stdin.buffer.readline())
    gone = threading.Event()
    threading.Thread(target=_wait_for_end, args=(gone,), daemon=True).start()
    _linux_prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        outcome = _guarded_check(order, gone)
    finally:  # whoever gave the order does this too, in case that this process is killed
        shutil.rmtree(order["folder"], ignore_errors=True)
    sys.stdout.buffer.write(json.dumps(outcome).encode() + b"\n")
    sys.stdout.buffer.flush()
    os._exit(0)


def _wait_for_end(gone: threading.Event) -> None:
    sys.stdin.buffer.read()
    gone.set()


def _linux_prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def die_with_parent(parent: int) -> None:
    """On Linux, let this process end when its parent does."""
    _linux_prctl(_PR_SET_PDEATHSIG, _SIGKILL)
    if os.name == "posix" and os.getppid() != parent:
        os._exit(1)


def _guarded_check(order: dict[str, Any], gone: threading.Event) -> dict[str, Any]:
    """Start the checking process, wait for it or end it, and collect what it left."""
    box, private = (Path(order["folder"], name) for name in ("candidate", "contract"))
    box.mkdir()
    private.mkdir()
    files = {"ready": str(private / "ready"), "verdict": str(private / order["nonce"])}
    worker = _start_worker({**order["task"], **files, "nonce": order["nonce"]}, order, box)
    output = KeptOutput(worker.stdout)
    begun = time.monotonic()
    why = _watch(worker, Path(files["ready"]), order["limits"], gone)
    code = worker.poll()
    if why == "out_of_time":
        _ask_for_place(worker)
    end_processes(worker, order["mark"])
    return {
        "nonce": order["nonce"],
        "why": why,
        "code": code,
        "told": _read_verdict(Path(files["verdict"]), order["nonce"]),
        "printed": output.kept(),
        "seconds": round(time.monotonic() - begun, 3),
    }


def _start_worker(task: dict[str, Any], order: dict[str, Any], box: Path) -> subprocess.Popen:
    """Start the checking process in an empty folder, a session and a group of its own.

    The order reaches it through an unnamed file: nothing of it is on the command line.
    """
    environment = {
        **os.environ,
        MARK: order["mark"],
        "OMP_NUM_THREADS": "1",
        "PYTHONIOENCODING": "utf-8:backslashreplace",
        **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(box)),
    }
    command = [sys.executable, "-P", "-X", "faulthandler", "-c", _WORKER_CODE, order["root"]]
    with tempfile.TemporaryFile() as stdin:
        stdin.write(json.dumps({**task, "guard": os.getpid()}).encode())
        stdin.seek(0)
        return subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=box,
            env=environment,
            start_new_session=True,
        )


def _watch(
    worker: subprocess.Popen, ready: Path, limits: dict[str, float], gone: threading.Event
) -> str:
    """Wait until the process has ended ("") or say why it must be ended."""
    deadline, base, rounds = time.monotonic() + GUARD_START, None, 0
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.wait(0.05)
            return ""
        if gone.is_set():
            return "stopped"
        if base is None and ready.exists():  # torch is there: from now on the candidate counts
            base = int(ready.read_text(encoding="utf-8"))
            deadline = time.monotonic() + limits["timeout"]
        if time.monotonic() > deadline:
            return "no_start" if base is None else "out_of_time"
        rounds += 1
        if base is not None and rounds % 4 == 0:  # looking through all processes has its price
            why = _overdrawn(worker.pid, base, limits["memory"])
            if why:
                return why


def _ask_for_place(worker: subprocess.Popen) -> None:
    """Let the process print where it is: the lines of an endless loop are what one wants to see."""
    if hasattr(signal, "SIGUSR1"):
        worker.send_signal(signal.SIGUSR1)
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.wait(0.3)


def _overdrawn(pid: int, base: int, memory: float) -> str:
    """Say which limit the process and its descendants are over."""
    family = descendants()
    if len(family) > GUARD_CROWD and len(_alive(family)) > GUARD_CROWD:
        return "crowd"
    limit = base + memory * 2**20
    # Forked processes share pages: count exactly only when the rough count is over the limit.
    over = _taken(family, exactly=False) > limit and _taken(family, exactly=True) > limit
    return "out_of_memory" if over else ""


def _taken(processes: Iterable[psutil.Process], exactly: bool) -> int:
    total = 0
    for process in processes:
        with contextlib.suppress(psutil.Error, OSError):
            if exactly:
                info = process.memory_full_info()
                total += getattr(info, "pss", info.uss)
            else:
                total += process.memory_info().rss
    return total


def descendants() -> list[psutil.Process]:
    """List all processes that descend from this one."""
    with contextlib.suppress(psutil.Error):
        return psutil.Process().children(recursive=True)
    return []


def marked_processes(mark: str) -> list[psutil.Process]:
    """List the processes that were started with a mark in their environment."""
    found = []
    for pid in psutil.pids():
        with contextlib.suppress(psutil.Error, OSError):
            process = psutil.Process(pid)
            if process.environ().get(MARK) == mark:
                found.append(process)
    return found


def _alive(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    alive = []
    for process in processes:
        with contextlib.suppress(psutil.Error):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                alive.append(process)
    return alive


def end_processes(worker: subprocess.Popen | None, mark: str, seconds: float = 10.0) -> None:
    """Kill a candidate's processes, and again what they started meanwhile, until none is left."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        family = [*(descendants() if worker else []), *marked_processes(mark)]
        alive = _alive(set(family))
        if not alive:
            break
        for process in alive:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(alive, timeout=0.2)
    if worker:
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.wait(1.0)


def _read_verdict(path: Path, nonce: str) -> dict[str, Any] | None:
    """Read what the checking process left; None if that is not its word, whole."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) and told.pop("nonce", None) == nonce else None


class KeptOutput:
    """Read a stream to its end in a thread and keep its first and its last bytes only."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream, self.size, self.head, self.tail = stream, 0, b"", deque()
        self.thread = threading.Thread(target=self._drain, daemon=True)
        self.thread.start()

    def _drain(self) -> None:
        while data := self.stream.read1(65536):
            self.size += len(data)
            room = _GUARD_KEPT - len(self.head)
            self.head, data = self.head + data[:room], data[room:]
            self.tail.append(data[-_GUARD_KEPT:])
            while sum(map(len, self.tail)) - len(self.tail[0]) >= _GUARD_KEPT:
                self.tail.popleft()

    def kept(self) -> dict[str, Any]:
        """What was printed: its size, its beginning, and its end where the two do not meet."""
        self.thread.join(1.0)
        tail = b"".join(self.tail)[-_GUARD_KEPT:]
        left_out = self.size - len(self.head) - len(tail)
        parts = [self.head + tail] if left_out == 0 else [self.head, tail]
        texts = [part.decode("utf-8", "replace") for part in parts]
        return {"size": self.size, "left_out": left_out, "parts": texts}
