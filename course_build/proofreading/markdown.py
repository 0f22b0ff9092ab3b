"""What is read of a Markdown text: its words with their lines; no code, formulas, targets, HTML."""

import functools
from collections.abc import Callable, Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from course_build.proofreading.pieces import HOLE, Part
from course_build.text.prose import new_parser

LOST = "lines"  # line ends inside a token that its content does not show


def markdown_parts(text: str, first_line: int = 1) -> Iterator[list[Part]]:
    """Each paragraph, heading, table cell and alternative text as (line, text) parts."""
    for token in _parser().parse(text):
        if token.type == "inline":
            walk = _Walk(first_line + token.map[0])
            walk.read(token.children)
            yield walk.parts
            yield from walk.alternatives


class _Walk:
    """Goes through one block's inline tokens and counts the lines."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.parts: list[Part] = []
        self.alternatives: list[list[Part]] = []

    def read(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            if token.type in ("text", "text_special"):
                self.parts.append((self.line, token.content))
            elif token.type in ("softbreak", "hardbreak"):
                self.line += 1
                self.parts.append((self.line, "\n"))
            elif token.type == "image":
                inner = _Walk(self.line)
                inner.read(token.children)
                self.alternatives.append(inner.parts)
                self.parts.append((self.line, HOLE))
            elif token.type in ("code_inline", "math_inline", "math_inline_double"):
                self.parts.append((self.line, HOLE))
            self.line += token.meta.get(LOST, 0)


@functools.cache
def _parser() -> MarkdownIt:
    """The course's Markdown, with every inline rule counting the line ends it passes over."""
    parser = new_parser()
    for rule in parser.inline.ruler.__rules__:
        if rule.name != "newline":
            rule.fn = _counting(rule.fn)
    parser.inline.ruler.__compile__()
    return parser


def _counting(rule: Callable[[StateInline, bool], bool]) -> Callable[[StateInline, bool], bool]:
    def counted(state: StateInline, silent: bool) -> bool:
        start, made = state.pos, len(state.tokens)
        if not rule(state, silent):
            return False
        if not silent and len(state.tokens) > made:
            passed = state.src.count("\n", start, state.pos)
            shown = sum(_line_ends(token) for token in state.tokens[made:])
            last = state.tokens[-1]
            last.meta = {**last.meta, LOST: last.meta.get(LOST, 0) + passed - shown}
        return True

    return counted


def _line_ends(token: Token) -> int:
    return (token.type in ("softbreak", "hardbreak")) + token.meta.get(LOST, 0)
