"""The catalogue of mistakes as data: read in a process of its own, the builder imports no library.

A contract's mistakes are told as a table: the name, what it does, what to write instead.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from course_build.base.findings import CourseError, Finding
from course_build.teaching.words import say

PROGRAM = """
import json
from course_lib.mistakes import CATALOGUE

told = {
    contract: [{"name": one.name, "what": one.what, "fix": one.fix} for one in mistakes]
    for contract, mistakes in CATALOGUE.items()
}
print(json.dumps(told))
"""
Known = Mapping[str, Sequence[Mapping[str, Any]]]  # contract -> its mistakes


def read_catalogue(root: Path) -> Known:
    """Ask the library for its catalogue; CourseError with its last words if it has none."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=root, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = done.stderr.strip().split("\n")[-1]
        message = f"the catalogue of mistakes cannot be read: {said}"
        mend = "make python -c 'import course_lib.mistakes' work"
        raise CourseError([Finding("course_lib/mistakes", None, None, "catalogue", message, mend)])
    return json.loads(done.stdout)


def mistakes_table(mistakes: Sequence[Mapping[str, Any]], language: str) -> str:
    """The mistakes as a table of Markdown, one a row."""
    rows = [
        f"| `{mistake['name']}` | {_told(mistake['what'], language)} "
        f"| {_told(mistake['fix'], language)} |"
        for mistake in mistakes
    ]
    return "\n".join([say(language, "columns"), "| --- | --- | --- |", *rows])


def _told(texts: Mapping[str, str], language: str) -> str:
    """A text of the catalogue in a cell of a table: in words that end no cell and open no tag."""
    text = texts.get(language) or next(iter(texts.values()))
    for mark in "\\`*_[]<>|$":
        text = text.replace(mark, f"\\{mark}")
    return text
