"""What a page may cost a reader on a telephone with a slow network: a budget that the build keeps.

A page's transfer is the page with all that it names itself: style, scripts, figures; text counts
as a server sends it, compressed. MathJax comes once for all pages, and its fonts as a formula needs
them; both are counted where a page names them.
"""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from course_build.base.findings import CourseError, Finding

COMPRESSED = {".html", ".css", ".js", ".svg", ".json", ".txt", ".xml"}
LOADED = {"img": "src", "script": "src", "source": "src", "link": "href"}
NOT_LOADED = {"alternate", "canonical", "index", "next", "prev", "search"}  # links to other pages


@dataclass(frozen=True)
class Cost:
    """What one page asks for: sizes in bytes, the rest as counts."""

    html: int
    compressed: int
    transfer: int
    requests: int
    elements: int
    largest_image: int


MOST = Cost(
    html=600_000,
    compressed=120_000,
    transfer=500_000,
    requests=40,
    elements=12_000,
    largest_image=60_000,
)


class Parts(HTMLParser):
    """The elements of a page, and the addresses of what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements, self.loaded = 0, set[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements += 1
        given = dict(attrs)
        address = given.get(LOADED.get(tag, ""))
        if address and not NOT_LOADED & set((given.get("rel") or "").split()):
            self.loaded.add(address)


def cost(page: Path) -> Cost:
    """Measure a built page together with the files that it names."""
    text = page.read_bytes()
    parts = Parts(text.decode())
    paths = {
        (page.parent / unquote(address.path)).resolve()
        for address in map(urlsplit, parts.loaded)
        if not address.scheme and address.path
    }
    images = [sent(path) for path in paths if path.suffix in (".svg", ".png", ".jpg", ".webp")]
    return Cost(
        html=len(text),
        compressed=sent(page),
        transfer=sent(page) + sum(map(sent, paths)),
        requests=1 + len(paths),
        elements=parts.elements,
        largest_image=max(images, default=0),
    )


@cache
def sent(path: Path) -> int:
    """The bytes of a file as a server sends it."""
    content = path.read_bytes()
    return len(gzip.compress(content, 6) if path.suffix in COMPRESSED else content)


def check_budget(costs: Mapping[str, Cost], most: Cost = MOST) -> None:
    """Refuse pages that cost more than the budget, each with what it costs too much of.

    Raises:
        CourseError: naming each page that is over
    """
    findings = [
        Finding(
            page,
            1,
            None,
            "page-budget",
            f"{each.name}: {getattr(told, each.name)}, at most {getattr(most, each.name)}",
            "divide the section, or show less of what is folded; the budget: site/budget.py",
        )
        for page, told in costs.items()
        for each in fields(Cost)
        if getattr(told, each.name) > getattr(most, each.name)
    ]
    if findings:
        raise CourseError(findings)
