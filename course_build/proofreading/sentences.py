"""Sentences: what was left in the other language, and how easy the text is to read."""

import functools
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from course_build.base.findings import Finding
from course_build.proofreading.languages import TABLES, Table, script_of
from course_build.proofreading.pieces import SHARED, WORD, Piece
from course_build.proofreading.typography import RUNNING
from course_build.proofreading.words import Words

SENTENCE = re.compile(r"\S.*?(?:[.!?…]+(?=[\s)»\"]|$)|$)", re.DOTALL)
QUOTED = re.compile(r"«[^»]*»|\"[^\"]*\"|“[^”]*”|\([^()]*\)")
ARITHMETIC = re.compile(r"\s[-+*/=@<>]+=?\s")
FEWEST = 4  # fewer words may be a name or a title


def check_leftovers(
    pieces: Iterable[Piece], words: Mapping[str, Words], source: str
) -> Iterator[Finding]:
    """Sentences of a translation that are in another language, or as in the source's twin."""
    pieces = list(pieces)
    originals = {
        (piece.path, piece.key, text)
        for piece in pieces
        if piece.language == source
        for _, text in sentences(piece)
    }
    for piece in pieces:
        for start, text in sentences(piece):
            what = _leftover(piece, text, originals, words, source)
            if what:
                message = f"{what}: {piece.around(start, start + len(text), 0)}"
                yield piece.finding(start, "leftover", message, "translate it")
            elif piece.language == source:
                yield from _foreign_words(piece, start, text, words)


def _leftover(
    piece: Piece,
    text: str,
    originals: set[tuple[str, str | None, str]],
    words: Mapping[str, Words],
    source: str,
) -> str | None:
    """What a sentence is that should have been translated; None for one that is in its place."""
    read = _read(text)
    if len(read) < FEWEST or (piece.kind not in RUNNING and ARITHMETIC.search(text)):
        return None
    if piece.language != source and (piece.path, piece.key, text) in originals:
        return f"a sentence as in the {source} twin"
    if piece.language in words and _is_foreign(read, piece.language, words):
        return f"a sentence that is not in the language {piece.language}"
    return None


def _foreign_words(
    piece: Piece, start: int, text: str, words: Mapping[str, Words]
) -> Iterator[Finding]:
    """Words of a translation in the source's text; those in quotes or brackets are shown there."""
    if piece.language not in words or piece.kind in (SHARED, "page"):
        return
    own = words[piece.language].table.script
    scripts = {other.table.script for other in words.values()} - {own}
    unquoted = QUOTED.sub(lambda found: " " * len(found[0]), text)
    for word in WORD.finditer(unquoted):
        if len(word[0]) > 1 and all(script_of(letter) in scripts for letter in word[0]):
            message = f"a word that is not in the language {piece.language}: "
            message += piece.around(start + word.start(), start + word.end())
            mend = "translate it, or quote it"
            yield piece.finding(start + word.start(), "leftover", message, mend)


def sentences(piece: Piece) -> Iterator[tuple[int, str]]:
    """Each sentence with its offset."""
    for found in SENTENCE.finditer(piece.text):
        yield found.start(), found[0]


def _read(text: str) -> list[str]:
    """The words of a sentence that tell its language: no names in quotes or brackets, no Python."""
    found = WORD.findall(QUOTED.sub(" ", text))
    return [word for word in found if len(word) > 1 and not keyword.iskeyword(word)]


def _is_foreign(read: Sequence[str], language: str, words: Mapping[str, Words]) -> bool:
    """Say whether most words are another language's and not this one's."""
    own, others = words[language], [w for code, w in words.items() if code != language]
    foreign = [
        word
        for word in read
        if any(_is_word(word, other) for other in others) and not _is_word(word, own)
    ]
    return len(foreign) >= FEWEST and len(foreign) > len(read) / 2


def _is_word(word: str, words: Words) -> bool:
    return script_of(word[0]) == words.table.script and words.in_dictionary(word)


def reading_ease(pieces: Iterable[Piece], language: str) -> float | None:
    """How easy the prose is, from 0 to about 100, by the language's own formula; None without one.

    Flesch's reading ease: the more words a sentence and the more syllables a word, the lower.
    """
    table = TABLES.get(language)
    texts = [
        words
        for piece in pieces
        if piece.language == language and piece.kind == "prose"
        for _, text in sentences(piece)
        if (words := WORD.findall(text))
    ]
    if table is None or not texts:
        return None
    count = sum(map(len, texts))
    syllables = sum(_syllables(word, table) for words in texts for word in words)
    constant, per_word, per_syllable = table.ease
    return constant - per_word * count / len(texts) - per_syllable * syllables / count


def _syllables(word: str, table: Table) -> int:
    if table.syllables.isascii():
        return len(_patterns(table.syllables).positions(word)) + 1
    return max(1, sum(letter in table.syllables for letter in word.lower()))


@functools.cache
def _patterns(name: str):
    import pyphen

    return pyphen.Pyphen(lang=name, left=1, right=1)
