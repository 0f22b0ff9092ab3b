"""The blocks of a Markdown text in order: headings, paragraphs, lists, tables, quotations, code."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser

from markdown_it.token import Token


@dataclass(frozen=True)
class Block:
    """What a block is, how deep inside other blocks it stands, and its line (from 1)."""

    what: str
    depth: int
    line: int


SIMPLE = {
    "paragraph_open": "a paragraph",
    "list_item_open": "a list item",
    "blockquote_open": "a quotation",
    "math_block": "a displayed formula",
    "math_block_label": "a displayed formula",
    "code_block": "an indented code block",
    "hr": "a rule",
}


def blocks(tokens: Sequence[Token]) -> list[Block]:
    """List the blocks; a table is one block that names its columns, rows and alignment."""
    return list(_blocks(tokens))


def _blocks(tokens: Sequence[Token]) -> Iterator[Block]:
    depth = 0
    for place, token in enumerate(tokens):
        depth -= token.nesting == -1
        what = _what(token, tokens[place:])
        if what:
            yield Block(what, depth, token.map[0] + 1 if token.map else 1)
        depth += token.nesting == 1


def _what(token: Token, rest: Sequence[Token]) -> str | None:
    if token.type == "heading_open":
        return f"a heading of level {token.tag[1:]}"
    if token.type in ("bullet_list_open", "ordered_list_open"):
        items = sum(t.type == "list_item_open" and t.level == token.level + 1 for t in _in(rest))
        start = f" from {token.attrs.get('start', 1)}" if token.tag == "ol" else ""
        kind = "a numbered list" if token.tag == "ol" else "a bulleted list"
        return f"{kind}{start} with {items} items"
    if token.type == "table_open":
        inside = _in(rest)
        heads = [t.attrs.get("style", "left") for t in inside if t.type == "th_open"]
        aligned = ", ".join(str(style).removeprefix("text-align:") for style in heads)
        rows = sum(t.type == "tr_open" for t in inside)
        return f"a table of {rows} rows and {len(heads)} columns ({aligned})"
    if token.type == "fence":
        return f"a code block ({token.info.strip() or 'no language'})"
    if token.type == "html_block":
        return f"HTML {html_tags(token.content)}"
    return SIMPLE.get(token.type)


def _in(tokens: Sequence[Token]) -> list[Token]:
    """The tokens from an opening one to the one that closes it."""
    for place, token in enumerate(tokens):
        if token.nesting == -1 and token.level == tokens[0].level:
            return list(tokens[: place + 1])
    return list(tokens)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(f"<{tag}>")

    def handle_endtag(self, tag: str) -> None:
        self.tags.append(f"</{tag}>")


def html_tags(html: str) -> str:
    """The tags in a piece of HTML, without their attributes and what is between them."""
    reader = _Tags()
    reader.feed(html)
    return "".join(reader.tags)
