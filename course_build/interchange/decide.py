"""What to do with each entry of a PO file that came back: put it in, leave it out, or refuse it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from course_build.base.findings import Finding
from course_build.interchange.entries import Entry
from course_build.interchange.po import UNSEEN, HandedOut, Message
from course_build.interchange.weave import NO_STAMP, Change
from course_build.source.cells import HEADER_LIKE, Cell
from course_build.source.pairs import CONFIRMED
from course_build.source.twins import stamp


@dataclass
class Decision:
    """The changes to make, why other entries stay out, and what is broken.

    `lines` says for each cell (source, key) that changes where its entry stands in the PO file;
    `notes` what each entry, by its line, puts in.
    """

    changes: list[Change] = field(default_factory=list)
    lines: dict[tuple[str, str | None], int] = field(default_factory=dict)
    notes: dict[int, HandedOut] = field(default_factory=dict)
    left_out: list[Finding] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    empty: int = 0
    unchanged: int = 0


def decide(
    path: str, messages: Iterable[Message], entries: Mapping[str, Entry], language: str
) -> Decision:
    """Go through a PO file's entries; `entries` are those of the sources today, by context."""
    decision = Decision()
    for message in messages:
        text = _trimmed(message.translation)
        entry = entries.get(message.context)
        if not text:
            decision.empty += 1
        elif entry is None:
            what = f"{message.context!r} is no cell of the course any more"
            decision.left_out.append(_left_out(path, message, what, "export again"))
        elif message.is_untouched:
            decision.unchanged += 1
        elif reason := _reason(message, entry):
            decision.left_out.append(_left_out(path, message, *reason))
        elif broken := _broken(text, entry):
            finding = Finding(path, message.line, message.context, "po-text", *broken)
            decision.findings.append(finding)
        else:
            change = Change(entry, language, text, _stamp(message, entry))
            if _changes(change):
                decision.changes.append(change)
                decision.lines[entry.cell.path, entry.cell.key] = message.line
                decision.notes[message.line] = HandedOut(stamp(text), message.fuzzy)
            else:
                decision.unchanged += 1
    return decision


def _trimmed(text: str) -> str:
    """Without blank lines around: a cell has none."""
    lines = text.split("\n")
    full = [number for number, line in enumerate(lines) if line.strip()]
    return "\n".join(lines[full[0] : full[-1] + 1]) if full else ""


def _reason(message: Message, entry: Entry) -> tuple[str, str] | None:
    """Why a translation does not belong into the source, as (message, mend)."""
    same = stamp(message.source) == stamp(entry.source)
    if _both_changed(message, entry):
        mend = "put the two together by hand, or move this file away and export again"
        return "the translation in the source has changed too since the export", mend
    if message.fuzzy and (entry.comment or entry.translation is None):
        return "it is marked fuzzy: a guess", "read it, then remove the mark"
    if same or stamp(_trimmed(message.translation)) == stamp(entry.text):
        return None
    if entry.comment:
        return "the comment has changed since the export", "export again"
    if entry.state == CONFIRMED:
        return "a translation of today's text stands there already", "export again"
    return None


def _both_changed(message: Message, entry: Entry) -> bool:
    """Has the source another translation than it had at the export, and than this one?"""
    known = (stamp(_trimmed(message.translation)), message.handed_out and message.handed_out.digest)
    return message.handed_out is not None and stamp(entry.text) not in known


def _broken(text: str, entry: Entry) -> tuple[str, str] | None:
    """What a text must not contain if the source is to stay readable, as (message, mend)."""
    if unseen := UNSEEN.search(text):
        return f"it holds the character U+{ord(unseen[0]):04X}", "remove it"
    if entry.comment and "\n" in text:
        return "a comment has one line", "write it on one line"
    if entry.kind in ("prose", "hint") and '"""' in text:
        return 'three double quotes would end the cell: """', "quote in another way"
    for line in text.split("\n"):
        if HEADER_LIKE.match(line):
            return f"this line would begin a new cell: {line.strip()!r}", "word it differently"
    return None


def _stamp(message: Message, entry: Entry) -> str | None:
    """The stamp that a translation gets: of the text that it was made from.

    A fuzzy entry gets none: a text that was confirmed and was marked since is not any longer.
    """
    if entry.comment:
        return None
    if not message.fuzzy:
        return stamp(message.source)
    marked = message.handed_out is not None and not message.handed_out.fuzzy
    changed = stamp(_trimmed(message.translation)) != stamp(entry.text)
    return NO_STAMP if entry.state == CONFIRMED and (marked or changed) else None


def _changes(change: Change) -> bool:
    here = change.entry.translation
    if not isinstance(here, Cell):
        return change.text != here
    return change.text != here.text or change.stamp not in (None, here.stamp or NO_STAMP)


def _left_out(path: str, message: Message, what: str, mend: str) -> Finding:
    return Finding(path, message.line, message.context, "left-out", what, mend, stale=True)


def in_both(files: Mapping[str, Sequence[Message]]) -> list[Finding]:
    """Two files of one language may not speak of the same cell."""
    owners: dict[str, str] = {}
    findings = []
    for path, messages in files.items():
        for message in messages:
            if owners.setdefault(message.context, path) != path:
                what = f"{message.context!r} is in {owners[message.context]} too"
                mend = "import one of them"
                findings.append(Finding(path, message.line, None, "po-duplicate", what, mend))
    return findings
