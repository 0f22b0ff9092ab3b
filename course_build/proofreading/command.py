"""The command `proofread`: read everything a reader meets, say what to mend, count."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from course_build.base.choosing import add_choice, chosen_languages, chosen_modules, read_settings
from course_build.base.decode import decode
from course_build.base.files import read_files
from course_build.base.findings import DONE, WORK, Finding, in_reading_order
from course_build.base.places import SOURCES, stem_of
from course_build.base.settings import Settings
from course_build.proofreading.gather import code_pieces, page_pieces, source_pieces, table_pieces
from course_build.proofreading.languages import TABLES
from course_build.proofreading.lookalikes import check_letters, check_words
from course_build.proofreading.pieces import Piece
from course_build.proofreading.sentences import check_leftovers, reading_ease
from course_build.proofreading.spelling import check_spelling, word_list
from course_build.proofreading.terms import check_terms, glossary_pieces, term_words
from course_build.proofreading.typography import check_typography
from course_build.proofreading.wordlists import check_list, read_entries
from course_build.proofreading.words import Words
from course_build.text.glossary import GLOSSARY, Term, read_glossary

LIBRARY, PAGES = "library texts", "pages"
CHROME = "course_build/base/chrome.py"


@dataclass(frozen=True)
class Reading:
    """What was read: the texts of files, the pieces under the name of their group, the lists."""

    texts: Mapping[str, str]
    groups: Mapping[str, Sequence[Piece]]
    words: Mapping[str, Words]
    terms: Sequence[Term]

    @property
    def pieces(self) -> list[Piece]:
        """All pieces, in the order of the groups."""
        return [piece for pieces in self.groups.values() for piece in pieces]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_choice(parser)


def run(options: argparse.Namespace, root: Path) -> int:
    """Proofread the chosen modules in the chosen languages; without a choice everything."""
    settings = read_settings(root)
    languages = chosen_languages(options.lang, settings)
    reading = read_course(root, settings, options.module)
    everything = options.module is None and options.lang is None
    findings = in_reading_order(
        finding
        for finding in check(reading, settings.languages[0], everything_read=everything)
        if everything or finding_language(finding, reading) in (None, *languages)
    )
    if findings:
        print("\n".join(map(str, findings)), file=sys.stderr)
    print("\n".join(summary(reading, languages, findings)))
    return WORK if findings else DONE


def read_course(root: Path, settings: Settings, names: Sequence[str] | None) -> Reading:
    """Read the chosen modules, and with all of them the library's tables and the pages."""
    languages = settings.languages
    files = read_files(root)
    paths = chosen_modules(names, files.sources)
    texts = {path: decode(path, files.sources[path]) for path in paths}
    glossary = _read(root, GLOSSARY)
    terms = read_glossary(glossary[GLOSSARY], settings) if glossary else ()
    groups = {stem_of(path): source_pieces(path, texts[path], languages) for path in paths}
    if names is None:
        code = {**_read(root, "course_lib/**/*.py"), **_read(root, CHROME)}
        pages = _read(root, "*.md")
        groups[LIBRARY] = [p for path in code for p in table_pieces(path, code[path], languages)]
        shown = {path: text for path, text in code.items() if path != CHROME}
        groups[LIBRARY] += code_pieces(shown, languages)
        groups[PAGES] = [p for path in pages for p in page_pieces(path, pages[path], languages)]
        texts |= {
            **code,
            **pages,
            **_read(root, "course_build/**/*.py"),
            **_read(root, f"{SOURCES}/*.t*"),
        }
    if names is None and terms:
        groups["glossary"] = list(glossary_pieces(texts[GLOSSARY]))
    words = {
        language: Words(
            TABLES[language], read_entries(_list(root, language)), term_words(terms, language)
        )
        for language in languages
        if language in TABLES
    }
    return Reading(texts, groups, words, terms)


def check(reading: Reading, source: str, *, everything_read: bool) -> Iterator[Finding]:
    """Every rule on everything that was read."""
    pieces = reading.pieces
    for path, text in reading.texts.items():
        yield from check_letters(path, text)
    yield from check_words(pieces, reading.words)
    yield from check_spelling(pieces, reading.words)
    yield from check_typography(pieces)
    yield from check_terms(pieces, reading.terms)
    yield from check_leftovers(pieces, reading.words, source)
    if everything_read:
        for language, words in reading.words.items():
            yield from check_list(word_list(language), words)


def finding_language(finding: Finding, reading: Reading) -> str | None:
    """The language of the text in which a finding is; None for what has none."""
    for piece in reading.pieces:
        if piece.path == finding.path and piece.lines[0] <= finding.line <= piece.lines[-1]:
            return piece.language
    return None


def summary(
    reading: Reading, languages: Sequence[str], findings: Sequence[Finding]
) -> Iterator[str]:
    """One line for each group and language: words, findings, reading ease."""
    places: dict[tuple[str, str | None], int] = {}
    for finding in findings:
        place = finding.path, finding_language(finding, reading)
        places[place] = places.get(place, 0) + 1
    for name, pieces in reading.groups.items():
        for language in languages:
            mine = [piece for piece in pieces if piece.language == language]
            count = sum(len(list(piece.words())) for piece in mine)
            found = sum(places.get((path, language), 0) for path in {p.path for p in mine})
            ease = reading_ease(mine, language)
            line = f"{name} {language}: {count} words, {found} finding{'s' * (found != 1)}"
            line += "" if ease is None else f", reading ease {ease:.0f}"
            line += "" if language in TABLES else ", spelling not checked: no dictionary"
            yield line
    elsewhere = sum(count for (_, language), count in places.items() if language is None)
    if elsewhere:
        yield f"elsewhere: {elsewhere} finding{'s' * (elsewhere != 1)}"


def _read(root: Path, pattern: str) -> dict[str, str]:
    paths = sorted(path for path in root.glob(pattern) if path.stat().st_size)
    names = [path.relative_to(root).as_posix() for path in paths]
    return {name: decode(name, path.read_bytes()) for name, path in zip(names, paths, strict=True)}


def _list(root: Path, language: str) -> str:
    path = root / word_list(language)
    return decode(word_list(language), path.read_bytes()) if path.exists() else ""
