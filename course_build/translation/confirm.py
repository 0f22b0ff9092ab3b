"""Confirming translations: each stamp is set to the source text it was just re-read against."""

import argparse
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from course_build.base.choosing import asked_wrongly, read_settings
from course_build.base.commands import BUILDER, some
from course_build.base.decode import decode
from course_build.base.files import read_files, write_files
from course_build.base.findings import DONE, CourseError
from course_build.source.cells import Cell
from course_build.source.code import strings_in
from course_build.source.header import with_stamp
from course_build.source.pairs import (
    CONFIRMED,
    MISSING,
    TO_READ,
    Pair,
    choose_pairs,
    read_pairs,
    translations_chosen,
)
from course_build.source.twins import stamp

FIRST_WORDS = 72  # characters


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "cells", nargs="*", metavar="MODULE[:KEY]",
        help="for example 3:scaled-dot; a module alone stands for everything stale in it",
    )  # fmt: skip
    parser.add_argument("--lang", nargs="+", metavar="CODE", help="only these translations")


def run(options: argparse.Namespace, root: Path) -> int:
    """Stamp the translations of the named cells as re-read against today's text."""
    settings, sources = read_settings(root), read_files(root).sources
    languages = translations_chosen(options.lang, settings)
    if not options.cells:
        read = [read_pairs(path, data, settings.languages) for path, data in sources.items()]
        raise _nothing_named([p for each in read for p in each if p.language in languages])
    by_name = {name: choose_pairs([name], sources, settings, languages) for name in options.cells}
    for pairs in by_name.values():
        _check_written(pairs)
    chosen = {pair: None for pairs in by_name.values() for pair in pairs if pair.state in TO_READ}
    texts = {}
    for path in dict.fromkeys(pair.source.path for pair in chosen):
        pairs = [pair for pair in chosen if pair.source.path == path]
        text = with_stamps(decode(path, sources[path]), pairs, settings.languages[0])
        texts[path] = text.encode()
    write_files(root, texts, made_from=sources)
    print("\n".join([*map(_told, chosen), *_untouched(by_name)]))
    if chosen:
        print(f"now render: {BUILDER}")
    return DONE


def with_stamps(text: str, pairs: Iterable[Pair], first: str) -> str:
    """Write into a source that these translations were read against today's text."""
    lines = text.split("\n")
    for pair in pairs:
        place = pair.written.line - 1
        lines[place] = with_stamp(lines[place], first, stamp(pair.source.text))
    return "\n".join(lines)


def _told(pair: Pair) -> str:
    was = "was stale" if pair.written.stamp else "had no stamp"
    source, translation = pair.source, pair.written
    return "\n".join(
        [
            f"{pair.name} confirmed in {pair.language} ({was})",
            f"    {source.lang} | {_first_words(source, translation)}",
            f"    {translation.lang} | {_first_words(translation, source)}",
        ]
    )


def _first_words(cell: Cell, twin: Cell) -> str:
    """How a cell begins, without the marks of a heading; of code the strings its twin lacks."""
    words = cell.text.lstrip("# ")
    if cell.kind == "code":
        theirs = strings_in(twin.text)
        words = " · ".join(s for s in strings_in(cell.text) if s not in theirs) or words
    return textwrap.shorten(words, FIRST_WORDS, placeholder=" …")


def _untouched(by_name: Mapping[str, Sequence[Pair]]) -> list[str]:
    """Say what was named and needed no stamp."""
    lines = []
    for name, pairs in by_name.items():
        done = [pair.language for pair in pairs if pair.state == CONFIRMED]
        if ":" in name and done:
            lines.append(f"{name} was already confirmed in {', '.join(done)}")
        elif not any(pair.state in TO_READ for pair in pairs):
            lines.append(f"{name}: every translation in this module was already confirmed")
    return lines


def _check_written(pairs: Sequence[Pair]) -> None:
    """Refuse to confirm a cell that has no translation at all."""
    if pairs and all(pair.state == MISSING for pair in pairs):
        languages = ", ".join(dict.fromkeys(pair.language for pair in pairs))
        first = pairs[0].source
        message = f"there is no {languages} text to confirm"
        raise CourseError(
            [first.finding("missing-twin", message, f"write it below line {first.line} first")]
        )


def _nothing_named(pairs: Sequence[Pair]) -> CourseError:
    waiting = [pair for pair in pairs if pair.state in TO_READ]
    names = some(dict.fromkeys(pair.name for pair in waiting))
    mend = f"choose from {names}" if names else "there is nothing to confirm"
    return asked_wrongly("confirm has to be told what you have read: MODULE:KEY or MODULE", mend)
