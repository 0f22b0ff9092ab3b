"""Code twins say the same: equal syntax trees apart from strings, equal placeholders in these."""

import ast
from collections.abc import Iterator
from typing import Any

from course_build.base.findings import Finding
from course_build.source.allowances import ATTRIBUTE, allow, check_allowances
from course_build.source.cells import Cell
from course_build.source.code import parse_code
from course_build.source.twins import Unit
from course_build.text.strings import (
    Text,
    is_name,
    is_text,
    percent_fields,
    pieces_of_string,
    placeholders,
)
from course_build.translation.parity import compare_pieces


def check_code_twins(unit: Unit) -> list[Finding]:
    """Compare every translation's code with the source language's, then what its strings say."""
    first = unit.first
    tree = parse_code(first.text)
    findings = [f for cell in unit.cells for f in check_allowances(cell, first)]
    for cell in unit.cells[1:]:
        twin = parse_code(cell.text)
        difference = next(_differences(twin, tree), None)
        if difference:
            findings += allow(cell, [_finding(cell, first, *difference)], ("code",))
        elif not unit.is_stale(str(cell.lang)):
            findings += allow(cell, _compare_strings(cell, twin, first, tree))
    return findings


def _compare_strings(cell: Cell, here: ast.Module, first: Cell, there: ast.Module) -> list[Finding]:
    """Compare string by string, so that two that were swapped are found too."""
    findings = []
    for ours, theirs in zip(_strings(here), _strings(there), strict=True):
        mine = list(pieces_of_string(ours, str(cell.lang)))
        yours = list(pieces_of_string(theirs, str(first.lang)))
        for kind in ("formulas", "numbers"):
            findings += compare_pieces(kind, cell, mine, first, yours)
    return findings


def _strings(node: ast.AST) -> Iterator[Text]:
    """The strings of a tree; equal trees have them in the same order."""
    for child in ast.iter_child_nodes(node):
        if is_text(child):
            yield child
        else:
            yield from _strings(child)


def _differences(
    here: Any, there: Any, places: tuple[int, int] = (1, 1)
) -> Iterator[tuple[int, int, str]]:
    """Walk both trees together; yield (line here, line there, what differs)."""
    places = getattr(here, "lineno", places[0]), getattr(there, "lineno", places[1])
    if is_text(here) and is_text(there):
        yield from _compare_texts(here, there, places)
    elif type(here) is not type(there):
        yield *places, "the code differs"
    elif isinstance(here, ast.AST):
        ours, theirs = _percent_format(here), _percent_format(there)
        if ours is not None and theirs is not None:
            yield from _compare_fields(percent_fields(ours), percent_fields(theirs), places)
        for name in here._fields:
            yield from _differences(getattr(here, name), getattr(there, name), places)
    elif isinstance(here, list):
        for one, other in zip(here, there, strict=False):
            yield from _differences(one, other, places)
        if len(here) > len(there):
            extra = getattr(here[len(there)], "lineno", places[0])
            yield extra, places[1], "there is more in this twin"
        elif len(here) < len(there):
            extra = getattr(there[len(here)], "lineno", places[1])
            yield places[0], extra, "there is less in this twin"
    elif here != there:
        yield *places, f"{here!r} is not {there!r}"


def _compare_texts(
    here: Text, there: Text, places: tuple[int, int]
) -> Iterator[tuple[int, int, str]]:
    yield from _compare_fields(placeholders(here), placeholders(there), places)
    if is_name(there) and getattr(here, "value", None) != getattr(there, "value", None):
        yield *places, f"the name {ast.unparse(there)} became {ast.unparse(here)}"
    if _has_words(there) and not _has_words(here):
        yield *places, f"the words of {ast.unparse(there)} are missing"


def _compare_fields(
    here: list[str], there: list[str], places: tuple[int, int]
) -> Iterator[tuple[int, int, str]]:
    if here != there:
        yield *places, f"the placeholders {here} are not {there}"


def _has_words(node: Text) -> bool:
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    texts = (str(part.value) for part in parts if isinstance(part, ast.Constant))
    return any(character.isalpha() for text in texts for character in text)


def _percent_format(node: object) -> Text | None:
    """The string that stands before `%`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and is_text(node.left):
        return node.left
    return None


def _finding(cell: Cell, first: Cell, here: int, there: int, what: str) -> Finding:
    ours = cell.text.split("\n")[here - 1].strip()
    theirs = first.text.split("\n")[there - 1].strip()
    return cell.finding(
        "code-twins",
        f"{what}\n  {cell.lang} | {ours}\n  {first.lang} | {theirs}"
        f"  (line {first.text_line + there - 1})",
        "make the code of the twins equal, only the words in strings may differ; or allow it: "
        f'{ATTRIBUTE}="code: reason"',
        line=here,
    )
