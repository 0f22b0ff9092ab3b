"""Ask a nursery for children and hear how they end: what the runner and the command hold.

    with contextlib.closing(Nursery(folder, environment, order)) as nursery:
        nursery.ready(stop)
        with contextlib.closing(Held(nursery.address, request)) as child:
            while not child.ended(LOOK): ...

A request: argv, env, cwd, log, limits, and whether to `fork`. Of Linux alone; `alone.py` is there
for other systems.
"""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from course_lib.checking.supervisor import descendants, send_signal

ROOT = str(Path(__file__).resolve().parents[2])
START = 180  # seconds for a nursery to import, on a busy machine too
PATIENCE = 75  # seconds in which a nursery has ended its children and itself
LOOK = 0.2  # seconds between two looks at the clock and at the order to stop
SHORT = 60  # characters of a folder in which the names of sockets (108 bytes at most) find room
_START_NURSERY = """
import json, sys
sys.path.insert(0, sys.argv[1])
from course_lib.checking.nursery import be_nursery
work = be_nursery(json.loads(sys.argv[2]))
exec("work()")  # `python -m` calls exec too: the stack below is as deep as in a fresh process
"""


def make_folder(parent: Path | None = None) -> Path:
    """Make a private folder whose name is short enough for the sockets in it."""
    usual = tempfile.gettempdir()
    place = parent or (usual if len(usual) < SHORT else "/tmp")
    return Path(tempfile.mkdtemp(prefix="course-", dir=place))


class Nursery:
    """One process of `nursery.py`, started again when it has died."""

    def __init__(self, folder: Path, env: dict[str, str], order: dict[str, Any]) -> None:
        self.folder, self.env = folder, env
        self.address, self.log = str(folder / "s"), folder / "log.txt"
        usual = {"root": ROOT, "path": [], "forbidden": [], "fenced": False, "clients": False}
        self.order = usual | {"parent_in": "", "socket": self.address} | order
        self.started, self.answers, self.closed = 0, False, False
        self._lock = threading.Lock()
        self._start()

    def _start(self) -> None:
        self.started += 1
        self.answers = False
        (self.folder / "cwd").mkdir(parents=True, exist_ok=True)
        for name in (self.address, f"{self.address}-"):
            Path(name).unlink(missing_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _START_NURSERY, ROOT, json.dumps(self.order)],
                cwd=self.folder / "cwd",
                env=self.env,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def ready(self, stop: threading.Event) -> int:
        """Wait until the process answers, has died, or nobody wants it; say which start this is.

        One that has died since it answered is started again; so is one whose socket is gone,
        which nobody could ask any more. One that does not answer in START seconds is killed.
        """
        with self._lock:
            lost = self.answers and not Path(self.address).exists()
            if not self.closed and (lost or self.process.poll() is not None):
                self.kill()  # not asked to end, for then it removes the folder of all
                self.process.stdin.close()
                self._start()
            deadline = time.monotonic() + START
            while not (self._can_be_asked() or self.closed or stop.is_set()):
                if self.process.poll() is not None:
                    break
                if time.monotonic() > deadline:
                    self.kill()
                stop.wait(0.01)
            self.answers |= self._can_be_asked()
            return self.started

    def _can_be_asked(self) -> bool:
        return self.process.poll() is None and Path(self.address).exists()

    def last_words(self) -> str:
        """Return the end of the log."""
        with contextlib.suppress(OSError):  # a child may have removed the folder
            return self.log.read_text(encoding="utf-8", errors="replace").strip()[-2000:]
        return "its folder is gone"

    def kill(self) -> None:
        """Kill a process that does not do what it is told, with all its descendants."""
        family = [self.process.pid, *descendants(self.process.pid)]
        for pid in family if self.process.poll() is None else ():
            send_signal(os.kill, pid, signal.SIGKILL)
        self.process.wait()

    def _end(self) -> None:
        self.process.stdin.close()
        if not self.answers and not Path(self.address).exists():
            self.process.kill()  # still importing: it has no child yet
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()

    def close(self) -> None:
        """End the process and all its children, and wait for that."""
        self.closed = True
        with self._lock:
            self._end()


class Held:
    """A supervised process on the connection to its supervisor; `told` is what that has said.

    At first pid, network and kernel, or why the child was `refused`; at the end status (the exit
    code, or minus the signal), peak_mb and why (memory or processes).
    """

    def __init__(self, address: str, request: dict[str, Any]) -> None:
        """Ask for a child; OSError when nobody answers."""
        self.told: dict[str, Any] = {}
        self.over = False
        self._unread = b""
        self.connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.connection.connect(address)
            self.connection.sendall(json.dumps(request).encode() + b"\n")
        except OSError:
            self.connection.close()
            raise

    def ended(self, patience: float | None) -> bool:
        """Wait some seconds at most for the end of the child and of all its descendants."""
        if self.over or not select.select([self.connection], [], [], patience)[0]:
            return self.over
        try:
            data = self.connection.recv(65536)
        except OSError:
            data = b""
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            self.told |= json.loads(line)
        self.over = not data
        return self.over

    def send(self, signum: int) -> None:
        """Send a signal to the child's process group; SIGKILL goes to all its descendants."""
        with contextlib.suppress(OSError):
            self.connection.sendall(bytes([signum]))

    def close(self) -> None:
        """Have killed whoever is left."""
        self.connection.close()


def end(child: Any, signum: int, grace: float) -> bool:
    """Ask a child (Held or Alone) to end, then have it killed; say whether that was heard."""
    for order, patience in ((signum, grace), (signal.SIGKILL, PATIENCE)):
        child.send(order)
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            if child.ended(LOOK):
                return True
    return False
