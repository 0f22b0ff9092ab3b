"""An import from the library is an embed: which definitions each cell shows, and what they need.

Everything is decided once for all languages: the definitions that a cell asks for, in its own
order, and before them - folded, in a machinery cell - what these need and no earlier cell holds.
"""

import ast
import builtins
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from course_build.base.findings import CourseError, Finding
from course_build.base.places import PACKAGE
from course_build.library.definitions import Definition, Library
from course_build.library.imports import Import, imports_in
from course_build.library.order import CircularNeed, dependencies_first
from course_build.library.reading import import_problem
from course_build.source.cells import Cell
from course_build.source.code import comments, parse_code

ALWAYS_THERE = frozenset(dir(builtins)) | {"__name__"}


@dataclass(frozen=True)
class Embedded:
    """What one embed cell becomes: its definitions, and those of a machinery cell before it.

    `names` is what the title of the folded one says is inside: what a reader may call comes first.
    """

    definitions: tuple[Definition, ...]
    names: tuple[str, ...]
    machinery: tuple[Definition, ...]


@dataclass(frozen=True)
class Request:
    """One name that an embed cell imports."""

    module: str
    name: str
    line: int


@dataclass(frozen=True)
class Held:
    """Where a library definition stands in the notebook."""

    definition: Definition
    cell: Cell
    shown: bool


@dataclass
class Embedding:
    """All embed cells of one source, by key, and the third-party imports they need."""

    cells: dict[str, Embedded] = field(default_factory=dict)
    imports: dict[Import, Definition] = field(default_factory=dict)
    held: dict[str, Held] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def is_embed(cell: Cell) -> bool:
    """Does this cell import from the library (and so become the source of what it imports)?"""
    if cell.kind != "code" or cell.role == "reference" or "import" not in cell.text:
        return False
    return any(imports_library(node) for node in ast.walk(parse_code(cell.text)))


def imports_library(node: ast.AST) -> bool:
    """Is this node an import of the library or of something in it?"""
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return False
    return any(imported.package == PACKAGE for imported in imports_in(node))


def plan_embedding(cells: Sequence[Cell], library: Library) -> Embedding:
    """Decide for every embed cell, in order, what it shows and what goes before it."""
    embedding = Embedding()
    for cell in cells:
        requests, findings = _read_requests(cell)
        embedding.findings += findings
        try:
            _embed(cell, requests, library, embedding)
        except CourseError as error:
            embedding.findings += error.in_cell(cell.key)
    return embedding


def _read_requests(cell: Cell) -> tuple[list[Request], list[Finding]]:
    """The names that an embed cell asks for; it may hold nothing else."""
    requests: list[Request] = []
    findings: list[Finding] = []

    def wrong(rule: str, line: int, message: str, mend: str) -> None:
        findings.append(cell.finding(rule, message, mend, line=line))

    if cell.lang is not None or cell.role not in (None, "folded"):
        what = f"lang={cell.lang!r}" if cell.lang else f"role={cell.role!r}"
        wrong("embed-role", 1, f"an embed cell with {what}", "import in a plain shared cell")
    for node in parse_code(cell.text).body:
        if not imports_library(node):
            mend = f"keep the {PACKAGE} imports in a cell of their own"
            wrong("mixed-embed", node.lineno, "other code beside an embedding import", mend)
        elif problem := import_problem(node):
            wrong("embed-import", node.lineno, *problem)
        else:
            for alias in node.names:
                if alias.name in [request.name for request in requests]:
                    message = f"{alias.name} is imported twice in this cell"
                    wrong("twice", node.lineno, message, "import it once")
                requests.append(Request(node.module, alias.name, node.lineno))
    for line, _, comment in comments(cell.text):
        mend = "say it in prose, or in the library"
        wrong("embed-comment", line, f"this comment would vanish: {comment}", mend)
    return requests, findings


def _embed(cell: Cell, requests: list[Request], library: Library, embedding: Embedding) -> None:
    shown = [_requested(cell, request, library, embedding) for request in requests]
    needs = _closure(shown, library, embedding)
    try:
        order = dependencies_first(needs, {d: _at_once(d, needs[d]) for d in needs})
    except CircularNeed as error:
        first = error.circle[0]
        message = f"these need each other before they are defined: {error}"
        raise CourseError(
            [Finding(first.path, first.line, None, "circle", message, "break the circle")]
        ) from error
    machinery = [d for d in order if d not in shown]
    findings = [_hold(d, cell, d in shown, embedding) for d in order]
    if cell.role == "folded":
        # Nobody reads a folded cell from top to bottom, so all goes in, in an order that runs.
        names = _public_first([*shown, *machinery])
        embedding.cells[cell.key] = Embedded(tuple(order), names, ())
    else:
        names = _public_first(machinery)
        embedding.cells[cell.key] = Embedded(tuple(shown), names, tuple(machinery))
        findings += _order_findings(cell, machinery, shown, needs)
    embedding.findings += [f for f in findings if f is not None]


