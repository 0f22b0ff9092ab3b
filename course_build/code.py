"""Code cells as Python: parsing them although a notebook may hold commands such as %pip."""

import ast
import io
import re
import symtable
import tokenize

COMMAND = re.compile(r"(\s*)[%!].*")


def without_commands(text: str) -> str:
    """Replace every %command and !command line by `pass`; lines keep their numbers."""
    try:
        ast.parse(text)
    except SyntaxError:
        lines = [COMMAND.sub(r"\1pass", line) for line in text.split("\n")]
        return "\n".join(lines)
    return text


def parse_code(text: str) -> ast.Module:
    """Parse a cell's code; raises SyntaxError."""
    return ast.parse(without_commands(text))


def comments(text: str) -> list[tuple[int, int, str]]:
    """Every comment as (line from 0, column, text); never what only looks like one in a string."""
    reader = io.StringIO(without_commands(text) + "\n").readline
    return [
        (token.start[0] - 1, token.start[1], token.string)
        for token in tokenize.generate_tokens(reader)
        if token.type == tokenize.COMMENT
    ]


def names_bound(text: str) -> set[str]:
    """The names that a cell defines, assigns or imports at its top level."""
    table = symtable.symtable(without_commands(text), "cell", "exec")
    return {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}


def names_defined(text: str) -> list[str]:
    """The functions and classes that a cell defines at its top level, in their order."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [node.name for node in parse_code(text).body if isinstance(node, kinds)]
