"""Counting what a learner reads in a prose cell: words, not formulas, code, tables or links."""

from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin

READ = ("text", "softbreak", "hardbreak", "text_special")


def count_words(text: str) -> int:
    """Words of a Markdown text; code, maths, HTML, link targets, tables and fences do not count."""
    pieces = " ".join(_read_pieces(_parser().parse(text))).split()
    return sum(any(character.isalnum() for character in piece) for piece in pieces)


def heading(text: str) -> str | None:
    """The text of a Markdown cell's first line when it is a heading of the first level."""
    first = text.split("\n", 1)[0]
    return first.removeprefix("# ").strip() if first.startswith("# ") else None


def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table").use(dollarmath_plugin, double_inline=True)


def _read_pieces(tokens: Sequence[Token]) -> Iterator[str]:
    table = 0
    for token in tokens:
        table += token.type == "table_open"
        table -= token.type == "table_close"
        if token.type == "inline" and not table:
            yield "".join(
                child.content or " " for child in token.children or () if child.type in READ
            )
