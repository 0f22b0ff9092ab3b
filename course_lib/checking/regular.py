"""Read a file that somebody else has named, without waiting for what may never end."""

import errno
import os
import stat
from pathlib import Path


def read_regular(path: Path | str) -> bytes:
    """Read a regular file; OSError for a folder, and for a pipe or a device."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(kind):
            raise OSError("it is a pipe or a device")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)
