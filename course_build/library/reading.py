"""Reading a library file: a strict subset of Python, anything else an error, never a guess.

Understood are top-level functions, classes and simple assignments, ordinary imports, and
`from course_lib.x import name`.
"""

import ast
import re

from course_build.base.decode import decode
from course_build.base.findings import CourseError, Finding, stop_if_broken
from course_build.base.places import PACKAGE
from course_build.library.definitions import Definition, LibraryModule
from course_build.library.imports import Import, imports_in, lazy_links
from course_build.source.code import as_read

DYNAMIC = ("globals", "eval", "exec", "__import__")
SUSPECT = re.compile("import|global|eval|exec")  # no problem has none of these in its text
NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
Problem = tuple[str, str]


def read_library_module(name: str, path: str, data: bytes) -> LibraryModule:
    """Read one library file; everything that is outside the subset is said at once."""
    try:
        return _read(name, path, decode(path, data))
    except CourseError as error:
        lines = data.decode("utf-8-sig", "replace").split("\n")
        quoted = [
            f.quoting("".join(lines[f.line - 1 : f.line] if f.line else ())) for f in error.findings
        ]
        raise CourseError(quoted) from error


def parse_library(path: str, text: str | bytes) -> ast.Module:
    """Parse a library file, or say where it is no Python."""
    try:
        return ast.parse(text)
    except SyntaxError as error:
        finding = Finding(
            path, error.lineno or 1, None, "library-syntax", f"{error.msg}", "correct the Python"
        )
        raise CourseError([finding]) from error


def _read(name: str, path: str, text: str) -> LibraryModule:
    tree = parse_library(path, text)
    reader = _Reader(name, path, text.split("\n"))
    for node in tree.body:
        reader.read(node)
    for top in filter(reader.is_suspect, tree.body):
        for part in ast.walk(top):
            if problem := _problem_anywhere(part, at_top=part is top):
                reader.refuse(part, *problem)
    stop_if_broken(reader.findings)
    links = {**lazy_links(tree), **reader.links}
    return LibraryModule(name, path, reader.definitions, reader.imports, links)


class _Reader:
    """Collects one module's statements, in order."""

    def __init__(self, name: str, path: str, lines: list[str]) -> None:
        self.name, self.path, self.lines = name, path, lines
        self.definitions: dict[str, Definition] = {}
        self.imports: dict[str, tuple[Import, ...]] = {}
        self.links: dict[str, str] = {}
        self.meanings: dict[str, str] = {}
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
            message = f"a top-level {type(node).__name__} statement"
            mend = "use only functions, classes and simple assignments at the top level"
            self.refuse(node, message, mend)
        self.end_of_previous = node.end_lineno or node.lineno

    def read_import(self, node: ast.Import | ast.ImportFrom) -> None:
        problem = import_problem(node)
        if problem:
            self.refuse(node, *problem)
            return
        for imported in imports_in(node):
            if imported.package == PACKAGE:
                self.bind(node, imported.name, imported.target)
                self.links[imported.name] = imported.module
            else:
                self.bind(node, imported.bound, imported.target)
                self.imports[imported.bound] = (*self.imports.get(imported.bound, ()), imported)

    def is_suspect(self, node: ast.stmt) -> bool:
        """Could something stand in this statement that may stand nowhere?"""
        text = "\n".join(self.lines[_first_line(node) - 1 : node.end_lineno])
        return bool(SUSPECT.search(as_read(text)))

    def read_definition(self, node: ast.stmt, name: str) -> None:
        first = _first_line(node)
        while first - 1 > self.end_of_previous and self.lines[first - 2].startswith("#"):
            first -= 1
        text = "\n".join(self.lines[first - 1 : node.end_lineno])
        self.bind(node, name, f"the definition at line {first}")
        self.definitions[name] = Definition(
            module=self.name, name=name, path=self.path, line=first, text=text, node=node
        )  # fmt: skip

    def bind(self, node: ast.stmt, name: str, meaning: str) -> None:
        """One name has one meaning in a module."""
        if self.meanings.setdefault(name, meaning) != meaning:
            message = f"{name} already means {self.meanings[name]} in this module"
            self.refuse(node, message, "rename one of them")

    def refuse(self, node: ast.AST, message: str, mend: str) -> None:
        line = getattr(node, "lineno", 1)
        self.findings.append(Finding(self.path, line, None, "library-subset", message, mend))


def _first_line(node: ast.stmt) -> int:
    """Where a statement begins: at its first decorator."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def import_problem(node: ast.Import | ast.ImportFrom) -> Problem | None:
    """Why an import cannot be embedded, as (message, mend), or None."""
    wanted = f"write `from {PACKAGE}.x import name`"
    ours = any(imported.package == PACKAGE for imported in imports_in(node))
    if isinstance(node, ast.Import):
        return (f"a whole {PACKAGE} module is imported", wanted) if ours else None
    if node.level:
        return "a relative import", wanted
    if node.module == "__future__":
        return "an import from __future__ changes every later cell of a notebook", "remove it"
    if any(alias.name == "*" for alias in node.names):
        return "a star import hides which names it brings", "name what is imported"
    if node.module == PACKAGE:
        return f"a whole {PACKAGE} module is imported", wanted
    if ours and any(alias.asname for alias in node.names):
        return f"a {PACKAGE} import under another name", "import it under its own name"
    return None


def _problem_anywhere(node: ast.AST, *, at_top: bool) -> Problem | None:
    """What may stand nowhere, not even inside a function."""
    if isinstance(node, ast.Global):
        return "a global statement", "pass values instead"
    called = getattr(node, "func", None)
    if isinstance(called, ast.Name) and called.id in DYNAMIC:
        return f"{called.id}() hides which names are needed", "name them in the code"
    if (
        not at_top
        and isinstance(node, ast.Import | ast.ImportFrom)
        and (getattr(node, "level", None) or any(i.package == PACKAGE for i in imports_in(node)))
    ):
        return f"a {PACKAGE} import inside a definition", "move it to the module's top"
    return None


def _defined_name(node: ast.stmt) -> str | None:
    if isinstance(node, NAMED):
        return node.name
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        target = node.target
    else:
        return None
    return target.id if isinstance(target, ast.Name) else None
