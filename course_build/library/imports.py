"""Imports from the standard library and from third parties, gathered and written in one order."""

import ast
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from course_build.base.places import PACKAGE

WIDTH = 100


@dataclass(frozen=True, order=True)
class Import:
    """One imported name: `import module`, or `from module import name`, maybe `as alias`."""

    module: str
    name: str = ""
    alias: str = ""

    @property
    def package(self) -> str:
        return self.module.split(".")[0]

    @property
    def bound(self) -> str:
        """The name that the import makes known."""
        return self.alias or self.name or self.package

    @property
    def target(self) -> str:
        """What that name then stands for."""
        if self.name:
            return f"{self.module}.{self.name}"
        return self.module if self.alias else self.package

    @property
    def statement(self) -> str:
        alias = f" as {self.alias}" if self.alias else ""
        if self.name:
            return f"from {self.module} import {self.name}{alias}"
        return f"import {self.module}{alias}"


def imports_in(node: ast.Import | ast.ImportFrom) -> list[Import]:
    """The names that one import statement makes known."""
    if isinstance(node, ast.Import):
        return [Import(alias.name, "", alias.asname or "") for alias in node.names]
    return [Import(node.module or "", alias.name, alias.asname or "") for alias in node.names]


def lazy_links(tree: ast.Module) -> dict[str, str]:
    """What a package gives when asked: the table {name: module} that its __getattr__ reads."""
    if not any(getattr(node, "name", "") == "__getattr__" for node in tree.body):
        return {}
    tables = [node.value for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    pairs = [
        (getattr(key, "value", None), getattr(value, "value", None))
        for table in tables
        if isinstance(table, ast.Dict)
        for key, value in zip(table.keys, table.values, strict=True)
    ]
    return {
        name: module
        for name, module in pairs
        if isinstance(name, str) and isinstance(module, str) and module.startswith(f"{PACKAGE}.")
    }


def write_imports(imports: Iterable[Import]) -> str:
    """Write imports once each: the standard library, third parties, the course's library."""
    unique = set(imports)
    standard = {i for i in unique if i.package in sys.stdlib_module_names}
    ours = {i for i in unique if i.package == PACKAGE}
    blocks = [_block(standard), _block(unique - standard - ours), _block(ours)]
    return "\n\n".join(block for block in blocks if block)


def _block(imports: set[Import]) -> str:
    plain = [i.statement for i in sorted(imports) if not i.name]
    modules = sorted({i.module for i in imports if i.name})
    return "\n".join(
        [
            *plain,
            *(_from_line(m, [i for i in imports if i.module == m and i.name]) for m in modules),
        ]
    )


def _from_line(module: str, imports: list[Import]) -> str:
    names = [f"{i.name} as {i.alias}" if i.alias else i.name for i in sorted(imports)]
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"from {module} import (", *(f"    {name}," for name in names), ")"])