def _public_first(definitions: Sequence[Definition]) -> tuple[str, ...]:
    """Names in their order, but public functions and classes, then private ones, then values."""
    ordered = sorted(definitions, key=lambda d: (d.is_value, d.name.startswith("_")))
    return tuple(definition.name for definition in ordered)


def _requested(cell: Cell, request: Request, library: Library, embedding: Embedding) -> Definition:
    try:
        definition = library.find(request.module, request.name)
    except LookupError as error:
        raise CourseError(
            [cell.finding("unknown-name", str(error), "correct the import", line=request.line)]
        ) from error
    held = embedding.held.get(request.name)
    if held is None or held.definition != definition:
        return definition
    if held.shown:
        message = f'{request.name} is already embedded by cell "{held.cell.key}"'
        finding = cell.finding("twice", message, "remove it here", line=request.line)
    else:
        message = f'{request.name} is already in the machinery of cell "{held.cell.key}"'
        mend = f'move this import up, above cell "{held.cell.key}" (line {held.cell.line})'
        finding = cell.finding("embed-too-late", message, mend, line=request.line)
    raise CourseError([finding])


def _closure(
    shown: Sequence[Definition], library: Library, embedding: Embedding
) -> dict[Definition, frozenset[Definition]]:
    """What the shown definitions need, and what that needs, unless an earlier cell holds it."""
    needs: dict[Definition, frozenset[Definition]] = {}
    border = list(shown)
    while border:
        definition = border.pop()
        if definition in needs:
            continue
        wanted = _needed_definitions(definition, library, embedding)
        needs[definition] = frozenset(
            d for d in wanted if (h := embedding.held.get(d.name)) is None or h.definition != d
        )
        border += needs[definition]
    return needs


def _needed_definitions(
    definition: Definition, library: Library, embedding: Embedding
) -> list[Definition]:
    """Look up every name that a definition needs; note its third-party imports."""
    module = library.module(definition.module)
    found: list[Definition] = []
    for name in sorted(definition.needs):
        if name in module.definitions:
            found.append(module.definitions[name])
        elif name in module.imports:
            for imported in module.imports[name]:
                embedding.imports.setdefault(imported, definition)
        elif name in module.links:
            try:
                found.append(library.find(module.links[name], name))
            except LookupError as error:
                raise _at_use(definition, name, "unknown-name", str(error)) from error
        elif name not in ALWAYS_THERE:
            message = f"{definition.name} needs {name}, which {module.path} nowhere defines"
            raise _at_use(definition, name, "undefined-name", message)
    return found


def _at_use(definition: Definition, name: str, rule: str, message: str) -> CourseError:
    lines = definition.text.split("\n")
    pattern = re.compile(rf"\b{re.escape(name)}\b")
    offset = next((i for i, line in enumerate(lines) if pattern.search(line)), 0)
    mend = "define or import it in that module"
    finding = Finding(definition.path, definition.line + offset, None, rule, message, mend)
    return CourseError([finding.quoting(lines[offset])])


def _at_once(definition: Definition, needs: frozenset[Definition]) -> frozenset[Definition]:
    return frozenset(d for d in needs if d.name in definition.at_once)


def _hold(definition: Definition, cell: Cell, shown: bool, embedding: Embedding) -> Finding | None:
    """Enter a definition into the notebook; one name has one definition."""
    held = embedding.held.get(definition.name)
    if held is None:
        embedding.held[definition.name] = Held(definition, cell, shown)
        return None
    return cell.finding(
        "two-definitions",
        f"{definition.name} of {definition.path}:{definition.line} and {definition.name} of "
        f'{held.definition.path}:{held.definition.line} (cell "{held.cell.key}") '
        "would stand in one notebook",
        "rename one of them in the library",
    )


def _order_findings(
    cell: Cell,
    machinery: Sequence[Definition],
    shown: Sequence[Definition],
    needs: Mapping[Definition, frozenset[Definition]],
) -> list[Finding]:
    """Shown definitions keep the author's order, so that order must be one that can run."""
    findings = []
    for place, definition in enumerate([*machinery, *shown]):
        for later in shown[max(0, place - len(machinery) + 1) :]:
            if later in _at_once(definition, needs[definition]):
                message = f"{definition.name} needs {later.name} already when it is defined"
                mend = f"import {later.name} before {definition.name}"
                if definition in machinery:
                    mend = (
                        f"show {later.name} in an embed cell above, fold this cell "
                        '(role="folded"), or quote the annotation if it is one'
                    )
                findings.append(cell.finding("embed-order", message, mend))
    return findings
