"""Strings in code that are translated: their placeholders, formulas and numbers, and names."""

import ast
import re
import string
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeGuard

from course_build.text.formulas import read_formula
from course_build.text.pieces import HOLE, Piece, numbers_in

FIELD_NAME = re.compile(r"(?:[A-Za-z_][\w.\[\]]*|\d+)?")
PERCENT_FIELD = re.compile(r"%(?:\(\w+\))?[#0\- +]*(?:\*|\d+)?(?:\.(?:\*|\d+))?[diouxXeEfFgGcrsa]")
MATHS = re.compile(r"\$[^$]*\$")
Text = ast.Constant | ast.JoinedStr  # a constant whose value is a string, or an f-string
NAME = re.compile(r"[A-Za-z0-9]*(?:_[A-Za-z0-9]+)+")


def is_text(node: object) -> TypeGuard[Text]:
    """Is this a string or an f-string?"""
    constant = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return constant or isinstance(node, ast.JoinedStr)


def is_name(node: Text) -> bool:
    """A string such as "d_model" is a name of the code, not a word to translate."""
    return isinstance(node, ast.Constant) and bool(NAME.fullmatch(str(node.value)))


def placeholders(node: Text) -> list[str]:
    """The fields of a string, sorted: a translation may change their order, not their number."""
    if isinstance(node, ast.JoinedStr):
        fields = (part for part in node.values if isinstance(part, ast.FormattedValue))
        return sorted(_field_text(field) for field in fields)
    return sorted(_format_fields(MATHS.sub("", str(node.value))))


def percent_fields(node: ast.expr) -> list[str]:
    """The fields of a string that stands before `%`, in order: that is how they are filled."""
    text = str(node.value) if isinstance(node, ast.Constant) else ""
    return PERCENT_FIELD.findall(text.replace("%%", ""))


def pieces_of_string(node: Text, language: str) -> Iterator[Piece]:
    """The formulas and the numbers that a string holds."""
    text = _without_fields(node)
    for formula in MATHS.findall(text):
        same = ("$", read_formula(formula.strip("$"), language))
        yield Piece("formulas", same, formula, node.lineno)
    for piece in numbers_in(MATHS.sub(HOLE, text), language, 1):
        yield replace(piece, line=node.lineno)


def _without_fields(node: Text) -> str:
    """The text of a string; fields that are written in it are the same in both twins anyway."""
    if isinstance(node, ast.JoinedStr):
        parts = node.values
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else HOLE for part in parts
        )
    return str(node.value)


def _format_fields(text: str) -> list[str]:
    """The fields of a format string as they are written; a string that is none has no fields."""
    try:
        parts = list(string.Formatter().parse(text))
    except ValueError:
        return []
    return [
        "{" + name + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "") + "}"
        for _, name, spec, conversion in parts
        if name is not None and FIELD_NAME.fullmatch(name)
    ]


def _field_text(field: ast.FormattedValue) -> str:
    """Write an f-string field the same way under every Python version."""
    conversion = f"!{chr(field.conversion)}" if field.conversion != -1 else ""
    spec = ""
    if isinstance(field.format_spec, ast.JoinedStr):
        parts = field.format_spec.values
        spec = ":" + "".join(
            _field_text(part) if isinstance(part, ast.FormattedValue) else str(part.value)
            for part in parts
            if isinstance(part, ast.FormattedValue | ast.Constant)
        )
    return f"{{{ast.unparse(field.value)}{conversion}{spec}}}"
