"""One name, one meaning in a notebook: the library's, the imports' and the notebook's own."""

import ast
from collections.abc import Sequence
from itertools import combinations

from course_build.base.findings import Finding
from course_build.library.embed import Embedding, is_embed
from course_build.library.imports import Import, imports_in
from course_build.source.bound import names_bound
from course_build.source.cells import Cell
from course_build.source.code import parse_code
from course_build.source.twins import Unit


def own_imports(units: Sequence[Unit]) -> list[Import]:
    """The imports that the author wrote in the imports cell."""
    cells = [unit.first for unit in units if unit.first.role == "imports"]
    return [imported for cell in cells for imported in _imports_of(cell)]


def check_clashes(units: Sequence[Unit], embedding: Embedding) -> list[Finding]:
    """No cell may rebind what the library or its imports bring into the notebook."""
    findings = []
    brought = {imported.bound: imported for imported in embedding.imports}
    for first, second in _import_pairs(embedding):
        definition = embedding.imports[second].by
        findings.append(
            Finding(
                definition.path, definition.line, None, "import-clash",
                f"{second.statement} and {first.statement} (needed by "
                f"{embedding.imports[first].by.name}) both bind {second.bound}",
                "import one of them under another name in the library",
            )
        )  # fmt: skip
    for name, held in embedding.held.items():
        target = f"{held.definition.module}.{name}"
        if name in brought and brought[name].target != target:
            message = (
                f"{name} is defined by {held.definition.path} and by {brought[name].statement}"
            )
            findings.append(held.cell.finding("two-definitions", message, "rename one of them"))
    for cell in _plain_cells(units):
        findings += _check_cell(cell, embedding, brought)
    return findings


def _check_cell(cell: Cell, embedding: Embedding, brought: dict[str, Import]) -> list[Finding]:
    findings = []
    imported = {i.bound: i for i in _imports_of(cell)}
    for name in sorted(names_bound(cell.text)):
        if name in embedding.held:
            held = embedding.held[name]
            replaced = held.cell.role == "library" and held.cell.line > cell.line
            if held.cell.role == "ours" or replaced:  # by the learner's own; by an import in sight
                continue
            message = (
                f"{name} is also defined by {held.definition.path}:{held.definition.line} "
                f'(cell "{held.cell.key}")'
            )
            findings.append(_at_name(cell, name, "two-definitions", message))
        elif name in brought and (
            name not in imported or imported[name].target != brought[name].target
        ):
            message = f"{name} is also {brought[name].statement} in the library"
            findings.append(_at_name(cell, name, "import-clash", message))
    return findings


def _at_name(cell: Cell, name: str, rule: str, message: str) -> Finding:
    """Point at the statement that binds the name."""
    statements = parse_code(cell.text).body
    binding = (node.lineno for node in statements if name in names_bound(ast.unparse(node)))
    mend = "choose another name in this cell"
    return cell.finding(rule, message, mend, line=next(binding, 1))


def _plain_cells(units: Sequence[Unit]) -> list[Cell]:
    """The code cells that the author wrote himself, in every language."""
    return [
        cell
        for unit in units
        for cell in unit.cells
        if cell.kind == "code" and cell.role != "reference" and not is_embed(cell)
    ]


def _imports_of(cell: Cell) -> list[Import]:
    return [
        imported
        for node in parse_code(cell.text).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for imported in imports_in(node)
    ]


def _import_pairs(embedding: Embedding) -> list[tuple[Import, Import]]:
    """Two imports of the library that bind one name to different things."""
    return [
        (first, second)
        for first, second in combinations(sorted(embedding.imports), 2)
        if first.bound == second.bound and first.target != second.target
    ]
