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

NEW_NETWORK = 0x40000000  # CLONE_NEWNET of `<sched.h>`
NEW_USER = 0x10000000  # CLONE_NEWUSER
DROP_FROM_BOUNDS = 24  # PR_CAPBSET_DROP of `<linux/prctl.h>`
NO_NEW_PRIVILEGES = 38  # PR_SET_NO_NEW_PRIVS
CAPABILITIES_VERSION = 0x20080522  # _LINUX_CAPABILITY_VERSION_3 of `<linux/capability.h>`
# net_admin, net_raw, sys_module, sys_rawio, sys_ptrace, sys_admin, sys_boot, sys_resource
POWERS = (12, 13, 16, 17, 19, 21, 22, 24)
SET_FLAGS = 0x8914  # `SIOCSIFFLAGS` of `<linux/sockios.h>`
UP = 0x1  # IFF_UP of `<linux/if.h>`
CREATE_RULESET = 444  # system calls of `Landlock`, `<linux/landlock.h>`
RESTRICT_SELF = 446
SCOPES = 1 | 2  # LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, LANDLOCK_SCOPE_SIGNAL: since Linux 6.12


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
        Path("/proc/self/setgroups").write_text("deny", encoding="utf-8")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="utf-8")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="utf-8")
    _raise_loopback()
    return "namespace"


def give_up_powers() -> None:
    """Give up for good what would let root enter another namespace or raise its own limits.

    Whoever has no such power keeps what they have; no program gains a power when it is executed.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    for power in POWERS:
        libc.prctl(DROP_FROM_BOUNDS, power, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(CAPABILITIES_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; then those above 31
    if libc.capget(header, sets) == 0:
        mask = sum(1 << power for power in POWERS)
        for place in range(3):
            sets[place] &= ~mask & 0xFFFFFFFF
        libc.capset(header, sets)
    _give_up_signals(libc)


def _give_up_signals(libc: ctypes.CDLL) -> None:
    """Let no signal reach a process that this one has not started, where the system can see to it.

    So no notebook stops or kills its supervisor, its client, another notebook or the whole session.
    """
    rules = (ctypes.c_uint64 * 3)(0, 0, SCOPES)  # of files, of ports, scopes
    handle = libc.syscall(CREATE_RULESET, rules, ctypes.sizeof(rules), 0)
    if handle >= 0:
        libc.syscall(RESTRICT_SELF, handle, 0)
        os.close(handle)
