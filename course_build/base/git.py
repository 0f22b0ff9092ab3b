"""Asking git, which need not be there."""

import subprocess
from pathlib import Path


def git(root: Path, *arguments: str) -> bytes:
    """What git prints; nothing where git, the repository or what is asked for is missing."""
    try:
        ran = subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=False)
    except OSError:
        return b""
    return ran.stdout
