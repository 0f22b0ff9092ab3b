"""Executed notebooks to the sources of pages: what a page shows otherwise than a notebook does."""

import html
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from course_build.outputs.executed import joined
from course_build.outputs.views import VIEW
from course_build.site.clean import SVG, clean_output
from course_build.site.sections import Section, plain, with_anchors
from course_build.site.views import view_html

ASSETS, FIGURES = "_assets", "figures"  # a page finds them in _static/figures
LINK = re.compile(r"\]\(((?:\.\./\w+/)?)([\w-]+)\.(?:ipynb|md)(#[\w-]+)?(?=[ )])")
ANCHOR = re.compile(r'<a id="([\w-]+)"></a>\n\n(?=#)')
TWINS = re.compile(r"\n[^\n]*\]\(\.\./\w+/[\w-]+\.md\)[^\n]*\n")
PICTURE = re.compile(r"(?<=\]\()\.\./\.\./figures/\w+/(?P<name>[\w.-]+\.svg)")
PICTURES = "pictures"  # of pages of prose: Sphinx puts them in their place
TITLE = "title"  # the name of the place where a page begins, as of a module's first cell
FOLD_TITLE = re.compile(r"#@title (.*)\n")


@dataclass(frozen=True)
class Links:
    """Where links lead from one page: its name, and the page of each cell of each module."""

    page: str
    places: Mapping[str, Mapping[str, str]]

    @property
    def top(self) -> str:
        """The way from the page up to its language's folder."""
        return "../" * self.page.count("/")

    def lead(self, text: str) -> str:
        """Let links to notebooks and texts lead to the pages made of them, in every language."""
        return LINK.sub(self._one, text)

    def _one(self, match: re.Match) -> str:
        language, stem, fragment = match[1], match[2], match[3] or ""
        cells = self.places.get(stem, {})
        page = cells.get(fragment[1:]) or cells.get("", stem)
        kind = "place" if fragment else "page"
        return f"]({kind}:{self.top}{language}{page}.html{fragment}"


def module_sources(
    notebook: Mapping[str, Any],
    stem: str,
    sections: Sequence[Section],
    head: str,
    places: Mapping[str, Mapping[str, str]],
) -> dict[str, bytes]:
    """Turn one executed notebook, cut in sections, into {name: content} for Sphinx.

    The line of links under the title goes: a page has its own. The first page leads to the others.
    """
    sources: dict[str, bytes] = {}
    for section in sections:
        links = Links(section.name, places)
        is_first = section is sections[0]
        cells = [_cell(cell, stem, links, not is_first, sources) for cell in section.cells]
        if is_first:
            cells[0]["source"] = cells[0]["source"].replace(f"{links.lead(head)}\n\n", "", 1)
            rest = [f"{plain(page.title)} <{page.file_name}>" for page in sections[1:]]
            cells.append(_prose("contents", toctree(rest)))
        metadata = {key: notebook["metadata"][key] for key in ("kernelspec", "language_info")}
        page = {**notebook, "metadata": metadata, "cells": cells}
        text = json.dumps(page, ensure_ascii=False, indent=1) + "\n"
        sources[f"{section.name}.ipynb"] = text.encode()
    return sources


def index_page(title: str, pages: Sequence[str], welcome: str = "") -> bytes:
    """The first page: a text that welcomes, or the course's title and the pages in order."""
    if welcome:
        return f"{welcome.rstrip()}\n\n{toctree(pages)}".encode()
    return f"({TITLE})=\n\n# {title}\n\n{toctree(pages, hidden=False)}".encode()


def toctree(pages: Sequence[str], hidden: bool = True) -> str:
    """The pages below a page, in reading order."""
    options = ":hidden:\n" if hidden else ":maxdepth: 2\n"
    return "\n".join(["```{toctree}", options, *pages, "```", ""])


def page_text(text: str, links: Links) -> str:
    """A page of prose as MyST: its anchors become targets, its links lead to pages."""
    text = PICTURE.sub(rf"{PICTURES}/\g<name>", TWINS.sub("", text, count=1))
    anchored = ANCHOR.sub(r"(\1)=\n", text)
    return links.lead(f"({TITLE})=\n\n{anchored}" if anchored.startswith("# ") else anchored)


def _prose(key: str, source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": key, "metadata": {}, "source": source}


def _cell(
    cell: Mapping[str, Any], stem: str, links: Links, raised: bool, files: dict[str, bytes]
) -> dict[str, Any]:
    if cell["cell_type"] == "markdown":
        return _prose(cell["id"], links.lead(with_anchors(cell, raised)))
    tags = cell["metadata"].get("tags", [])
    page = {**cell, "metadata": {"key": cell["id"], **({"tags": tags} if tags else {})}}
    title = FOLD_TITLE.match(joined(cell["source"]))
    if title:  # the page's own fold says it
        prompts = {"code_prompt_show": title[1], "code_prompt_hide": title[1]}
        page["metadata"]["mystnb"] = prompts
        page["source"] = joined(cell["source"])[title.end() :]
    names = _names(stem, cell["id"])
    shown = filter(None, map(clean_output, cell["outputs"]))
    page["outputs"] = [_output(output, names, links.top, files) for output in shown]
    return page


def _names(stem: str, key: str) -> Iterator[str]:
    yield f"{FIGURES}/{stem}-{key}.svg"
    for number in itertools.count(2):
        yield f"{FIGURES}/{stem}-{key}-{number}.svg"


def _output(
    output: Mapping[str, Any], names: Iterator[str], top: str, files: dict[str, bytes]
) -> Mapping[str, Any]:
    """A figure becomes an image with its own file: a page stays light and may be searched."""
    if SVG not in output.get("data", {}):
        return output
    name, svg = next(names), joined(output["data"][SVG])
    files[f"{ASSETS}/{name}"] = svg.encode()
    root = ElementTree.fromstring(svg)
    alt = html.escape(output["metadata"][SVG]["alt"])
    width, height = (html.escape(root.get(name, "")) for name in ("width", "height"))
    size = f'width="{width}" height="{height}" loading="lazy"'
    image = f'<div class="figure"><img src="{top}_static/{name}" {size} alt="{alt}"></div>'
    if VIEW in output["data"]:
        image, frames = view_html(output["data"][VIEW], image, name)
        files |= {f"{ASSETS}/{frame}": content for frame, content in frames.items()}
    return {**output, "data": {"text/html": image}, "metadata": {}}
