"""Terms: what the glossary says not to write, in any form of its words, names the right one."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat

from course_build.base.findings import Finding
from course_build.proofreading.languages import TABLES
from course_build.proofreading.pieces import SHARED, WORD, Piece, join
from course_build.proofreading.words import share_a_word
from course_build.text.glossary import GLOSSARY, Term
from course_build.text.stems import Finder

HEADER = re.compile(r"\[(?P<key>[\w-]+)\.(?P<language>[\w-]+)\]")
READ_ENTRY = re.compile(r"(name|also|means) = ")


def check_terms(pieces: Iterable[Piece], terms: Sequence[Term]) -> Iterator[Finding]:
    """Every phrase that the glossary says to avoid."""
    pieces = list(pieces)
    for language in dict.fromkeys(piece.language for piece in pieces):
        instead = {
            wrong: (term.words[language].name, reason)
            for term in terms
            if language in term.words
            for wrong, reason in term.words[language].avoid
        }
        finder = Finder(instead, language)
        for piece in pieces:
            if piece.language == language and piece.kind != SHARED:
                yield from _check_piece(piece, finder, instead)


def _check_piece(
    piece: Piece, finder: Finder, instead: dict[str, tuple[str, str]]
) -> Iterator[Finding]:
    table = TABLES.get(piece.language)
    for found in finder.find(piece.text):
        there = WORD.findall(piece.text[found.start : found.end])
        if not all(map(share_a_word, WORD.findall(found.phrase), there, repeat(table))):
            continue
        name, reason = instead[found.phrase]
        why = f" ({reason})" if reason else ""
        message = f"{piece.text[found.start : found.end]!r} is not this course's term{why}: "
        message += piece.around(found.start, found.end)
        yield piece.finding(found.start, "term", message, f"write {name!r}")


def glossary_pieces(text: str) -> Iterator[Piece]:
    """The glossary's own names and sentences."""
    place = None
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("["):
            header = HEADER.fullmatch(line)
            place = header and (GLOSSARY, header["key"], header["language"], "page")
        elif place and READ_ENTRY.match(line):
            [value] = tomllib.loads(line).values()
            for words in [value] if isinstance(value, str) else value:
                piece = join([(number, words)], place)
                if piece:
                    yield piece


def term_words(terms: Iterable[Term], language: str) -> set[str]:
    """The words, in lower case, of which a language's terms are made."""
    return {
        word.lower()
        for term in terms
        if language in term.words
        for name in (term.words[language].name, *term.words[language].also)
        for word in WORD.findall(name)
    }
