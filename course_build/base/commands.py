"""The commands that the builder tells its readers to run, ready to be copied."""

import re
import shlex
from collections.abc import Iterable

from course_build.base.places import PAGE

BUILDER = "python3 -m course_build.environment build_notebooks.py"
NUMBERED = re.compile(r"module_(\d\d)_")
MOST = 6  # cells of one module that are named one by one


def module_name(path: str) -> str:
    """The shortest name of a source on the command line: its number, of a page its own name."""
    stem = path.rsplit("/", 1)[-1].removesuffix(".py")
    numbered = NUMBERED.match(stem)
    return str(int(numbered[1])) if numbered else stem.removeprefix(PAGE)


def cell_name(path: str, key: str) -> str:
    """A cell's name on the command line, for example 3:scaled-dot."""
    return f"{module_name(path)}:{key}"


def names_of(cells: Iterable[tuple[str, str]], most: int = MOST) -> list[str]:
    """Name cells given as (path, key): a module with more than `most` of them by its name alone."""
    keys: dict[str, dict[str, None]] = {}
    for path, key in cells:
        keys.setdefault(path, {})[key] = None
    names = []
    for path, here in keys.items():
        one_by_one = [cell_name(path, key) for key in here]
        names += one_by_one if len(here) <= most else [module_name(path)]
    return names


def command(verb: str, names: Iterable[str] = (), languages: Iterable[str] = ()) -> str:
    """Write a command of the builder as it is typed."""
    limit = list(languages)
    words = [verb, *map(shlex.quote, names), *(["--lang", *limit] if limit else [])]
    return " ".join([BUILDER, *words])


def some(names: Iterable[str], most: int = 8) -> str:
    """List the first names, and say how many more there are."""
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
