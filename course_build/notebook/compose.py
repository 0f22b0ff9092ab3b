"""One language's notebook as values: cells whose every line knows the file it came from."""

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from course_build.base.chrome import name_some, say
from course_build.library.definitions import Definition
from course_build.library.embed import Embedding
from course_build.library.imports import Import, write_imports
from course_build.library.payload import Payload, cell_text
from course_build.notebook.exercises import solutions
from course_build.notebook.reference import Reference
from course_build.source.cells import Cell
from course_build.source.code import names_given, parse_code
from course_build.source.drafts import mark
from course_build.source.header import LIBRARY_KEY
from course_build.source.language import select_comments
from course_build.source.twins import Unit

EDITIONS = ("learner", "solved")
TITLE_WIDTH = 60
TAGS: dict[str | None, list[str]] = {
    "stub": ["exercise"],
    "check": ["exercise-check"],
    "ours": ["answer"],
}


@dataclass(frozen=True)
class Line:
    """A line of a notebook cell, and where it is written."""

    text: str
    path: str
    number: int


@dataclass(frozen=True)
class NotebookCell:
    """One cell of one notebook, and the source cell that it comes from.

    A cell that is made of library definitions names them: then it holds nothing else.
    """

    id: str
    kind: str
    lines: tuple[Line, ...]
    origin: Cell
    tags: tuple[str, ...] = ()
    folded: bool = False
    definitions: tuple[Definition, ...] = ()

    @cached_property
    def source(self) -> str:
        return "\n".join(line.text for line in self.lines)

    @property
    def texts(self) -> Iterator[str]:
        """What can be read in it: its source, and the strings of a question put together."""
        yield self.source
        if self.origin.role == "quiz":
            nodes = ast.walk(parse_code(self.source))
            values = [getattr(node, "value", None) for node in nodes]
            yield from (value for value in values if isinstance(value, str))


@dataclass(frozen=True)
class Parts:
    """What a source is made of, decided once for all its notebooks."""

    units: Sequence[Unit]
    embedding: Embedding
    imports: Sequence[Import]
    references: Mapping[str, Reference]
    drafts: Collection[str] = ()

    def hint_number(self, cell: Cell) -> int:
        """Which hint of its exercise this is, from 1."""
        return self._hints(cell).index(cell.key) + 1

    def hint_count(self, cell: Cell) -> int:
        """How many hints its exercise has."""
        return len(self._hints(cell))

    @cached_property
    def questions(self) -> list[str]:
        """The keys of the questions, in order."""
        return [unit.first.key for unit in self.units if unit.first.role == "quiz"]

    def _hints(self, cell: Cell) -> list[str]:
        firsts = [unit.first for unit in self.units]
        return [c.key for c in firsts if c.role == "hint" and c.exercise == cell.exercise]


def compose(parts: Parts, language: str, languages: Sequence[str]) -> list[NotebookCell]:
    """The learner's notebook in one language."""
    cells: list[NotebookCell] = []
    for unit in parts.units:
        cell = unit.in_language(language)
        if cell.key in parts.embedding.shown:
            shown = parts.embedding.shown[cell.key]
            made = replace(_cell(cell, _definition_lines(shown)), definitions=shown)
            cells.append(_fold(made, language, "ours") if cell.role == "ours" else made)
        elif cell.role == "imports":
            if parts.embedding.payload:
                cells.append(_library(cell, parts.embedding.payload, language))
            gathered = _generated(cell, write_imports(parts.imports))
            cells.append(_fold(gathered, language, "imports"))
        elif cell.role == "reference":
            code = parts.references[cell.key].code
            cells.append(_fold(_generated(cell, code), language, "reference"))
        elif cell.role == "hint":
            place = {"number": parts.hint_number(cell), "count": parts.hint_count(cell)}
            body = _prose(unit, language, parts.drafts)
            cells.append(_details(cell, say(language, "hint", **place), body))
        elif cell.role == "solution":
            fenced = _fenced(cell, _selected(cell, language, languages))
            cells.append(_details(cell, say(language, "solution"), fenced))
        elif cell.kind == "markdown":
            cells.append(_cell(cell, _prose(unit, language, parts.drafts)))
        elif cell.role == "quiz":
            number = parts.questions.index(cell.key) + 1
            title = say(language, "quiz", number=number, count=len(parts.questions))
            cells.append(_fold_under(title, _cell(cell, _selected(cell, language, languages))))
        elif cell.role == "folded":
            plain = _cell(cell, _selected(cell, language, languages))
            cells.append(_fold(plain, language, "machinery", names_given(cell.text)))
        else:
            cells.append(_cell(cell, _selected(cell, language, languages)))
    return cells


