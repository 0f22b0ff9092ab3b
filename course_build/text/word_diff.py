"""What changed between two texts, word by word, and how it is laid out on a terminal."""

import difflib
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

WORD = re.compile(r"\n|[^\S\n]+|\w+|[^\w\s]")
MARK = re.compile(r"[\x01-\x04]")
BETWEEN = " │ "


@dataclass(frozen=True)
class Marks:
    """What stands around words that are gone, and around words that are new."""

    gone: tuple[str, str]
    new: tuple[str, str]


PLAIN = Marks(("[-", "-]"), ("{+", "+}"))
# One character each until the lines are broken; then `coloured` puts the terminal's codes there.
COLOURED = Marks(("\x01", "\x02"), ("\x03", "\x04"))
CODES = {"\x01": "\x1b[31;9m", "\x02": "\x1b[0m", "\x03": "\x1b[32;4m", "\x04": "\x1b[0m"}
CLOSES = {"\x01": "\x02", "\x03": "\x04"}


def word_diff(before: str, after: str, marks: Marks) -> str:
    """Write both texts as one, with marks around what is gone and what is new."""
    pieces = []
    for gone, new in _changes(WORD.findall(before), WORD.findall(after)):
        if gone == new:
            pieces.append(new)
            continue
        for words, (opening, closing) in ((gone, marks.gone), (new, marks.new)):
            if words:
                pieces.append(f"{opening}{words}{closing}")
    return "".join(pieces)


def _changes(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Cut both texts into (before, after); changes with only a space or a sign between are one."""
    pending: list[str] = ["", ""]
    # autojunk would take the words that a long text uses most, such as "the", for noise
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        before, after = "".join(old[i1:i2]), "".join(new[j1:j2])
        joins = kind == "equal" and any(pending) and not re.search(r"\w|\n", after)
        if kind == "equal" and not (joins and j2 < len(new) and i2 < len(old)):
            if any(pending):
                yield pending[0], pending[1]
                pending = ["", ""]
            yield before, after
        else:
            pending = [pending[0] + before, pending[1] + after]
    if any(pending):
        yield pending[0], pending[1]


def coloured(lines: Sequence[str]) -> list[str]:
    """Put the terminal's codes for the marks, anew on every line that a change goes on to."""
    result, open_mark = [], ""
    for line in lines:
        marked = open_mark + line
        for mark in MARK.findall(line):
            open_mark = mark if mark in CLOSES else ""
        marked += CLOSES.get(open_mark, "")
        result.append(MARK.sub(lambda match: CODES[match[0]], marked))
    return result


def wrapped(text: str, width: int) -> list[str]:
    """Break a text's long lines at spaces, keeping its own line ends and indents."""
    lines = []
    for line in text.split("\n"):
        lines += textwrap.wrap(
            line, width, replace_whitespace=False, expand_tabs=False,
            break_long_words=False, break_on_hyphens=False,
        ) or [""]  # fmt: skip
    return lines


def side_by_side(left: str, right: str, width: int) -> list[str]:
    """Lay two texts beside each other, paragraph beside paragraph if they have as many."""
    half = (width - len(BETWEEN)) // 2
    columns = [text.split("\n\n") for text in (left, right)]
    if len(columns[0]) != len(columns[1]):
        columns = [[left], [right]]
    lefts: list[str] = []
    rights: list[str] = []
    for pair in zip(*columns, strict=True):
        rows = zip_longest(*(wrapped(text, half) for text in pair), fillvalue="")
        for one, other in [*rows, ("", "")]:
            lefts.append(one)
            rights.append(other)
    room = [half - len(MARK.sub("", line)) for line in lefts]  # marks become codes of no width
    return [
        f"{line}{' ' * more}{BETWEEN}{other}".rstrip()
        for line, more, other in zip(coloured(lefts), room, rights, strict=True)
    ][:-1]  # without the blank row below the last paragraph
