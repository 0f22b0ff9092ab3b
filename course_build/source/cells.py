"""A module's source: one percent script that holds every cell in every language.

jupytext reads the headers and the commands in code; this file makes sure that what jupytext
read is what the file shows, and refuses whatever would have to be guessed.
"""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from course_build.base.findings import CourseError, Finding, stop_if_broken
from course_build.base.quick_imports import without_server
from course_build.source.header import key_in, read_header

with without_server():
    import jupytext

HEADER = re.compile(r"# %%(?: \[markdown\])?(?: .*)?")
HEADER_LIKE = re.compile(r"\s*#\s*%%")
BLOCK = re.compile(r'\s*\nr"""\n(?P<text>(?:(?!""").)*)\n"""\s*', re.DOTALL)


@dataclass(frozen=True)
class Cell:
    """One cell as written: its header's attributes, its text, and the lines where both begin."""

    path: str
    line: int
    text_line: int
    kind: str
    key: str
    text: str
    lang: str | None = None
    stamp: str | None = None
    role: str | None = None
    exercise: str | None = None
    reference: str | None = None
    tags: tuple[str, ...] = ()
    differs: str | None = None

    def finding(self, rule: str, message: str, mend: str, *, line: int | None = None) -> Finding:
        """Say what is wrong with this cell: at a line of its text (from 1), else at its header."""
        place = self.line if line is None else self.text_line + line - 1
        return Finding(self.path, place, self.key, rule, message, mend)


@dataclass(frozen=True)
class Chunk:
    """The lines of one cell before anything is understood: the header, then the body."""

    line: int
    header: str
    body: tuple[str, ...]


def parse_source(path: str, text: str, languages: Sequence[str]) -> tuple[Cell, ...]:
    """Read a percent script into cells; raises CourseError with everything found wrong."""
    chunks = split_chunks(path, text)
    stop_if_broken(f for chunk in chunks for f in _shape_findings(path, chunk))
    findings: list[Finding] = []
    cells: list[Cell] = []
    for chunk in chunks:
        cell, found = _read_cell(path, chunk, languages)
        findings += found
        if cell is not None:
            cells.append(cell)
    stop_if_broken(findings)
    return tuple(cells)


def texts_in(text: str, language: str) -> list[tuple[str | None, str]]:
    """The (key, text) of every cell of a language in an old version, whatever else is in it."""
    try:
        chunks = split_chunks("", text)
    except CourseError:
        return []
    speaks = re.compile(rf"""\slang\s*=\s*["']{re.escape(language)}["']""")
    return [
        (key_in(chunk.header), _text_of(chunk)) for chunk in chunks if speaks.search(chunk.header)
    ]


@functools.cache
def _text_of(chunk: Chunk) -> str:
    """A cell's text as parse_source reads it; empty if jupytext cannot."""
    try:
        [read] = _read_alone(chunk)
    except Exception:  # see _read_cell
        return ""
    return "\n".join(_strip_blank_lines(read["source"].split("\n"))[1])


def _read_alone(chunk: Chunk) -> list[Any]:
    """Let jupytext read one cell alone, so that its mistakes stay there."""
    return jupytext.reads("\n".join([chunk.header, *chunk.body]), fmt="py:percent").cells


def split_chunks(path: str, text: str) -> list[Chunk]:
    """Cut the text at its cell headers; nothing may stand before the first."""
    lines = text.split("\n")
    starts = [number for number, line in enumerate(lines) if HEADER_LIKE.match(line)]
    for number, line in enumerate(lines[: starts[0] if starts else len(lines)]):
        if line.strip():
            message = f"text outside cells: {line.strip()!r}"
            mend = "move it into a cell; a source begins with a # %% header"
            raise CourseError(
                [Finding(path, number + 1, None, "text-outside-cells", message, mend)]
            )
    ends = [*starts, len(lines)][1:]
    return [
        Chunk(start + 1, lines[start], tuple(lines[start + 1 : end]))
        for start, end in zip(starts, ends, strict=True)
    ]


def _shape_findings(path: str, chunk: Chunk) -> list[Finding]:
    """What can be seen of a chunk without understanding its header."""
    key = key_in(chunk.header)
    if not HEADER.fullmatch(chunk.header):
        message = f"not a cell header: {chunk.header.strip()!r}"
        mend = 'write # %% key="..." or # %% [markdown] lang="..." key="..." at the line\'s start'
        return [Finding(path, chunk.line, key, "cell-header", message, mend)]
    is_block = BLOCK.fullmatch("\n" + "\n".join(chunk.body))
    if chunk.header.startswith("# %% [markdown]") and not is_block:
        message = 'a markdown cell is one closed r""" block and nothing else; this one is not'
        mend = 'put r""" alone on the line after the header and """ alone on the last line'
        return [Finding(path, chunk.line, key, "markdown-block", message, mend)]
    return []


def _read_cell(
    path: str, chunk: Chunk, languages: Sequence[str]
) -> tuple[Cell | None, list[Finding]]:
    """Let jupytext read one cell; prove what it read."""
    try:
        [read] = _read_alone(chunk)
    except Exception as error:  # jupytext trips over odd headers in many ways
        reason = str(error).strip().split("\n")[0]
        message = f"jupytext cannot read this cell: {chunk.header} ({reason})"
        mend = 'write the attributes as name="value" or tags=["a", "b"]'
        finding = Finding(path, chunk.line, key_in(chunk.header), "cell-header", message, mend)
        return None, [finding]
    header, findings = read_header(path, chunk.line, chunk.header, read, languages)
    if header is None:
        return None, findings
    block = BLOCK.fullmatch("\n" + "\n".join(chunk.body))
    if block and header.kind == "markdown":  # _shape_findings has refused any that is no block
        written = block["text"].split("\n")
        skipped = chunk.body.index('r"""') + 1
    else:
        written, skipped = list(chunk.body), 0
    blank, written = _strip_blank_lines(written)
    _, understood = _strip_blank_lines(read["source"].split("\n"))
    cell = Cell(
        path=path, line=chunk.line, text_line=chunk.line + 1 + skipped + blank,
        text="\n".join(understood), **vars(header),
    )  # fmt: skip
    if not written:
        return cell, [cell.finding("empty-cell", "the cell is empty", "write it or remove it")]
    return cell, _taken_for_commands(cell, written, understood)


def _taken_for_commands(
    cell: Cell, written: Sequence[str], understood: Sequence[str]
) -> list[Finding]:
    """jupytext turns some plain comments (`# cat ...`, `# why?`) into commands: refuse those."""
    return [
        cell.finding(
            "comment-as-command",
            f"jupytext takes this comment for a command: {shown.strip()!r}",
            "word the comment differently",
            line=number,
        )
        for number, (shown, read) in enumerate(zip(written, understood, strict=True), 1)
        if shown.rstrip() != read.rstrip() and not read.lstrip().startswith(("%", "!"))
    ]


def _strip_blank_lines(lines: Sequence[str]) -> tuple[int, list[str]]:
    """Drop blank lines at both ends; also say how many went from the front."""
    full = [number for number, line in enumerate(lines) if line.strip()]
    if not full:
        return 0, []
    return full[0], list(lines[full[0] : full[-1] + 1])
