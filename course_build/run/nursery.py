"""A process that has imported what its children need, and forks one child for each request.

    python nursery.py '{"socket": ..., "preload": [...], ...}'

`nurseries.py` starts it by path, in the environment of a kernel, so that neither the repository nor
papermill can be imported in a kernel forked from it. It has one thread, or it does not fork: then
it starts over without importing anything, and each child executes its command afresh.
It lives as long as its standard input stays open, and takes its children along.
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
from pathlib import Path
from typing import Any

HERE = str(Path(__file__).resolve().parent)
if __name__ == "__main__":
    import network  # the folder of a script is the first on its path
    import supervisor

    sys.path.remove(HERE)
    for place in (HERE, __file__):
        sys.path_importer_cache.pop(place, None)
OWN = ("network", "supervisor")
FIXED_SEED = 67280421310721  # with which torch started every process, before it drew one


def reason_not_to_fork() -> str:
    """Say why forked children could be unlike fresh ones; nothing when they cannot."""
    threads = len(os.listdir("/proc/self/task"))
    if threads > 1:
        return f"the imported libraries have started {threads - 1} threads"
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return "CUDA is initialised"
    return ""


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


def preload(names: list[str]) -> None:
    """Import the modules that are installed."""
    for name in names:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def start_over(order: dict[str, Any], because: str) -> None:
    """Replace this process by one that imports nothing."""
    order |= {"preload": [], "because": because}
    os.execv(sys.executable, [sys.executable, __file__, json.dumps(order)])


def listen(address: str) -> socket.socket:
    """Open the socket where requests come in: its name appears when it answers."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(f"{address}-")
    listener.listen(1024)
    Path(f"{address}-").rename(address)
    return listener


def may_ask(connection: socket.socket, parent: int, *, clients: bool) -> bool:
    """Say whether a requester is the runner (process `parent`), or one of its `clients` if so said.

    A kernel, or a process that is gone, may not: it would get a child that has other limits, or
    that has the network.
    """
    size = struct.calcsize("3i")
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    pid = struct.unpack("3i", peer)[0]
    while clients and pid not in (parent, os.getpid(), 0):
        pid = supervisor.parent_of(pid)
    return pid == parent


def serve(listener: socket.socket, order: dict[str, Any], parent: int) -> socket.socket:
    """Fork a supervisor for each connection; return only in it, with that connection.

    What is left of a supervisor that was killed from outside comes to this process, and is killed;
    one that was stopped goes on. `parent` is the runner.
    """
    supervisors: set[int] = set()
    while True:
        ready, _, _ = select.select([listener, 0], [], [], 0.5)
        supervisors -= set(supervisor.reap())
        for orphan in set(supervisor.children(os.getpid())) - supervisors:
            supervisor.send(os.kill, orphan, signal.SIGKILL)
        for pid in supervisors:
            supervisor.send(os.kill, pid, signal.SIGCONT)
        if 0 in ready and not os.read(0, 1):
            close(supervisors, order["folder"])
        if listener not in ready:
            continue
        connection, _ = listener.accept()
        if not may_ask(connection, parent, clients=order["offline"]):
            connection.close()
            continue
        pid = os.fork()
        if pid == 0:
            listener.close()
            return connection
        supervisors.add(pid)
        connection.close()


def close(supervisors: set[int], folder: str) -> None:
    """End this process and all its children; the run's folder goes, for its owner may be dead."""
    for pid in supervisors:
        for signum in (signal.SIGTERM, signal.SIGCONT):
            supervisor.send(os.kill, pid, signum)
    deadline = time.monotonic() + supervisor.PATIENCE
    while supervisors and time.monotonic() < deadline:
        supervisors -= set(supervisor.reap())
        time.sleep(0.005)
    supervisor.end_descendants()
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def furnish(request: dict[str, Any]) -> None:
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
    if request["kernel"]:
        network.give_up_powers()
    limits = request.get("limits", {})
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if "file_mb" in limits:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limits["file_mb"] * supervisor.MB,) * 2)
    if "tasks" in limits:  # threads count too
        resource.setrlimit(resource.RLIMIT_NPROC, (limits["tasks"],) * 2)
    if "memory_mb" in limits:  # one request for far too much is an error in its own place
        resource.setrlimit(resource.RLIMIT_DATA, (2 * limits["memory_mb"] * supervisor.MB,) * 2)


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
    for name in OWN:
        del sys.modules[name]
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


def run_kernel(argv: list[str]) -> None:
    """Be the IPython kernel that `python -m ipykernel_launcher ...` starts."""
    from ipykernel.kernelapp import IPKernelApp

    launcher = importlib.util.find_spec("ipykernel_launcher").origin
    sys.orig_argv[:] = argv
    sys.argv[:] = [launcher, *argv[3:]]
    # the default was read from the environment when the class was made, in the nursery
    IPKernelApp.launch_instance(parent_handle=os.getppid())


def run_client(argv: list[str]) -> None:
    """Execute the notebook that `python client.py ...` executes."""
    sys.argv[:] = argv[-2:]
    importlib.import_module("course_build.run.client").main()


def be_nursery() -> dict[str, Any]:
    """Prepare, then serve; return only in a child: its request."""
    order = json.loads(sys.argv[1])
    refused = reason_to_refuse(order.get("forbidden", []))
    sys.path[:0] = order.get("path", [])
    preload(order["preload"])
    because = order.get("because", "") or reason_not_to_fork()
    if because and order["preload"]:
        start_over(order, because)
    supervisor.adopt_orphans()
    gc.collect()
    gc.disable()
    gc.freeze()
    me = os.getpid()
    connection = serve(listen(order["socket"]), order, os.getppid())

    def enter(request: dict[str, Any]) -> dict[str, Any]:
        if refused:
            raise supervisor.Refused(refused)
        request["fork"] = request.get("fork", "") if order["preload"] else ""
        held = network.leave_network() if order["offline"] else ""
        if held == "namespace" and os.geteuid() != 0:
            # counted for the new user namespace alone, not for all that the user runs
            request["limits"]["tasks"] = 8 * request["limits"]["processes"]
        kernel = "forked" if request["fork"] else "plain"
        return {"network": held, "kernel": f"{kernel}: {because}" if because else kernel}

    return supervisor.supervise(connection, me, enter)


def become(request: dict[str, Any]) -> None:
    """Become a child as the request has it; does not return if it names a program to execute."""
    argv, environment = request["argv"], request["env"]
    environment |= {"JPY_PARENT_PID": str(os.getppid())} if request["kernel"] else {}
    furnish(request)
    if not request["fork"]:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.execvpe(argv[0], argv, environment)
    forget(environment)


if __name__ == "__main__":
    request = be_nursery()
    become(request)
    run = {"kernel": run_kernel, "client": run_client}[request["fork"]]
    # `python -m` calls exec too: the stack below a cell is as deep as in a fresh kernel
    exec('run(request["argv"])')
