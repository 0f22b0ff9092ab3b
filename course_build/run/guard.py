"""Refuse the network to a notebook's kernel, loopback apart.

The runner copies this file into an empty folder as `sitecustomize.py` and puts that folder on the
kernel's PYTHONPATH, so Python loads it before anything else, in the kernel and in every Python
that the kernel starts. It sees what Python's own sockets do; it is a fence for honest notebooks,
not a prison for hostile ones.
"""

import ipaddress
import sys
from typing import Any

RULE = "notebooks run offline; only this machine's loopback is open"
ADDRESS_EVENTS = {"socket.connect", "socket.sendto", "socket.sendmsg"}
NAME_EVENTS = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"}


def is_loopback(host: Any) -> bool:
    """Say whether a host (name, address or none at all) is this machine's loopback."""
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if host is None or host in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refusal(event: str, args: tuple[Any, ...]) -> str | None:
    """Give the message for an audit event that reaches out, and None for any other event."""
    if event in NAME_EVENTS:
        host, port = args[0], args[1] if event == "socket.getaddrinfo" else None
    elif event in ADDRESS_EVENTS and isinstance(args[1], tuple):  # a str or None is a local socket
        host, port = args[1][:2]
    else:
        return None
    if is_loopback(host):
        return None
    target = host if port is None else f"{host}:{port}"
    return f"this notebook tried to reach {target}, but {RULE}"


def _guard(event: str, args: tuple[Any, ...]) -> None:
    message = refusal(event, args)
    if message is not None:
        # Not an OSError: code that forgives a missing network must not hide the attempt.
        raise RuntimeError(message)


if __name__ == "sitecustomize":
    sys.addaudithook(_guard)
