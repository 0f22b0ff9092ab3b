"""What a source says about practice: its table of exercises, their checks, and its questions.

A source with a `Progress` keeps all its exercises in that table: each is checked through it, once,
and has the level that its heading says. A source without one is left alone.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from course_build.base.chrome import CHROME, LEVELS, say
from course_build.base.findings import Finding
from course_build.source.cells import Cell
from course_build.source.code import parse_code
from course_build.source.twins import Unit
from course_build.text.prose import parse_prose


@dataclass(frozen=True)
class Table:
    """The table of one language: the name it is bound to, and each exercise's level and line."""

    cell: Cell
    name: str
    levels: Mapping[str, str]
    lines: Mapping[str, int]


def check_practice(units: Sequence[Unit]) -> list[Finding]:
    """Every exercise is in the table, with its heading's level, and is checked through it once."""
    tables: list[Table] = []
    findings: list[Finding] = []
    for cell in (cell for unit in units for cell in unit.cells if cell.kind == "code"):
        for call in _calls(cell, "Progress"):
            table, found = _read_table(cell, call)
            findings += found
            tables += [table] if table else []
    if findings or not tables:
        return findings
    first = tables[0].cell
    findings += [
        table.cell.finding(
            "progress-twice",
            f'the table of exercises is already in cell "{first.key}"',
            "keep one table in a source",
        )
        for table in tables
        if table.cell.key != first.key
    ]
    for table in tables:
        findings += _check_table(table, units)
    return [*findings, *_check_checks(tables[0], units)]


def _calls(cell: Cell, name: str) -> list[ast.Call]:
    """The calls of a function of this name in a cell."""
    if name not in cell.text:
        return []
    calls = (node for node in ast.walk(parse_code(cell.text)) if isinstance(node, ast.Call))
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == name]


def _read_table(cell: Cell, call: ast.Call) -> tuple[Table | None, list[Finding]]:
    wanted = (
        'progress = Progress("module_NN", {"name": ("core", "title"), ...}), all in plain words'
    )
    owner = [
        node.targets[0].id
        for node in parse_code(cell.text).body
        if isinstance(node, ast.Assign) and node.value is call
        and isinstance(node.targets[0], ast.Name)
    ]  # fmt: skip
    rows = _read_rows(call.args[1]) if len(call.args) == 2 and not call.keywords else None
    module = _word(call.args[0]) if rows is not None else None
    if not owner or rows is None or module is None:
        message = "the table of exercises cannot be read here"
        finding = cell.finding("progress-table", message, f"write {wanted}", line=call.lineno)
        return None, [finding]
    findings = []
    stem = cell.path.rsplit("/", 1)[-1]
    if not stem.startswith(f"{module}_"):
        message = f"the progress of {module!r} is kept by another module, {stem}"
        mend = f"write {'_'.join(stem.split('_')[:2])!r}"
        line = call.args[0].lineno
        findings.append(cell.finding("progress-module", message, mend, line=line))
    names = [name for name, _, _ in rows]
    for name, line, _ in rows:
        if names.count(name) > 1:
            message = f"the exercise {name!r} stands twice in the table"
            mend = "keep one of them"
            findings.append(cell.finding("progress-exercise", message, mend, line=line))
    levels = {name: level for name, _, level in rows}
    lines = {name: line for name, line, _ in rows}
    return Table(cell, owner[0], levels, lines), findings


def _read_rows(table: ast.expr) -> list[tuple[str, int, str]] | None:
    """Each exercise with its line and its level; None where one is not in plain words."""
    if not isinstance(table, ast.Dict):
        return None
    rows = []
    for key, row in zip(table.keys, table.values, strict=True):
        match row:
            case ast.Tuple(elts=[first, second]):
                name, level, title = _word(key), _word(first), _word(second)
            case _:
                return None
        if key is None or name is None or not (level and level.strip() and title and title.strip()):
            return None
        rows.append((name, key.lineno, level))
    return rows


