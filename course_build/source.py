"""A module's source: one percent script with every cell in every language, read as cells.

jupytext reads the headers and the commands in code; this file makes sure that what jupytext
read is what the file shows, and refuses everything that it would silently guess.
"""

import re
from dataclasses import dataclass

from course_build import quick_imports  # noqa: F401  (before jupytext: see there)
from course_build.findings import CourseError, Finding, stop_if_broken

import jupytext  # isort: skip

ROLES = {
    "imports": "code",
    "reference": "code",
    "folded": "code",
    "stub": "code",
    "check": "code",
    "hint": "markdown",
    "solution": "code",
}
MACHINERY = "-machinery"
KEY = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
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

    def finding(self, rule: str, message: str, mend: str, *, line: int | None = None) -> Finding:
        """Say what is wrong with this cell, at its header or at the line given."""
        return Finding(self.path, line or self.line, self.key, rule, message, mend)


@dataclass(frozen=True)
class Chunk:
    """The lines of one cell before anything is understood: the header, then the body."""

    line: int
    lines: tuple[str, ...]

    @property
    def header(self) -> str:
        return self.lines[0]

    @property
    def body(self) -> str:
        return "\n".join(self.lines[1:])


def decode(path: str, data: bytes) -> str:
    """Turn a file's bytes into text, refusing what would differ from machine to machine."""

    def refuse(rule: str, message: str, mend: str, line: int = 1) -> CourseError:
        return CourseError([Finding(path, line, None, rule, message, mend)])

    if data.startswith(b"\xef\xbb\xbf"):
        raise refuse(
            "bom", "the file begins with a byte order mark", "save it as UTF-8 without BOM"
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}"
        raise refuse("utf-8", message, "save the file as UTF-8", line) from error
    if "\r" in text:
        line = text.count("\n", 0, text.index("\r")) + 1
        message = "a carriage return: lines must end in LF alone"
        raise refuse("line-endings", message, "save the file with Unix line endings (LF)", line)
    if not text.strip():
        raise refuse("empty", "the file is empty", "write its first cell, or remove the file")
    return text


def parse_source(path: str, text: str, languages: tuple[str, ...]) -> tuple[Cell, ...]:
    """Read a percent script into cells; everything wrong with headers or blocks is said at once."""
    chunks = split_chunks(path, text)
    findings = [f for chunk in chunks for f in _shape_findings(path, chunk)]
    stop_if_broken(findings)
    read = jupytext.reads(text, fmt="py:percent").cells
    if len(read) != len(chunks):
        message = f"{len(chunks)} cells are written here, but jupytext reads {len(read)}"
        mend = "look for a # %% line inside a string and remove it"
        raise CourseError([Finding(path, 1, None, "cell-count", message, mend)])
    cells = []
    for chunk, notebook_cell in zip(chunks, read, strict=True):
        found, cell = _read_cell(path, chunk, notebook_cell, languages)
        findings += found
        if cell is not None:
            cells.append(cell)
    stop_if_broken(findings)
    return tuple(cells)


def split_chunks(path: str, text: str) -> list[Chunk]:
    """Cut the text at its cell headers; nothing may stand before the first."""
    lines = text.removesuffix("\n").split("\n")
    starts = [number for number, line in enumerate(lines) if HEADER_LIKE.match(line)]
    first = starts[0] if starts else len(lines)
    for number, line in enumerate(lines[:first]):
        if line.strip():
            message = f"text outside cells: {line.strip()!r}"
            mend = "move it into a cell; the first line of a source is a # %% header"
            raise CourseError(
                [Finding(path, number + 1, None, "text-outside-cells", message, mend)]
            )
    ends = [*starts[1:], len(lines)]
    return [
        Chunk(start + 1, tuple(lines[start:end])) for start, end in zip(starts, ends, strict=True)
    ]


def _shape_findings(path: str, chunk: Chunk) -> list[Finding]:
    """What can be seen of a chunk without understanding its header."""
    key_shown = re.search(r'key="([^"]*)"', chunk.header)
    key = key_shown.group(1) if key_shown else None
    if not HEADER.fullmatch(chunk.header):
        return [
            Finding(
                path, chunk.line, key, "cell-header",
                f"not a cell header: {chunk.header.strip()!r}",
                'write # %% key="..." or # %% [markdown] lang="..." key="..." at the line\'s start',
            )
        ]  # fmt: skip
    if "[markdown]" in chunk.header and not BLOCK.fullmatch("\n" + chunk.body):
        return [
            Finding(
                path, chunk.line, key, "markdown-block",
                'a markdown cell is one r""" block and nothing else; this one is not, '
                "or it is never closed",
                'put r""" alone on the line after the header and """ alone on the last line',
            )
        ]  # fmt: skip
    return []


