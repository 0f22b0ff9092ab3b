"""Write the lock files: every package that the pins bring along, with the digests of its files.

    python3 -m course_build.environment -m course_build.environment.lock [--check | --upgrade]

uv resolves for every platform and Python at once, so that one file serves a Mac, Windows and CI,
and pip installs from it. What a reader and a writer need stands alone; requirements-dev.lock holds
only what those two have not. --check asks nobody: it says in a moment whether the pins have changed
since; exit code 1 if so.

torch itself is left out, with the libraries of graphics cards that it may bring: its file is
another one in each index that readers take it from (with CUDA or without), so that a digest would
refuse most of them. It is pinned by version alone; what it needs everywhere is in the lock.
"""

import argparse
import hashlib
import re
import subprocess
import sys
from pathlib import Path

from course_build.environment.bootstrap import (
    BUILD_LOCK,
    BUILD_PINS,
    DEV_LOCK,
    DEV_PINS,
    LOCK,
    PINS,
)

SOURCES = {  # what each lock file was made from
    LOCK: (PINS,),
    BUILD_LOCK: (PINS, BUILD_PINS),
    DEV_LOCK: (PINS, BUILD_PINS, DEV_PINS),
}
UNLOCKED = re.compile(r"torch|triton|(?:nvidia|cuda)-.*")
ENTRY = re.compile(r"^([a-z0-9][a-z0-9._-]*)==(\S+)( ;)?", re.MULTILINE)


def mark(lock: Path) -> str:
    """Say in a lock file's head which pins it was made from; comments are none."""
    lines = [line.partition("#")[0].strip() for path in SOURCES[lock] for line in read(path)]
    digest = hashlib.sha256("\n".join(filter(None, lines)).encode()).hexdigest()
    names = " ".join(path.name for path in SOURCES[lock])
    return f"make lock  # {names}: {digest[:16]}"


def read(path: Path) -> list[str]:
    """Read a file's lines; one that is not there has none."""
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def outdated() -> list[str]:
    """Name the lock files that were made from other pins than those of today."""
    return [lock.name for lock in SOURCES if f"#    {mark(lock)}" not in read(lock)]


def resolve(source: Path, *options: str) -> str:
    """Have uv resolve pins for every platform and Python; return what it would write."""
    command = [sys.executable, "-m", "uv", "--quiet", "pip", "compile", source.name, "--universal"]
    command += ["--python-version", "3.11", *options]
    done = subprocess.run(command, cwd=source.parent, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def lock_all(upgrade: bool) -> None:
    """Write the lock files; without `upgrade` versions stay where the pins let them."""
    more = ["--upgrade"] if upgrade else []
    unlocked = [name for name, *_ in ENTRY.findall(resolve(PINS)) if UNLOCKED.fullmatch(name)]
    write(LOCK, PINS, unlocked, *more)
    more += ["--constraints", LOCK.name]
    write(BUILD_LOCK, BUILD_PINS, [], *more)
    # A package that those hold only somewhere may be needed everywhere by the last.
    lines = "\n".join([*read(LOCK), *read(BUILD_LOCK)])
    held = [name for name, _, marker in ENTRY.findall(lines) if not marker]
    write(DEV_LOCK, DEV_PINS, held, "--constraints", BUILD_LOCK.name, *more)


def write(lock: Path, source: Path, without: list[str], *options: str) -> None:
    """Write one lock file, without the packages named."""
    leave_out = [word for name in without for word in ("--no-emit-package", name)]
    options = ("--generate-hashes", "--output-file", lock.name, *options)
    resolve(source, "--custom-compile-command", mark(lock), *options, *leave_out)


def main(arguments: list[str] | None = None) -> int:
    """Write the lock files, or compare their heads with the pins; return the exit code."""
    parser = argparse.ArgumentParser("python -m course_build.environment.lock", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true", help="write nothing; compare with the pins")
    mode.add_argument("--upgrade", action="store_true", help="take newer versions where pins allow")
    options = parser.parse_args(arguments)
    if not options.check:
        try:
            lock_all(options.upgrade)
        except subprocess.CalledProcessError:
            print("[course] uv could not resolve the pins (its words are above)", file=sys.stderr)
            return 2
    stale = outdated()
    for name in stale:
        print(f"{name}: the pins have changed since it was made; run: make lock", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
