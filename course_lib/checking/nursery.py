"""A process that has imported what its children need, and forks one child for each request.

`held.py` starts it in the environment of its children, with an order:

    root, path     where this package lies, and what else its children may import from
    preload        names of modules to import; none: each child executes its command afresh
    entry          the file whose `main(argv)` a forked child calls
    socket, folder where requests come in; what to remove in the end
    forbidden      what a child must not be able to import; then its locale must be there too
    fenced         its children have no network and no power over other processes
    clients        requests also come from children of the requester's other nursery
    parent_in      the variable in which a child finds its supervisor's number, or ""

It has one thread, or it does not fork: then it starts over without importing anything. It lives
as long as its standard input stays open, and takes its children along.
"""

import contextlib
import gc
import importlib
import importlib.util
import json
import locale
import os
import random
import resource
import select
import shutil
import signal
import site
import socket
import struct
import sys
import tempfile
import time
import types
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from course_lib.checking.network import give_up_powers, leave_network
from course_lib.checking.supervisor import (
    MB,
    PATIENCE,
    Refused,
    adopt_orphans,
    children_of,
    end_family,
    parent_of,
    reap,
    send_signal,
    supervise,
)

FIXED_SEED = 67280421310721  # with which torch started every process, before it drew one


def be_nursery(order: dict[str, Any]) -> Callable[[], None]:
    """Prepare, then serve; return only in a child: what it has to do."""
    leave_library(order["root"])
    refused = reason_to_refuse(order["forbidden"]) if order["forbidden"] else ""
    sys.path[:0] = order["path"]
    entry = preload(order["preload"], order["entry"])
    because = order.get("because", "") or reason_not_to_fork()
    if because and order["preload"]:
        start_over(order, because)
    adopt_orphans()
    gc.collect()
    gc.disable()
    gc.freeze()
    me = os.getpid()
    connection = serve(listen(order["socket"]), order, os.getppid())

    def enter(request: dict[str, Any]) -> dict[str, Any]:
        if refused:
            raise Refused(refused)
        request["fork"] = request["fork"] and bool(order["preload"])
        network = leave_network() if order["fenced"] else ""
        if network == "namespace" and os.geteuid() != 0:
            # counted for the new user namespace alone, not for all that the user runs
            request["limits"]["tasks"] = 8 * request["limits"]["processes"]
        kernel = "forked" if request["fork"] else "plain"
        return {"network": network, "kernel": f"{kernel}: {because}" if because else kernel}

    return become(supervise(connection, me, enter), order, entry)


def leave_library(root: str) -> None:
    """Let nothing that is imported from now on find the library, as if this were not part of it."""
    sys.path.remove(root)  # which may stand there a second time, if it is where packages are
    if sys.path[:1] == [""]:
        del sys.path[0]
    for name in [name for name in sys.modules if name.split(".")[0] == "course_lib"]:
        del sys.modules[name]
    own = (root, str(Path(root, "course_lib")), str(Path(__file__).parent), os.getcwd())
    for place in own:
        sys.path_importer_cache.pop(place, None)


def reason_to_refuse(forbidden: list[str]) -> str:
    """Say what is wrong with the environment of every child; nothing when it is sound."""
    leaked = [name for name in forbidden if importlib.util.find_spec(name)]
    if leaked:
        return (
            f"{', '.join(leaked)} can be imported in the kernel, so a notebook that needs the "
            "repository would pass: uninstall it from this environment"
        )
    before = locale.setlocale(locale.LC_ALL)
    try:
        locale.setlocale(locale.LC_ALL, "")
    except locale.Error:
        return f"the locale {os.environ.get('LC_ALL')} is not installed here"
    locale.setlocale(locale.LC_ALL, before)
    return ""


def preload(names: list[str], entry: str) -> types.ModuleType | None:
    """Import the modules that are installed, and the entry, which nobody else shall import."""
    for name in names:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if not names:
        return None
    spec = importlib.util.spec_from_file_location("entry", entry)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def reason_not_to_fork() -> str:
    """Say why forked children could be unlike fresh ones; nothing when they cannot."""
    threads = len(os.listdir("/proc/self/task"))
    if threads > 1:
        return f"the imported libraries have started {threads - 1} threads"
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return "CUDA is initialised"
    return ""


def start_over(order: dict[str, Any], because: str) -> None:
    """Replace this process by one that imports nothing."""
    order |= {"preload": [], "because": because}
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:-1], json.dumps(order)])


