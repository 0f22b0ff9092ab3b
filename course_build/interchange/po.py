"""Entries as a gettext PO file, and what a PO file that comes back says; bytes in, bytes out.

polib does the reading and writing of the format. A header of our own holds a digest of what was
handed out, so that work in a file that was not imported yet is never overwritten.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import polib

from course_build.decode import BOM
from course_build.findings import CourseError, Finding
from course_build.interchange.entries import KINDS, Entry
from course_build.pairs import STALE, UNCONFIRMED

DIGEST = "X-Exported"
UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029\ufeff]")  # some end a line, unseen
STRING = re.compile(r'(?:msg\w+(?:\[\d+\])?\s*)?"(?:[^"\\]|\\.)*"')
HEADER = (
    "Translate msgstr; leave msgctxt and msgid alone. An entry marked fuzzy was translated from\n"
    "an older text or never confirmed: correct it, then remove the mark."
)


@dataclass(frozen=True)
class Message:
    """One entry of a PO file that came back."""

    context: str
    source: str
    translation: str
    fuzzy: bool
    line: int


def write_po(
    entries: Sequence[Entry], language: str, source: str, earlier: Mapping[str, str], name: str
) -> bytes:
    """Write a PO file; `earlier` holds, by context, the text that a stale entry was made from."""
    file = polib.POFile()
    file.header = HEADER
    messages = [_entry(entry, earlier.get(entry.context)) for entry in entries]
    file.metadata = {
        "Project-Id-Version": name,
        "Language": language,
        "MIME-Version": "1.0",
        "Content-Type": "text/plain; charset=UTF-8",
        "Content-Transfer-Encoding": "8bit",
        "X-Source-Language": source,
        DIGEST: _digest(messages),
    }
    file.extend(messages)
    return str(file).encode()


def _entry(entry: Entry, earlier: str | None) -> polib.POEntry:
    return polib.POEntry(
        msgctxt=entry.context,
        msgid=entry.source,
        msgstr=entry.text,
        comment=KINDS[entry.kind],
        occurrences=[(entry.cell.path, str(entry.cell.line))],
        flags=["fuzzy"] if entry.state in (STALE, UNCONFIRMED) else [],
        previous_msgid=earlier,
    )


def read_po(path: str, data: bytes) -> tuple[str, list[Message]]:
    """Read a PO file's language and entries; raises CourseError for what nobody could import."""
    file = _parse(path, data)
    messages = [
        Message(e.msgctxt or "", _lf(e.msgid), _lf(e.msgstr), e.fuzzy, e.linenum)
        for e in file
        if not e.obsolete
    ]
    count = Counter(message.context for message in messages)
    findings = []
    for message in messages:
        if count[message.context] > 1:
            what = f"{message.context!r} is there {count[message.context]} times"
            mend = "keep the entry that is right"
            findings.append(Finding(path, message.line, None, "po-duplicate", what, mend))
    if findings:
        raise CourseError(findings)
    return file.metadata.get("Language", ""), messages


def is_untouched(path: str, data: bytes) -> bool:
    """Is this file as it was exported, whatever editor has saved it?"""
    file = _parse(path, data)
    return file.metadata.get(DIGEST) == _digest(e for e in file if not e.obsolete)


def _parse(path: str, data: bytes) -> polib.POFile:
    try:
        text = _lf(data.removeprefix(BOM).decode("utf-8"))
    except UnicodeDecodeError as error:
        message = f"not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}"
        raise _refusal(path, 1, "po-encoding", message, "save it as UTF-8") from error
    for number, line in enumerate(text.split("\n"), 1):
        if unseen := UNSEEN.search(line):
            message = f"it holds the character U+{ord(unseen[0]):04X}"
            raise _refusal(path, number, "po-text", message, "remove it")
        if line.startswith(("msg", '"')) and not STRING.fullmatch(line.rstrip()):
            raise _unreadable(path, number)  # polib would cut what has no end
    try:
        return polib.pofile(text)
    except (OSError, ValueError) as error:
        place = re.search(r"line (\d+)", str(error))
        raise _unreadable(path, int(place[1]) if place else 1) from error


def _unreadable(path: str, line: int) -> CourseError:
    mend = "open it in a PO editor, or export again and repeat the work"
    return _refusal(path, line, "po-syntax", "not a PO file that can be read", mend)


def _digest(messages: Iterable[polib.POEntry]) -> str:
    told = [f"{m.msgctxt}\0{_lf(m.msgid)}\0{_lf(m.msgstr)}\0{m.fuzzy}" for m in messages]
    return hashlib.sha256("\0".join(told).encode()).hexdigest()[:16]


def _lf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _refusal(path: str, line: int, rule: str, message: str, mend: str) -> CourseError:
    return CourseError([Finding(path, line, None, rule, message, mend)])
