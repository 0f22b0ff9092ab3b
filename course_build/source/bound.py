"""Which names a cell binds in the notebook's own scope, the same under every Python.

Python's symbol tables would know, but from 3.12 on they count the variables of a comprehension
among those of the scope around it.
"""

import ast
from collections.abc import Iterator

from course_build.source.code import parse_code

ELSEWHERE = {  # fields whose names belong to a scope of their own
    ast.FunctionDef: ("body", "type_params"),
    ast.AsyncFunctionDef: ("body", "type_params"),
    ast.ClassDef: ("body", "type_params"),
    ast.Lambda: ("body",),
    ast.comprehension: ("target",),
}


def names_bound(text: str) -> set[str]:
    """The names that a cell defines, assigns, deletes or imports in the notebook's own scope."""
    tree = parse_code(text)
    names = set(_bound(tree, ":=" in text))
    for node in ast.walk(tree) if "global" in text else ():
        if isinstance(node, ast.Global):
            names.update(node.names)
    return names


def _bound(tree: ast.AST, walrus: bool) -> Iterator[str]:
    """The names bound where a tree stands; in what is only read, only a walrus binds any."""
    nodes = [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                yield node.id
        elif isinstance(node, ast.alias):
            if node.name != "*":
                yield node.asname or node.name.partition(".")[0]
        elif walrus or not _is_read(node):
            # definitions, except clauses and patterns hold their names as plain strings
            yield from filter(None, (getattr(node, "name", None), getattr(node, "rest", None)))
            nodes += _parts_in_scope(node)


def _is_read(node: ast.AST) -> bool:
    return isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)


def _parts_in_scope(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node that bind names where the node itself stands."""
    hidden = ELSEWHERE.get(type(node), ())
    for field in node._fields:
        value = getattr(node, field, None)
        if field not in hidden:
            values = value if isinstance(value, list) else [value]
            yield from (item for item in values if isinstance(item, ast.AST))
