"""Measures: lines by room, notebooks, seconds of tests, packages; all of them read, nothing run."""

import importlib.metadata
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement

from course_build.weight.contracts import subjects

CODE = ("course_lib", "course_build", "tests", "bench", "reference", "notebooks/src")
JUDGES = ("course_lib/contracts", "course_lib/mistakes", "course_lib/checking")
SECONDS = "build/test_seconds.json"  # tests/conftest.py: {marks of a whole run: {folder: seconds}}
READERS = ("requirements.lock", "requirements.txt")
PINNED = re.compile(r"^[\w.-]+==[^\\#\n]+", re.MULTILINE)


class Weight(NamedTuple):
    """One thing with a budget, and the file or folder that is the heaviest."""

    value: float
    where: str


class Notebook(NamedTuple):
    kilobytes: float
    folded: int  # lines of code that a reader unfolds to see
    path: str


def lines_by_room(root: Path) -> Counter[str]:
    """Lines of Python in each folder of the first two levels."""
    rooms: Counter[str] = Counter()
    for top in CODE:
        for path in sorted((root / top).rglob("*.py")):
            inner = path.relative_to(root / top).parts[:-1]
            rooms["/".join([top, *inner[:1]])] += _lines(path)
    return rooms


def notebooks(root: Path) -> list[Notebook]:
    """The rendered notebooks as they are on the disk."""
    found = []
    for path in sorted(root.glob("notebooks/[a-z]*/module_*.ipynb")):
        data = path.read_bytes()
        cells = [cell for cell in json.loads(data)["cells"] if cell["cell_type"] == "code"]
        folded = (c for c in cells if c["metadata"].get("jupyter", {}).get("source_hidden"))
        lines = sum(len(cell["source"]) for cell in folded)
        found.append(Notebook(len(data) / 1000, lines, path.relative_to(root).as_posix()))
    return found


def seconds_of_tests(root: Path) -> Counter[str]:
    """Seconds of each folder of tests in the last whole runs, of make test and make delivery."""
    path, seconds = root / SECONDS, Counter[str]()
    for run in json.loads(path.read_bytes()).values() if path.exists() else ():
        seconds.update(run)
    return seconds


def packages(root: Path) -> tuple[int, float]:
    """How many packages a reader installs on this machine, and their megabytes here."""
    sizes = {}
    for found in importlib.metadata.distributions():
        files = (Path(str(found.locate_file(file))) for file in found.files or ())
        sizes[_normal(found.name)] = sum(file.stat().st_size for file in files if file.is_file())
    wanted = set()
    for name in READERS:  # torch is in the second alone: its files differ from index to index
        for line in PINNED.findall((root / name).read_text(encoding="utf-8")):
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate():
                wanted.add(_normal(needed.name))
    return len(wanted), sum(sizes.get(name, 0) for name in wanted) / 1e6


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def weights(root: Path) -> Iterator[tuple[str, Weight]]:
    """Everything that has a budget in pyproject.toml, by its name there."""
    books, found, rooms = notebooks(root), subjects(root), lines_by_room(root)
    kilobytes, _, path = max(books)
    yield "KB of a notebook", Weight(kilobytes, path)
    yield "folded lines of a notebook", max(Weight(book.folded, book.path) for book in books)
    contracts = [Weight(s.lines / s.contracts, s.path) for s in found if s.contracts]
    mean = sum(s.lines for s in found) / sum(s.contracts for s in found)
    yield "lines of a contract, mean", Weight(mean, max(contracts).where)
    yield "lines of a contract, most", max(contracts)
    mistakes = [Weight(s.mistake_lines / s.mistakes, s.path) for s in found if s.mistakes]
    mean = sum(s.mistake_lines for s in found) / sum(s.mistakes for s in found)
    yield "lines of a mistake, mean", Weight(mean, max(mistakes).where)
    yield "lines of a mistake, most", max(mistakes)
    library = sum(n for room, n in rooms.items() if room.startswith("course_lib"))
    modules = len(list(root.glob("notebooks/src/module_*.py")))
    library -= sum(rooms[judge] for judge in JUDGES)
    yield "lines of course_lib for a module", Weight(library / modules, "course_lib")
    variants = sum(map(_lines, root.glob("tests/contracts/variants*.py")))
    tests = sum(n for room, n in rooms.items() if room.startswith("tests")) - variants
    tested = sum(n for room, n in rooms.items() if room.startswith(("course_lib", "course_build")))
    yield "lines of tests for a line", Weight(tests / tested, "tests")
    yield "packages a reader installs", Weight(packages(root)[0], READERS[0])


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")
