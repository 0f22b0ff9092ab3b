"""Code twins say the same: equal syntax trees apart from strings, equal placeholders in these."""

import ast
import re
from collections.abc import Iterator

from course_build.code import parse_code
from course_build.findings import Finding
from course_build.source import Cell
from course_build.twins import Unit

BRACE_FIELD = re.compile(r"\{(?:[A-Za-z_][\w.\[\]]*|\d+)?(?:![rsa])?(?::[^{}]*)?\}")
PERCENT_FIELD = re.compile(r"%(?:\(\w+\))?[#0\- +]*(?:\*|\d+)?(?:\.(?:\*|\d+))?[diouxXeEfFgGcrsa]")
MATHS = re.compile(r"\$[^$]*\$")


def check_code_twins(unit: Unit) -> list[Finding]:
    """Compare every translation's code with the source language's."""
    first = unit.first
    tree = parse_code(first.text)
    findings = []
    for cell in unit.cells[1:]:
        for here, there, what in _differences(parse_code(cell.text), tree):
            findings.append(_finding(cell, first, here, there, what))
            break
    return findings


def _differences(
    here: object, there: object, places: tuple[int, int] = (1, 1)
) -> Iterator[tuple[int, int, str]]:
    """Walk both trees together; yield (line here, line there, what differs)."""
    places = getattr(here, "lineno", places[0]), getattr(there, "lineno", places[1])
    if _is_text(here) and _is_text(there):
        yield from _compare_fields(placeholders(here), placeholders(there), places)
    elif type(here) is not type(there):
        yield *places, "the code differs"
    elif isinstance(here, ast.AST):
        if _is_percent_format(here) and _is_percent_format(there):
            fields = _percent_fields(here.left), _percent_fields(there.left)
            yield from _compare_fields(*fields, places)
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


def _compare_fields(
    here: list[str], there: list[str], places: tuple[int, int]
) -> Iterator[tuple[int, int, str]]:
    if here != there:
        yield *places, f"the placeholders {here} are not {there}"


def placeholders(node: ast.expr) -> list[str]:
    """The fields of a string, sorted: a translation may change their order, not their number."""
    if isinstance(node, ast.JoinedStr):
        return sorted(
            _field_text(part) for part in node.values if isinstance(part, ast.FormattedValue)
        )
    text = MATHS.sub("", node.value).replace("{{", "").replace("}}", "")
    return sorted(BRACE_FIELD.findall(text))


def _field_text(field: ast.FormattedValue) -> str:
    """Write an f-string field the same way under every Python version."""
    conversion = f"!{chr(field.conversion)}" if field.conversion != -1 else ""
    spec = ""
    if isinstance(field.format_spec, ast.JoinedStr):
        parts = field.format_spec.values
        spec = ":" + "".join(
            _field_text(part) if isinstance(part, ast.FormattedValue) else part.value
            for part in parts
        )
    return f"{{{ast.unparse(field.value)}{conversion}{spec}}}"


def _is_text(node: object) -> bool:
    constant = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return constant or isinstance(node, ast.JoinedStr)


def _is_percent_format(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and _is_text(node.left)


def _percent_fields(node: ast.expr) -> list[str]:
    text = node.value if isinstance(node, ast.Constant) else ""
    return PERCENT_FIELD.findall(text.replace("%%", ""))


def _finding(cell: Cell, first: Cell, here: int, there: int, what: str) -> Finding:
    ours = cell.text.split("\n")[here - 1].strip()
    theirs = first.text.split("\n")[there - 1].strip()
    return cell.finding(
        "code-twins",
        f"{what}\n  {cell.lang} | {ours}\n  {first.lang} | {theirs}"
        f"  (line {first.text_line + there - 1})",
        "make the code of the twins equal; only the words in strings may differ",
        line=here,
    )
