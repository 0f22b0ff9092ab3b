"""A class that is both shown and packed is two classes: their instances may not meet in a test.

A notebook defines the class that it shows, and the library packed beside it has its own. That does
no harm until somebody asks which of the two an object is. Refused is therefore, for such a class,

- a test for it in packed code that the notebook's own code reaches: objects of the shown one fail;
- a test for it in the notebook, if packed code that the notebook reaches makes the other one.

A test is isinstance, issubclass, expect_raises, except, case, or a comparison with type(); reached
is what the notebook's code reads by name, and all that the library reads for it.
"""

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from course_build.base.findings import Finding
from course_build.base.places import PACKAGE
from course_build.library.definitions import Definition, Library, LibraryModule
from course_build.library.embed import Embedding, is_embed
from course_build.source.cells import Cell
from course_build.source.code import parse_code
from course_build.source.twins import Unit

ASKING = ("isinstance", "issubclass", "expect_raises")
Code = tuple[Cell, ast.AST]  # code of the notebook: the cell that it stands in, its tree


def check_meetings(units: Sequence[Unit], embedding: Embedding, library: Library) -> list[Finding]:
    """Find where an object of a shown class is held against the packed one, or the reverse."""
    if embedding.payload is None:
        return []
    packed = {f"{PACKAGE}/{name}" for name in embedding.payload.lines}
    doubled = {
        name: held.definition
        for name, held in embedding.held.items()
        if held.shown and isinstance(held.definition.node, ast.ClassDef)
        and held.definition.path in packed
    }  # fmt: skip
    if not doubled:
        return []
    code = list(_own_code(units, embedding))
    asked = [(cell, _asked(tree)) for cell, tree in code]
    used = dict(_used(code, embedding, library))
    modules = {path: library.files[path].decode() for path in packed}
    findings = []
    for name, shown in doubled.items():
        seen = f'{name}, which cell "{embedding.held[name].cell.key}" shows'
        mend = f'import {name} in a cell with role="library", or show what asks for it too'
        askers = {d for d in _mentioning(library, modules, {shown}) if name in _asked(d.node)}
        leading = _leading_to(library, modules, askers)
        for definition in sorted(used.keys() & leading, key=_place):
            asker = min(askers, key=_place)
            message = (
                f"{seen}, is another class for {definition.name}: "
                f"{asker.name} ({asker.path}:{asker.line}) asks for the packed one"
            )
            findings.append(used[definition].finding("two-classes", message, mend))
        asking = [cell for cell, names in asked if name in names]
        makers = used.keys() & _leading_to(library, modules, {shown}) if asking else ()
        for maker in sorted(makers, key=_place):
            message = f"{seen}, is asked for here, but {maker.name} makes the packed one"
            findings.append(asking[0].finding("two-classes", message, mend))
    return findings


def _own_code(units: Sequence[Unit], embedding: Embedding) -> Iterator[Code]:
    """What runs in the notebook itself: its own cells, and the definitions that it shows."""
    for unit in units:
        for cell in unit.cells:
            if cell.kind == "code" and not is_embed(cell):
                yield cell, parse_code(cell.text)
    for held in embedding.held.values():
        if held.shown:
            yield held.cell, held.definition.node


def _used(
    code: Sequence[Code], embedding: Embedding, library: Library
) -> Iterator[tuple[Definition, Cell]]:
    """The packed definitions that the notebook's code reads, each with a cell that does."""
    given = {n: held.definition for n, held in embedding.held.items() if not held.shown}
    for imported in embedding.imports:
        if imported.package == PACKAGE:
            given[imported.name] = library.find(imported.module, imported.name)
    for cell, tree in code:
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in given:
                yield given[node.id], cell


def _leading_to(
    library: Library, texts: Mapping[str, str], targets: Collection[Definition]
) -> set[Definition]:
    """The packed definitions that need one of these, however many steps away; and these."""
    found = set(targets)
    new = found
    while new:
        new = set(_mentioning(library, texts, new)) - found
        found |= new
    return found


def _mentioning(
    library: Library, texts: Mapping[str, str], targets: Collection[Definition]
) -> Iterator[Definition]:
    """The packed definitions that need one of these themselves."""
    names = {target.name for target in targets}
    word = re.compile(rf"\b({'|'.join(map(re.escape, sorted(names)))})\b")
    for path, text in texts.items():
        if names and word.search(text):
            module = library.module(_module_name(path))
            for definition in module.definitions.values():
                if word.search(definition.text) and any(
                    _meant(module, name, library) in targets for name in definition.needs & names
                ):
                    yield definition


def _meant(module: LibraryModule, name: str, library: Library) -> Definition | None:
    if name in module.definitions:
        return module.definitions[name]
    return library.find(module.links[name], name) if name in module.links else None


def _place(definition: Definition) -> tuple[str, int]:
    return definition.path, definition.line


def _module_name(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _asked(tree: ast.AST) -> set[str]:
    """The names of the classes that code tests for."""
    return {
        part.id
        for node in ast.walk(tree)
        for test in _tests(node)
        for part in ast.walk(test)
        if isinstance(part, ast.Name)
    }


def _tests(node: ast.AST) -> Iterator[ast.AST]:
    """The expressions in which one node names the classes that it tests for."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ASKING:
        yield from node.args
    elif isinstance(node, ast.ExceptHandler) and node.type is not None:
        yield node.type
    elif isinstance(node, ast.MatchClass):
        yield node.cls
    elif isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        if any(isinstance(s, ast.Call) and getattr(s.func, "id", "") == "type" for s in sides):
            yield from sides
