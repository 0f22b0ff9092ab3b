"""The command export: hand the texts of the course out as gettext PO files."""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from course_build.base.choosing import add_choice, chosen_modules, read_settings
from course_build.base.commands import command
from course_build.base.files import read_files, write_files
from course_build.base.findings import DONE, CourseError, Finding
from course_build.base.settings import Settings
from course_build.building.course import stem_of
from course_build.interchange.entries import Entry, read_entries
from course_build.interchange.po import is_untouched, read_po, write_po
from course_build.source.pairs import CONFIRMED, MISSING, STALE, translations_chosen
from course_build.translation.history import earlier_texts

FOLDER = "build/po"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_choice(parser)


def run(options: argparse.Namespace, root: Path) -> int:
    """Write build/po/LANGUAGE/MODULE.po for each language but the source language."""
    settings, sources = read_settings(root), read_files(root).sources
    paths = chosen_modules(options.module, list(sources))
    outputs: dict[str, bytes] = {}
    told, findings = [], []
    for language in translations_chosen(options.lang, settings):
        for path in paths:
            entries = read_entries(path, sources[path], settings.languages, language)
            target = po_path(language, path)
            outputs[target] = to_po(root, path, entries, language, settings)
            findings += not_imported(root, target, entries)
            told.append(f"wrote {target}: {counted(entries)}")
    if findings:
        raise CourseError(findings)
    write_files(root, outputs)
    print("\n".join(told))
    print(f"to put the translations back: {command('import', ['FILE.po'])}")
    return DONE


def po_path(language: str, path: str) -> str:
    """Where the PO file of a source belongs."""
    return f"{FOLDER}/{language}/{stem_of(path)}.po"


def to_po(
    root: Path, path: str, entries: Sequence[Entry], language: str, settings: Settings
) -> bytes:
    """One PO file's bytes, the English before of what is stale included where it can be found."""
    source = settings.languages[0]
    stale = {(e.cell.key, e.translation.stamp): e.context for e in entries if e.state == STALE}
    found = earlier_texts(root, path, stale, source) if stale else {}
    earlier = {stale[cell]: before.text for cell, before in found.items()}
    return write_po(entries, language, source, earlier, stem_of(path))


def not_imported(root: Path, target: str, entries: Sequence[Entry]) -> list[Finding]:
    """What the file that stands there holds and the source does not; it would be lost."""
    try:
        data = (root / target).read_bytes()
    except FileNotFoundError:
        return []
    if is_untouched(target, data):
        return []
    have: Mapping[str, str] = {entry.context: entry.text.strip() for entry in entries}
    _, messages = read_po(target, data)
    lost = [
        m.context
        for m in messages
        if m.translation.strip() not in ("", have.get(m.context)) and not m.is_untouched
    ]
    if not lost:
        return []
    message = f"{len(lost)} translations in it are not imported yet, the first of them {lost[0]}"
    mend = f"{command('import', [target])}, or move the file away"
    return [Finding(target, None, None, "not-imported", message, mend)]


def counted(entries: Sequence[Entry]) -> str:
    """How many entries there are and how far they are."""
    states = Counter(entry.state for entry in entries)
    fuzzy = len(entries) - states[CONFIRMED] - states[MISSING]
    return (
        f"{len(entries)} entries, {states[CONFIRMED]} translated, {fuzzy} fuzzy, "
        f"{states[MISSING]} missing"
    )
