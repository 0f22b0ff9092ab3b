"""A child where no nursery can hold it: not on Linux, or with Jupyter's own kernels.

It is looked at from its parent, with psutil. What goes into the background is found by a mark in
its environment. Whoever kills the parent outright leaves the child alone.
"""

import contextlib
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil

MARK = "COURSE_CHILD"  # the variable by which what descends from a child is known
TIDY = 10.0  # seconds for killed processes to go
KILL = 9  # a name that Windows does not have


class Alone:
    """A child with the request and the answers of `Held`, watched as well as any system can."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.limits, self.mark = request["limits"], secrets.token_hex(8)
        self.told: dict[str, Any] = {"kernel": "jupyter", "network": "guard"}
        self.peak = 0
        with open(request["log"], "ab") as log:
            self.process = subprocess.Popen(
                request["argv"],
                cwd=request["cwd"],
                env=request["env"] | {MARK: self.mark},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=os.name == "posix",
            )

    def ended(self, patience: float) -> bool:
        """Wait some seconds at most for the end of the child and of all its descendants."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(patience)
        if self.process.poll() is None:
            family = self._family()
            memory = _memory(family)
            self.peak = max(self.peak, memory)
            # Forked processes share pages: count exactly only where the rough count is too much.
            most = self._most()
            why = "memory" if memory > most and _memory(family, exactly=True) > most else ""
            if len(family) > self.limits.get("processes", len(family)):
                why = "processes"
            if not why:
                return False
            self.told["why"] = why
        self.close()
        self.told |= {"status": self.process.returncode, "peak_mb": round(self.peak / 10**6)}
        return True

    def _most(self) -> float:
        """Say how many bytes the family may hold: see supervisor.Watch."""
        if "memory_mb" not in self.limits:
            return float("inf")
        try:
            ready = self.limits.get("ready")
            base = int(Path(ready).read_text(encoding="ascii")) if ready else 0
        except (OSError, ValueError):
            return float("inf")
        return self.limits["memory_mb"] * 10**6 + base

    def _family(self) -> list[psutil.Process]:
        try:
            child = psutil.Process(self.process.pid)
            return [child, *child.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def _marked(self) -> list[psutil.Process]:
        """List the processes that were started with the child's mark in their environment."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if process.environ().get(MARK) == self.mark:
                    found.append(process)
        return found

    def send(self, signum: int) -> None:
        """Send a signal to the child; Windows has but one way to end it."""
        if signum == KILL or os.name != "posix":
            self.close()
        elif self.process.poll() is None:
            self.process.send_signal(signal.Signals(signum))

    def close(self) -> None:
        """Kill whoever is left, and again what they started meanwhile."""
        deadline = time.monotonic() + TIDY
        while time.monotonic() < deadline:
            alive = _alive({*self._family(), *self._marked()})
            if not alive:
                break
            for process in alive:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            others = [process for process in alive if process.pid != self.process.pid]
            psutil.wait_procs(others, timeout=0.2)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.2)  # here, not by psutil, which would keep the exit code


def _alive(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    alive = []
    for process in processes:
        with contextlib.suppress(psutil.Error):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                alive.append(process)
    return alive


def _memory(processes: Iterable[psutil.Process], *, exactly: bool = False) -> int:
    total = 0
    for process in processes:
        with contextlib.suppress(psutil.Error, OSError):
            if exactly:
                info = process.memory_full_info()
                total += getattr(info, "pss", info.uss)
            else:
                total += process.memory_info().rss
    return total
