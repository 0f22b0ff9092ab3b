"""What a page tells of itself to searchers, networks and browsers, in its own language.

The tags themselves stand in templates/head.html. sphinxext-opengraph 0.13, tried on these pages,
cut all 70 descriptions at their 200th character, read TeX into five, gave pages an address where
the site has none, and knows of no languages.
"""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from docutils import nodes
from sphinx.locale import _

from course_build.site.cards import CARD_SIZE

LONGEST = 200  # characters of a description
SHORT = 60  # a description is at least as long, if the page has the words
TAG = re.compile(r"<[^<>]*>")
FORMULA = re.compile(r"\\\((.*?)\\\)")
BACKSLASHED = re.compile(r"\\[a-zA-Z]+")
SENTENCE_END = re.compile(r"(?<=[.!?…])\s+")
ENTRANCE = "index.html"  # the page above the languages
FIRST = "index"  # the first page of a language
MARK = "mark.svg"
COURSE_CARD = "course"


def describe(doctree: nodes.document) -> str:
    """The first sentences of a page's own running text, at most LONGEST characters."""
    said = ""
    for paragraph in doctree.findall(nodes.paragraph):
        if not _is_running_text(paragraph):
            continue
        for sentence in SENTENCE_END.split(" ".join(_text_of(paragraph).split())):
            longer = f"{said} {sentence}".strip()
            if len(longer) > LONGEST:
                return said if len(said) >= SHORT else _cut(longer)
            said = longer
        if len(said) >= SHORT:
            return said
    return said


def _is_running_text(paragraph: nodes.paragraph) -> bool:
    """Is it a paragraph of the page itself: of no table, list, fold or output?"""
    return isinstance(paragraph.parent, nodes.document | nodes.section)


def _text_of(node: nodes.Node) -> str:
    """The words of a node; formulas as their letters."""
    if isinstance(node, nodes.math):
        return _letters(node.astext())
    if isinstance(node, nodes.Text) or not node.children:
        return node.astext()
    return "".join(map(_text_of, node.children))


def _letters(formula: str) -> str:
    """What a formula says where none can be set."""
    return BACKSLASHED.sub("", formula).replace("{", "").replace("}", "")


def plain_title(title: str) -> str:
    """A title, which Sphinx hands over as HTML, as text."""
    text = html.unescape(TAG.sub("", title))
    return FORMULA.sub(lambda match: _letters(match[1]), text)


def _cut(text: str) -> str:
    """A text without its last words, which says so."""
    return text[: LONGEST - 1].rsplit(" ", 1)[0].rstrip(" ,;:—–-") + "…"


def locale_of(language: str) -> str:
    """A language with the country that most of its readers are from: en_US."""
    from babel.core import get_global

    likely = get_global("likely_subtags").get(language, language).split("_")
    return "_".join([likely[0], *likely[2:]])


def alternates(
    name: str, languages: Sequence[str], base: str, is_first: bool
) -> list[tuple[str, str]]:
    """A page in each language, and what speaks to all others: (hreflang, address).

    Of the first pages that is the entrance, from which a reader chooses; of others the page in
    the first language. `base` leads to the folder of the languages.
    """
    pages = [(code, f"{base}{code}/{name}.html") for code in languages]
    return [*pages, ("x-default", f"{base}{ENTRANCE}" if is_first else pages[0][1])]


def card_path(language: str, name: str) -> str:
    """Where a page's card lies below the folder of the languages: of its module or the course."""
    folder = name.split("/")[0] if "/" in name else COURSE_CARD
    return f"{language}/_static/cards/{folder}.png"


@dataclass(frozen=True)
class Head:
    """What a page's head tells: of the page, and of the site that it belongs to."""

    name: str
    title: str
    description: str
    parents: tuple[str, ...]  # the titles of the pages above it
    language: str
    languages: tuple[str, ...]
    site_title: str
    address: str  # the page's, whole; "" as long as the site has none
    base: str  # what leads to the folder of the languages: the site's address, else a way up
    up: str  # the way up from the page to that folder, always
    is_first: bool = False

    @property
    def full_title(self) -> str:
        """The page's title with what it belongs to: no two pages have the same."""
        above = self.parents[-1] if self.parents else self.site_title
        return self.title if self.is_first else f"{self.title} · {above}"

    @property
    def alternates(self) -> list[tuple[str, str]]:
        """The page in all languages: absolute where the site has an address."""
        return alternates(self.name, self.languages, self.base, self.is_first)

    @property
    def locales(self) -> list[str]:
        """The page's own first, then those of its twins."""
        others = [code for code in self.languages if code != self.language]
        return [locale_of(code) for code in (self.language, *others)]

    @property
    def card(self) -> tuple[str, int, int]:
        """Address, width and height of its card: beside the page until the site has an address."""
        return f"{self.base}{card_path(self.language, self.name)}", *CARD_SIZE


def tell_head(
    app: Any, name: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Put into a page's context what the template head.html writes; Sphinx calls it."""
    told = app.config.html_context
    site, up = told["site"], f"{context['pathto']('', 1)}../"
    context["head"] = Head(
        name=name,
        title=plain_title(context.get("title") or _("Search")),  # the one page without
        description=describe(doctree) if doctree else "",
        parents=tuple(plain_title(parent["title"]) for parent in context.get("parents", ())),
        language=app.config.language,
        languages=tuple(language["code"] for language in told["languages"]),
        site_title=app.config.project,
        address=site and f"{site}{app.config.language}/{name}.html",
        base=site or up,
        up=up,
        is_first=name == FIRST,
    )
