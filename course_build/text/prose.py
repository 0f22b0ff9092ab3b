"""Counting what a learner reads in a prose cell: words, not formulas, code, tables or links."""

import functools
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin

READ = ("text", "softbreak", "hardbreak")


def count_words(text: str) -> int:
    """Words of a Markdown text; code, maths, HTML, link targets, tables and fences do not count."""
    pieces = " ".join(_read_pieces(parse_prose(text))).split()
    return sum(any(character.isalnum() for character in piece) for piece in pieces)


def heading(text: str) -> str | None:
    """The text of a Markdown cell's first line when it is a heading of the first level."""
    first = text.split("\n", 1)[0]
    return first.removeprefix("# ").strip() if first.startswith("# ") else None


@functools.cache
def parse_prose(text: str) -> tuple[Token, ...]:
    """The Markdown tokens of a text; shared, so nobody may change them."""
    return tuple(_parser().parse(text))


def parse_inline(text: str) -> tuple[Token, ...]:
    """The inline Markdown tokens of a paragraph's text."""
    return tuple(_parser().parseInline(text)[0].children or ())


@functools.cache
def _parser() -> MarkdownIt:
    return new_parser()


def new_parser() -> MarkdownIt:
    """A parser for the course's Markdown."""
    return MarkdownIt("commonmark").enable("table").use(dollarmath_plugin, double_inline=True)


def _read_pieces(tokens: Sequence[Token]) -> Iterator[str]:
    in_table = False
    for token in tokens:
        if token.type in ("table_open", "table_close"):
            in_table = token.type == "table_open"
        elif token.type == "inline" and not in_table:
            children = token.children or ()
            yield "".join(child.content or " " for child in children if child.type in READ)
