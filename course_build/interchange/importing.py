"""The command import: put the translations of gettext PO files into the sources, all or none."""

import argparse
import contextlib
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from course_build.base.choosing import asked_wrongly, read_settings
from course_build.base.commands import BUILDER
from course_build.base.decode import decode
from course_build.base.files import read_files, write_files
from course_build.base.findings import DONE, WORK, CourseError, Finding, stop_if_broken
from course_build.base.settings import Settings
from course_build.building.course import Files, build_course
from course_build.interchange.decide import Decision, decide, in_both
from course_build.interchange.entries import Entry, read_entries
from course_build.interchange.po import Message, noted, read_po
from course_build.interchange.weave import Change, weave


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("files", nargs="+", metavar="FILE.po", help="what export wrote, translated")


def run(options: argparse.Namespace, root: Path) -> int:
    """Read the files, weave their translations in, check the result, write it."""
    settings, files = read_settings(root), read_files(root)
    read = {path: _read(path, settings) for path in dict.fromkeys(options.files)}
    languages = [code for code in settings.languages if code in {code for code, _ in read.values()}]
    decisions: dict[str, Decision] = {}
    findings: list[Finding] = []
    for language in languages:
        mine = {path: messages for path, (code, messages) in read.items() if code == language}
        findings += in_both(mine)
        entries = all_entries(files.sources, settings, language)
        decisions |= {path: decide(path, m, entries, language) for path, m in mine.items()}
    stop_if_broken([*findings, *(f for d in decisions.values() for f in d.findings)])
    changes = [change for decision in decisions.values() for change in decision.changes]
    woven = weave_all(files.sources, changes, settings)
    try:
        new = replace(files, sources={**files.sources, **woven})
        check(new, woven, changes, languages, settings)
    except CourseError as error:
        raise CourseError(at_their_entries(error.findings, decisions)) from error
    write_files(root, woven, made_from=files.sources)
    _note(root, decisions)
    _tell(decisions, woven)
    return WORK if any(decision.left_out for decision in decisions.values()) else DONE


def _read(path: str, settings: Settings) -> tuple[str, list[Message]]:
    """One file's entries and its language, which must be one of the course's translations."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError as error:
        raise asked_wrongly(f"there is no file {path}", "export writes build/po/") from error
    said, messages = read_po(path, data)
    language = re.split(r"[_\-@.]", said)[0].lower()  # an editor may have made ru_RU of ru
    if language not in settings.languages[1:]:
        known = ", ".join(settings.languages[1:]) or "none"
        message = f"its header Language says {said!r}; the course is translated into {known}"
        mend = "correct the header, or add the language with add-language"
        raise CourseError([Finding(path, 1, None, "po-language", message, mend)])
    return language, messages


def all_entries(
    sources: Mapping[str, bytes], settings: Settings, language: str
) -> dict[str, Entry]:
    """Everything that can be translated into a language, by its name in PO files."""
    return {
        entry.context: entry
        for path, data in sources.items()
        for entry in read_entries(path, data, settings.languages, language)
    }


def weave_all(
    sources: Mapping[str, bytes], changes: Sequence[Change], settings: Settings
) -> dict[str, bytes]:
    """The sources that change, with their new text."""
    woven = {}
    for path in dict.fromkeys(change.entry.cell.path for change in changes):
        here = [change for change in changes if change.entry.cell.path == path]
        text = weave(path, decode(path, sources[path]), here, settings.languages)
        woven[path] = text.encode()
    return woven


def check(
    files: Files,
    paths: Mapping[str, bytes],
    changes: Sequence[Change],
    languages: Sequence[str],
    settings: Settings,
) -> None:
    """Require that the new sources build, and that each translation reads back as it came."""
    build_course(files, settings, list(paths), languages)
    wanted = {(c.entry.context, c.language): c for c in changes}
    findings = []
    for language in languages:
        entries = all_entries({path: files.sources[path] for path in paths}, settings, language)
        for context, entry in entries.items():
            change = wanted.get((context, language))
            if change is not None and entry.text != change.text:
                message = f"the {language} text would be read back as another one"
                mend = "word its first line differently"
                findings.append(entry.cell.finding("po-text", message, mend))
    stop_if_broken(findings)


def at_their_entries(
    findings: Sequence[Finding], decisions: Mapping[str, Decision]
) -> list[Finding]:
    """What the build says about cells that were to change, at the entries that are to be mended."""
    places = {cell: (po, line) for po, d in decisions.items() for cell, line in d.lines.items()}
    moved = []
    for finding in findings:
        path, line = places.get((finding.path, finding.key), (finding.path, finding.line))
        moved.append(replace(finding, path=path, line=line))
    return moved


def _note(root: Path, decisions: Mapping[str, Decision]) -> None:
    """Write into the PO files what was put in, so that more can be; some cannot be written."""
    for path, decision in decisions.items():
        place = Path(path).resolve()
        new = noted(place.read_bytes(), decision.notes)
        if decision.notes:
            with contextlib.suppress(CourseError):
                write_files(root, {str(place): new})


def _tell(decisions: Mapping[str, Decision], woven: Mapping[str, bytes]) -> None:
    for decision in decisions.values():
        for finding in decision.left_out:
            print(finding, file=sys.stderr)
    for path, decision in decisions.items():
        new = sum(change.entry.translation is None for change in decision.changes)
        print(
            f"{os.path.relpath(path)}: {new} new, {len(decision.changes) - new} changed, "
            f"{decision.unchanged} as before, {decision.empty} not translated, "
            f"{len(decision.left_out)} left out"
        )
    for path in woven:
        print(f"wrote {path}")
    if woven:
        print(f"now render: {BUILDER}")
