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

from course_build.base.decode import BOM
from course_build.base.findings import CourseError, Finding
from course_build.interchange.entries import KINDS, Entry
from course_build.source.pairs import STALE, UNCONFIRMED
from course_build.source.twins import stamp

DIGEST = "X-Exported"
UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029\ufeff]")  # some end a line, unseen
STRING = re.compile(r'(?:msg\w+(?:\[\d+\])?\s*)?"(?:[^"\\]|\\[^0-7x])*"')
HEADER = (
    "Translate msgstr; leave msgctxt and msgid alone. An entry marked fuzzy was translated from\n"
    "an older text or never confirmed: correct it, then remove the mark."
)


@dataclass(frozen=True)
class Message:
    """One entry of a PO file that came back, and, where it says so, what was handed out."""

    context: str
    source: str
    translation: str
    fuzzy: bool
    line: int
    handed_out: "HandedOut | None" = None

    @property
    def is_untouched(self) -> bool:
        """Is this entry as it was exported?"""
        return self.handed_out == HandedOut(stamp(self.translation), self.fuzzy)


@dataclass(frozen=True)
class HandedOut:
    """What an entry's translation was at the export: its digest, and whether it was fuzzy."""

    digest: str
    fuzzy: bool

    def __str__(self) -> str:
        return f"exported: {self.digest}{', fuzzy' * self.fuzzy}"

    @classmethod
    def read(cls, comment: str) -> "HandedOut | None":
        """Find it in an entry's comment."""
        found = re.search(r"^exported: ([0-9a-f]{8})(, fuzzy)?$", comment, re.MULTILINE)
        return cls(found[1], found[2] is not None) if found else None


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
    fuzzy = entry.state in (STALE, UNCONFIRMED)
    handed_out = HandedOut(stamp(entry.text), fuzzy)
    return polib.POEntry(
        msgctxt=entry.context,
        msgid=entry.source,
        msgstr=entry.text,
        comment=f"{KINDS[entry.kind]}\n{handed_out}",
        occurrences=[(entry.cell.path, str(entry.cell.line))],
        flags=["fuzzy"] if fuzzy else [],
        previous_msgid=earlier,
    )


def read_po(path: str, data: bytes) -> tuple[str, list[Message]]:
    """Read a PO file's language and entries; raises CourseError for what nobody could import."""
    file = _parse(path, data)
    messages = [_message(entry) for entry in file if not entry.obsolete]
    last = {message.context: message for message in messages}
    findings = []
    for context, count in Counter(message.context for message in messages).items():
        if count > 1:
            what, mend = f"{context!r} is there {count} times", "keep the entry that is right"
            if not context:
                what, mend = f"{count} entries have no msgctxt", "export again: it is their name"
            findings.append(Finding(path, last[context].line, None, "po-duplicate", what, mend))
    if findings:
        raise CourseError(findings)
    return file.metadata.get("Language", ""), messages


def noted(data: bytes, notes: Mapping[int, HandedOut]) -> bytes:
    """The file with what its entries, named by their lines, have put in: it is handed out again."""
    lines = data.split(b"\n")
    for first in notes:
        for place in range(first - 1, len(lines)):
            if not lines[place].startswith(b"#"):
                break  # an editor dropped the comment
            if lines[place].startswith(b"#. exported: "):
                ending = b"\r" * lines[place].endswith(b"\r")
                lines[place] = f"#. {notes[first]}".encode() + ending
    return b"\n".join(lines)


def _message(entry: polib.POEntry) -> Message:
    """An entry as it was read; where an editor made plural forms, the first of them."""
    text = entry.msgstr or next(iter(entry.msgstr_plural.values()), "")
    return Message(
        entry.msgctxt or "", _lf(entry.msgid), _lf(text), entry.fuzzy, entry.linenum,
        HandedOut.read(entry.comment),
    )  # fmt: skip


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
            raise _unreadable(path, number)  # polib cuts what has no end and reads no \\320
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
