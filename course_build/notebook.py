"""One language's notebook as values: cells whose every line knows the file it came from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from course_build.chrome import name_some, say
from course_build.code import names_defined
from course_build.embed import Embedding
from course_build.exercises import solutions
from course_build.imports import Import, write_imports
from course_build.language import select_comments
from course_build.library import Definition
from course_build.reference import Reference
from course_build.source import MACHINERY, Cell
from course_build.twins import Unit

EDITIONS = ("learner", "solved")
TITLE_WIDTH = 90


@dataclass(frozen=True)
class Line:
    """A line of a notebook cell, and where it is written."""

    text: str
    path: str
    number: int


@dataclass(frozen=True)
class NotebookCell:
    """One cell of one notebook. `told` is its own prose or code, not what the builder adds."""

    id: str
    kind: str
    lines: tuple[Line, ...]
    origin: Cell
    tags: tuple[str, ...] = ()
    folded: bool = False

    @property
    def source(self) -> str:
        return "\n".join(line.text for line in self.lines)


@dataclass(frozen=True)
class Parts:
    """What a source is made of, decided once for all its notebooks."""

    units: Sequence[Unit]
    embedding: Embedding
    imports: Sequence[Import]
    references: Mapping[str, Reference]


def compose(parts: Parts, language: str, languages: Sequence[str]) -> list[NotebookCell]:
    """The learner's notebook in one language."""
    cells: list[NotebookCell] = []
    hints = _HintCounter(parts.units)
    for unit in parts.units:
        cell = unit.in_language(language)
        if cell.key in parts.embedding.cells:
            cells += _embedded(cell, parts.embedding, language)
        elif cell.role == "imports":
            cells.append(_generated(cell, write_imports(parts.imports)))
        elif cell.role == "reference":
            code = _title(say(language, "reference")) + parts.references[cell.key].code
            cells.append(replace(_generated(cell, code), folded=True))
        elif cell.role == "hint":
            cells.append(_details(cell, hints.summary(cell, language), _written(cell)))
        elif cell.role == "solution":
            code = _selected(cell, language, languages)
            fenced = [*_lines(cell, "```python"), *code, *_lines(cell, "```")]
            cells.append(_details(cell, say(language, "solution"), fenced))
        elif cell.kind == "markdown":
            cells.append(_cell(cell, _written(cell)))
        elif cell.role == "folded":
            names = names_defined(cell.text)
            title = _lines(cell, _folded_title(language, "folded", names).rstrip("\n"))
            body = [*title, *_selected(cell, language, languages)]
            cells.append(replace(_cell(cell, body), folded=True))
        else:
            cells.append(_cell(cell, _selected(cell, language, languages)))
    return cells


def solve(
    cells: Sequence[NotebookCell], parts: Parts, language: str, languages: Sequence[str]
) -> list[NotebookCell]:
    """The same notebook with every stub replaced by its solution, for the machine to run."""
    solved = solutions(parts.units)
    return [
        replace(cell, lines=tuple(_selected(solved[cell.origin.exercise], language, languages)))
        if cell.origin.role == "stub"
        else cell
        for cell in cells
    ]


class _HintCounter:
    """Numbers the hints of each exercise."""

    def __init__(self, units: Sequence[Unit]) -> None:
        hints = [unit.first for unit in units if unit.first.role == "hint"]
        self.keys: dict[str, list[str]] = {}
        for cell in hints:
            self.keys.setdefault(cell.exercise or "", []).append(cell.key)

    def summary(self, cell: Cell, language: str) -> str:
        keys = self.keys[cell.exercise or ""]
        return say(language, "hint", number=keys.index(cell.key) + 1, count=len(keys))


def _embedded(cell: Cell, embedding: Embedding, language: str) -> list[NotebookCell]:
    embedded = embedding.cells[cell.key]
    shown = replace(_cell(cell, _definition_lines(embedded.shown, language)), folded=False)
    if cell.role == "folded":
        shown = _fold(shown, language, "folded", embedded.shown)
    if not embedded.machinery:
        return [shown]
    machinery = _cell(cell, _definition_lines(embedded.machinery, language))
    machinery = replace(machinery, id=cell.key + MACHINERY, tags=())
    return [_fold(machinery, language, "machinery", embedded.machinery), shown]


def _fold(
    cell: NotebookCell, language: str, entry: str, definitions: Sequence[Definition]
) -> NotebookCell:
    title = _folded_title(language, entry, [d.name for d in definitions]).rstrip("\n")
    return replace(cell, lines=(*_lines(cell.origin, title), *cell.lines), folded=True)


def _definition_lines(definitions: Sequence[Definition], language: str) -> list[Line]:
    """The definitions' lines, two blank lines between; the localized constant is translated."""
    lines: list[Line] = []
    for definition in definitions:
        if lines:
            lines += [Line("", definition.path, definition.line)] * 2
        text = definition.localized_text(language) if definition.localized else definition.text
        lines += [
            Line(line, definition.path, definition.line + offset)
            for offset, line in enumerate(text.split("\n"))
        ]
    return lines


def _folded_title(language: str, entry: str, names: list[str]) -> str:
    label = say(language, entry)
    return _title(f"{label}: {name_some(language, names, TITLE_WIDTH)}" if names else label)


def _title(words: str) -> str:
    return f"#@title {words}\n"


def _details(cell: Cell, summary: str, body: Sequence[Line]) -> NotebookCell:
    lines = [
        *_lines(cell, f"<details><summary>{summary}</summary>", ""),
        *body,
        *_lines(cell, "", "</details>"),
    ]
    return replace(_cell(cell, lines), kind="markdown")


def _cell(cell: Cell, lines: Sequence[Line]) -> NotebookCell:
    tags = list(cell.tags)
    tags += {"stub": ["exercise"], "check": ["exercise-check"]}.get(cell.role or "", [])
    return NotebookCell(cell.key, cell.kind, tuple(lines), cell, tuple(dict.fromkeys(tags)))


def _generated(cell: Cell, code: str) -> NotebookCell:
    return _cell(cell, _lines(cell, *code.split("\n")))


def _lines(cell: Cell, *texts: str) -> list[Line]:
    """Lines that the builder writes; they point at the cell's header."""
    return [Line(text, cell.path, cell.line) for text in texts]


def _written(cell: Cell) -> list[Line]:
    return [
        Line(text, cell.path, cell.text_line + number)
        for number, text in enumerate(cell.text.split("\n"))
    ]


def _selected(cell: Cell, language: str, languages: Sequence[str]) -> list[Line]:
    """A code cell's lines with one language's comments."""
    return [
        Line(text, cell.path, cell.text_line + number)
        for number, text in select_comments(cell.text, language, languages)
    ]
