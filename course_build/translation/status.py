"""How far each translation is: a table of the modules, then what there is to do next."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from course_build.base.choosing import add_choice, chosen_modules, read_settings
from course_build.base.commands import command
from course_build.base.files import read_files
from course_build.base.findings import BROKEN, DONE, WORK, CourseError, Finding, in_reading_order
from course_build.base.places import stem_of
from course_build.source.cells import Cell
from course_build.source.pairs import (
    MISSING,
    STALE,
    TO_READ,
    UNCONFIRMED,
    Pair,
    pairs_of,
    read_cells,
    translations_chosen,
)
from course_build.source.twins import missing_twin, stale_twin
from course_build.text.prose import count_words
from course_build.translation.work import list_work, next_steps

Row = Sequence[object]
COLUMNS = ("module", "language", "cells", "paired", "stale", "unconfirmed", "missing", "words")

ALL_DONE = "nothing to do: every translation is confirmed against today's text"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_choice(parser)


def run(options: argparse.Namespace, root: Path) -> int:
    """Print the state of every translation and the commands that come next."""
    settings, sources = read_settings(root), read_files(root).sources
    languages = translations_chosen(options.lang, settings)
    rows: list[Row] = [COLUMNS]
    pairs: list[Pair] = []
    broken: list[Finding] = []
    for path in chosen_modules(options.module, list(sources)):
        try:
            cells = read_cells(path, sources[path], settings.languages)
        except CourseError as error:
            rows.append((stem_of(path), "broken"))
            broken += error.findings
            continue
        chosen = [p for p in pairs_of(cells, settings.languages) if p.language in languages]
        rows.append(source_row(path, cells, settings.languages[0]))
        rows += [row(chosen, language, language in settings.drafts) for language in languages]
        pairs += chosen
    print("\n".join(aligned(rows)))
    if broken:
        print("\n".join(map(str, broken)), file=sys.stderr)
    found = to_do(pairs)
    work = [finding for finding in found if finding.lang not in settings.drafts]
    steps = [f for f in found if f.stale or f.lang not in settings.drafts]
    lines = [*list_work(work), *next_steps(steps, settings.languages)]
    lines += to_translate(pairs, settings.drafts)
    if not lines and not broken:
        lines = [ALL_DONE]
    print("".join(f"\n{line}" for line in lines))
    if broken:
        return BROKEN
    return WORK if work else DONE


def to_translate(pairs: Iterable[Pair], drafts: Iterable[str]) -> list[str]:
    """What a draft lacks is no fault, but it is not done either: how much, and how to begin."""
    missing = Counter(pair.language for pair in pairs if pair.state == MISSING)
    lines = []
    for language in drafts:
        if missing[language]:
            lines.append(
                f"{language} is a draft, {missing[language]} cells are not translated yet:"
            )
            lines.append(f"    {command('export', languages=[language])}")
    return lines


def source_row(path: str, cells: Iterable[Cell], first: str) -> Row:
    """The table's row for the source language of a module."""
    written = [cell for cell in cells if cell.lang == first]
    return (stem_of(path), first, len(written), *[""] * 4, count(written))


def row(pairs: Iterable[Pair], language: str, is_draft: bool) -> Row:
    """The table's row for one translation of a module."""
    here = [pair for pair in pairs if pair.language == language]
    states = Counter(pair.state for pair in here)
    written = [pair.translation for pair in here if pair.translation is not None]
    numbers = [states[state] for state in (STALE, UNCONFIRMED, MISSING)]
    name = f"{language} (draft)" if is_draft else language
    return ("", name, len(here), len(written), *numbers, count(written))


def count(cells: Iterable[Cell]) -> int:
    """Count the words of prose in these cells."""
    return sum(count_words(cell.text) for cell in cells if cell.kind == "markdown")


def aligned(rows: Sequence[Row]) -> list[str]:
    """Lay out a table as plain text: words to the left, numbers to the right."""
    table = [[str(entry) for entry in row] for row in rows]
    columns = max(map(len, table))
    widths = [max(len(row[c]) for row in table if c < len(row)) for c in range(columns)]
    lines = []
    for row in table:
        entries = [
            entry.ljust(width) if place < 2 else entry.rjust(width)
            for place, (entry, width) in enumerate(zip(row, widths, strict=False))
        ]
        lines.append("  ".join(entries).rstrip())
    return lines


def to_do(pairs: Iterable[Pair]) -> tuple[Finding, ...]:
    """Everything that is not confirmed, as findings."""
    findings = []
    for pair in pairs:
        if pair.state == MISSING:
            findings.append(missing_twin(pair.source, pair.language))
        elif pair.state in TO_READ:
            findings.append(stale_twin(pair.source, pair.written))
    return in_reading_order(findings)
