"""What a contract and a mistake cost: read from their files, for the builder runs no library."""

import re
from pathlib import Path
from typing import NamedTuple

FOLDERS = ("course_lib/contracts", "course_lib/contracts/*")
CONTRACT = re.compile(r"^def check_(\w+)_contract\(", re.MULTILINE)
README = "README.md"
NAMED = re.compile(r"^\|`(\w+)`\|\d+/\d+\|\d+/(\d+)\|", re.MULTILINE)  # the second figure's whole
COMMAND = ("_runner", "runner")  # how files of the teachers' command begin: of no contract


class Subject(NamedTuple):
    """A folder of contracts: their number and lines, and those of the mistakes beside them."""

    path: str
    contracts: int
    lines: int
    mistakes: int
    mistake_lines: int


def subjects(root: Path) -> list[Subject]:
    """Every folder in which a contract is defined."""
    folders = (path for pattern in FOLDERS for path in sorted(root.glob(pattern)) if path.is_dir())
    read = (_subject(root, folder) for folder in folders)
    return [subject for subject in read if subject.contracts]


def _subject(root: Path, folder: Path) -> Subject:
    contracts: list[str] = []
    lines = mistake_lines = 0
    for path in folder.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "mistakes" in path.stem:
            mistake_lines += text.count("\n")
        elif not path.stem.startswith(COMMAND):
            contracts += CONTRACT.findall(text)
            lines += text.count("\n")
    named = mistakes_named(root)
    mistakes = sum(named[contract] for contract in contracts)
    return Subject(
        folder.relative_to(root).as_posix(), len(contracts), lines, mistakes, mistake_lines
    )


def mistakes_named(root: Path) -> dict[str, int]:
    """How many mistakes each contract names: some are made in loops, so no file tells.

    The readme's table of scores does, and a test holds that to the catalogues themselves.
    """
    text = (root / README).read_text(encoding="utf-8")
    return {contract: int(count) for contract, count in NAMED.findall(text)}