def _word(node: ast.expr | None) -> str | None:
    """The string that an expression is, if it is a plain one."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None


def _check_table(table: Table, units: Sequence[Unit]) -> Iterator[Finding]:
    """The table of one language against the exercises and the headings of that language."""
    cell = table.cell
    stubs = {str(unit.first.exercise): unit.first for unit in units if unit.first.role == "stub"}
    for name, level in table.levels.items():
        if level not in LEVELS:
            message = f"the level of {name!r} is {level!r}"
            mend = f"use one of {', '.join(LEVELS)}"
            yield cell.finding("progress-level", message, mend, line=table.lines[name])
        if name not in stubs:
            message = f"the table has {name!r}, which is no exercise of this source"
            mend = f"use one of {', '.join(stubs)}, or remove it"
            yield cell.finding("progress-exercise", message, mend, line=table.lines[name])
    for name, stub in stubs.items():
        if name not in table.levels:
            message = f'the table of cell "{cell.key}" lacks the exercise {name!r}'
            mend = f'add "{name}": (level, title) to it'
            yield stub.finding("progress-exercise", message, mend)
        elif table.levels[name] in LEVELS:
            yield from _check_heading(table, name, stub, units)


def _check_heading(table: Table, name: str, stub: Cell, units: Sequence[Unit]) -> Iterator[Finding]:
    """The nearest heading above a stub says its level, in the table's language."""
    place = next(place for place, unit in enumerate(units) if unit.first is stub)
    above = (unit for unit in reversed(units[:place]) if _last_heading(unit.first))
    unit = next(above, None)
    for cell in unit.cells if unit else ():
        if table.cell.lang not in (None, cell.lang) or cell.lang not in CHROME:
            continue
        word = say(str(cell.lang), table.levels[name])
        if f"({word})" not in _last_heading(cell):
            message = f"the heading of {name!r} does not say its level: {_last_heading(cell)}"
            mend = f'write ({word}) in it, or change the level in cell "{table.cell.key}"'
            yield cell.finding("exercise-level", message, mend)


def _last_heading(cell: Cell) -> str:
    """The last heading in a cell of prose; empty where there is none."""
    tokens = parse_prose(cell.text) if cell.kind == "markdown" else ()
    places = [place for place, token in enumerate(tokens) if token.type == "heading_open"]
    return tokens[places[-1] + 1].content if places else ""


def _check_checks(table: Table, units: Sequence[Unit]) -> Iterator[Finding]:
    """Each check ends with progress.check of its own exercise; nothing else checks one."""
    for unit in units:
        for cell in unit.cells:
            if cell.kind != "code":
                continue
            body = parse_code(cell.text).body
            wanted = f'{table.name}.check("{cell.exercise}", contract, candidate)'
            nodes = ast.walk(ast.Module(body, []))
            calls = [n for n in nodes if isinstance(n, ast.Call) and _checks(n, table.name)]
            last = body[-1].value if body and isinstance(body[-1], ast.Expr) else None
            if cell.role != "check":
                for call in calls:
                    message = f"{ast.unparse(call.func)} outside of an exercise's check"
                    mend = 'do it in the cell with role="check"'
                    yield cell.finding("progress-check", message, mend, line=call.lineno)
            elif calls != [last] or not _names(last, cell.exercise):
                message = f"the exercise {cell.exercise!r} is not checked through {table.name}"
                mend = f"let the cell end with {wanted}, and call it nowhere else in it"
                yield cell.finding("progress-check", message, mend)


def _checks(node: ast.Call, name: str) -> bool:
    """Is this a call of the table's method, by the table's own name?"""
    method = node.func
    return (
        isinstance(method, ast.Attribute)
        and method.attr == "check"
        and getattr(method.value, "id", "") == name
    )


def _names(call: ast.expr | None, exercise: str | None) -> bool:
    return isinstance(call, ast.Call) and bool(call.args) and _word(call.args[0]) == exercise
