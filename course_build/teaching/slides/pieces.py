"""What is too high for one slide, in pieces for several, cut where a reader would pause.

Code and output are cut between lines, best at a blank line, else where the indentation is least;
a table between rows, each piece with the row of headings; prose between paragraphs, and its tables
between rows.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from course_build.teaching.slides.heights import (
    CODE_LINE,
    COMFORT,
    PARAGRAPH,
    ROW,
    SIZES,
    Block,
    columns,
    height,
    row_heights,
    rows_of,
)

CLOSES = re.compile(r"\s*([)\]}]|(else|elif|except|finally)\b)")
OPENS = re.compile(r"\s*@|.*[(\[{:,]\s*$")


def pieces(block: Block, room: float) -> list[Block]:
    """Cut a block into pieces that fit into so many pixels each; one that cannot be cut is left."""
    high = height(block, SIZES[-1])
    if high <= room or high == math.inf:
        return [block]
    cut = {"code": _lines, "text": _lines, "html": _rows, "prose": _paragraphs}.get(block.kind)
    return cut(block, room) if cut else [block]


def _lines(block: Block, room: float) -> list[Block]:
    """Pieces of about the same height, in letters in which no line that need not wraps."""
    size = next((s for s in SIZES if s <= COMFORT and _is_whole(block, s)), SIZES[-1])
    rows = [rows_of(line, columns(size)) for line in block.lines]
    row = CODE_LINE * size
    budget = math.floor((room - height(block, size)) / row) + sum(rows)
    return list(_cut(block, rows, max(budget, 1)))


def _is_whole(block: Block, size: int) -> bool:
    return max(map(len, block.lines)) <= columns(size)


def _cut(block: Block, rows: Sequence[int], budget: int) -> Iterator[Block]:
    lines, start = block.lines, 0
    while start < len(lines):
        left = sum(rows[start:])
        wanted = left / math.ceil(left / budget)
        ends = [end for end in range(start + 1, len(lines) + 1) if sum(rows[start:end]) <= budget]
        end = len(lines)
        if left > budget:
            end = min(ends, key=_cost(lines, rows, start, wanted), default=start + 1)
        shown = [place for place in range(start, end) if lines[place].strip()]
        if shown:
            first = block.first + shown[0]
            yield replace(block, first=first, last=block.first + shown[-1] + 1)
        start = end


def _cost(
    lines: Sequence[str], rows: Sequence[int], start: int, wanted: float
) -> Callable[[int], float]:
    """How bad it is to cut before a line: the deeper inside, and the less even, the worse."""

    def cost(end: int) -> float:
        uneven = 8 * abs(sum(rows[start:end]) - wanted) / wanted
        if not lines[end - 1].strip():
            return uneven
        depth = (len(lines[end]) - len(lines[end].lstrip())) / 4
        torn = bool(CLOSES.match(lines[end])) or bool(OPENS.match(lines[end - 1]))
        return uneven + 1 + depth + 4 * torn

    return cost


def _rows(block: Block, room: float) -> list[Block]:
    """Groups of rows, about equal; what stands above the table goes with the first."""
    rows = list(ROW.finditer(block.content))
    if len(rows) < 3:
        return [block]
    _, *heights = row_heights(block, SIZES[-1])
    around = height(block, SIZES[-1]) - sum(heights)
    count = math.ceil(sum(heights) / max(room - around, 1))
    groups: list[list[str]] = [[] for _ in range(count)]
    above = 0.0
    for row, high in zip(rows[1:], heights, strict=True):
        groups[int((above + high / 2) / sum(heights) * count)].append(row[0])
        above += high
    groups = list(filter(None, groups))
    before, after = block.content[: rows[0].start()], block.content[rows[-1].end() :]
    tops = [before] + [PARAGRAPH.sub("", before)] * (len(groups) - 1)
    ends = [PARAGRAPH.sub("", after)] * (len(groups) - 1) + [after]
    return [
        replace(block, content=top + rows[0][0] + "".join(group) + end)
        for top, group, end in zip(tops, groups, ends, strict=True)
    ]


def _paragraphs(block: Block, room: float) -> list[Block]:
    """As many paragraphs to a piece as fit, and of a table as many rows."""
    wanted = height(block, SIZES[-1])
    room = min(room, wanted / math.ceil(wanted / room) + 2 * SIZES[-1])  # about equal
    found: list[Block] = []
    for part in _parts(block.content):
        longer = replace(found[-1], content=_joined(found[-1].content, part)) if found else None
        if longer and height(longer, SIZES[-1]) <= room:
            found[-1] = longer
        else:
            found.append(replace(block, content=part))
    return found


def _parts(text: str) -> Iterator[str]:
    """Paragraphs; rows of tables, each below the table's head."""
    for paragraph in re.split(r"\n{2,}", text):
        head, rule, *rows = [*paragraph.split("\n"), ""]
        if rows and rule.startswith("|"):
            yield from (f"{head}\n{rule}\n{row}" for row in rows if row)
        else:
            yield paragraph


def _joined(text: str, part: str) -> str:
    """Two parts as one: a row joins the rows before it, if those are of its table."""
    head = "\n".join(part.split("\n")[:2])
    is_row = part.startswith("|") and head in text.split("\n\n")[-1]
    return f"{text}\n{part.removeprefix(head).strip()}" if is_row else f"{text}\n\n{part}"
