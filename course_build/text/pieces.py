"""What a translation keeps of a prose cell: formulas, code, links, images, numbers, emphasis."""

import ast
import contextlib
import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from markdown_it.token import Token

from course_build.text.blocks import html_tags
from course_build.text.formulas import read_formula
from course_build.text.numerals import numbers, zero_words

MATHS = {
    "math_inline": "inline",
    "math_inline_double": "displayed",
    "math_block": "displayed",
    "math_block_label": "displayed",
}
LEAVES = {"inline", "fence", "code_block", *MATHS}
HOLE = "\ufffc"  # stands in the text where a formula or code was


@dataclass(frozen=True)
class Piece:
    """One thing to find again in the twin: its kind, what is compared, what is shown, its line.

    `place` counts the paragraphs, headings, table cells and code blocks of the text.
    """

    kind: str
    same: object
    shown: str
    line: int
    place: int = 0


def pieces(tokens: Sequence[Token], language: str) -> list[Piece]:
    """Everything in a text that its translation must have too."""
    return list(_pieces(tokens, language))


def _pieces(tokens: Sequence[Token], language: str) -> Iterator[Piece]:
    line, place = 1, 0
    for token in tokens:
        line = token.map[0] + 1 if token.map else line
        place += token.type in LEAVES
        yield from (replace(piece, place=place) for piece in _leaf(token, language, line))


def _leaf(token: Token, language: str, line: int) -> Iterator[Piece]:
    if token.type == "inline":
        yield from _inline(token.children or (), language, line)
    elif token.type in MATHS:
        yield _formula(token, language, line)
    elif token.type == "fence" and token.info.strip() in ("", "text"):
        yield from numbers_in(token.content, language, line)
    elif token.type in ("fence", "code_block"):
        yield Piece("code", _code(token), _short(token.content), line)


def _inline(children: Sequence[Token], language: str, first: int) -> Iterator[Piece]:
    text = ""
    for token in children:
        line = first + text.count("\n")
        text += _text(token)
        if token.type in MATHS:
            yield _formula(token, language, line)
        elif token.type == "code_inline":
            yield Piece("code", token.content, f"`{token.content}`", line)
        elif token.type == "link_open":
            href = str(token.attrs["href"])
            yield Piece("links", target(href, language), href, line)
        elif token.type == "image":
            yield _image(token, language, line)
        elif token.type == "html_inline":
            yield Piece("structure", html_tags(token.content), token.content, line)
        elif token.type in ("strong_open", "em_open"):
            yield Piece("emphasis", token.type, token.type, line)
    yield from numbers_in(text, language, first)


def _text(token: Token) -> str:
    """What a reader reads; marks such as emphasis are nothing, formulas and code are holes."""
    if token.type in ("text", "text_special", "image"):
        return token.content
    if token.type in ("softbreak", "hardbreak"):
        return "\n"
    return "" if token.nesting else HOLE


def numbers_in(text: str, language: str, line: int) -> Iterator[Piece]:
    """The numbers of a text that begins on this line, and where it says nought in words."""
    for number in numbers(text, language):
        place = line + text.count("\n", 0, number.start)
        yield Piece("numbers", number.value, number.shown.strip(), place)
    for start, word in zero_words(text, language):
        yield Piece("zeros", word, word, line + text.count("\n", 0, start))


def _formula(token: Token, language: str, line: int) -> Piece:
    marks = "$" if MATHS[token.type] == "inline" else "$$"
    shown = f"{marks}{_short(token.content)}{marks}"
    return Piece("formulas", (marks, read_formula(token.content, language)), shown, line)


def _code(token: Token) -> tuple[str, str]:
    """Code without what may be translated: the comments of Python."""
    info, content = token.info.strip(), token.content.strip("\n")
    if info in ("python", "py"):
        with contextlib.suppress(SyntaxError):  # not a whole program: every character counts
            content = ast.unparse(ast.parse(content))
    return info, content


def _image(token: Token, language: str, line: int) -> Piece:
    source = str(token.attrs["src"])
    return Piece("images", (target(source, language), token.content.strip()), source, line)


def target(href: str, language: str) -> str:
    """A link's target; one of our own pages is the same in every language.

    There `../ru/page` in a Russian text is `../en/page` in an English one, and `PAGE.ru.md` is
    `PAGE.md`.
    """
    parts = urlsplit(href)
    if parts.scheme or parts.netloc:
        return href
    folder, name = posixpath.split(parts.path)
    names = ["(language)" if step == language else step for step in folder.split("/")]
    stem, ending = posixpath.splitext(name)
    path = "/".join([*names, stem.removesuffix(f".{language}") + ending]).lstrip("/")
    return parts._replace(path=path).geturl()


def _short(text: str) -> str:
    """A piece on one line of a message."""
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."
