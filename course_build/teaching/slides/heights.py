"""How high things are on a slide of 1280 x 720 pixels, by the size of its letters.

Code and what it printed are set in letters of one width, so their lines are counted; prose and
tables are reckoned from the widths that letters have in the mean. The decks bring their fonts, so
what fits on one machine fits on every other.
"""

import html
import math
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from typing import Any, NamedTuple

from course_build.site.clean import SVG

SIZES = (28, 26, 24, 22, 20)  # pixels of letters: of code and outputs; prose has PROSE more
COMFORT = 24  # what would need smaller letters than these goes to a slide of its own
PROSE = 4
HIGH, WIDE = 720, 1208  # of a slide, and what its margins leave of its width
ABOVE, BELOW, GAP = 20, 52, 14  # its margins; between things on it
ORIGIN = 44  # of the line at the foot of the first slide
TITLES = {1: 46, 2: 40, 3: 34}  # pixels of letters, by rank
LINE, CODE_LINE, TITLE_LINE = 1.35, 1.28, 1.2  # heights of lines, in those of letters
MONO, SANS = 0.603, 0.605  # widths of letters: of code; of prose, in the mean
INDENT = 4  # letters, of what wraps, beyond where its line begins
WRAPPED = 0.1  # of the lines of code may wrap, if that makes letters larger
FIGURE_SCALE = 1.3  # at least, where there is room: the letters in figures are 13 pixels
BOLD = 1.2  # widths of bold letters, in those of others
FORMULA = re.compile(r"\$\$.+?\$\$", re.DOTALL)
TEXT = re.compile(r"\\(?:text|mathrm|operatorname)\{([^}]*)\}")
UNSEEN = re.compile(
    r"\\(?:begin|end)\{\w+\}|\\(?:frac|sqrt|left|right|[bB]igg?)\b|"
    r"\\[,;:!> ]|[{}^_&\s]"
)
COMMAND = re.compile(r"\\[a-zA-Z]+|\\\\")
LINK = re.compile(r"\[([^][]*)\]\([^)]*\)")
RULE = re.compile(r"[|:\- ]+")
UNSHOWN = re.compile(r'<p class="course-call">.*?</p>', re.DOTALL)  # the style sheet hides it
SVG_HEIGHT = re.compile(r'<svg\b[^>]*\bheight="([\d.]+)(pt|px|)"')
TAG = re.compile(r"<[^>]*>")
ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
CELL = re.compile(r"<t[dh]\b[^>]*>(.*?)</t[dh]>", re.DOTALL)
PARAGRAPH = re.compile(r"<(?:p|li|summary)\b[^>]*>(.*?)</(?:p|li|summary)>", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One thing on a slide, and the key of the cell that it is from.

    Kinds: prose (Markdown), code, text (what was printed), html, figure. Of code and text a slide
    may show some lines only: content[first:last].
    """

    kind: str
    content: Any
    key: str
    first: int = 0
    last: int | None = None

    @property
    def lines(self) -> list[str]:
        """The lines that are shown."""
        return self.content.split("\n")[self.first : self.last]


class Letters(NamedTuple):
    """Pixels of the letters of a slide: of code and what it printed; of prose and tables."""

    code: int
    words: int

    def of(self, block: Block) -> int:
        """Which of the two are this block's."""
        return self.code if block.kind in ("code", "text") else self.words


def letters(blocks: Sequence[Block], room: float) -> Letters | None:
    """The largest letters with which these fit into so many pixels; None if none do."""
    for size in SIZES:
        if not _fit(blocks, Letters(size, size), room):
            continue
        if size == SIZES[-1] or not any(_needs_smaller(block, size) for block in blocks):
            words = next(w for w in SIZES if _fit(blocks, Letters(size, w), room))
            return Letters(size, words)
    return None


def _fit(blocks: Sequence[Block], sizes: Letters, room: float) -> bool:
    heights = [height(block, sizes.of(block)) for block in blocks]
    return sum(heights) + GAP * (len(blocks) - 1) <= room


def height(block: Block, size: int) -> float:
    """Pixels, with letters of this size."""
    return HEIGHTS[block.kind](block, size)


def title_height(title: str, rank: int) -> float:
    """Pixels of a title, which may take two lines, and of the gap below it.

    With the deck's own title, of rank 1, goes the line at the slide's foot.
    """
    size = TITLES[rank]
    rows = math.ceil(len(title) * SANS * size / WIDE)
    return rows * TITLE_LINE * size + GAP + (ORIGIN if rank == 1 else 0)


@lru_cache(10_000)
def rows_of(line: str, columns: int) -> int:
    """How many rows a line of code or output takes; what wraps is indented."""
    if len(line) <= columns:
        return 1
    indent = wrapped_indent(line)
    rows = textwrap.wrap(
        line,
        columns,
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
        drop_whitespace=False,
    )
    return len(rows) + any(len(word) > columns - indent for word in line.split())


def wrapped_indent(line: str) -> int:
    """By how many letters the further rows of a line are indented."""
    return len(line) - len(line.lstrip()) + INDENT


def columns(size: int) -> int:
    """How many letters of code fit into a line: WIDE less a frame of 32 pixels."""
    return math.floor((WIDE - 32) / (MONO * size))


def row_heights(block: Block, size: int) -> list[float]:
    """Pixels of each row of a table in HTML."""
    rows = [tuple(map(_words, CELL.findall(row))) for row in ROW.findall(block.content)]
    return _row_heights(tuple(rows), size)


@lru_cache(1000)
def _row_heights(rows: tuple[tuple[str, ...], ...], size: int) -> list[float]:
    """Pixels of each row: columns share the width as browsers do it, then cells wrap."""
    columns = list(zip_longest(*rows, fillvalue=""))
    if not columns:
        return [0.0 for _ in rows]
    fit = (WIDE - 16 - 26 * len(columns)) / (SANS * size)  # letters
    least = [_widest(column, first, str.split) for first, column in enumerate(columns)]
    most = [_widest(column, first, lambda cell: [cell]) for first, column in enumerate(columns)]
    share = min((fit - sum(least)) / max(sum(most) - sum(least), 1), 1)
    wide = [low + (high - low) * share for low, high in zip(least, most, strict=True)]
    padded = zip(*columns, strict=True)
    lines = [
        max(
            len(textwrap.wrap(cell, max(round(letters), 1)))
            for cell, letters in zip(row, wide, strict=True)
        )
        for row in padded
    ]
    return [1.08 * (count * LINE * size + 9) for count in lines]  # words wrap, not letters


def _widest(column: Sequence[str], place: int, parts: Callable[[str], Sequence[str]]) -> float:
    """Letters of the longest part of a column's cells; headings are bold."""
    head, *rest = (max(map(len, parts(cell)), default=0) for cell in column)
    return max(head * BOLD, *(wide * (1 if place else BOLD) for wide in rest), 1)


def _needs_smaller(block: Block, size: int) -> bool:
    """Would too much of this wrap that would not in the smallest letters?"""
    if block.kind not in ("code", "text"):
        return False
    wrap = [line for line in block.lines if len(line) > columns(size)]
    if block.kind == "text":
        return any(len(line) <= columns(SIZES[-1]) for line in wrap)
    return len(wrap) > WRAPPED * len(block.lines)


def _height_of_prose(block: Block, size: int) -> float:
    """Lines as they wrap; a displayed formula takes three and a half."""
    wide, line = WIDE / (SANS * (size + PROSE)), LINE * (size + PROSE)
    formulas = FORMULA.findall(block.content)
    if any(_formula_width(formula) * (size + PROSE) > WIDE for formula in formulas):
        return math.inf
    height, table = 3.5 * line * len(formulas), []
    for text in FORMULA.sub("", LINK.sub(r"\1", block.content)).split("\n"):
        if RULE.fullmatch(text):
            continue
        if text.startswith("|"):
            row = text.strip().removeprefix("|").removesuffix("|")
            table.append(tuple(cell.strip() for cell in row.split("|")))
        elif text.strip():
            height += math.ceil(len(text) / wide) * line + 10
    return height + sum(_row_heights(tuple(table), size))


def _formula_width(formula: str) -> float:
    """Of a displayed formula, in heights of letters: of its words, and of its other signs."""
    words = sum(map(len, TEXT.findall(formula)))
    rest = UNSEEN.sub("", TEXT.sub("", formula.replace(r"\qquad", "xx").strip("$")))
    return 0.55 * words + 0.9 * len(COMMAND.sub("x", rest))


def _height_of_code(block: Block, size: int) -> float:
    return sum(rows_of(line, columns(size)) for line in block.lines) * CODE_LINE * size + 18


def _height_of_text(block: Block, size: int) -> float:
    return sum(rows_of(line, columns(size)) for line in block.lines) * CODE_LINE * size + 4


def _height_of_html(block: Block, size: int) -> float:
    words = [_words(text) for text in PARAGRAPH.findall(UNSHOWN.sub("", block.content))]
    rows = sum(math.ceil(len(text) * 1.05 * SANS * size / (WIDE - 24)) for text in words)
    return rows * LINE * size + 6 * len(words) + sum(row_heights(block, size)) + 14


def _height_of_figure(block: Block, size: int) -> float:
    """What it says of itself, enlarged, but at most a slide; it takes what is left over as well."""
    most = HIGH - ABOVE - BELOW - title_height("", 3) - TITLE_LINE * TITLES[3] - 14
    said = SVG_HEIGHT.match(block.content["data"].get(SVG, ""))
    if not said:
        return most
    return min(most, float(said[1]) * (4 / 3 if said[2] == "pt" else 1) * FIGURE_SCALE)


def _words(text: str) -> str:
    return html.unescape(TAG.sub("", text))


HEIGHTS = {
    "prose": _height_of_prose,
    "code": _height_of_code,
    "text": _height_of_text,
    "html": _height_of_html,
    "figure": _height_of_figure,
}
