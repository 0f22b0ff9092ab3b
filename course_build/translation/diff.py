"""What changed in the source text since its translation was confirmed, beside the translation."""

import argparse
import os
import shutil
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from course_build.base.choosing import chosen_modules, read_settings
from course_build.base.commands import MOST, module_name, some
from course_build.base.files import read_files
from course_build.base.findings import DONE, WORK
from course_build.source.pairs import (
    CONFIRMED,
    MISSING,
    STALE,
    TO_READ,
    UNCONFIRMED,
    Pair,
    choose_pairs,
    translations_chosen,
)
from course_build.source.twins import stale_twin, twin_header
from course_build.text.word_diff import COLOURED, PLAIN, coloured, side_by_side, word_diff, wrapped
from course_build.translation.history import Earlier, earlier_texts
from course_build.translation.work import commands

WIDE = 120  # characters of a terminal that has room for two columns
LONGEST = 100  # characters of a line of prose
INDENT = "    "
BOLD, END = "\x1b[1m", "\x1b[0m"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "cells", nargs="*", metavar="MODULE[:KEY]", help="for example 3:scaled-dot; none: all"
    )
    parser.add_argument("--lang", nargs="+", metavar="CODE", help="only these translations")


def run(options: argparse.Namespace, root: Path) -> int:
    """Show every stale cell that was asked for, and the command that confirms them."""
    settings, sources = read_settings(root), read_files(root).sources
    languages = translations_chosen(options.lang, settings)
    names = options.cells or [module_name(path) for path in chosen_modules(None, list(sources))]
    chosen = choose_pairs(names, sources, settings, languages)
    stale = [pair for pair in chosen if pair.state in TO_READ]
    screen = Screen.of_terminal()
    for pair, earlier in zip(stale, find_earlier(root, stale), strict=True):
        print("\n".join(shown(pair, earlier, screen)), end="\n\n")
    missing = [pair for pair in chosen if pair.state == MISSING]
    by_key = [name for name in options.cells if ":" in name]
    asked = set(choose_pairs(by_key, sources, settings, languages))
    for pair in missing:
        if pair in asked:
            print("\n".join(shown_missing(pair)), end="\n\n")
    for line in not_shown(asked, chosen, settings.drafts):
        print(line)
    if not stale:
        return WORK if any(pair.language not in settings.drafts for pair in missing) else DONE
    whole = not any(":" in name for name in names)
    findings = [stale_twin(pair.source, pair.written) for pair in stale]
    print("correct the translation where it needs it, then confirm what you have read:")
    print(*commands(["confirm"], findings, settings.languages, MOST if whole else len(stale)))
    return WORK


@dataclass(frozen=True)
class Screen:
    """Where the diff is shown."""

    width: int
    colour: bool

    @classmethod
    def of_terminal(cls) -> "Screen":
        """The terminal that this process writes to; without one, narrow and plain."""
        width = shutil.get_terminal_size((80, 24)).columns
        return cls(width, sys.stdout.isatty() and not os.environ.get("NO_COLOR"))


def find_earlier(root: Path, pairs: Sequence[Pair]) -> list[Earlier | None]:
    """For each pair the source text that its translation was confirmed against, if known."""
    marks = [(pair.source.key, str(pair.written.stamp)) for pair in pairs]
    found: dict[tuple[str, str, str], Earlier] = {}
    sources = [(pair.source.path, str(pair.source.lang)) for pair in pairs]
    for path, language in dict.fromkeys(sources):
        wanted = {
            mark for pair, mark in zip(pairs, marks, strict=True)
            if pair.source.path == path and pair.state == STALE
        }  # fmt: skip
        for mark, earlier in earlier_texts(root, path, wanted, language).items():
            found[path, *mark] = earlier
    return [found.get((pair.source.path, *mark)) for pair, mark in zip(pairs, marks, strict=True)]


def shown(pair: Pair, earlier: Earlier | None, screen: Screen) -> list[str]:
    """One cell: where it is, what is known, the change in the source, the translation."""
    source, translation = pair.source, pair.written
    title = f"{pair.name}  {translation.path}:{translation.line}"
    lines = [
        f"{BOLD}{title}{END}" if screen.colour else title,
        f"{INDENT}{known(pair, earlier)}",
        "",
    ]
    marked = source.text
    if earlier:
        marked = word_diff(earlier.text, source.text, COLOURED if screen.colour else PLAIN)
    heads = [f"[{cell.lang}]" for cell in (source, translation)]
    texts = (marked, translation.text)
    is_prose = source.kind == "markdown"
    if is_prose and screen.width >= WIDE:
        left, right = (f"{head}\n\n{text}" for head, text in zip(heads, texts, strict=True))
        return [*lines, *side_by_side(left, right, screen.width)]
    width = min(screen.width, LONGEST) - len(INDENT)
    first, second = [wrapped(text, width) if is_prose else text.split("\n") for text in texts]
    stacked = [heads[0], *coloured(first), "", heads[1], *second]
    return [*lines, *(f"{INDENT}{line}".rstrip() for line in stacked)]


def shown_missing(pair: Pair) -> list[str]:
    """A cell that is not translated: where its translation belongs, and the text."""
    source = pair.source
    return [
        f"{pair.name}  {source.path}:{source.line}",
        f"{INDENT}there is no {pair.language} text yet: write it below its twins, under a header",
        f"{INDENT}that begins {twin_header(source, pair.language)}",
        "",
        *(f"{INDENT}{line}".rstrip() for line in (f"[{source.lang}]", *source.text.split("\n"))),
    ]


def known(pair: Pair, earlier: Earlier | None) -> str:
    """What is known about when the two texts went apart."""
    first, language = pair.source.lang, pair.language
    if pair.state == UNCONFIRMED:
        return f"the {language} text was not yet confirmed: compare it with the {first} text"
    if earlier:
        return f"the {first} text changed {earlier.changed}"
    return (
        f"the {first} text changed; its earlier words are not known here, "
        f"the stamp {pair.written.stamp} only tells that they were others"
    )


def not_shown(asked: Collection[Pair], chosen: Sequence[Pair], drafts: Sequence[str]) -> list[str]:
    """Say why a cell that was asked for by its key is not shown; and which are not translated."""
    lines = [
        f"{pair.name}: the {pair.language} text is confirmed"
        for pair in chosen
        if pair in asked and pair.state == CONFIRMED
    ]
    for language in dict.fromkeys(pair.language for pair in chosen if pair.language not in drafts):
        missing = [p for p in chosen if p.language == language and p.state == MISSING]
        unseen = [pair.name for pair in missing if pair not in asked]
        if unseen:
            lines.append(f"not translated into {language} yet: {some(unseen)}")
    if not lines and all(p.state not in TO_READ and p not in asked for p in chosen):
        lines.append("nothing to show: no translation is stale")
    return lines
