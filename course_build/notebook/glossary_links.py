"""A term's first use in a notebook becomes a link to the glossary, with the meaning as its title.

The sources are not touched. What is linked is found among the Markdown tokens of running text, so
never in headings, code, formulas, links, images, tables or HTML; a text that would read otherwise
with the links in it is left as it was.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markdown_it.token import Token

from course_build.notebook.compose import NotebookCell
from course_build.text.glossary import Term
from course_build.text.prose import count_words, parse_inline, parse_prose
from course_build.text.stems import WORD, Finder

PAGE = "glossary.md"
MOST_LINKS = 3  # in one cell
LINK = re.compile(rf'\[([^\[\]]*)\]\({re.escape(PAGE)}#[a-z0-9-]+ "(?:[^"\\]|\\.)*"\)')
SECTION = "h2"


@dataclass(frozen=True)
class Sight:
    """A term as a text shows it: a phrase, and which of its words are the term (None: all)."""

    key: str
    phrase: str
    words: slice | None


@dataclass(frozen=True)
class Place:
    """Where a notebook first uses a term: the section's heading ("" before the first), the cell."""

    section: str
    key: str


@dataclass(frozen=True)
class Use:
    """A term's words in a text."""

    key: str
    start: int
    end: int


def unlink(text: str) -> str:
    """Take the links to the glossary out of a text again."""
    return LINK.sub(r"\1", text)


