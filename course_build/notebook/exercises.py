"""Exercises: stub, check, hints and solution, complete, in order, and nothing given away."""

import ast
import functools
from collections.abc import Iterator, Sequence

from course_build.base.findings import Finding
from course_build.source.bound import names_bound
from course_build.source.cells import Cell
from course_build.source.code import names_defined, parse_code
from course_build.source.twins import Unit

ORDER = ("stub", "check", "hint", "solution")
TELLING = 24  # characters: anything shorter (`return x`) gives nothing away


def exercises(units: Sequence[Unit]) -> dict[str, list[Cell]]:
    """The cells of each exercise, in order (of twins, the source language's)."""
    found: dict[str, list[Cell]] = {}
    for unit in units:
        if unit.first.exercise is not None:
            found.setdefault(unit.first.exercise, []).append(unit.first)
    return found


def check_exercises(units: Sequence[Unit]) -> list[Finding]:
    """Every exercise has one stub, one check, hints and one solution, in that order."""
    findings = []
    for unit in units:
        cell = unit.first
        if (cell.role in ORDER) != (cell.exercise is not None):
            findings.append(
                cell.finding(
                    "exercise-link",
                    f"role={cell.role!r} with exercise={cell.exercise!r}",
                    'give exercise="..." to stubs, checks, hints and solutions, and to no others',
                )
            )
        if cell.role in ("stub", "solution") and cell.lang is not None:
            message = f"a {cell.role} is shared by all languages"
            findings.append(
                cell.finding("exercise-language", message, "remove lang, use comment pairs")
            )
    for name, cells in exercises(units).items():
        findings += _check_parts(name, cells)
    return findings


def solutions(units: Sequence[Unit]) -> dict[str, Cell]:
    """The solution cell of each exercise, the last one once they are checked."""
    return {name: cells[-1] for name, cells in exercises(units).items()}


def _check_parts(name: str, cells: list[Cell]) -> list[Finding]:
    roles = [cell.role for cell in cells]
    findings = []
    for role in ORDER:
        count = roles.count(role)
        if count == 0 or (count > 1 and role != "hint"):
            wanted = "at least one" if role == "hint" else "exactly one"
            message = f"the exercise {name!r} has {count} cells of role={role!r}"
            findings.append(cells[0].finding("exercise-parts", message, f"give it {wanted}"))
    if not findings and sorted(roles, key=ORDER.index) != roles:
        message = f"the parts of {name!r} come as {', '.join(map(str, roles))}"
        findings.append(
            cells[0].finding("exercise-order", message, f"order them as {', '.join(ORDER)}")
        )
    return findings or _check_code(cells)


def _check_code(cells: list[Cell]) -> list[Finding]:
    stub, solution = cells[0], cells[-1]
    findings = []
    if not _is_unsolved(stub):
        findings.append(
            stub.finding(
                "exercise-stub",
                "nothing in the stub is left to the learner",
                "raise NotImplementedError in its functions, or leave None where values belong",
            )
        )
    if "NotImplementedError" in _names(solution):
        message = "the solution still raises NotImplementedError"
        findings.append(solution.finding("exercise-solution", message, "solve it"))
    missing = names_bound(stub.text) - names_bound(solution.text)
    if missing:
        message = f"the solution does not define {', '.join(sorted(missing))} of the stub"
        findings.append(
            solution.finding("exercise-names", message, "define the stub's names in the solution")
        )
    return findings


def _is_unsolved(stub: Cell) -> bool:
    """Functions raise NotImplementedError; a stub without functions leaves None to fill in."""
    if names_defined(stub.text):
        return "NotImplementedError" in _names(stub)
    constants = (n for n in ast.walk(parse_code(stub.text)) if isinstance(n, ast.Constant))
    return any(constant.value is None for constant in constants)


def _names(cell: Cell) -> set[str]:
    return {n.id for n in ast.walk(parse_code(cell.text)) if isinstance(n, ast.Name)}


def leaks(solution: Cell, stub: Cell, others: Sequence[tuple[str, str]]) -> list[Finding]:
    """Does the solution, or the whole body of one of its functions, stand in another cell?

    `others` are the learner's other cells, as (id, a text in it). What the stub gives is no
    secret.
    """
    findings: dict[Finding, None] = {}
    for part in telling_parts(solution, stub):
        for key, source in others:
            if squeezed(part) in squeezed(source):
                message = f'the solution can be read in cell "{key}": {part!r}'
                mend = "solve it in another way, or say less there"
                findings[solution.finding("solution-leak", message, mend)] = None
    return list(findings)


def telling_parts(solution: Cell, stub: Cell) -> list[str]:
    """What gives a solution away: its code, the bodies of its functions, a value returned whole."""
    given = squeezed(stub.text)
    parts = (part.strip() for part in _parts(solution.text))
    told = [part for part in parts if len(part) >= TELLING and squeezed(part) not in given]
    return list(dict.fromkeys(told))


def _parts(text: str) -> Iterator[str]:
    lines = text.split("\n")
    yield _bare_lines(text)
    for node in ast.walk(parse_code(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            if body:
                yield _bare_lines("\n".join(lines[body[0].lineno - 1 : body[-1].end_lineno]))
            if len(body) == 1 and isinstance(body[0], ast.Return) and body[0].value:
                yield _bare_lines(ast.get_source_segment(text, body[0].value) or "")


@functools.cache
def squeezed(text: str) -> str:
    """The text without comments and white space: a line may be broken and indented anywhere."""
    return "".join(_bare_lines(text).split())


def _bare_lines(text: str) -> str:
    """The lines without indent, comments and blank lines."""
    stripped = (line.strip() for line in text.split("\n"))
    return "\n".join(line for line in stripped if line and not line.startswith("#"))
