"""Which cells of a notebook a cell needs: those that bind the names it reads, and what they need.

Only names are followed, and imports of the library to the cell that carries it: a cell that merely
changes an object is not found.
"""

import ast
import re
import symtable
from collections.abc import Iterator, Sequence

from course_build.base.places import PACKAGE
from course_build.source.bound import names_bound
from course_build.source.code import parse_code, without_commands
from course_build.source.header import LIBRARY_KEY

IMPORTS_LIBRARY = re.compile(rf"^from {PACKAGE}\b", re.MULTILINE)
Code = tuple[str, str]  # a code cell: its key and its text


def needed_cells(cells: Sequence[Code], wanted: Sequence[str], end: Sequence[str] = ()) -> set[str]:
    """Find what these cells need, themselves included; what `end` names needs nothing more."""
    bound = [names_bound(text) for _, text in cells]
    waiting = [place for place, (key, _) in enumerate(cells) if key in wanted]
    found: set[int] = set()
    while waiting:
        place = waiting.pop()
        if place in found:
            continue
        found.add(place)
        if cells[place][0] not in end:
            if IMPORTS_LIBRARY.search(cells[place][1]):
                waiting += [n for n in range(place) if cells[n][0] == LIBRARY_KEY]
            for name in names_read(cells[place][1]):
                waiting += [n for n in range(place - 1, -1, -1) if name in bound[n]][:1]
    return {cells[place][0] for place in found}


def names_read(text: str) -> set[str]:
    """The names that a cell's code, its functions included, takes from outside the cell."""
    outer = _outer(symtable.symtable(without_commands(text), "cell", "exec"), top=True)
    return {*outer, *_rebound(parse_code(text))}


def _rebound(cell: ast.Module) -> Iterator[str]:
    """The names that an assignment reads before it is the first to bind them: x = f(x), x += 1."""
    bound: set[str] = set()
    for statement in cell.body:
        names = names_bound(ast.unparse(statement))
        if isinstance(statement, ast.AugAssign):
            yield from names - bound
        elif isinstance(statement, ast.Assign):
            read = {node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name)}
            yield from (names & read) - bound
        bound |= names


def _outer(table: symtable.SymbolTable, *, top: bool) -> Iterator[str]:
    for symbol in table.get_symbols():
        # From Python 3.12 on, the top scope also lists the variables of its comprehensions.
        own = top and (symbol.is_assigned() or symbol.is_imported())
        if symbol.is_referenced() and (symbol.is_global() or top) and not own:
            yield symbol.get_name()
    for child in table.get_children():
        yield from _outer(child, top=False)