def _read_cell(
    path: str, chunk: Chunk, read: dict, languages: tuple[str, ...]
) -> tuple[list[Finding], Cell | None]:
    """Understand one cell; without a usable key there is none."""
    findings: list[Finding] = []
    attributes = {
        name: value
        for name, value in read["metadata"].items()
        if name not in ("cell_marker", "lines_to_next_cell")
    }
    key = attributes.get("key")

    def wrong(rule: str, message: str, mend: str) -> None:
        shown = key if isinstance(key, str) else None
        findings.append(Finding(path, chunk.line, shown, rule, message, mend))

    if "incorrectly_encoded_metadata" in attributes or read["cell_type"] == "raw":
        wrong(
            "cell-header",
            f"the attributes cannot be read: {chunk.header}",
            'write them as name="value" or tags=["a", "b"], one space between',
        )
        return findings, None
    stamp_name = languages[0]
    _check_attributes(attributes, chunk.header, stamp_name, languages, wrong)
    if key is None:
        wrong("no-key", "a cell without a key", 'add key="..." to its header')
    elif isinstance(key, str) and not (KEY.fullmatch(key) and len(key) <= 50):
        wrong(
            "key",
            f"key={key!r} cannot be a cell id",
            "use lower-case letters, digits and single hyphens, at most 50 characters",
        )
    elif isinstance(key, str) and key.endswith(MACHINERY):
        wrong("key", f"keys in {MACHINERY} belong to the builder", "choose another key")
    if findings:
        return findings, None
    kind = read["cell_type"]
    if kind == "markdown":
        written = BLOCK.fullmatch("\n" + chunk.body)["text"].split("\n")
        skipped = chunk.body.split("\n").index('r"""') + 1
    else:
        written, skipped = chunk.lines[1:], 0
    first, written = _strip_blank_lines(written)
    text_line = chunk.line + 1 + skipped + first
    text = "\n".join(written)
    if kind == "code":
        _, understood = _strip_blank_lines(read["source"].split("\n"))
        text = "\n".join(understood)
        findings += _taken_for_commands(path, text_line, key, written, understood)
    role = attributes.get("role")
    if role is not None and ROLES[role] != kind:
        wrong("role", f"role={role!r} belongs to a {ROLES[role]} cell", "change the cell's kind")
    if not text.strip():
        wrong("empty-cell", "the cell is empty", "write it or remove it")
    cell = Cell(
        path=path, line=chunk.line, text_line=text_line, kind=kind, key=key, text=text,
        lang=attributes.get("lang"), stamp=attributes.get(stamp_name), role=role,
        exercise=attributes.get("exercise"), reference=attributes.get("reference"),
        tags=tuple(attributes.get("tags", ())),
    )  # fmt: skip
    return findings, cell


def _check_attributes(attributes, header, stamp_name, languages, wrong) -> None:
    known = ("key", "lang", stamp_name, "tags", "role", "exercise", "reference")
    for name, value in attributes.items():
        if name not in known:
            wrong(
                "unknown-attribute",
                f"unknown attribute {name!r} in: {header}",
                f"use only {', '.join(known)}",
            )
        elif name == "tags":
            if not (isinstance(value, list) and value and all(isinstance(t, str) for t in value)):
                wrong("attribute-type", f"tags={value!r}", 'write tags=["a", "b"]')
        elif not isinstance(value, str):
            wrong("attribute-type", f"{name}={value!r} is not a string", f'write {name}="..."')
        if len(re.findall(rf"(?<!\S){re.escape(name)}\s*=", header)) > 1:
            wrong("twice", f"{name} is given twice in: {header}", "keep one of them")
    lang, role = attributes.get("lang"), attributes.get("role")
    if isinstance(lang, str) and lang not in languages:
        wrong("unknown-language", f"lang={lang!r}", f"use one of {', '.join(languages)}")
    if isinstance(role, str) and role not in ROLES:
        wrong("unknown-role", f"role={role!r}", f"use one of {', '.join(ROLES)}")


def _taken_for_commands(path, first_line, key, written, understood) -> list[Finding]:
    """jupytext turns some plain comments (`# cat ...`, `# why?`) into commands: refuse those."""
    if len(written) != len(understood):
        message = f"{len(written)} lines are written here, but jupytext reads {len(understood)}"
        return [Finding(path, first_line, key, "cell-count", message, "simplify the cell")]
    return [
        Finding(
            path, first_line + offset, key, "comment-as-command",
            f"jupytext takes this comment for a command: {shown.strip()!r}",
            "word the comment differently",
        )
        for offset, (shown, read) in enumerate(zip(written, understood, strict=True))
        if shown.rstrip() != read.rstrip() and not read.lstrip().startswith(("%", "!"))
    ]  # fmt: skip


def _strip_blank_lines(lines) -> tuple[int, list[str]]:
    """Drop blank lines at both ends; also say how many went from the front."""
    full = [number for number, line in enumerate(lines) if line.strip()]
    if not full:
        return 0, []
    return full[0], list(lines[full[0] : full[-1] + 1])
