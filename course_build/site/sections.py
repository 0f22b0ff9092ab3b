"""A module as pages: what comes before its first section, then one page for each section.

A page is called after the key of the cell that it begins with, in the folder of its module:
`module_03/masks.html`. The key is the same in every language and outlives edits of the heading;
the module's number is what its file is known by. So an address is short, and stays.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from course_build.notebook.head import module_number
from course_build.outputs.executed import joined
from course_build.site.meta import plain_title
from course_build.text.prose import parse_inline, parse_prose

MATH = "math_inline"
FIRST = "index"
BAR = re.compile("-(ask|say|read|see)$")  # how the key of a cell of prose may end


@dataclass(frozen=True)
class Section:
    """A page of a module: its name below the language's folder, its title, and its cells."""

    name: str
    title: str
    cells: Sequence[Mapping[str, Any]]

    @property
    def file_name(self) -> str:
        return self.name.rsplit("/", 1)[1]


def folder_of(stem: str) -> str:
    """The folder of a module's pages: module_03."""
    return f"module_{module_number(stem):02}"


def split(notebook: Mapping[str, Any], stem: str) -> list[Section]:
    """Cut a module before each cell that has a heading of the second level."""
    cut: list[list[Mapping[str, Any]]] = [[]]
    for cell in notebook["cells"]:
        if cut[-1] and 2 in [level for level, _ in _headings(cell)]:
            cut.append([])
        cut[-1].append(cell)
    keys = [cells[0]["id"] for cells in cut[1:]]
    short = [BAR.sub("", key) for key in keys]
    names = [FIRST, *(name if short.count(name) == 1 else keys[n] for n, name in enumerate(short))]
    return [
        Section(f"{folder_of(stem)}/{name}", _title(cells[0]), cells)
        for name, cells in zip(names, cut, strict=True)
    ]


def places(sections: Mapping[str, Sequence[Section]]) -> dict[str, dict[str, str]]:
    """For every module, {stem: ...}, the page on which each cell is; the first of all is at ""."""
    return {
        stem: {"": pages[0].name} | {cell["id"]: page.name for page in pages for cell in page.cells}
        for stem, pages in sections.items()
    }


def with_anchors(cell: Mapping[str, Any], raised: bool) -> str:
    """The prose of a cell that can be linked to by its key: its first heading, or its beginning.

    A section's headings are raised by one level: its own is the title of its page. Further
    headings of a cell are numbered, key-2 and so on.
    """
    lines = joined(cell["source"]).split("\n")
    headings = _headings(cell)
    for number, (_, line) in reversed(list(enumerate(headings, 1))):
        lines[line] = lines[line].lstrip().removeprefix("#" if raised else "")
        anchor = cell["id"] if number == 1 else f"{cell['id']}-{number}"
        lines[line:line] = [f"({anchor})=", ""]
    if not headings:
        lines[:0] = [f"({cell['id']})=", ""]
    return "\n".join(lines)


def plain(title: str) -> str:
    """A title as text, without marks, for where no formula is set."""
    return plain_title(
        "".join(
            rf"\({token.content}\)" if token.type == MATH else escape(token.content)
            for token in parse_inline(title)
        )
    )


def _headings(cell: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Level and line of each heading in a cell of prose."""
    if cell["cell_type"] != "markdown":
        return []
    return [
        (int(token.tag.removeprefix("h")), token.map[0])
        for token in parse_prose(joined(cell["source"]))
        if token.type == "heading_open" and token.level == 0 and token.markup.startswith("#")
    ]


def _title(cell: Mapping[str, Any]) -> str:
    lines = joined(cell["source"]).split("\n")
    for _, line in _headings(cell):
        return lines[line].lstrip("#").strip()
    return ""
