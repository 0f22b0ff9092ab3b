"""The library as text: its modules, their definitions, and where a name comes from.

How a file is read into these values is in reading.py.
"""

import ast
import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from course_build.library.imports import Import
from course_build.library.names import names_needed


@dataclass(frozen=True)
class Definition:
    """One definition as its exact source lines, and as the statement that Python sees there."""

    module: str
    name: str
    path: str
    line: int
    text: str
    node: ast.stmt = field(compare=False, repr=False)

    def __hash__(self) -> int:
        return hash((self.module, self.name))

    @cached_property
    def needs(self) -> frozenset[str]:
        """The outer names without which it does not work."""
        return names_needed(self.text, self.node) - {self.name}


@dataclass(frozen=True)
class LibraryModule:
    """A module's definitions, third-party imports, and links: name -> the module it comes from."""

    name: str
    path: str
    definitions: Mapping[str, Definition]
    imports: Mapping[str, tuple[Import, ...]]
    links: Mapping[str, str]


class Library:
    """The library's files, each read when first asked for."""

    def __init__(
        self, files: Mapping[str, bytes], read: Callable[[str, str, bytes], LibraryModule]
    ) -> None:
        self.files = files
        self._read = read
        self._modules: dict[str, LibraryModule] = {}

    def module(self, name: str) -> LibraryModule:
        """A module by its dotted name; LookupError when it has no file."""
        if name not in self._modules:
            base = name.replace(".", "/")
            found = [p for p in (f"{base}.py", f"{base}/__init__.py") if p in self.files]
            if not found:
                raise LookupError(f"there is no module {name}")
            self._modules[name] = self._read(name, found[0], self.files[found[0]])
        return self._modules[name]

    def find(self, module_name: str, name: str, passed: tuple[str, ...] = ()) -> Definition:
        """The definition behind a name, through re-exports; LookupError says what is missing."""
        if module_name in passed:
            circle = " -> ".join([*passed, module_name])
            raise LookupError(f"{name} is only passed around: {circle}")
        module = self.module(module_name)
        if name in module.definitions:
            return module.definitions[name]
        if name in module.links:
            return self.find(module.links[name], name, (*passed, module_name))
        near = difflib.get_close_matches(name, [*module.definitions, *module.links])
        hint = f" (there is {', '.join(near)})" if near else ""
        raise LookupError(f"{module.path} defines no {name}{hint}")