def listen(address: str) -> socket.socket:
    """Open the socket where requests come in: its name appears when it answers."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(f"{address}-")
    listener.listen(1024)
    Path(f"{address}-").rename(address)
    return listener


def may_ask(connection: socket.socket, parent: int, *, clients: bool) -> bool:
    """Say whether a requester is who started this (process `parent`), or one of its `clients`.

    One of our own children, or a process that is gone, may not: it would get a child that has
    other limits, or that has the network.
    """
    size = struct.calcsize("3i")
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    pid = struct.unpack("3i", peer)[0]
    while clients and pid not in (parent, os.getpid(), 0):
        pid = parent_of(pid)
    return pid == parent


def serve(listener: socket.socket, order: dict[str, Any], parent: int) -> socket.socket:
    """Fork a supervisor for each connection; return only in it, with that connection.

    What is left of a supervisor that was killed from outside comes to this process, and is killed;
    one that was stopped goes on.
    """
    supervisors: set[int] = set()
    while True:
        ready, _, _ = select.select([listener, 0], [], [], 0.5)
        supervisors -= set(reap())
        for orphan in set(children_of(os.getpid())) - supervisors:
            send_signal(os.kill, orphan, signal.SIGKILL)
        for pid in supervisors:
            send_signal(os.kill, pid, signal.SIGCONT)
        if 0 in ready and not os.read(0, 1):
            close(supervisors, order["folder"])
        if listener not in ready:
            continue
        connection, _ = listener.accept()
        if not may_ask(connection, parent, clients=order["clients"]):
            connection.close()
            continue
        pid = os.fork()
        if pid == 0:
            listener.close()
            return connection
        supervisors.add(pid)
        connection.close()


def close(supervisors: set[int], folder: str) -> None:
    """End this process and all its children; the folder goes, for its owner may be dead."""
    for pid in supervisors:
        for signum in (signal.SIGTERM, signal.SIGCONT):
            send_signal(os.kill, pid, signum)
    deadline = time.monotonic() + PATIENCE
    while supervisors and time.monotonic() < deadline:
        supervisors -= set(reap())
        time.sleep(0.005)
    end_family(os.getpid())
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def become(
    request: dict[str, Any], order: dict[str, Any], entry: types.ModuleType | None
) -> Callable[[], None]:
    """Become a child as the request has it: return its work, or execute its command."""
    argv, environment = request["argv"], request["env"]
    if order["parent_in"]:
        environment[order["parent_in"]] = str(os.getppid())
    furnish(request, fenced=order["fenced"])
    if not request["fork"]:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.execvpe(argv[0], argv, environment)
    forget(environment)
    return partial(entry.main, argv)


def furnish(request: dict[str, Any], *, fenced: bool) -> None:
    """Give this process, a child, what a fresh one would have: session, files, folder, limits."""
    os.setsid()
    os.umask(0o022)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for stream, (path, how) in enumerate(
        ((os.devnull, os.O_RDONLY), *[(request["log"], os.O_WRONLY | os.O_APPEND)] * 2)
    ):
        opened = os.open(path, how)
        os.dup2(opened, stream)
        os.close(opened)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.chdir(request["cwd"])
    if fenced:
        give_up_powers()
    limits = request["limits"]
    allow(resource.RLIMIT_CORE, 0)
    if "file_mb" in limits:
        allow(resource.RLIMIT_FSIZE, limits["file_mb"] * MB)
    if "tasks" in limits:  # threads count too
        allow(resource.RLIMIT_NPROC, limits["tasks"])
    if "request_mb" in limits:  # one request for far too much is an error in its own place
        allow(resource.RLIMIT_DATA, limits["request_mb"] * MB)


def allow(what: int, most: int) -> None:
    """Set a limit of the system for good, or leave the lower one that is there."""
    _, hard = resource.getrlimit(what)
    lowest = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (lowest, lowest))


def forget(environment: dict[str, str]) -> None:
    """Make this interpreter, a child, as one that has just started in an environment."""
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    _draw_seeds()
    tempfile.tempdir = None
    site.USER_BASE = site.USER_SITE = None
    site.getusersitepackages()
    _forget_folders_of_matplotlib()
    sys.modules["__main__"] = types.ModuleType("__main__")
    gc.enable()


def _draw_seeds() -> None:
    """Seed each global generator anew, as a fresh process does."""
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    torch = sys.modules.get("torch")
    if torch is not None and torch.initial_seed() != FIXED_SEED:
        torch.default_generator.seed()


def _forget_folders_of_matplotlib() -> None:
    """Let matplotlib find its folders in the new home: it remembers them in two closures."""
    matplotlib = sys.modules.get("matplotlib")
    for name in ("get_configdir", "get_cachedir") if matplotlib else ():
        function = getattr(matplotlib, name)
        names = function.__code__.co_freevars
        if "called" in names:
            function.__closure__[names.index("called")].cell_contents = False
