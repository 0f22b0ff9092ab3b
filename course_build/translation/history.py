"""The source text that a translation was confirmed against, found again by its stamp.

First in the git history of the source, newest version first; then in the rendered notebook, which
shows the text of the last build. Neither has to be there: a stamp may be all that is known.
"""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from course_build.base.git import git
from course_build.base.places import notebook_path, stem_of
from course_build.notebook.glossary_links import unlink
from course_build.source.cells import texts_in
from course_build.source.twins import stamp

LOG = ("log", "--follow", "--raw", "--no-color", "--no-show-signature")


@dataclass(frozen=True)
class Earlier:
    """An earlier text, and in which words to say when it was changed."""

    text: str
    changed: str


@dataclass(frozen=True)
class Version:
    """One committed version of a file."""

    commit: str
    date: str
    text: str


def earlier_texts(
    root: Path, path: str, wanted: Collection[tuple[str, str]], language: str
) -> dict[tuple[str, str], Earlier]:
    """Find the texts in the source language for cells given as (key, stamp)."""
    found = _in_versions(versions(root, path), set(wanted), language)
    rendered = _in_notebook(root / notebook_path(language, stem_of(path)))
    where = f"after the last build of {notebook_path(language, stem_of(path))}"
    for key, mark in set(wanted) - found.keys():
        for text in rendered.get(key, ()):
            if stamp(text) == mark:
                found[key, mark] = Earlier(text, where)
    return found


def _in_versions(
    history: Iterator[Version], wanted: set[tuple[str, str]], language: str
) -> dict[tuple[str, str], Earlier]:
    """Look under each cell's own key first: elsewhere its text may stand under another."""
    found: dict[tuple[str, str], Earlier] = {}
    elsewhere: dict[str, Earlier] = {}
    changed = "and is not committed yet"
    for version in history:
        for key, text in texts_in(version.text, language):
            mark = stamp(text)
            if key is not None and (key, mark) in wanted:
                found.setdefault((key, mark), Earlier(text, changed))
            elsewhere.setdefault(mark, Earlier(text, changed))
        if found.keys() == wanted:
            break
        changed = f"in {version.commit} ({version.date})"
    moved = {cell: elsewhere[cell[1]] for cell in wanted - found.keys() if cell[1] in elsewhere}
    return found | moved


def versions(root: Path, path: str) -> Iterator[Version]:
    """The committed versions of a file, newest first, under whatever name; none without git."""
    commit, date = "", ""
    for line in git(root, *LOG, "--format=%h %cs", "--", path).decode().split("\n"):
        if line.startswith(":"):
            blob = line.split()[3]
            data = git(root, "cat-file", "blob", blob)
            yield Version(commit, date, data.decode("utf-8", "replace"))
        elif line:
            commit, date = line.split()


def _in_notebook(path: Path) -> dict[str, list[str]]:
    """For each cell of a rendered notebook: what the text in the source may have been."""
    try:
        cells = json.loads(path.read_bytes())["cells"]
        return {cell["id"]: list(_unrendered("".join(cell["source"]))) for cell in cells}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _unrendered(text: str) -> Iterator[str]:
    """Undo what rendering adds: glossary links, paragraphs under the title, a fold."""
    for plain in (text, unlink(text)):
        lines = plain.split("\n")
        yield plain
        yield from ("\n".join(lines[edge:-edge]) for edge in (2, 3))
        for added in range(2, min(len(lines), 8)):
            yield "\n".join([lines[0], *lines[added + 1 :]])
