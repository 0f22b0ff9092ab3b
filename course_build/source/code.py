"""Code cells as Python: parsing them although a notebook may hold commands such as %pip."""

import ast
import functools
import io
import re
import tokenize
import unicodedata

COMMAND = re.compile(r"^([ \t]*)[%!].*", re.MULTILINE)


def parse_code(text: str) -> ast.Module:
    """Parse a cell's code; raises SyntaxError. The tree is shared: nobody may change it."""
    return ast_of(without_commands(text))


def without_commands(text: str) -> str:
    """Replace every %command and !command line by `pass`; lines keep their numbers."""
    if not COMMAND.search(text):
        return text
    try:
        ast_of(text)  # a % or ! that begins a line inside a string or an expression
    except SyntaxError:
        return COMMAND.sub(r"\1pass", text)
    return text


@functools.cache
def ast_of(text: str) -> ast.Module:
    """Parse Python once per text: a cell is looked at by many checks."""
    return ast.parse(text)


def as_read(text: str) -> str:
    """The text with its names spelt as Python compares them: fullwidth letters are letters."""
    return unicodedata.normalize("NFKC", text)


@functools.cache
def comments(text: str) -> tuple[tuple[int, int, str], ...]:
    """Every comment as (line from 1, column, text); never what only looks like one in a string."""
    if "#" not in text:
        return ()
    reader = io.StringIO(without_commands(text) + "\n").readline  # %pip is no token of Python
    return tuple(
        (*token.start, token.string)
        for token in tokenize.generate_tokens(reader)
        if token.type == tokenize.COMMENT
    )


def names_defined(text: str) -> list[str]:
    """The functions and classes that a cell defines at its top level, the public ones first."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    names = [node.name for node in parse_code(text).body if isinstance(node, kinds)]
    return sorted(names, key=lambda name: name.startswith("_"))


def names_given(text: str) -> list[str]:
    """What a cell is called after: the functions and classes that it defines, then its values."""
    assigned = (node for node in parse_code(text).body if isinstance(node, ast.Assign))
    targets = (target for node in assigned for target in node.targets)
    values = (target.id for target in targets if isinstance(target, ast.Name))
    return list(dict.fromkeys([*names_defined(text), *values]))


def strings_in(text: str) -> list[str]:
    """The words of a cell's strings, in their order; none where it is not Python."""
    try:
        nodes = ast.walk(parse_code(text))
    except SyntaxError:
        return []
    strings = [
        (node.lineno, node.col_offset, node.value)
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return [text for _, _, text in sorted(strings)]
