"""Put translations into the text of a source: changed cells, new twins, comments."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from course_build.interchange.entries import Entry
from course_build.source.cells import Cell, split_chunks
from course_build.source.header import with_stamp
from course_build.source.language import Marked, comment_groups

NO_STAMP = ""


@dataclass(frozen=True)
class Change:
    """A translation to put into a source, and the stamp to give it.

    None leaves the stamp alone, NO_STAMP takes it away.
    """

    entry: Entry
    language: str
    text: str
    stamp: str | None


@dataclass(frozen=True)
class Splice:
    """New lines instead of the lines from `start` (from 0) up to `end`."""

    start: int
    end: int
    lines: tuple[str, ...]
    place: int = 0  # of the language: where two are put at one line, the later one is put first


def weave(path: str, text: str, changes: Iterable[Change], languages: Sequence[str]) -> str:
    """Return the source with these translations in it; what is not changed keeps its bytes."""
    lines = text.split("\n")
    ends = {chunk.line: chunk.line + len(chunk.body) for chunk in split_chunks(path, text)}
    splices = []
    for change in changes:
        if change.entry.comment:
            splices.append(_comment(change, languages))
        elif isinstance(change.entry.translation, Cell):
            splices += _replaced(change, change.entry.translation, lines, languages[0])
        else:
            splices.append(_inserted(change, lines, ends, languages))
    for splice in sorted(splices, key=lambda s: (s.start, s.end, s.place), reverse=True):
        lines[splice.start : splice.end] = splice.lines
    return "\n".join(lines)


def _replaced(change: Change, cell: Cell, lines: Sequence[str], first: str) -> list[Splice]:
    splices = []
    if change.stamp is not None and change.stamp != (cell.stamp or NO_STAMP):
        header = with_stamp(lines[cell.line - 1], first, change.stamp)
        splices.append(Splice(cell.line - 1, cell.line, (header,)))
    if change.text != cell.text:
        start = cell.text_line - 1
        end = start + cell.text.count("\n") + 1
        splices.append(Splice(start, end, tuple(change.text.split("\n"))))
    return splices


def _inserted(
    change: Change, lines: Sequence[str], ends: Mapping[int, int], languages: Sequence[str]
) -> Splice:
    """A new twin goes below the twins that come before it in the order of the languages."""
    cell, first = change.entry.cell, languages[0]
    mine = rf"(?<=\s)lang\s*=\s*[\"']{re.escape(first)}[\"']"
    header = re.sub(mine, f'lang="{change.language}"', lines[cell.line - 1])
    if change.stamp is not None:
        header = with_stamp(header, first, change.stamp)
    body = change.text.split("\n")
    if cell.kind == "markdown":
        body = ['r"""', *body, '"""']
    end = ends[change.entry.after.line]
    while not lines[end - 1].strip():
        end -= 1
    return Splice(end, end, ("", header, *body), languages.index(change.language))


def _comment(change: Change, languages: Sequence[str]) -> Splice:
    cell = change.entry.cell
    group = comment_groups(cell.text, languages)[change.entry.comment - 1]
    place = languages.index(change.language)
    before = [c for c in group if languages.index(c.language) < place]
    line = f"{group[0].before}# {change.language}: {change.text}"
    old: Marked | None = next((c for c in group if c.language == change.language), None)
    start = cell.text_line - 1 + (before[-1].line if old is None else old.line - 1)
    return Splice(start, start + (old is not None), (line,), place)
