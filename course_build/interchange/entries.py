"""What there is to translate in one source: its cells, and the marked comments of shared code."""

from collections.abc import Sequence
from dataclasses import dataclass

from course_build.base.decode import decode
from course_build.base.findings import stop_if_broken
from course_build.building.course import stem_of
from course_build.notebook.structure import check_syntax
from course_build.source.cells import Cell, parse_source
from course_build.source.language import Marked, comment_groups
from course_build.source.pairs import CONFIRMED, MISSING, pairs_of

KINDS = {
    "prose": "prose: Markdown; keep formulas, code and link targets as they are",
    "hint": "hint of an exercise: Markdown; keep formulas, code and link targets as they are",
    "code": "code: translate only the words in strings and comments",
    "comment": "a comment in code: one line",
}


@dataclass(frozen=True)
class Entry:
    """One text to translate, and the cell that it comes from.

    A translation that is still to be written belongs at once below the cell `after`.
    A comment is number `comment` (from 1) of its cell and bears no stamp: its translation cannot be
    stale, because it is put back only below the very comment that it was made from.
    """

    cell: Cell
    source: str
    translation: Cell | str | None
    state: str
    after: Cell
    comment: int = 0

    @property
    def context(self) -> str:
        """The entry's name in a PO file: MODULE:KEY, with #NUMBER for a comment."""
        number = f"#{self.comment}" if self.comment else ""
        return f"{stem_of(self.cell.path)}:{self.cell.key}{number}"

    @property
    def kind(self) -> str:
        if self.comment:
            return "comment"
        if self.cell.kind == "code":
            return "code"
        return "hint" if self.cell.role == "hint" else "prose"

    @property
    def text(self) -> str:
        """The translation as it stands; empty where there is none."""
        translation = self.translation
        return translation.text if isinstance(translation, Cell) else translation or ""


def read_entries(path: str, data: bytes, languages: Sequence[str], language: str) -> list[Entry]:
    """List everything to translate into a language, in the order of the source."""
    cells = parse_source(path, decode(path, data), tuple(languages))
    stop_if_broken(check_syntax(cells))
    before = languages[: languages.index(language)]
    last = {cell.key: cell for cell in cells if cell.lang in before}  # the lowest of each key
    entries = [
        Entry(p.source, p.source.text, p.translation, p.state, last[p.source.key])
        for p in pairs_of(cells, languages)
        if p.language == language
    ]
    for cell in cells:
        if cell.lang is None and cell.kind == "code":
            groups = comment_groups(cell.text, languages)
            entries += [
                _comment(cell, number, group, language)
                for number, group in enumerate(groups, 1)
                if group[0].words
            ]
    return sorted(entries, key=lambda entry: (entry.cell.line, entry.comment))


def _comment(cell: Cell, number: int, group: Sequence[Marked], language: str) -> Entry:
    words = next((comment.words for comment in group[1:] if comment.language == language), None)
    state = MISSING if words is None else CONFIRMED
    return Entry(cell, group[0].words, words, state, cell, number)
