"""What a contract and a mistake cost: read from their files, for the builder runs no library."""

import ast
import re
from pathlib import Path
from typing import NamedTuple

FOLDERS = ("course_lib/contracts", "course_lib/contracts/*", "course_lib/mistakes")
CONTRACT = re.compile(r"^def check_\w+_contract\(", re.MULTILINE)
COMMAND = ("_runner", "runner")  # how files of the teachers' command begin: of no contract


class Subject(NamedTuple):
    """A folder of contracts: their number and lines, and those of the mistakes beside them."""

    path: str
    contracts: int
    lines: int
    mistakes: int
    mistake_lines: int


def subjects(root: Path) -> list[Subject]:
    """Every folder in which a contract or a mistake is defined."""
    folders = (path for pattern in FOLDERS for path in sorted(root.glob(pattern)) if path.is_dir())
    read = (_subject(folder, folder.relative_to(root).as_posix()) for folder in folders)
    return [subject for subject in read if subject.contracts or subject.mistakes]


def _subject(folder: Path, name: str) -> Subject:
    contracts = lines = mistakes = mistake_lines = 0
    for path in folder.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        found = count_mistakes(text)
        if found or "mistakes" in path.stem or folder.name == "mistakes":
            mistakes += found
            mistake_lines += text.count("\n")
        elif not path.stem.startswith(COMMAND):
            contracts += len(CONTRACT.findall(text))
            lines += text.count("\n")
    return Subject(name, contracts, lines, mistakes, mistake_lines)


def count_mistakes(text: str) -> int:
    """How many mistakes a file lists: each Mistake(...), each name=... of a mistakes(...) table.

    What a function makes in a loop counts once: a list that a machine writes is no reader's load.
    """
    tree = ast.parse(text)
    if any(isinstance(node, ast.FunctionDef) and node.name == "mistakes" for node in tree.body):
        return 0  # the engine's own file, where a table's entries become Mistakes
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = [call.func.id if isinstance(call.func, ast.Name) else "" for call in calls]
    tables = (call for call, name in zip(calls, names, strict=True) if name == "mistakes")
    return names.count("Mistake") + sum(len(call.keywords) for call in tables)