def solve(
    cells: Sequence[NotebookCell], parts: Parts, language: str, languages: Sequence[str]
) -> list[NotebookCell]:
    """The same notebook with every stub replaced by its solution, for the machine to run."""
    solved = solutions(parts.units)
    cells = list(cells)
    for place, cell in enumerate(cells):
        if cell.origin.role == "stub":
            solution = solved[cell.origin.exercise or ""]
            lines = tuple(_selected(solution, language, languages))
            cells[place] = replace(cell, lines=lines, origin=solution)
    return cells


def _library(cell: Cell, payload: Payload, language: str) -> NotebookCell:
    """The folded cell that carries the library, above the imports."""
    fields = {name: f"{{{name}}}" for name in ("wanted", "came", "place")}  # filled in by the cell
    words = [say(language, entry, **fields) for entry in ("library_changed", "library_other")]
    text = f"{say(language, 'library_about')}\n{cell_text(payload, language, *words)}"
    made = NotebookCell(LIBRARY_KEY, "code", tuple(_lines(cell, *text.split("\n"))), cell)
    return _fold(made, language, "library")


def _fold(cell: NotebookCell, language: str, entry: str, names: Sequence[str] = ()) -> NotebookCell:
    """Fold a cell under a title that names what is inside."""
    title = say(language, entry)
    if names:
        title += f": {name_some(language, names, TITLE_WIDTH)}"
    return _fold_under(title, cell)


def _fold_under(title: str, cell: NotebookCell) -> NotebookCell:
    lines = *_lines(cell.origin, f"#@title {title}"), *cell.lines
    return replace(cell, lines=lines, folded=True)


def _definition_lines(definitions: Sequence[Definition]) -> list[Line]:
    """The definitions' lines, two blank lines between."""
    lines: list[Line] = []
    for definition in definitions:
        if lines:
            lines += [Line("", definition.path, definition.line)] * 2
        lines += [
            Line(line, definition.path, definition.line + offset)
            for offset, line in enumerate(definition.text.split("\n"))
        ]
    return lines


def _details(cell: Cell, summary: str, body: Sequence[Line]) -> NotebookCell:
    lines = [
        *_lines(cell, f"<details><summary>{summary}</summary>", ""),
        *body,
        *_lines(cell, "", "</details>"),
    ]
    return replace(_cell(cell, lines), kind="markdown")


def _fenced(cell: Cell, code: Sequence[Line]) -> list[Line]:
    fence = "````" if any("```" in line.text for line in code) else "```"
    return [*_lines(cell, f"{fence}python"), *code, *_lines(cell, fence)]


def _cell(cell: Cell, lines: Sequence[Line]) -> NotebookCell:
    tags = [*cell.tags, *TAGS.get(cell.role, ())]
    return NotebookCell(cell.key, cell.kind, tuple(lines), cell, tuple(dict.fromkeys(tags)))


def _generated(cell: Cell, code: str) -> NotebookCell:
    return _cell(cell, _lines(cell, *code.split("\n")))


def _lines(cell: Cell, *texts: str) -> list[Line]:
    """Lines that the builder writes; they point at the cell's header."""
    return [Line(text, cell.path, cell.line) for text in texts]


def _prose(unit: Unit, language: str, drafts: Collection[str]) -> list[Line]:
    """The text as written; a draft's mark goes above it, but below its heading."""
    cell = unit.in_language(language)
    lines = [
        Line(text, cell.path, cell.text_line + number)
        for number, text in enumerate(cell.text.split("\n"))
    ]
    said = mark(unit, language) if language in drafts else ""
    if not said:
        return lines
    heading, rest = (lines[:1], lines[1:]) if lines[0].text.startswith("#") else ([], lines)
    while rest and not rest[0].text.strip():
        rest = rest[1:]
    above = _lines(cell, "", said) if heading else _lines(cell, said)
    return [*heading, *above, *(_lines(cell, "") if rest else []), *rest]


def _selected(cell: Cell, language: str, languages: Sequence[str]) -> list[Line]:
    """A code cell's lines with one language's comments."""
    return [
        Line(text, cell.path, cell.text_line + number - 1)
        for number, text in select_comments(cell.text, language, languages)
    ]
