"""What the generators share: canonical JSON, the pinned digest, and a file written whole or not.

Nothing here knows a number. A generator hands over its facts; they reach the disk only when they
hash to what SHA256SUMS pins.
"""

import argparse
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def canonical_json(facts: dict[str, object]) -> str:
    """All facts as one canonical line: sorted keys, no spaces, no trailing newline."""
    separators = (",", ":")
    return json.dumps(
        facts, ensure_ascii=False, sort_keys=True, separators=separators, allow_nan=False
    )


def pinned_sha256(name: str) -> str:
    """Return the digest that SHA256SUMS pins for a file."""
    for line in (FOLDER / "SHA256SUMS").read_text(encoding="utf-8").splitlines():
        digest, _, pinned = line.partition("  ")
        if pinned == name:
            return digest
    raise LookupError(f"{FOLDER / 'SHA256SUMS'} has no line for {name}")


def write_atomically(path: Path, content: bytes) -> None:
    """Put content at path in one step: a reader sees the old file or the new one, never half."""
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(draft, 0o644)
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise


def run(name: str, facts: Callable[[], dict], about: str, arguments: list[str]) -> int:
    """A generator's command line: compute, then write or (--check) compare; the exit code."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    only_check = parser.parse_args(arguments).check
    content = canonical_json(facts()).encode("utf-8")
    try:
        return settle(name, content, only_check)
    except (OSError, LookupError) as error:
        print(f"broken: {error}", file=sys.stderr)
        return 2


def settle(name: str, content: bytes, only_check: bool) -> int:
    """Compare the computed bytes with the pin and the file, write what must be; exit code."""
    digest, pinned = hashlib.sha256(content).hexdigest(), pinned_sha256(name)
    if digest != pinned:
        print(
            f"broken: the computed {name} hashes to\n  {digest}\nbut SHA256SUMS pins\n  {pinned}\n"
            "Nothing was written. An intended change of the numbers starts with a new pin.",
            file=sys.stderr,
        )
        return 2
    path = FOLDER / name
    if path.is_file() and path.read_bytes() == content:
        print(f"{name} is up to date: {digest}")
        return 0
    if only_check:
        state = "differs from what the generator computes" if path.exists() else "is missing"
        command = f"python reference/generate_{path.stem}.py"
        print(f"{name} {state}; run: {command}", file=sys.stderr)
        return 1
    write_atomically(path, content)
    print(f"wrote {name}: {digest}")
    return 0
