"""Start the preloaded processes of a run, ask them for children, and end them."""

import contextlib
import json
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import psutil

from course_build.run import environment
from course_build.run.environment import HERE, kernel_environment, make_box, make_guard
from course_build.run.outcome import Plan
from course_build.run.unsupervised import family

PATIENCE = 25  # seconds in which a preloaded process has ended its children and itself
SHORT = 60  # characters of a folder in which the names of sockets (108 bytes at most) find room

# Not pyplot and not matplotlib_inline: the latter hooks itself up when it is imported, and in a
# process without a shell that loses every picture of the kernels forked from it.
FOR_KERNELS = (
    "numpy",
    "torch",
    "torch._dynamo",
    "ipykernel.kernelapp",
    "ipykernel.ipkernel",
    "ipykernel.zmqshell",
    "matplotlib.figure",
    "matplotlib.backends.backend_agg",
    "matplotlib.font_manager",
)
FOR_CLIENTS = (
    "course_build.base.quick_imports",
    "papermill",
    "papermill.clientwrap",
    "papermill.iorw",
    "course_kernels",
    "course_build.run.client",
)


class NurseryError(Exception):
    """A preloaded process does not answer; the message holds the end of its log."""


class Nursery:
    """One preloaded process: see nursery.py."""

    def __init__(self, folder: Path, env: dict[str, str], order: dict[str, Any]) -> None:
        self.address, self.log = str(folder / "s"), folder / "log.txt"
        self.answers = False
        order = order | {"socket": self.address}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(HERE / "nursery.py"), json.dumps(order)],
                cwd=folder / "cwd",
                env=env,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def alive(self) -> bool:
        """Say whether the process runs."""
        return self.process.poll() is None

    def await_ready(self, stop: threading.Event) -> None:
        """Wait until the process answers, has died, or nobody wants it any more."""
        while not Path(self.address).exists() and self.alive() and not stop.wait(0.01):
            pass
        self.answers |= Path(self.address).exists()  # the other one's end takes the name away

    def last_words(self) -> str:
        """Return the end of the log."""
        return self.log.read_text(encoding="utf-8", errors="replace").strip()[-2000:]

    def close(self) -> None:
        """End the process and all its children, and wait for that."""
        self.process.stdin.close()
        if not self.answers:  # still importing: it has no child yet
            self.process.kill()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            for process in family(self.process.pid):
                with contextlib.suppress(psutil.Error):
                    process.kill()
            self.process.wait()


def make_folder(parent: Path | None = None) -> Path:
    """Make a private folder whose name is short enough for the sockets in it."""
    usual = tempfile.gettempdir()
    place = parent or (usual if len(usual) < SHORT else "/tmp")
    return Path(tempfile.mkdtemp(prefix="course-", dir=place))


class Nurseries:
    """The two preloaded processes of a run: kernels are forked from one, clients from the other."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.folder = make_folder()
        self.guard = make_guard(self.folder / "guard")
        self.started = 0
        self.kernels, self.clients = self._kernels(), self._clients()

    def _start(self, env: dict[str, str], **order: Any) -> Nursery:
        self.started += 1
        order["folder"] = str(self.folder)
        box = self.folder / str(self.started)
        make_box(box)
        return Nursery(box, kernel_environment(box, self.guard, self.plan) | env, order)

    def _kernels(self) -> Nursery:
        forked = self.plan.kernels == "forked"
        return self._start(
            # read when matplotlib is imported; an IPython kernel sets it before that
            {"MPLBACKEND": "module://matplotlib_inline.backend_inline"},
            preload=FOR_KERNELS if forked else (),
            forbidden=environment.FORBIDDEN,
            offline=True,
        )

    def _clients(self) -> Nursery:
        path = [str(HERE.parents[1]), str(HERE / "plugin")]
        return self._start({}, preload=FOR_CLIENTS, path=path, offline=False)

    def await_ready(self, stop: threading.Event) -> None:
        """Wait until both answer, one has died, or nobody wants them any more."""
        self.kernels.await_ready(stop)
        self.clients.await_ready(stop)

    def renew(self) -> tuple[Nursery, Nursery]:
        """Start again what has died, and return both."""
        if not self.kernels.alive():
            self.kernels.close()
            self.kernels = self._kernels()
        if not self.clients.alive():
            self.clients.close()
            self.clients = self._clients()
        return self.kernels, self.clients

    def close(self) -> None:
        """End both and all their children, and wait for that."""
        self.clients.close()
        self.kernels.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Child:
    """A supervised process on the connection to its supervisor."""

    def __init__(self, nursery: Nursery, request: dict[str, Any]) -> None:
        """Ask for a child; NurseryError when nobody answers."""
        self.nursery = nursery
        self.connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.connection.connect(nursery.address)
            self.connection.sendall(json.dumps(request).encode() + b"\n")
        except OSError as error:
            self.connection.close()
            raise NurseryError(nursery.last_words()) from error
        self.told: dict[str, Any] = {}
        self._unread = b""

    def ended(self, patience: float) -> bool:
        """Wait some seconds at most for the end of the child and of all its descendants."""
        if not select.select([self.connection], [], [], patience)[0]:
            return False
        try:
            data = self.connection.recv(65536)
        except OSError:
            data = b""
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            self.told |= json.loads(line)
        return not data

    def send(self, signum: int) -> None:
        """Send a signal to the child's process group."""
        with contextlib.suppress(OSError):
            self.connection.sendall(bytes([signum]))

    def close(self) -> None:
        """Have killed whoever is left."""
        self.connection.close()
