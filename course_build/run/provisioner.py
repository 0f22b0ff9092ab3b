"""A kernel provisioner: kernels are asked for at a nursery's socket and live under a supervisor."""

import signal
import sys
import time
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner
from traitlets import Dict, Float, Unicode

from course_lib.checking.held import Held

NAME = "supervised"
LAUNCHER = ["-m", "ipykernel_launcher", "-f"]


class RefusedError(RuntimeError):
    """The nursery gives no kernel; the message says why."""


class SupervisedKernel(Held):
    """A kernel as `subprocess.Popen` would show it."""

    stdin = stdout = stderr = None

    def __init__(self, address: str, request: dict[str, Any], patience: float) -> None:
        """Ask for a kernel; RefusedError when it is refused or nobody answers."""
        try:
            super().__init__(address, request)
        except OSError as error:
            raise RefusedError(f"the preloaded process does not answer: {error}") from error
        deadline = time.monotonic() + patience
        while "pid" not in self.told:
            if self.ended(max(0.0, deadline - time.monotonic())) or time.monotonic() > deadline:
                raise RefusedError(self.told.get("refused", "the preloaded process has died"))
        self.pid: int = self.told["pid"]

    @property
    def returncode(self) -> int | None:
        """The exit code (minus the signal that ended it), when all of its family is gone."""
        return self.told.get("status", -signal.SIGKILL if self.over else None)

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        if self.returncode is None:
            self.ended(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for the kernel and all that descends from it to be gone."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.returncode is None:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not self.ended(left) and left == 0:
                break
        return self.returncode

    def send_signal(self, signum: int) -> None:
        """Send a signal to the kernel's process group."""
        if self.poll() is None:
            self.send(signum)

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
    limits = Dict(config=True, help="memory_mb, request_mb, processes and file_mb of the kernel")
    patience = Float(60, config=True, help="seconds to wait for the nursery")
    process: SupervisedKernel | None = None
    latest: SupervisedKernel | None = None  # of this process, for who asks after the end

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Ask the nursery for a kernel, forked when the command is Python's own kernel."""
        self.cwd = str(kwargs.get("cwd") or Path.cwd())
        request = {
            "argv": cmd,
            "fork": cmd[0] == sys.executable and cmd[1:4] == LAUNCHER,
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
        env.pop(KernelProvisionerFactory.default_provisioner_name_env, None)  # the client's own

    async def send_signal(self, signum: int) -> None:
        """Send a signal to the kernel's process group."""
        if self.process:
            self.process.send_signal(signum)


# jupyter_client looks among what is installed; this is not, so it is entered here
KernelProvisionerFactory.provisioners[NAME] = EntryPoint(
    NAME, f"{__name__}:SupervisedProvisioner", KernelProvisionerFactory.GROUP_NAME
)
