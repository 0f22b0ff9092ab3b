"""A library definition as far as other code can tell: what runs when it is defined, what it needs.

The notebooks are mostly library code, and its inside is the same in each of them. So pyflakes
looks at the inside of a definition once, alone with the names that it needs; in a notebook only
its outline is looked at: what it reads when it is defined, the name that it binds, and a use of
every name that it needs. What is clean in both is clean as a whole.
"""

import ast
import functools
from collections.abc import Iterable, Iterator, Sequence

from pyflakes import checker, messages

from course_build.base.places import PACKAGE
from course_build.library.definitions import Definition
from course_build.library.imports import Import
from course_build.library.names import statements_in
from course_build.source.code import as_read

KERNEL_NAMES = ("display", "get_ipython")
UNDEFINED = (messages.UndefinedName, messages.UndefinedLocal)
PLACE = {"lineno": 1, "col_offset": 0, "end_lineno": 1, "end_col_offset": 0}
NO_NAME = "<enclosed>"  # no code can need it
CLEAN: set[Definition] = set()  # whose inside has been looked at


def undefined_names(tree: ast.Module) -> list[messages.Message]:
    """Names that a program uses and nowhere defines, as pyflakes says it."""
    found = checker.Checker(tree, builtins=set(KERNEL_NAMES)).messages
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


def may_import_package(text: str, node: ast.AST) -> bool:
    """Is there an import of the library in this code?"""
    return "import" in as_read(text) and any(map(imports_package, ast.walk(node)))


def are_clean(definitions: Iterable[Definition]) -> bool:
    """Is everything defined and nothing imported inside, given what each says that it needs?"""
    new = [d for d in dict.fromkeys(definitions) if d not in CLEAN]
    if any(may_import_package(d.text, d.node) or _has_type_parameters(d.node) for d in new):
        return False
    # A nonlocal name counts as defined in the whole program, so such code is looked at by itself.
    alone = [[d] for d in new if "nonlocal" in d.text]
    together = [d for d in new if "nonlocal" not in d.text]
    for group in [*alone, together]:
        if undefined_names(ast.Module([_enclosed(definition) for definition in group], [])):
            return False
        CLEAN.update(group)
    return True


def outline(definitions: Sequence[Definition]) -> Iterator[ast.stmt]:
    """The statements that stand for a cell of clean definitions: what they read, bind and use."""
    read: dict[str, None] = {}
    bound: dict[str, None] = {}
    for definition in definitions:
        at_once = definition.at_once & definition.needs  # a comprehension reads its own names too
        read.update(dict.fromkeys(sorted(at_once - bound.keys())))
        bound[definition.name] = None
    used = sorted({*bound, *(name for d in definitions for name in d.needs)})
    yield ast.Expr(_names(read), **PLACE)
    yield ast.Assign(
        [ast.Name(name, ast.Store(), **PLACE) for name in bound], ast.Constant(0, **PLACE), **PLACE
    )
    yield ast.Expr(ast.Lambda(_arguments(()), _names(used), **PLACE), **PLACE)


def _enclosed(definition: Definition) -> ast.stmt:
    """A function around a definition, whose arguments are the names that the definition needs.

    Its imports are really there: pyflakes reads the strings in a `cast` of typing as names.
    """
    imports = {i for name in definition.needs for i in definition.imports.get(name, ())}
    body = [*map(_import_statement, sorted(imports)), definition.node]
    function = ast.FunctionDef(NO_NAME, _arguments(sorted(definition.needs)), body, [], **PLACE)
    function.type_params = []  # what a parsed function has from Python 3.12 on
    return function


@functools.cache
def _import_statement(imported: Import) -> ast.stmt:
    return ast.parse(imported.statement).body[0]


def _has_type_parameters(node: ast.stmt) -> bool:
    """Python 3.12's def f[T]: what such a header reads at once is not in an outline."""
    return any(getattr(part, "type_params", ()) for part in statements_in(node))


def _arguments(names: Iterable[str]) -> ast.arguments:
    args = [ast.arg(name, **PLACE) for name in names]
    return ast.arguments(posonlyargs=[], args=args, kwonlyargs=[], kw_defaults=[], defaults=[])


def _names(names: Iterable[str]) -> ast.Tuple:
    return ast.Tuple([ast.Name(name, ast.Load(), **PLACE) for name in names], ast.Load(), **PLACE)


def _is_ours(module: str) -> bool:
    return module.split(".")[0] == PACKAGE