class Linker:
    """Links the terms of one glossary in notebooks of any language."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self._terms = {term.key: term for term in terms}
        self._sights: dict[str, dict[str, list[Sight]]] = {}
        self._finders: dict[str, Finder] = {}

    def link_cells(
        self, cells: Sequence[NotebookCell]
    ) -> tuple[list[NotebookCell], dict[str, Place]]:
        """Link one notebook; also name the place in which each term is first used."""
        linked: set[str] = set()
        places: dict[str, Place] = {}
        section, done = "", []
        for cell in cells:
            if cell.kind == "markdown":
                section = _last_section(cell.source) or section
                if cell.origin.lang:  # a folded hint is HTML: nothing in it is linked
                    used, text = self.link(cell.source, cell.origin.lang, linked)
                    places = {**dict.fromkeys(used, Place(section, cell.id)), **places}
                    cell = _with_text(cell, text)
            done.append(cell)
        return done, places

    def link(self, text: str, language: str, linked: set[str]) -> tuple[list[str], str]:
        """The terms that a text uses, and the text with links to those that are not yet linked."""
        used: list[str] = []
        edits: list[tuple[int, int, str]] = []
        new: set[str] = set()
        for inline in _paragraphs(text):
            wanted = []
            for use in self._uses(inline, language):
                used.append(use.key)
                if use.key not in linked | new and len(new) < MOST_LINKS:
                    new.add(use.key)
                    wanted.append(use)
            shifts = (_shifts(text, inline) if wanted else None) or []
            links = self._links(inline, wanted, language) if shifts else []
            for start, end, linking in links:
                shift = shifts[inline.content.count("\n", 0, start)]
                edits.append((start + shift, end + shift, linking))
            if not links:
                new -= {use.key for use in wanted}
        written = _insert(text, edits)
        if unlink(written) != text or count_words(written) != count_words(text):
            return used, text
        linked |= new
        return used, written

    def _uses(self, inline: Token, language: str) -> list[Use]:
        """The terms in a paragraph, in its order; where they overlap, the longest."""
        return sorted(
            (
                use
                for start, text in _pieces(inline)
                for use in self._uses_in(text, start, language)
            ),
            key=lambda use: use.start,
        )

    def _uses_in(self, text: str, start: int, language: str) -> Iterator[Use]:
        if language not in self._finders:
            self._sights[language] = _sights(self._terms, language)
            self._finders[language] = Finder(self._sights[language], language)
        uses = []
        for match in self._finders[language].find(text):
            for sight in self._sights[language][match.phrase]:
                here = match.words[sight.words] if sight.words else ((match.start, match.end),)
                uses.append(Use(sight.key, here[0][0], here[-1][1]))
        taken: list[Use] = []
        for use in sorted(uses, key=lambda use: (use.start - use.end, use.start, use.key)):
            if all(use.end <= other.start or other.end <= use.start for other in taken):
                taken.append(use)
                yield Use(use.key, start + use.start, start + use.end)

    def _links(
        self, inline: Token, uses: Sequence[Use], language: str
    ) -> list[tuple[int, int, str]]:
        """What is written where in a paragraph; nothing if that would change what it says."""
        links = []
        for use in uses:
            means = self._terms[use.key].words[language].means.replace('"', '\\"')
            shown = inline.content[use.start : use.end]
            links.append((use.start, use.end, f'[{shown}]({PAGE}#{use.key} "{means}")'))
        written = parse_inline(_insert(inline.content, links))
        return links if _said(written) == _said(inline.children or []) else []


def _with_text(cell: NotebookCell, text: str) -> NotebookCell:
    """The cell with other words on the same lines."""
    if text == cell.source:
        return cell
    lines = zip(cell.lines, text.split("\n"), strict=True)
    return replace(cell, lines=tuple(replace(line, text=new) for line, new in lines))


def _sights(terms: Mapping[str, Term], language: str) -> dict[str, list[Sight]]:
    """Every phrase by which a term is recognised, with what it says."""
    sights: dict[str, list[Sight]] = {}
    for term in terms.values():
        for seen in term.words[language].seen if language in term.words else ():
            before, bracket, rest = seen.partition("[")
            inside = rest.partition("]")[0]
            first = len(WORD.findall(before))
            words = slice(first, first + len(WORD.findall(inside))) if bracket else None
            phrase = seen.replace("[", "").replace("]", "")
            sights.setdefault(phrase, []).append(Sight(term.key, phrase, words))
    return sights


def _paragraphs(text: str) -> list[Token]:
    """The running text of a cell; a cell that holds blocks of HTML has none."""
    tokens = parse_prose(text)
    if any(token.type == "html_block" for token in tokens):
        return []
    return [
        token
        for before, token in zip(tokens, tokens[1:], strict=False)
        if token.type == "inline"
        and before.type == "paragraph_open"
        and not any(child.type == "html_inline" for child in token.children or ())
    ]


def _pieces(inline: Token) -> Iterator[tuple[int, str]]:
    """The plain text of a paragraph, piece by piece, each with its place in the Markdown.

    markdown-it does not say where its inline tokens stand: they are looked for in their order.
    """
    place, link = 0, None
    for child in inline.children or ():
        if child.type == "link_open":
            link = str(child.attrGet("href") or "")
            continue
        if child.type == "link_close" or child.type == "image":
            sought = link if child.type == "link_close" else str(child.attrGet("src"))
            link = None
        else:
            sought = child.content
        found = inline.content.find(sought, place) if sought else -1
        if child.type == "text" and sought:
            if found < 0:  # written with an escape or an entity
                return
            if link is None:
                yield found, sought
        place = max(place, found + len(sought or "")) if found >= 0 else place


def _said(tokens: Sequence[Token]) -> list[tuple[Any, ...]]:
    """What inline tokens say, links to the glossary apart."""
    said: list[tuple[Any, ...]] = []
    ours = False
    for token in tokens:
        if token.type == "link_open" and str(token.attrGet("href")).startswith(f"{PAGE}#"):
            ours = True
        elif token.type == "link_close" and ours:
            ours = False
        elif token.type == "text" and said and said[-1][0] == "text":
            said[-1] = ("text", said[-1][1] + token.content)
        elif token.type != "text" or token.content:
            children = _said(token.children or [])
            extra = (*sorted(token.attrs.items()), *children) if token.attrs or children else ()
            said.append((token.type, token.content, *extra))
    return said


def _insert(text: str, edits: Sequence[tuple[int, int, str]]) -> str:
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _shifts(text: str, inline: Token) -> list[int] | None:
    """By how much each line of a paragraph stands further on in the whole text.

    Its lines may be indented or quoted there; None where they are not found.
    """
    lines = text.split("\n")[slice(*inline.map)] if inline.map else []
    contents = inline.content.split("\n")
    place = sum(len(line) + 1 for line in text.split("\n")[: (inline.map or [0])[0]])
    within, shifts = 0, []
    for line, content in zip(lines, contents, strict=False):
        if content not in line:
            return None
        shifts.append(place + line.rfind(content) - within)
        place += len(line) + 1
        within += len(content) + 1
    return shifts if len(shifts) == len(contents) else None


def _last_section(text: str) -> str:
    """The last section's heading in a text, as Markdown; "" if it has none."""
    tokens = parse_prose(text)
    headings = [
        content.content
        for heading, content in zip(tokens, tokens[1:], strict=False)
        if heading.type == "heading_open" and heading.tag == SECTION
    ]
    return headings[-1] if headings else ""
