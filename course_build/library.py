"""The library as text: what each module defines, and which names each definition needs.

A strict subset is understood - top-level functions, classes and simple assignments, ordinary
imports and `from course_lib.x import name`. Anything else is an error, never a guess.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

from course_build.findings import CourseError, Finding, stop_if_broken
from course_build.imports import Import, imports_in
from course_build.names import names_needed, names_needed_at_once
from course_build.source import decode

PACKAGE = "course_lib"
LOCALIZED = "# localized"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Definition:
    """One definition, as its exact source lines, with the names it needs to work.

    `at_once` are those of its needs that must exist when it is defined, not only when called.
    """

    module: str
    name: str
    path: str
    line: int
    text: str
    needs: frozenset[str]
    at_once: frozenset[str]
    is_value: bool
    localized: bool

    @property
    def place(self) -> tuple[str, int]:
        return self.module, self.line

    def localized_text(self, language: str) -> str:
        """A localized constant's line with the notebook's language instead of the library's."""
        return re.sub(r"""(["'])[^"']*\1(?=\s*# localized)""", f'"{language}"', self.text)


@dataclass(frozen=True)
class LibraryModule:
    """A module's definitions, third-party imports, and links: name -> the module it comes from."""

    name: str
    path: str
    definitions: Mapping[str, Definition]
    imports: Mapping[str, tuple[Import, ...]]
    links: Mapping[str, str]


def module_path(name: str, files: Mapping[str, bytes]) -> str | None:
    """The file that holds a dotted module, if there is one."""
    base = name.replace(".", "/")
    return next((p for p in (f"{base}.py", f"{base}/__init__.py") if p in files), None)


def parse_library_module(name: str, path: str, data: bytes) -> LibraryModule:
    """Read one library file; everything that is outside the subset is said at once."""
    text = decode(path, data)
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        message = f"syntax error: {error.msg}"
        raise _error(path, error.lineno or 1, "library-syntax", message, "correct it") from error
    lines = text.split("\n")
    reader = _Reader(name, path, lines)
    for node in tree.body:
        reader.read(node)
    reader.findings += _forbidden_inside(path, tree)
    stop_if_broken(reader.findings)
    return LibraryModule(name, path, reader.definitions, reader.imports, reader.links)


class _Reader:
    """Collects one module's statements, in order."""

    def __init__(self, name: str, path: str, lines: list[str]) -> None:
        self.name, self.path, self.lines = name, path, lines
        self.definitions: dict[str, Definition] = {}
        self.imports: dict[str, tuple[Import, ...]] = {}
        self.links: dict[str, str] = {}
        self.findings: list[Finding] = []
        self.end_of_previous = 0

    def read(self, node: ast.stmt) -> None:
        if node.lineno <= self.end_of_previous:
            self.refuse(node, "two statements share a line", "give each its own line")
        if isinstance(node, ast.Import | ast.ImportFrom):
            self.read_import(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            pass  # a docstring
        elif (name := _defined_name(node)) is not None:
            self.read_definition(node, name)
        else:
            kind = type(node).__name__.lower()
            self.refuse(
                node,
                f"a top-level {kind} statement",
                "use only functions, classes and simple assignments at the top level",
            )
        self.end_of_previous = node.end_lineno

    def read_import(self, node: ast.Import | ast.ImportFrom) -> None:
        problem = import_problem(node)
        if problem:
            self.refuse(node, *problem)
            return
        for imported in imports_in(node):
            if imported.module.split(".")[0] == PACKAGE:
                self.links[imported.name] = imported.module
            else:
                self.imports[imported.bound] = (*self.imports.get(imported.bound, ()), imported)

    def read_definition(self, node: ast.stmt, name: str) -> None:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        while first - 1 > self.end_of_previous and self.lines[first - 2].startswith("#"):
            first -= 1
        text = "\n".join(self.lines[first - 1 : node.end_lineno])
        if name in self.definitions:
            message = f"{name} is defined twice (first at line {self.definitions[name].line})"
            self.refuse(node, message, "rename one of them")
        localized = self.lines[node.end_lineno - 1].rstrip().endswith(LOCALIZED)
        if localized and not _is_string_constant(node):
            self.refuse(node, "only a one-line string constant can be localized", "unmark it")
        self.definitions[name] = Definition(
            module=self.name, name=name, path=self.path, line=first, text=text,
            needs=names_needed(text, node) - {name}, at_once=names_needed_at_once(node) - {name},
            is_value=not isinstance(node, (*FUNCTIONS, ast.ClassDef)), localized=localized,
        )  # fmt: skip

    def refuse(self, node: ast.stmt, message: str, mend: str) -> None:
        self.findings.append(Finding(self.path, node.lineno, None, "library-subset", message, mend))


def _defined_name(node: ast.stmt) -> str | None:
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        return node.name
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        target = node.target
    else:
        return None
    return target.id if isinstance(target, ast.Name) else None


def _is_string_constant(node: ast.stmt) -> bool:
    value = getattr(node, "value", None)
    one_line = node.lineno == node.end_lineno
    return one_line and isinstance(value, ast.Constant) and isinstance(value.value, str)


def import_problem(node: ast.Import | ast.ImportFrom) -> tuple[str, str] | None:
    """Why an import cannot be embedded: (message, mend), or None."""
    wanted = f"write `from {PACKAGE}.x import name`"
    if isinstance(node, ast.Import):
        ours = any(alias.name.split(".")[0] == PACKAGE for alias in node.names)
        return (f"a whole {PACKAGE} module is imported", wanted) if ours else None
    if node.level:
        return "a relative import", wanted
    if node.module == "__future__":
        return "an import from __future__ changes every later cell of a notebook", "remove it"
    if any(alias.name == "*" for alias in node.names):
        return "a star import hides which names it brings", "name what is imported"
    if node.module == PACKAGE:
        return f"a whole {PACKAGE} module is imported", wanted
    if node.module.split(".")[0] == PACKAGE and any(alias.asname for alias in node.names):
        return f"a {PACKAGE} import under another name", "import it under its own name"
    return None


def _forbidden_inside(path: str, tree: ast.Module) -> list[Finding]:
    """What may stand nowhere, not even inside a function."""
    findings = []
    top = set(tree.body)
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            problem = "a global statement", "pass values instead"
        elif isinstance(node, ast.Import | ast.ImportFrom) and node not in top:
            modules = [i.module.split(".")[0] for i in imports_in(node)]
            if PACKAGE not in modules and not getattr(node, "level", 0):
                continue
            problem = f"a {PACKAGE} import inside a definition", "move it to the module's top"
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in DYNAMIC:
            problem = f"{node.func.id}() hides which names are needed", "name them in the code"
        else:
            continue
        findings.append(Finding(path, node.lineno, None, "library-subset", *problem))
    return findings


DYNAMIC = ("globals", "eval", "exec", "__import__")


def _error(path: str, line: int, rule: str, message: str, mend: str) -> CourseError:
    return CourseError([Finding(path, line, None, rule, message, mend)])
