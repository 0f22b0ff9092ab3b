"""No link between the pages leads nowhere: each names a file that is there, and a place in it.

Sphinx cannot tell: the links of notebooks and pages of prose are the course's own (pages.py).
"""

import os
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from course_build.base.findings import CourseError, Finding

LOST = "404.html"  # answers to addresses of any depth, so its links are of no one folder


class Places(HTMLParser):
    """The addresses that a page names, and the places in it that can be named."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links, self.ids = set[str](), {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.links |= {given[name] or "" for name in ("href", "src") if name in given}
        self.ids.add(given.get("id") or "")


def check_links(folder: Path) -> None:
    """Look at every page below a folder.

    Raises:
        CourseError: naming each link that leads nowhere
    """
    paths = [path for path in sorted(folder.rglob("*.html")) if path.name != LOST]
    pages = {str(path): Places(path.read_text(encoding="utf-8")) for path in paths}
    findings = [
        Finding(
            Path(path).relative_to(folder).as_posix(),
            None,
            None,
            "page-link",
            f"{link}: {fault}",
            "name a notebook or page of the course, and a key of one of its cells",
        )
        for path, page in pages.items()
        for link, fault in _lost(path, page, pages)
    ]
    if findings:
        raise CourseError(findings)


def _lost(path: str, page: Places, pages: dict[str, Places]) -> Iterator[tuple[str, str]]:
    for link in sorted(page.links):
        address = urlsplit(link)
        if address.scheme or address.netloc:
            continue
        named = os.path.join(os.path.dirname(path), unquote(address.path))
        target = os.path.normpath(named) if address.path else path
        if not os.path.isfile(target):
            yield link, "there is no such file"
        elif target in pages and unquote(address.fragment) not in pages[target].ids:
            yield link, "there is no such place on that page"
