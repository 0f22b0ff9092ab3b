"""Stand over one child and all that descends from it, so that none outlives its requester.

The requester holds a connection. When the child ends, when the connection closes, when the family
takes more memory or more processes than it may, or when the nursery dies, every descendant is
killed: the supervisor is made their next of kin, so what loses its parent comes to it.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SET_PARENT_DEATH_SIGNAL = 1  # <sys/prctl.h>
SET_SUBREAPER = 36
POLL = 0.2  # seconds between two looks at a family
PATIENCE = 10  # seconds to wait for supervisors to end
CROWD = 60  # seconds to wait for killed processes to go: a crowd of them, on a busy machine
MB = 10**6


class Ended(Exception):
    """The nursery is gone or asks its supervisors to end."""


class Refused(Exception):
    """The environment of the children is not what it has to be; the message says how."""


def process_control(option: int, value: int) -> None:
    """Call prctl(2)."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def adopt_orphans() -> None:
    """Make this process the parent of every descendant that loses its own."""
    process_control(SET_SUBREAPER, 1)


def die_with_parent(parent: int, with_signal: signal.Signals) -> None:
    """Have the system send this process a signal when its parent (whose pid it knew) ends."""
    process_control(SET_PARENT_DEATH_SIGNAL, with_signal)
    if os.getppid() != parent:
        os._exit(1)


def children_of(pid: int) -> list[int]:
    """List the processes that one has started and not yet buried."""
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    found: list[int] = []
    for task in tasks:
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{pid}/task/{task}/children").read_text(encoding="ascii")
            found += map(int, text.split())
    return found


def parent_of(pid: int) -> int:
    """Give a process's parent; 0 when there is no such process, or none above it."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return int(text.rpartition(")")[2].split()[1])


def descendants(pid: int) -> list[int]:
    """List the processes below one."""
    found = children_of(pid)
    for child in found:  # grows while it is read
        found += children_of(child)
    return found


def _resident(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGESIZE")
    except (OSError, IndexError):
        return 0


def _proportional(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def family_memory(pids: list[int]) -> int:
    """Measure the bytes that processes hold together.

    A forked process maps the pages of its parent until one of them writes, so the sum of the
    resident sizes counts those twice; the sum of the proportional sizes counts each once, but
    only a part of what is shared with processes outside. Neither the latter sum nor the largest
    resident size ever exceeds the truth: the greater of the two is the answer.
    """
    largest = max(map(_resident, pids), default=0)
    return max(largest, sum(map(_proportional, pids))) if len(pids) > 1 else largest


def end_family(pid: int) -> None:
    """Kill every process below one, and wait until they are gone.

    All are stopped before any is killed, until no new one is found: a stopped process forks no
    more. Where a crowd of them keeps the processors busy, root (whom no limit of processes binds)
    goes first.
    """
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    deadline = time.monotonic() + CROWD
    while (pids := descendants(pid)) and time.monotonic() < deadline:
        stopped: set[int] = set()
        while (new := set(pids) - stopped) and time.monotonic() < deadline:
            for one in new:
                send_signal(os.kill, one, signal.SIGSTOP)
            stopped |= new
            pids = descendants(pid)
        for one in stopped:
            send_signal(os.kill, one, signal.SIGKILL)
        reap()
        time.sleep(0.005)


def send_signal(how: Callable[[int, int], None], pid: int, signum: int) -> bool:
    """Send a signal with os.kill or os.killpg; say whether somebody got it."""
    try:
        how(pid, signum)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def reap() -> dict[int, tuple[int, int]]:
    """Take the dead among this process's children: exit code and peak resident bytes by pid."""
    taken: dict[int, tuple[int, int]] = {}
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return taken
        if pid == 0:
            return taken
        taken[pid] = os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024


