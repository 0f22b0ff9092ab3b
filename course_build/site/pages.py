"""Executed notebooks to the sources of pages: what a page shows otherwise than a notebook does."""

import html
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any
from xml.etree import ElementTree

from course_build.executed import joined, read_notebook
from course_build.head import links
from course_build.settings import Settings
from course_build.site.clean import SVG, clean_output

ASSETS, FIGURES = "_assets", "figures"  # a page finds them in _static/figures
LINK = re.compile(r"\]\(((?:\.\./\w+/)?[\w-]+)\.(?:ipynb|md)(#[\w-]+)?(?=[ )])")
ANCHOR = re.compile(r'<a id="([\w-]+)"></a>\n\n(?=#)')
TWINS = re.compile(r"\n[^\n]*\]\(\.\./\w+/[\w-]+\.md\)[^\n]*\n")
FOLD_TITLE = re.compile(r"#@title (.*)\n")


def page_sources(
    notebooks: Mapping[str, bytes], language: str, settings: Settings, has_glossary: bool
) -> dict[str, bytes]:
    """Turn one language's executed notebooks, {path: content}, into {name: content} for Sphinx."""
    stems = sorted(PurePosixPath(path).stem for path in notebooks)
    sources = {}
    for path, content in notebooks.items():
        stem = PurePosixPath(path).stem
        head = links(stem, stems, language, settings, has_glossary)
        page, figures = page_notebook(read_notebook(path, content), stem, head)
        sources[f"{stem}.ipynb"] = (json.dumps(page, ensure_ascii=False, indent=1) + "\n").encode()
        sources |= figures
    return sources


def index_page(title: str, pages: Sequence[str]) -> bytes:
    """The first page: the course's title and the pages in reading order."""
    return "\n".join(
        [f"# {title}", "", "```{toctree}", ":maxdepth: 2", "", *pages, "```", ""]
    ).encode()


def page_text(text: str) -> str:
    """A page of prose as MyST: its anchors become targets, its links lead to pages."""
    return to_pages(ANCHOR.sub(r"(\1)=\n", TWINS.sub("", text, count=1)))


def to_pages(text: str) -> str:
    """Let links to notebooks and texts lead to the pages made of them, in every language."""
    return LINK.sub(lambda m: f"]({'place' if m[2] else 'page'}:{m[1]}.html{m[2] or ''}", text)


def page_notebook(
    notebook: Mapping[str, Any], stem: str, head: str
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """One notebook without what the page itself says, and its figures as files."""
    figures: dict[str, bytes] = {}
    cells = [_cell(cell, stem, figures) for cell in notebook["cells"]]
    first = cells[0]
    first["source"] = first["source"].replace(f"{to_pages(head)}\n\n", "", 1)
    kept = {key: notebook["metadata"][key] for key in ("kernelspec", "language_info")}
    return {**notebook, "metadata": kept, "cells": cells}, figures


def _cell(cell: Mapping[str, Any], stem: str, figures: dict[str, bytes]) -> dict[str, Any]:
    tags = cell["metadata"].get("tags", [])
    page = {**cell, "metadata": {"tags": tags} if tags else {}}
    if cell["cell_type"] == "markdown":
        return {**page, "source": to_pages(joined(cell["source"]))}
    title = FOLD_TITLE.match(joined(cell["source"]))
    if title:  # the page's own fold says it
        prompts = {"code_prompt_show": title[1], "code_prompt_hide": title[1]}
        page["metadata"]["mystnb"] = prompts
        page["source"] = joined(cell["source"])[title.end() :]
    names = _names(stem, cell["id"])
    shown = filter(None, map(clean_output, cell["outputs"]))
    page["outputs"] = [_output(output, names, figures) for output in shown]
    return page


def _names(stem: str, key: str) -> Iterator[str]:
    yield f"{FIGURES}/{stem}-{key}.svg"
    for number in itertools.count(2):
        yield f"{FIGURES}/{stem}-{key}-{number}.svg"


def _output(
    output: Mapping[str, Any], names: Iterator[str], figures: dict[str, bytes]
) -> Mapping[str, Any]:
    """A figure becomes an image with its own file: a page stays light and may be searched."""
    if SVG not in output.get("data", {}):
        return output
    name, svg = next(names), joined(output["data"][SVG])
    figures[f"{ASSETS}/{name}"] = svg.encode()
    root = ElementTree.fromstring(svg)
    alt = html.escape(output["metadata"][SVG]["alt"])
    width, height = (html.escape(root.get(name, "")) for name in ("width", "height"))
    size = f'width="{width}" height="{height}"'
    image = f'<div class="figure"><img src="_static/{name}" {size} alt="{alt}"></div>'
    return {**output, "data": {"text/html": image}, "metadata": {}}
