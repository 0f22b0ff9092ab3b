"""A kernel provisioner: a kernel is asked for at a nursery's socket and lives under a supervisor.

jupyter_client finds it by the entry point in the folder `course_kernels-1.dist-info` beside it.
"""

import json
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning import LocalProvisioner
from traitlets import Dict, Float, Unicode

LAUNCHER = ["-m", "ipykernel_launcher", "-f"]


class RefusedError(RuntimeError):
    """The nursery gives no kernel; the message says why."""


class SupervisedKernel:
    """A kernel as `subprocess.Popen` would show it, on the connection to its supervisor."""

    stdin = stdout = stderr = None

    def __init__(self, address: str, request: dict[str, Any], patience: float) -> None:
        """Ask for a kernel; RefusedError when it is refused or nobody answers."""
        self.connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.connection.settimeout(patience)
        self.told: dict[str, Any] = {}
        self.returncode: int | None = None
        self._unread = b""
        try:
            self.connection.connect(address)
            self.connection.sendall(json.dumps(request).encode() + b"\n")
            while "pid" not in self.told and self._hear():
                pass
        except OSError as error:
            raise RefusedError(f"the preloaded process does not answer: {error}") from error
        if "pid" not in self.told:
            raise RefusedError(self.told.get("refused", "the preloaded process has died"))
        self.pid: int = self.told["pid"]

    def _hear(self) -> bool:
        data = self.connection.recv(65536)
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            self.told |= json.loads(line)
        return bool(data)

    def _listen(self, patience: float | None) -> None:
        self.connection.settimeout(patience)
        try:
            while "status" not in self.told:
                if not self._hear():
                    self.told["status"] = -signal.SIGKILL  # the supervisor was killed
        except (BlockingIOError, TimeoutError):
            return
        except OSError:
            self.told["status"] = -signal.SIGKILL
        self.returncode = self.told["status"]
        self.connection.close()

    def poll(self) -> int | None:
        """Return the exit code (minus the signal that ended it), or None while it runs."""
        if self.returncode is None:
            self._listen(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for the kernel and all that descends from it to be gone."""
        if self.returncode is None:
            self._listen(timeout)
        return self.returncode

    def send_signal(self, signum: int) -> None:
        """Send a signal to the kernel's process group."""
        if self.poll() is None:
            self.connection.setblocking(True)
            self.connection.sendall(bytes([signum]))

    def terminate(self) -> None:
        """Ask the kernel to leave."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Have the kernel and all that descends from it killed."""
        self.send_signal(signal.SIGKILL)


class SupervisedProvisioner(LocalProvisioner):
    """Kernels from a nursery, held under limits; all else is as jupyter_client's own has it."""

    address = Unicode(config=True, help="the socket of the nursery")
    log_file = Unicode(config=True, help="where what the kernel itself writes goes")
    limits = Dict(config=True, help="memory_mb, processes and file_mb of the kernel")
    patience = Float(60, config=True, help="seconds to wait for the nursery")
    process: SupervisedKernel | None = None
    latest: SupervisedKernel | None = None  # of this process, for who asks after the end

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Ask the nursery for a kernel, forked when the command is Python's own kernel."""
        own = cmd[0] == sys.executable and cmd[1:4] == LAUNCHER
        self.cwd = str(kwargs.get("cwd") or Path.cwd())
        request = {
            "argv": cmd,
            "fork": "kernel" if own else "",
            "kernel": True,
            "env": dict(kwargs["env"]),
            "cwd": self.cwd,
            "log": self.log_file,
            "limits": dict(self.limits),
        }
        self.process = SupervisedKernel(self.address, request, self.patience)
        SupervisedProvisioner.latest = self.process
        self.pid = self.pgid = self.process.pid
        return self.connection_info

    def _finalize_env(self, env: dict[str, str]) -> None:
        super()._finalize_env(env)
        env.pop("JUPYTER_DEFAULT_PROVISIONER_NAME", None)  # the client's own

    async def send_signal(self, signum: int) -> None:
        """Send a signal to the kernel's process group."""
        if self.process:
            self.process.send_signal(signum)
