"""An import from the library in a source: shown as what it imports, or kept as it is and packed.

Without a role, a cell becomes the source of the definitions that it names: that is taught. With
role="library" it keeps its import. What shown definitions need besides is imported from the
library as well, in the imports cell. Everything is decided once for all languages.
"""

import ast
import builtins
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from course_build.base.findings import CourseError, Finding
from course_build.base.places import PACKAGE
from course_build.library.definitions import Definition, Library
from course_build.library.imports import Import, imports_in
from course_build.library.payload import Payload, pack
from course_build.library.reading import import_problem
from course_build.source.cells import Cell
from course_build.source.code import comments, parse_code

ALWAYS_THERE = frozenset(dir(builtins)) | {"__name__"}

SHOWN = (None, "ours")  # roles of cells that show definitions: in the open, or folded as an answer


@dataclass(frozen=True)
class Request:
    """One name that a cell imports from the library."""

    module: str
    name: str
    line: int


@dataclass(frozen=True)
class Held:
    """A library definition that a cell shows, or imports."""

    definition: Definition
    cell: Cell
    shown: bool


@dataclass(frozen=True)
class Needed:
    """An import that a shown definition needs, and the cell that shows it."""

    by: Definition
    cell: Cell


@dataclass
class Embedding:
    """What the cells of one source show of the library and import from it.

    `imports` are those of the imports cell: third parties' names, and the library's.
    """

    shown: dict[str, tuple[Definition, ...]] = field(default_factory=dict)
    imports: dict[Import, Needed] = field(default_factory=dict)
    held: dict[str, Held] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    payload: Payload | None = None


def is_embed(cell: Cell) -> bool:
    """Does this cell import from the library?"""
    if cell.kind != "code" or cell.role == "reference" or "import" not in cell.text:
        return False
    return any(imports_library(node) for node in ast.walk(parse_code(cell.text)))


def imports_library(node: ast.AST) -> TypeGuard[ast.Import | ast.ImportFrom]:
    """Is this node an import of the library or of something in it?"""
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return False
    return any(imported.package == PACKAGE for imported in imports_in(node))


def plan_embedding(cells: Sequence[Cell], library: Library) -> Embedding:
    """Decide for every such cell, in order, what it shows and what must be imported for it."""
    embedding = Embedding()
    for cell in cells:
        requests, findings = _read_requests(cell)
        embedding.findings += findings
        try:
            _embed(cell, requests, library, embedding)
        except CourseError as error:
            embedding.findings += error.in_cell(cell.key)
    kept = {held.definition.module for held in embedding.held.values() if not held.shown}
    needed = {i.module for i in embedding.imports if i.package == PACKAGE}
    embedding.payload = pack(library.files, sorted(kept | needed))
    return embedding


def _read_requests(cell: Cell) -> tuple[list[Request], list[Finding]]:
    """The names that a cell asks for; it may hold nothing else."""
    requests: list[Request] = []
    findings: list[Finding] = []

    def wrong(rule: str, line: int, message: str, mend: str) -> None:
        findings.append(cell.finding(rule, message, mend, line=line))

    if cell.lang is not None or cell.role not in (*SHOWN, "library"):
        what = f"lang={cell.lang!r}" if cell.lang else f"role={cell.role!r}"
        mend = 'import in a shared cell without a role, or with role="library" what is not taught'
        wrong("embed-role", 1, f"an import of {PACKAGE} in a cell with {what}", mend)
    for node in parse_code(cell.text).body:
        if not imports_library(node):
            mend = f"keep the {PACKAGE} imports in a cell of their own"
            wrong("mixed-embed", node.lineno, "other code beside an embedding import", mend)
        elif problem := import_problem(node):
            wrong("embed-import", node.lineno, *problem)
        elif isinstance(node, ast.ImportFrom):  # a whole import of the library was refused above
            for alias in node.names:
                if alias.name in [request.name for request in requests]:
                    message = f"{alias.name} is imported twice in this cell"
                    wrong("twice", node.lineno, message, "import it once")
                requests.append(Request(node.module or "", alias.name, node.lineno))
    for line, _, comment in comments(cell.text) if cell.role in SHOWN else ():
        mend = "say it in prose, or in the library"
        wrong("embed-comment", line, f"this comment would vanish: {comment}", mend)
    return requests, findings


def _embed(cell: Cell, requests: list[Request], library: Library, embedding: Embedding) -> None:
    asked = [_requested(cell, request, library, embedding) for request in requests]
    shown = cell.role in SHOWN
    for definition in asked:
        embedding.held[definition.name] = Held(definition, cell, shown)
    if shown:
        embedding.shown[cell.key] = tuple(asked)
        for definition in asked:
            for imported in _imports_for(definition, library, embedding):
                embedding.imports.setdefault(imported, Needed(definition, cell))


def _requested(cell: Cell, request: Request, library: Library, embedding: Embedding) -> Definition:
    """The definition behind a name, which may not stand in the notebook in another way too."""
    name = request.name

    def refuse(rule: str, message: str, mend: str) -> CourseError:
        return CourseError([cell.finding(rule, message, mend, line=request.line)])

    try:
        definition = library.find(request.module, name)
    except LookupError as error:
        raise refuse("unknown-name", str(error), "correct the import") from error
    held = embedding.held.get(name)
    if held is not None and held.definition != definition:
        message = (
            f"{name} of {definition.path}:{definition.line} and {name} of "
            f'{held.definition.path}:{held.definition.line} (cell "{held.cell.key}") '
            "would stand in one notebook"
        )
        raise refuse("two-definitions", message, "rename one of them in the library")
    if held is not None:
        message = f'{name} is already {_said(held)} by cell "{held.cell.key}"'
        raise refuse("twice", message, "remove it here")
    needed = embedding.imports.get(Import(definition.module, name))
    if cell.role in SHOWN and needed is not None:
        message = (
            f'{name} is imported already: {needed.by.name} (cell "{needed.cell.key}") needs it'
        )
        mend = f'move this import up, above cell "{needed.cell.key}" (line {needed.cell.line})'
        raise refuse("embed-too-late", message, mend)
    return definition


def _said(held: Held) -> str:
    return "shown" if held.shown else "imported"


def _imports_for(definition: Definition, library: Library, embedding: Embedding) -> list[Import]:
    """The imports without which a shown definition does not work, what a cell holds apart."""
    module = library.module(definition.module)
    found: list[Import] = []
    for name in sorted(definition.needs):
        if name in module.imports:
            found += module.imports[name]
            continue
        if name in module.definitions:
            needed = module.definitions[name]
        elif name in module.links:
            try:
                needed = library.find(module.links[name], name)
            except LookupError as error:
                raise _at_use(definition, name, "unknown-name", str(error)) from error
        elif name in ALWAYS_THERE:
            continue
        else:
            message = f"{definition.name} needs {name}, which {module.path} nowhere defines"
            raise _at_use(definition, name, "undefined-name", message)
        held = embedding.held.get(name)
        if held is None or held.definition != needed:
            found.append(Import(needed.module, name))
    return found


def _at_use(definition: Definition, name: str, rule: str, message: str) -> CourseError:
    lines = definition.text.split("\n")
    pattern = re.compile(rf"\b{re.escape(name)}\b")
    offset = next((i for i, line in enumerate(lines) if pattern.search(line)), 0)
    mend = "define or import it in that module"
    finding = Finding(definition.path, definition.line + offset, None, rule, message, mend)
    return CourseError([finding.quoting(lines[offset])])
