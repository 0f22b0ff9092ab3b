"""Writing files that others may read meanwhile."""

import os
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file at once or not at all, and make its folder; OSError when it cannot be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    waiting = path.with_name(f".{path.name}.{os.getpid()}.writing")
    try:
        waiting.write_bytes(content)
        waiting.replace(path)
    finally:
        waiting.unlink(missing_ok=True)
