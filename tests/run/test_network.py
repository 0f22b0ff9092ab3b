"""No packet leaves a kernel, from whatever program; loopback is its own."""

import os
import socket
import subprocess
import sys

import pytest

from course_lib.checking import network

from .crews import forked, plain, printed, run  # noqa: F401
from .notebooks import ROOT

linux = pytest.mark.skipif(sys.platform != "linux", reason="network namespaces are of Linux")
pytestmark = [pytest.mark.delivery, linux]

# connect(2) from C, which Python's audit hook does not see
CONNECT = """
import ctypes, socket, struct
def connect(host, port):
    libc = ctypes.CDLL(None, use_errno=True)
    number = libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0)
    address = struct.pack("=HH4s8x", socket.AF_INET, socket.htons(port), socket.inet_aton(host))
    done = libc.connect(number, address, len(address))
    libc.close(number)
    return done == 0 or ctypes.get_errno()
"""
UNREACHABLE = "import errno; assert connect('192.0.2.1', 80) == errno.ENETUNREACH"
SHELL = (
    "import subprocess, os\n"
    "command = ['bash', '-c', 'exec 3<>/dev/tcp/192.0.2.1/80']\n"
    "done = subprocess.run(command, capture_output=True, text=True)\n"
    "assert done.returncode and 'unreachable' in done.stderr, done"
)
LOOPBACK = (
    "import socket\n"
    "for host, family in (('127.0.0.1', socket.AF_INET), ('::1', socket.AF_INET6)):\n"
    "    if family == socket.AF_INET6 and not socket.has_ipv6: continue\n"
    "    server = socket.create_server((host, 0), family=family)\n"
    "    client = socket.create_connection(server.getsockname()[:2], timeout=5)\n"
    "    client.close(); server.close()\n"
    "print(open('/proc/net/dev').read().count(':'))"
)
AGAIN = (
    "import os, subprocess\n"
    "done = subprocess.run(['nsenter', '-t', '1', '-n', 'true'], capture_output=True)\n"
    "assert done.returncode, done\n"
    "libc = ctypes.CDLL(None, use_errno=True)\n"
    "assert libc.unshare(0x40000000) == -1"
)


def guarded():
    """Say whether namespaces are refused to this user here, as in some containers."""
    code = "from course_lib.checking.network import leave_network; print(leave_network())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout == "guard\n"


needs_namespace = pytest.mark.skipif(
    "guarded() and not (os.environ.get('CI') and os.geteuid() == 0)",
    reason="this system refuses namespaces; CI as root must not",
)


@needs_namespace
@pytest.mark.parametrize("kind", ["forked", "plain"])
def test_no_program_of_a_kernel_reaches_out(kind, request, tmp_path):
    crew = request.getfixturevalue(kind)
    outcome = run(crew, tmp_path, CONNECT, UNREACHABLE, SHELL, LOOPBACK, AGAIN)
    assert printed(outcome) == "1\n"  # interfaces
    assert outcome.network == "namespace"


@needs_namespace
def test_a_kernel_does_not_see_the_loopback_of_another_or_of_the_machine(forked, tmp_path):  # noqa: F811
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        sources = (
            f"import errno; assert connect('127.0.0.1', {port}) == errno.ECONNREFUSED",
            f"import socket; server = socket.create_server(('127.0.0.1', {port}))",
            f"assert connect('127.0.0.1', {port}) is True",
        )
        printed(run(forked, tmp_path, CONNECT, *sources))


# As another user than root: the interpreter is loaded before the user changes.
AS_USER = """
import ctypes, os, sys
from course_lib.checking.network import leave_network, give_up_powers
import _ctypes, ctypes, fcntl, json, pathlib, socket, struct
if os.geteuid() == 0:
    os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # /proc/self belongs to root until this is set
me = os.geteuid(), os.getegid()
held = leave_network()
give_up_powers()
assert (os.geteuid(), os.getegid()) == me
if held == "namespace":
    import errno
    assert connect("192.0.2.1", 80) == errno.ENETUNREACH
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert connect("127.0.0.1", server.getsockname()[1]) is True
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    powers = [int(s.split()[1], 16) for s in lines if s.startswith("Cap")]
    assert not any(power >> 21 & 1 for power in powers)  # sys_admin
    assert ctypes.CDLL(None).unshare(0x40000000) == -1
print(held)
"""


def test_who_is_not_root_leaves_the_network_in_a_user_namespace():
    done = subprocess.run(
        [sys.executable, "-c", CONNECT + AS_USER], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout in ("namespace\n", "guard\n")
    if os.environ.get("CI") and os.geteuid() == 0:
        assert done.stdout == "namespace\n"


def test_where_namespaces_are_refused_the_guard_stands_alone(monkeypatch):
    def refuse(flags):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(network, "_unshare", refuse)
    assert network.leave_network() == "guard"
