"""A library definition as far as other code can tell: what runs when it is defined, what it needs.

The notebooks are mostly library code, and its inside is the same in each of them. So pyflakes
looks at the inside of a definition once, alone with the names that it needs; in a notebook only
its outline is looked at: decorators, defaults, annotations, class bodies, values, and a use of
every name that it needs. What is clean in both is clean as a whole.
"""

import ast
import functools
from collections.abc import Iterable, Iterator

from pyflakes import checker, messages

from course_build.imports import Import
from course_build.library import PACKAGE, Definition

KERNEL_NAMES = ("display", "get_ipython")
UNDEFINED = (messages.UndefinedName, messages.UndefinedLocal)
NO_ARGUMENTS = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def undefined_names(
    tree: ast.Module, known: Iterable[str] = KERNEL_NAMES
) -> list[messages.Message]:
    """Names that a program uses and nowhere defines, as pyflakes says it."""
    found = checker.Checker(tree, builtins=set(known)).messages
    return [message for message in found if isinstance(message, UNDEFINED)]


def imports_package(node: ast.AST) -> bool:
    """Is this an import of the library, in whatever disguise? A relative one has no other sense."""
    if isinstance(node, ast.Import):
        return any(_is_ours(alias.name) for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return node.level > 0 or _is_ours(node.module)
    if isinstance(node, ast.Call) and node.args:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        value = getattr(node.args[0], "value", None)
        return (
            name in ("import_module", "__import__") and isinstance(value, str) and _is_ours(value)
        )
    return False


@functools.cache
def outline(definition: Definition) -> tuple[ast.stmt, ...] | None:
    """The statements that stand for a definition in a notebook; None if its inside has faults."""
    node = definition.node
    if any(map(imports_package, ast.walk(node))) or not _is_clean_alone(definition):
        return None
    used = [ast.Name(name, ast.Load()) for name in sorted({definition.name, *definition.needs})]
    use = ast.Lambda(NO_ARGUMENTS, ast.Tuple(used, ast.Load()))
    return tuple(ast.fix_missing_locations(part) for part in (_hollow(node), ast.Expr(use)))


def _is_clean_alone(definition: Definition) -> bool:
    """Is everything defined inside, given what the definition says that it needs?

    Its imports are really there: pyflakes reads the strings in a `cast` of typing as names.
    """
    imports = [i for name in definition.needs for i in definition.imports.get(name, ())]
    statements = [*_import_statements(imports), definition.node]
    return not undefined_names(ast.Module(statements, []), definition.needs)


def _import_statements(imports: Iterable[Import]) -> Iterator[ast.stmt]:
    for imported in sorted(imports):
        yield from ast.parse(imported.statement).body


def _hollow(node: ast.stmt) -> ast.stmt:
    """A statement without the insides of its functions; the statement itself stays as it is."""
    if isinstance(node, FUNCTIONS):
        return _changed(node, body=[ast.copy_location(ast.Pass(), node)])
    if isinstance(node, ast.ClassDef):
        return _changed(node, body=[_hollow(part) for part in node.body])
    return node


def _changed(node: ast.stmt, **fields: object) -> ast.stmt:
    new = type(node)(**{name: getattr(node, name) for name in node._fields} | fields)
    return ast.copy_location(new, node)


def _is_ours(module: str) -> bool:
    return module.split(".")[0] == PACKAGE
