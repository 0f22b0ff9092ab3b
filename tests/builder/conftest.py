"""A small repository in a temporary folder: the builder's tests need no real course."""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from course_build import cli
from course_build.base import stamp

SETTINGS = '[tool.course]\nlanguages = ["en", "ru"]\nrepository = ""\nbranch = "main"\n'
NAME = "module_03_toy"
SOURCE = f"notebooks/src/{NAME}.py"
LIBRARY = {
    "course_lib/__init__.py": '"""The library."""\n',
    "course_lib/door.py": '''"""Checks at the door."""

import math


def check_positive(name: str, value: float) -> None:
    """Refuse what is not positive."""
    if not value > 0:
        raise ValueError(f"{name}={value} is not positive")


def half_turn() -> float:
    return math.pi
''',
    "course_lib/scaling.py": '''"""Scaling."""

from course_lib.door import check_positive


def scale(value: float, d_k: int) -> float:
    """Divide by the root of d_k."""
    check_positive("d_k", d_k)
    return value / d_k**0.5
''',
}


def stamp_by_hand(text: str) -> str:
    """The stamp of a text that has nothing to normalise."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def prose(key: str, en: str = "Some words.", ru: str = "Слова.", more: str = "") -> str:
    """Markdown twins with a fresh stamp."""
    return (
        f'# %% [markdown] lang="en" key="{key}"{more}\nr"""\n{en}\n"""\n\n'
        f'# %% [markdown] lang="ru" key="{key}" en="{stamp_by_hand(en)}"{more}\nr"""\n{ru}\n"""\n'
    )


def code(key: str, text: str, more: str = "") -> str:
    """A shared code cell."""
    return f'# %% key="{key}"{more}\n{text}\n'


def code_twins(key: str, en: str, ru: str) -> str:
    """Code twins with a fresh stamp."""
    return (
        f'# %% lang="en" key="{key}"\n{en}\n\n'
        f'# %% lang="ru" key="{key}" en="{stamp_by_hand(en)}"\n{ru}\n'
    )


def stale(key: str, en: str = "Old words.", now: str = "New words.", ru: str = "Слова.") -> str:
    """Markdown twins whose English has changed since the Russian was confirmed."""
    return prose(key, en, ru).replace(en, now, 1)


FOLDED = {"cellView": "form", "jupyter": {"source_hidden": True}, "tags": ["hide-input"]}

FRAME = "\n".join(
    [
        prose("title", "# A toy\n\nHello.", "# Игрушка\n\nПривет."),
        code("imports", "import sys", ' role="imports"'),
        code("parameters", "seed = 18", ' tags=["parameters"]'),
        prose("begin"),
    ]
)
FRAME_LINES = FRAME.count("\n") + 1  # the first cell after the frame begins on the next line


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


class Repository:
    """A course to build; its commands run in this process."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.capsys = root, capsys
        self.write("pyproject.toml", SETTINGS)
        for path, text in LIBRARY.items():
            self.write(path, text)

    def write(self, path: str, text: str | bytes) -> None:
        data = text if isinstance(text, bytes) else text.encode()
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(data)

    def read(self, path: str) -> str:
        return (self.root / path).read_bytes().decode()

    def source(self, *cells: str, name: str = NAME) -> None:
        """Write a source: the frame that every source needs, then these cells."""
        self.write(f"notebooks/src/{name}.py", "\n".join([FRAME, *cells]))

    def reference(self, name: str, values: object) -> str:
        """Write a reference file and its sum; return its text."""
        text = json.dumps(values, sort_keys=True, separators=(",", ":"))
        self.write(f"reference/{name}.json", text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        self.write("reference/SHA256SUMS", f"{digest}  {name}.json\n")
        return text

    def run(self, *arguments: str) -> Ran:
        self.capsys.readouterr()
        ended = cli.main(arguments, self.root)
        said = self.capsys.readouterr()
        return Ran(ended, said.out, said.err)

    def build(self, *cells: str) -> None:
        """Write a source from these cells and build it; it must succeed."""
        self.source(*cells)
        ran = self.run()
        assert ran.code == 0, ran.err

    def refuse(self, *cells: str) -> str:
        """Write a source from these cells; it must be refused. What was said comes back."""
        self.source(*cells)
        return self.broken()

    def broken(self) -> str:
        ran = self.run()
        assert ran.code == 2, (ran.code, ran.out, ran.err)
        return ran.err

    def notebook(self, language: str = "en", folder: str = "notebooks", name: str = NAME) -> dict:
        return json.loads(self.read(f"{folder}/{language}/{name}.ipynb"))

    def cell(self, key: str, language: str = "en", folder: str = "notebooks") -> dict:
        cells = self.notebook(language, folder)["cells"]
        [found] = [cell for cell in cells if cell["id"] == key]
        return found

    def text(self, key: str, language: str = "en", folder: str = "notebooks") -> str:
        return "".join(self.cell(key, language, folder)["source"])

    def outputs(self) -> dict[str, bytes]:
        """Every file that a build may write, the stamp apart: path -> bytes."""
        folders = ("notebooks/en", "notebooks/ru", "build")
        paths = [p for f in folders for p in sorted((self.root / f).rglob("*")) if p.is_file()]
        files = {path.relative_to(self.root).as_posix(): path.read_bytes() for path in paths}
        return {path: data for path, data in files.items() if path != stamp.PLACE}


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch):
    """No test here outlives a power cut, so none waits for the disk."""
    monkeypatch.setattr("course_build.base.files.os.fsync", lambda descriptor: None)


@pytest.fixture
def repo(tmp_path, capsys):
    """An empty course with a small library."""
    return Repository(tmp_path, capsys)


def said(path: str, line: int, key: str | None, rule: str, words: str = "") -> re.Pattern[str]:
    """A pattern for one finding: file, line, cell, rule, and words of its message."""
    cell = f' cell "{key}":' if key else ""
    start = re.escape(f"{path}:{line}:{cell} [{rule}]")
    return re.compile(f"^{start}\n(?:    (?!-> ).*\n)*?    (?!-> ).*{words}", re.MULTILINE)
