"""Take the network away from this process and from all that it starts.

A network namespace of its own holds nothing but a loopback interface: no packet leaves it, from
whatever language it is sent, and two kernels may bind the same port. Root may make one; anybody
else makes it inside a user namespace, where the system allows those.
"""

import ctypes
import fcntl
import os
import socket
import struct
from pathlib import Path

NEW_NETWORK, NEW_USER = 0x40000000, 0x10000000  # CLONE_NEWNET, CLONE_NEWUSER of <sched.h>
SET_FLAGS, UP = 0x8914, 0x1  # SIOCSIFFLAGS, IFF_UP of <linux/if.h>


def _unshare(flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sH14x", b"lo", UP))


def leave_network() -> str:
    """Enter a network namespace with only loopback; say "namespace", or "guard" if refused.

    The process must have one thread. "guard" means that only `guard.py`, which sees Python's own
    sockets, stands between the notebook and the network.
    """
    user, group = os.geteuid(), os.getegid()
    try:
        _unshare(NEW_NETWORK if user == 0 else NEW_NETWORK | NEW_USER)
    except OSError:
        return "guard"
    if user != 0:  # the same names inside: a file written is the user's own
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    _raise_loopback()
    return "namespace"
