"""Where the links of a page of prose lead: every target exists, and an empty link is named.

A link to a notebook or page may name a cell by its key. `[](module_03_x.ipynb#masks)` without
words is filled with that cell's heading, in the language of the page.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from course_build.base.decode import decode
from course_build.base.findings import CourseError, Finding
from course_build.base.places import Files, is_page, notebook_path, prose_path, stem_of
from course_build.notebook.glossary_links import PAGE as GLOSSARY_PAGE
from course_build.source.cells import Cell, split_chunks
from course_build.source.header import key_in
from course_build.text.prose import parse_prose

EMPTY = re.compile(r"\[\]\(([^()\s]+)\)")
LANG = re.compile(r"""\slang\s*=\s*["'](\w+)["']""")
Headings = Mapping[str, Mapping[str, str]]  # key of a cell -> language -> its heading, if any


def page_targets(files: Files, terms: Collection[str]) -> dict[str, Headings]:
    """What stands beside a page: the name of each file, and what its anchors are called."""
    found: dict[str, Headings] = {}
    for path, data in files.sources.items():
        place = prose_path if is_page(path) else notebook_path
        found[place("", stem_of(path)).rsplit("/", 1)[-1]] = _headings(path, data)
    if terms:
        found[GLOSSARY_PAGE] = {key: {} for key in ("", *terms)}
    return found


def _headings(path: str, data: bytes) -> Headings:
    """The headings that begin a source's cells; what is broken in it is said elsewhere."""
    headings: dict[str, dict[str, str]] = {"": {}}
    try:
        chunks = split_chunks(path, decode(path, data))
    except CourseError:
        return headings
    for chunk in chunks:
        key, spoken = key_in(chunk.header) or "", LANG.search(chunk.header)
        here = headings.setdefault(key, {})
        first = next((line for line in chunk.body[1:] if line.strip()), "")
        if spoken and first.startswith("#"):
            here[spoken[1]] = first.lstrip("#").strip()
    title = key_in(chunks[0].header) if chunks else None
    return {**headings, "": headings.get(title or "", {})}  # the title stands for the whole file


def check_links(cells: Sequence[Cell], targets: Mapping[str, Headings]) -> Iterator[Finding]:
    """Every link of a page leads to the web, to a file beside it, or to a cell of one."""
    for cell in cells:
        for line, href in _links(cell.text):
            parts = urlsplit(href)
            if parts.scheme in ("http", "https"):
                continue
            fault = _fault(parts.path, parts.fragment, targets)
            if not fault and f"[]({href})" in cell.text and not targets[parts.path][parts.fragment]:
                fault = "there is no heading to name the link"
            if fault:
                mend = "name a notebook or page of the course, and a key of one of its cells"
                yield cell.finding("page-link", f"{href}: {fault}", mend, line=line)


def _links(text: str) -> Iterator[tuple[int, str]]:
    for token in parse_prose(text):
        for child in token.children or ():
            if child.type == "link_open":
                yield (token.map or [0])[0] + 1, str(child.attrGet("href"))


def _fault(name: str, key: str, targets: Mapping[str, Headings]) -> str:
    if name not in targets:
        return "there is no such file beside the page"
    return f"no cell there has the key {key!r}" if key not in targets[name] else ""


def name_links(text: str, language: str, source: str, targets: Mapping[str, Headings]) -> str:
    """Give every empty link the heading that it leads to, in this language or the source's."""

    def named(match: re.Match[str]) -> str:
        name, _, key = match[1].partition("#")
        words = targets.get(name, {}).get(key, {})
        return f"[{words.get(language) or words.get(source, match[1])}]({match[1]})"

    return EMPTY.sub(named, text)
