"""Which names from outside a definition needs."""

import ast
import symtable
from collections.abc import Iterator


def names_needed(text: str, node: ast.stmt) -> frozenset[str]:
    """Every outer name that a definition's code or annotations read, builtins included."""
    table = symtable.symtable(text, "definition", "exec")
    names = set(_outer_names(table, top=True))
    for part in statements_in(node):
        names |= set(_names_in_string_annotations(part))
        if isinstance(part, ast.ClassDef):
            names |= _read_before_bound(part)
    return frozenset(names)


def statements_in(node: ast.AST) -> Iterator[ast.AST]:
    """A statement and all the statements inside it; expressions are passed over."""
    yield node
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for part in getattr(node, name, ()):
            yield from statements_in(part)


def _outer_names(table: symtable.SymbolTable, *, top: bool) -> Iterator[str]:
    for symbol in table.get_symbols():
        # From Python 3.12 on, the top scope also lists the variables of its comprehensions.
        outer = not symbol.is_assigned() if top else symbol.is_global()
        if symbol.is_referenced() and outer:
            yield symbol.get_name()
    for child in table.get_children():
        yield from _outer_names(child, top=False)


def _read_before_bound(node: ast.ClassDef) -> set[str]:
    """Names that a class body reads from outside before it binds the same names itself."""
    early: set[str] = set()
    bound: set[str] = set()
    for statement in node.body:
        early |= set(_read_at_once(statement)) - bound
        bound |= {getattr(statement, "name", "")} | {
            part.id
            for part in ast.walk(statement)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        }
    return early & bound


def _names_in_string_annotations(node: ast.AST) -> Iterator[str]:
    """Names inside the quoted annotations of one statement, without those inside it."""
    annotations = [getattr(node, "annotation", None)]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        annotations = [node.returns, *(arg.annotation for arg in _arguments(node.args))]
    for annotation in annotations:
        if annotation is not None and not isinstance(annotation, ast.Name):
            yield from _names_in_strings(annotation)


def _arguments(arguments: ast.arguments) -> Iterator[ast.arg]:
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from (arg for arg in (arguments.vararg, arguments.kwarg) if arg)


def _names_in_strings(annotation: ast.AST) -> Iterator[str]:
    """Names inside quoted annotations; the strings of a Literal are values, not names."""
    if isinstance(annotation, ast.Subscript):
        literal = annotation.value
        if getattr(literal, "id", getattr(literal, "attr", "")) == "Literal":
            return
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            quoted = ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return
        yield from (part.id for part in ast.walk(quoted) if isinstance(part, ast.Name))
        yield from _names_in_strings(quoted)
    for child in ast.iter_child_nodes(annotation):
        yield from _names_in_strings(child)


def _read_at_once(node: ast.AST) -> Iterator[str]:
    """The names read while a statement itself runs: decorators, defaults, bases, values."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield node.id
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        parts: list[ast.AST | None] = [*node.decorator_list, node.args, node.returns]
    elif isinstance(node, ast.Lambda):
        parts = [node.args]
    else:
        parts = list(ast.iter_child_nodes(node))
    for part in parts:
        if part is not None:
            yield from _read_at_once(part)
