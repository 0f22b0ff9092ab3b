"""Spelling: every word is in its language's dictionary or in the project's list of words."""

import re
from collections.abc import Iterable, Iterator, Mapping

from course_build.base.findings import Finding
from course_build.proofreading.languages import language_of
from course_build.proofreading.pieces import SHARED, Piece
from course_build.proofreading.words import Words

LONGEST_ACRONYM = 5
LONGEST_ENDING = 2  # as in 8-й, H-th
TWO_HALVES = re.compile(r"(?<![\w-])([^\W\d_]+)-([^\W\d_]+)(?![\w-])")
AND_OTHERS = re.compile(r"[\s](?:et[\s]al|и[\s]др)\b")  # Vaswani et al.


def word_list(language: str) -> str:
    """Where a language's own words are listed."""
    return f"notebooks/src/words.{language}.txt"


def check_spelling(pieces: Iterable[Piece], words: Mapping[str, Words]) -> list[Finding]:
    """Words that no dictionary knows, Russian words without their ё, one word in two spellings."""
    findings = []
    spelled: list[tuple[Piece, re.Match[str], str]] = []
    for piece in pieces:
        if piece.kind == SHARED or piece.language not in words:
            continue
        if words[piece.language].table.joined:
            findings += _check_hyphens(piece, words[piece.language])
        for word in piece.words():
            language = language_of(word[0], piece.language, words)
            if language in words and not _is_exempt(piece, word):
                spelled.append((piece, word, language))
                findings += _check_word(piece, word, language, words[language])
    for piece, word, language in spelled:
        findings += _check_variant(piece, word, words[language])
    return findings


def _check_word(
    piece: Piece, word: re.Match[str], language: str, words: Words
) -> Iterator[Finding]:
    if not words.knows(word[0]):
        better = words.one_edit_away(word[0])
        write = f"write {' or '.join(map(repr, better))}" if better else "correct it"
        yield piece.finding(
            word.start(), "spelling",
            f"{word[0]!r} is in no dictionary ({language}): {piece.around(*word.span())}",
            f"{write}; if it is right, add it to {word_list(language)}",
        )  # fmt: skip
    elif words.lacks_dots(word[0]):
        yield piece.finding(
            word.start(),
            "dots",
            f"{word[0]!r} is written without its dots: {piece.around(*word.span())}",
            f"write {words.table.dots[1]}",
        )


def _check_hyphens(piece: Piece, words: Words) -> Iterator[Finding]:
    for halves in TWO_HALVES.finditer(piece.text):
        one = f"{halves[1]}{halves[2]}"
        if words.in_dictionary(one):
            message = f"{halves[0]!r} is written in one: {piece.around(*halves.span())}"
            yield piece.finding(halves.start(), "spelling", message, f"write {one!r}")


def _check_variant(piece: Piece, word: re.Match[str], words: Words) -> Iterator[Finding]:
    if word[0].lower() in words.terms:
        return
    ours = next((ours for ours, theirs in words.variants.items() if theirs == word[0].lower()), "")
    if ours:
        yield piece.finding(
            word.start(), "two-spellings",
            f"{word[0]!r} is {ours!r} elsewhere: {piece.around(*word.span())}",
            f"write {ours!r} here, or {word[0]!r} everywhere",
        )  # fmt: skip


def _is_exempt(piece: Piece, word: re.Match[str]) -> bool:
    """Single letters, acronyms, endings after a hyphen, who wrote a paper: nobody's words."""
    letters = word[0].split("'")[0]
    after_hyphen = piece.text[: word.start()].endswith("-")
    return (
        len(letters) == 1
        or (letters.isupper() and len(letters) <= LONGEST_ACRONYM)
        or (after_hyphen and len(letters) <= LONGEST_ENDING)
        or (letters[0].isupper() and AND_OTHERS.match(piece.text, word.end()) is not None)
    )
