"""What differs from language to language. A language without an entry is not checked, and so said.

English is British in its endings (normalise, neighbour); the dictionary is American, so `variants`
turns one into the other. Terms keep the field's spelling (tokenizer) as long as the course does
not write both ways.
"""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """What the rules have to know about one language."""

    dictionary: str  # under spylls/hunspell/data, without ending
    script: str  # as Unicode's names of its letters begin
    letters: str
    syllables: str  # its vowels if each makes one syllable, else the name of pyphen's patterns
    ease: tuple[float, float, float]  # reading ease: constant, per word of a sentence, per syllable
    inflects: str = ""  # pymorphy3's name of the language, if that can inflect its words
    endings: tuple[str, ...] = ("",)  # else: what may follow a listed word
    dots: tuple[str, str] | None = None  # a letter that is often written without its dots, and with
    possessive: str = ""  # what may follow any word
    joined: bool = False  # a word that is written in one has no hyphen
    variants: tuple[tuple[str, str], ...] = ()  # our spelling (a pattern) -> the dictionary's


TABLES = {
    "en": Table(
        dictionary="en/en_US", script="LATIN", letters="abcdefghijklmnopqrstuvwxyz",
        syllables="en_US",
        ease=(206.835, 1.015, 84.6),  # Flesch 1948
        endings=("", "s"), possessive="'s",
        variants=(
            ("is(?=(e[drs]?|ers?|es|ing|ations?)$)", "iz"),
            ("ys(?=(e[drs]?|es|ing)$)", "yz"),
            ("our(?=(s|ed|ing|ful|able|ites?)?$)", "or"),
            ("tre(?=s?$)", "ter"),
            ("tr(?=(ed|ing)$)", "ter"),
            ("ogue(?=[ds]?$)", "og"),
            ("ll(?=(ed|ing|ers?)$)", "l"),
        ),
    ),
    "ru": Table(
        dictionary="ru/ru", script="CYRILLIC", letters="абвгдеёжзийклмнопрстуфхцчшщъыьэюя",
        syllables="аеёиоуыэюя",
        ease=(206.835, 1.3, 60.1),  # Oborneva 2006
        inflects="ru", dots=("е", "ё"), joined=True,
    ),
}  # fmt: skip

# Latin and Cyrillic letters that no eye can tell apart, in pairs.
LOOK_ALIKES = dict(zip("aceopxyABCEHKMOPTXY", "асеорхуАВСЕНКМОРТХУ", strict=True))


def script_of(letter: str) -> str:
    """The script of a letter, as Unicode names it."""
    return unicodedata.name(letter, "").split(" ", 1)[0]


def language_of(word: str, own: str, languages: Iterable[str]) -> str | None:
    """In which language a word is written: its text's, else the first that has its script."""
    script = script_of(word[0])
    candidates = [own, *(language for language in languages if language != own)]
    for language in candidates:
        if language in TABLES and TABLES[language].script == script:
            return language
    return None
