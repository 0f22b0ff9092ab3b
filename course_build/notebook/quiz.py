"""Questions of a source: one a cell, a right choice among three or four, each of them explained."""

import ast
from collections.abc import Iterator, Sequence

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
        question = _question(unit.first)
        if found or question is None:
            continue
        name, rows = question
        if name in names:
            message = f'the question {name!r} is already in cell "{names[name].key}"'
            findings.append(unit.first.finding("quiz-name", message, "give it another name"))
        names.setdefault(name, unit.first)
        places.append([right for right, _ in ast.literal_eval(rows).values()].index(True) + 1)
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
        match node:
            case ast.Expr(value=ast.Call(func=ast.Name(id="ask"))):
                message = "a question in a cell that is not folded as one"
                mend = 'give the cell role="quiz"'
                yield cell.finding("quiz-role", message, mend, line=node.lineno)


def _check_question(cell: Cell) -> list[Finding]:
    question = _question(cell)
    if question is None:
        return [cell.finding("quiz-form", "this cell is not one question", WANTED)]
    _, rows = question
    for key, value in zip(rows.keys, rows.values, strict=True):
        if not _is_explained(key, value):
            message = f"the choice {ast.unparse(key) if key else '**'} has no verdict or no words"
            mend = 'write "choice": (True, "why it is right"), or (False, "what it mistakes")'
            return [cell.finding("quiz-choice", message, mend, line=value.lineno)]
    count = len(rows.keys)
    words = {ast.literal_eval(key).strip() for key in rows.keys if key}
    if not FEWEST <= count <= MOST or len(words) < count:
        message = f"{len(words)} different choices of {count}"
        mend = f"give {FEWEST} or {MOST} that differ"
        return [cell.finding("quiz-choices", message, mend)]
    right = sum(ast.literal_eval(value)[0] for value in rows.values)
    if right != 1:
        message = f"{right} choices are right"
        return [cell.finding("quiz-right", message, "let exactly one be True")]
    return []


def _question(cell: Cell) -> tuple[str, ast.Dict] | None:
    """The name and the choices of the one question that a cell asks, if it does only that."""
    match parse_code(cell.text).body:
        case [
            ast.Expr(
                value=ast.Call(
                    func=ast.Name(id="ask"),
                    args=[ast.Name(), ast.Constant() as name, words, ast.Dict() as rows],
                    keywords=[],
                )
            )
        ] if _is_words(name) and _is_words(words):
            return str(name.value), rows
    return None


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