class Watch:
    """One child under observation: `end` tells how it ended.

    Limits: `processes`, and `memory_mb` of the whole family. With `ready`, the name of a file
    where the child leaves what it holds before its own work begins, that is not counted.
    """

    def __init__(self, child: int, connection: socket.socket, limits: dict[str, Any]) -> None:
        self.child, self.connection, self.limits = child, connection, limits
        self.peak, self.why, self.status = 0, "", None
        self.handle = os.pidfd_open(child)

    def until_end(self) -> None:
        """Watch until the child ends, or has to: limit, lost connection, order to kill."""
        while self.status is None and self.step():
            pass

    def step(self) -> bool:
        """Look once, POLL seconds at most; return whether the family may go on."""
        ready, _, _ = select.select([self.connection, self.handle], [], [], POLL)
        if self.connection in ready and not self._obey():
            return False
        self._note(reap())
        if self.status is not None:
            return False
        family = descendants(os.getpid())
        if len(family) > self.limits.get("processes", len(family)):
            self.why = "processes"  # before their memory: to measure a crowd's takes long
            return False
        memory = family_memory(family)
        self.peak = max(self.peak, memory)
        self.why = "memory" if memory > self._most() else ""
        return not self.why

    def _most(self) -> float:
        """Say how many bytes the family may hold."""
        if "memory_mb" not in self.limits:
            return float("inf")
        most = self.limits["memory_mb"] * MB
        if "ready" not in self.limits:
            return most
        try:
            return most + int(Path(self.limits["ready"]).read_text(encoding="ascii"))
        except (OSError, ValueError):
            return float("inf")  # still importing

    def _obey(self) -> bool:
        orders = self.connection.recv(4096)
        for signum in orders:  # one byte, one signal
            if signum == signal.SIGKILL:
                return False
            send_signal(os.killpg, self.child, signum) or send_signal(os.kill, self.child, signum)
        return bool(orders)

    def _note(self, taken: dict[int, tuple[int, int]]) -> None:
        if self.child in taken:
            self.status, peak = taken[self.child]
            self.peak = max(self.peak, peak)

    def end(self) -> dict[str, Any]:
        """End whoever is left, and tell the child's exit code, the family's peak and the cause."""
        if self.status is None:
            send_signal(os.kill, self.child, signal.SIGKILL)
            _, status, usage = os.wait4(self.child, 0)
            self._note({self.child: (os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024)})
        end_family(os.getpid())
        return {"status": self.status, "peak_mb": round(self.peak / MB), "why": self.why or None}


def tell(connection: socket.socket, **what: Any) -> None:
    """Send one line of JSON to a requester, who may be gone."""
    with contextlib.suppress(OSError):
        connection.sendall(json.dumps(what).encode() + b"\n")


def hear(connection: socket.socket) -> dict[str, Any]:
    """Read the request, one line of JSON."""
    with connection.makefile("rb", buffering=0) as lines:
        return json.loads(lines.readline())


def _end_on_signal(*_: Any) -> None:
    raise Ended


def supervise(
    connection: socket.socket, parent: int, enter: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """Be the supervisor of one request; return only in the child, and there the request.

    `enter` changes what child and supervisor share (the network) and says what to tell.
    """
    try:
        signal.signal(signal.SIGTERM, _end_on_signal)
        die_with_parent(parent, signal.SIGTERM)
        os.setsid()
        adopt_orphans()
        request = hear(connection)
        told = enter(request)
        me = os.getpid()
        child = os.fork()
        if child == 0:
            die_with_parent(me, signal.SIGKILL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            connection.close()
            return request
        tell(connection, pid=child, **told)
        _see_to_its_end(Watch(child, connection, request.get("limits", {})))
    except Ended:
        end_family(os.getpid())
    except Refused as error:
        tell(connection, refused=str(error))
    except BaseException as error:
        tell(connection, refused=f"{type(error).__name__}: {error}")
        end_family(os.getpid())
    os._exit(0)


def _see_to_its_end(watch: Watch) -> None:
    with contextlib.suppress(Ended):
        watch.until_end()
    tell(watch.connection, **watch.end())
