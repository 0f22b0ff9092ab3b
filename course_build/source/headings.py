"""Headings in order: a reader who jumps from heading to heading must not miss a level."""

from collections.abc import Iterator, Sequence

from course_build.base.findings import Finding
from course_build.source.cells import Cell
from course_build.source.twins import Unit
from course_build.text.prose import parse_prose


def check_heading_order(units: Sequence[Unit], languages: Sequence[str]) -> list[Finding]:
    """One title in each language's notebook, and below it no level skipped."""
    findings: list[Finding] = []
    for language in languages:
        last = 0
        for cell in (unit.in_language(language) for unit in units):
            for level, line in _headings(cell):
                findings += _misplaced(cell, level, last, line)
                last = level
    return list(dict.fromkeys(findings))  # a draft shows cells of the source language


def _headings(cell: Cell) -> Iterator[tuple[int, int]]:
    """The level and the line of each heading in a cell of prose."""
    for token in parse_prose(cell.text) if cell.kind == "markdown" else ():
        if token.type == "heading_open" and token.map:
            yield int(token.tag.removeprefix("h")), token.map[0] + 1


def _misplaced(cell: Cell, level: int, last: int, line: int) -> list[Finding]:
    if level == 1 and last:
        message, mend = "a second title", "begin the heading with ## or more"
    elif level > last + 1:
        message = f"a heading of level {level} after one of level {last}"
        mend = f"begin the heading with {'#' * (last + 1)}"
    else:
        return []
    return [cell.finding("heading-order", message, mend, line=line)]
