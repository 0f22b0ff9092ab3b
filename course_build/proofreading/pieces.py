"""A piece of text to proofread: what is read, in which language, and where each line stands."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from course_build.base.findings import Finding

HOLE = "\N{OBJECT REPLACEMENT CHARACTER}"  # here stood code, a formula, a field: not to be read
SHARED = "shared"  # a piece that is the same in every language: code, or words left behind
WORD = re.compile(rf"(?<![\w{HOLE}])[^\W\d_]+(?:['’][^\W\d_]+)*(?![\w{HOLE}])")
CODE_LIKE = re.compile(
    r"""
    (?<![^\s(«"“])(?:
        \S*\w_\w\S*  | \S*_\w\S*\(\S* |     # d_model, masked_fill(x)
        --?[a-z]\S*  | \S*\w\(\S*     |     # --lang, f(x)
        \S*\w\.[^\W\d]\S*             |     # torch.float32, README.md
        \S*[\w)]=\S*  | \S*/\S*\.\w+  | \S*[\[\]~]\S* |
        \.[a-z]\S*    | \S*\w\#\d\S*        # .py, pytorch#123
    )
    """,
    re.VERBOSE,
)


@dataclass(frozen=True)
class Piece:
    """Text as it is read, joined over line ends; `starts` are the offsets where lines begin."""

    path: str
    key: str | None
    language: str
    kind: str
    text: str
    starts: tuple[int, ...]
    lines: tuple[int, ...]

    def line_at(self, offset: int) -> int:
        """The line of the file on which the character at this offset stands."""
        return self.lines[bisect_right(self.starts, offset) - 1]

    def finding(self, offset: int, rule: str, message: str, mend: str) -> Finding:
        """Say what is wrong at an offset of the text."""
        return Finding(self.path, self.line_at(offset), self.key, rule, message, mend)

    def words(self) -> Iterator[re.Match[str]]:
        """Every word: letters, with apostrophes inside; nothing that touches digits or code."""
        return WORD.finditer(self.text)

    def around(self, start: int, end: int, width: int = 20) -> str:
        """The place with some characters on both sides, to be quoted in a message."""
        before = self.text[max(0, start - width) : start]
        return " ".join(
            f"{before}{self.text[start:end]}{self.text[end : end + width]}"
            .replace(HOLE, "…").replace("\N{NO-BREAK SPACE}", "~").split()
        )  # fmt: skip


Part = tuple[int, str]


def join(parts: Iterable[Part], place: tuple[str, str | None, str, str]) -> Piece | None:
    """Make one piece of (line, text) parts; None when there is nothing to read."""
    path, key, language, kind = place
    text, starts, lines = "", [], []
    for line, words in parts:
        starts.append(len(text))
        lines.append(line)
        text += words
    if not any(character.isalpha() for character in text):
        return None
    return Piece(path, key, language, kind, hide_code(text), tuple(starts), tuple(lines))


def hide_code(text: str) -> str:
    """Cover what is code although nothing marks it, keeping every offset."""
    return CODE_LIKE.sub(lambda found: HOLE * len(found[0]), text)
