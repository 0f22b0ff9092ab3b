"""What every source has: a title first, one imports cell, one parameters cell."""

import ast
from collections.abc import Sequence

from course_build.base.findings import Finding
from course_build.library.embed import is_embed
from course_build.source.cells import Cell
from course_build.source.code import comments, parse_code
from course_build.source.twins import Unit
from course_build.text.prose import heading


def check_syntax(cells: Sequence[Cell]) -> list[Finding]:
    """Every code cell is Python, commands such as %pip apart."""
    findings = []
    for cell in cells:
        if cell.kind == "code":
            try:
                parse_code(cell.text)
            except SyntaxError as error:
                shown = (error.text or "").strip()
                message = f"{error.msg}: {shown}" if shown else str(error.msg)
                findings.append(
                    cell.finding(
                        "syntax", message, "correct the Python of this cell", line=error.lineno or 1
                    )
                )
    return findings


def check_structure(units: Sequence[Unit]) -> list[Finding]:
    """The parts that every notebook needs, each exactly once and in its place."""
    cells = [unit.first for unit in units]
    return [
        *_check_title(units[0]),
        *_check_single(cells, 'role="imports"', [c for c in cells if c.role == "imports"]),
        *_check_single(cells, 'tags=["parameters"]', [c for c in cells if "parameters" in c.tags]),
        *(f for cell in cells if "parameters" in cell.tags for f in _check_parameters(cell)),
        *(f for cell in cells if cell.role == "imports" for f in _check_imports(cell)),
        *(f for cell in cells for f in _check_reference_link(cell)),
        *_check_imports_first(cells),
    ]


def _check_title(unit: Unit) -> list[Finding]:
    return [
        cell.finding(
            "title",
            "a notebook begins with its title",
            "make the first cell Markdown whose first line is `# Title`",
        )
        for cell in unit.cells
        if cell.kind != "markdown" or not heading(cell.text)
    ]


def _check_single(cells: Sequence[Cell], what: str, found: Sequence[Cell]) -> list[Finding]:
    rule = "one-imports-cell" if "imports" in what else "one-parameters-cell"
    if not found:
        return [cells[0].finding(rule, f"no cell has {what}", "give the source exactly one")]
    return [
        cell.finding(rule, f"{what} is already at line {found[0].line}", "keep one of them")
        for cell in found[1:]
    ]


def _check_parameters(cell: Cell) -> list[Finding]:
    if cell.role is None and cell.lang is None:
        return []
    message = "the parameters cell is a shared code cell without a role"
    return [cell.finding("parameters", message, "move the tag to such a cell")]


def _check_imports(cell: Cell) -> list[Finding]:
    findings = []
    if cell.lang is not None:
        findings.append(
            cell.finding("imports-cell", "the imports cell is shared", "remove lang from it")
        )
    for node in parse_code(cell.text).body:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            problem = "something that is not an import"
        elif getattr(node, "level", 0) or getattr(node, "module", "") == "__future__":
            problem = "a relative or __future__ import"
        elif any(alias.name == "*" for alias in node.names):
            problem = "a star import"
        else:
            continue
        message = f"the imports cell holds {problem}"
        findings.append(
            cell.finding("imports-cell", message, "keep plain imports only in it", line=node.lineno)
        )
    for line, _, comment in comments(cell.text):
        message = f"this comment would vanish when the imports are sorted: {comment}"
        findings.append(cell.finding("imports-cell", message, "say it in prose", line=line))
    return findings


def _check_reference_link(cell: Cell) -> list[Finding]:
    if (cell.role == "reference") == (cell.reference is not None):
        return []
    message = f"role={cell.role!r} with reference={cell.reference!r}"
    return [cell.finding("reference-link", message, 'write role="reference" reference="..."')]


def _check_imports_first(cells: Sequence[Cell]) -> list[Finding]:
    """Embedded definitions use the gathered imports, so these come first."""
    place = next((i for i, cell in enumerate(cells) if cell.role == "imports"), len(cells))
    return [
        cell.finding(
            "imports-first",
            "an embed cell stands above the imports cell",
            "move it below the imports cell",
        )
        for cell in cells[:place]
        if is_embed(cell)
    ]
