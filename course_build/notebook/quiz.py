"""Questions of a source: one a cell, a right choice among three or four, each of them explained."""

import ast
from collections.abc import Iterator, Sequence
from typing import TypeGuard

from course_build.base.findings import Finding
from course_build.source.cells import Cell
from course_build.source.code import parse_code
from course_build.source.twins import Unit

FEWEST, MOST = 3, 4  # choices
WANTED = (
    'write ask(progress, "name", "Question?", {"choice": (True, "explanation"), ...}) '
    "and nothing else, all in plain words"
)


def check_quiz(units: Sequence[Unit]) -> list[Finding]:
    """Every question can be answered, is explained in full, and has a name of its own."""
    findings: list[Finding] = []
    names: dict[str, Cell] = {}
    places: list[int] = []
    for unit in units:
        if unit.first.role != "quiz":
            findings += [f for cell in unit.cells for f in _stray_questions(cell)]
            continue
        if unit.first.lang is None:
            message = "a question that all languages share"
            mend = "give it lang and write its twins: its words are for the reader"
            findings.append(unit.first.finding("quiz-language", message, mend))
        found = [finding for cell in unit.cells for finding in _check_question(cell)]
        findings += found
        if found:
            continue
        name, choices = _read_question(unit.first)
        if name in names:
            message = f'the question {name!r} is already in cell "{names[name].key}"'
            findings.append(unit.first.finding("quiz-name", message, "give it another name"))
        names.setdefault(name, unit.first)
        places.append([right for right, _ in choices.values()].index(True) + 1)
    if len(places) > 2 and len(set(places)) == 1:
        message = f"the right choice is number {places[0]} in all {len(places)} questions"
        cell = list(names.values())[-1]
        findings.append(cell.finding("quiz-order", message, "put it elsewhere in some of them"))
    return findings


def _stray_questions(cell: Cell) -> Iterator[Finding]:
    """Questions in cells of another role would show their answers in the open."""
    if cell.kind != "code" or "ask" not in cell.text:
        return
    for node in parse_code(cell.text).body:
        if isinstance(node, ast.Expr) and _is_ask(node.value):
            message = "a question in a cell that is not folded as one"
            yield cell.finding("quiz-role", message, 'give the cell role="quiz"', line=node.lineno)


def _is_ask(node: ast.expr) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ask"


def _check_question(cell: Cell) -> list[Finding]:
    body = parse_code(cell.text).body
    call = body[0].value if len(body) == 1 and isinstance(body[0], ast.Expr) else None
    if call is None or not _is_ask(call) or not _is_plain(call):
        return [cell.finding("quiz-form", "this cell is not one question", WANTED)]
    rows = call.args[3]
    for key, value in zip(rows.keys, rows.values, strict=True):
        if not _is_explained(key, value):
            message = f"the choice {ast.unparse(key) if key else '**'} has no verdict or no words"
            mend = 'write "choice": (True, "why it is right"), or (False, "what it mistakes")'
            return [cell.finding("quiz-choice", message, mend, line=value.lineno)]
    count = len(rows.keys)
    words = {key.value.strip() for key in rows.keys}
    if not FEWEST <= count <= MOST or len(words) < count:
        message = f"{len(words)} different choices of {count}"
        mend = f"give {FEWEST} or {MOST} that differ"
        return [cell.finding("quiz-choices", message, mend)]
    right = sum(value.elts[0].value for value in rows.values)
    if right != 1:
        message = f"{right} choices are right"
        return [cell.finding("quiz-right", message, "let exactly one be True")]
    return []


def _is_plain(call: ast.Call) -> bool:
    """Four arguments: a name, the question's name, its words, its choices."""
    return (
        len(call.args) == 4
        and not call.keywords
        and isinstance(call.args[0], ast.Name)
        and all(_is_words(node) for node in call.args[1:3])
        and isinstance(call.args[3], ast.Dict)
    )


def _is_words(node: ast.expr | None) -> bool:
    value = getattr(node, "value", None)
    return isinstance(node, ast.Constant) and isinstance(value, str) and bool(value.strip())


def _is_explained(key: ast.expr | None, value: ast.expr) -> bool:
    return (
        _is_words(key)
        and isinstance(value, ast.Tuple)
        and len(value.elts) == 2
        and isinstance(value.elts[0], ast.Constant)
        and isinstance(value.elts[0].value, bool)
        and _is_words(value.elts[1])
    )


def _read_question(cell: Cell) -> tuple[str, dict[str, tuple[bool, str]]]:
    """The name and the choices of a question that was found in order."""
    call = parse_code(cell.text).body[0].value
    choices = ast.literal_eval(call.args[3])
    return call.args[1].value, choices
