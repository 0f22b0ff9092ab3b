"""Finding a phrase in a text in whatever form its words stand: "причинной маски", "masks".

Two words are forms of one word when a Snowball stemmer takes them to the same stem; a language
that Snowball does not know is matched by exact words. The stemmers are Snowball's own Python,
one language at a time: PyStemmer, where it is installed, may know another version of the rules,
and the same source must give the same bytes on every machine.
"""

import functools
import importlib
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass

SNOWBALL = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek",
    "en": "english", "eo": "esperanto", "es": "spanish", "et": "estonian", "eu": "basque",
    "fa": "persian", "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi",
    "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian",
    "lt": "lithuanian", "ne": "nepali", "nl": "dutch", "no": "norwegian", "pl": "polish",
    "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "sv": "swedish",
    "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
WORD = re.compile(r"\w+(?:[-\u2011'’]\w+)*")
LIKE = str.maketrans({"ё": "е", "’": "'", "\u2011": "-"})
# English keeps one stem for verbs and nouns (decoding, decoder): here only a noun's forms count.
NOUN_ENDINGS = {"en": ("", "s", "es", "'s", "s'", "y", "ies")}
SOFT = "аеийоуыьэюя"
HARD = "бвгджзклмнпрстфхцчшщ"
FLEETING = re.compile(f"(?<=[{HARD}])[ое](?=[{HARD}]$)")  # оценок: оценк-, кусок: куск-
QUALITY = re.compile("(.+ост)(?:ь|и|ью|ей|ям|ями|ях)")  # причинность is not причина


@dataclass(frozen=True)
class Match:
    """Where a phrase stands in a text: the whole of it, and each of its words."""

    start: int
    end: int
    phrase: str
    words: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class _Phrase:
    """A phrase cut into its words, what is between them, and what is around them."""

    text: str
    words: tuple[str, ...]
    gaps: tuple[str, ...]
    before: str
    after: str


def find(phrase: str, text: str, language: str) -> list[Match]:
    """Find every place of a text where the phrase stands, in any form of its words."""
    return Finder([phrase], language).find(text)


class Finder:
    """Many phrases of one language, looked for in one go."""

    def __init__(self, phrases: Iterable[str], language: str) -> None:
        self._language = language
        self._by_stem: dict[str, list[_Phrase]] = {}
        self._starts: set[str] = set()
        self._known: dict[str, tuple[_Phrase, ...]] = {}
        for phrase in map(_cut, dict.fromkeys(phrases)):
            self._starts.add(_plain(phrase.words[0])[:2])
            for stem in stems(phrase.words[0], language):
                self._by_stem.setdefault(stem, []).append(phrase)

    def find(self, text: str) -> list[Match]:
        """Find the phrases in a text, by place; those that overlap are all there."""
        words = list(WORD.finditer(text))
        matches = [
            match
            for place, word in enumerate(words)
            for phrase in self._beginning(word[0])
            if (match := self._match(phrase, words[place : place + len(phrase.words)], text))
        ]
        return sorted(matches, key=lambda match: (match.start, match.end, match.phrase))

    def _beginning(self, word: str) -> Iterable[_Phrase]:
        """The phrases that may begin with a word; most words are told by their first letters."""
        if word not in self._known:
            found: dict[_Phrase, None] = {}
            if _plain(word)[:2] in self._starts:
                for stem in stems(word, self._language):
                    found.update(dict.fromkeys(self._by_stem.get(stem, ())))
            self._known[word] = tuple(found)
        return self._known[word]

    def _match(self, phrase: _Phrase, words: list[re.Match[str]], text: str) -> Match | None:
        """The phrase as it stands in these words of the text, if it does."""
        start, end = words[0].start() - len(phrase.before), words[-1].end() + len(phrase.after)
        if len(words) < len(phrase.words) or start < 0:
            return None
        gaps = [_gap(text[a.end() : b.start()]) for a, b in zip(words, words[1:], strict=False)]
        around = text[start : words[0].start()], text[words[-1].end() : end]
        if tuple(gaps) != phrase.gaps or around != (phrase.before, phrase.after):
            return None
        for word, other in zip(phrase.words, words, strict=True):
            if not are_forms(word, other[0], self._language):
                return None
        return Match(start, end, phrase.text, tuple(word.span() for word in words))


def are_forms(one: str, other: str, language: str) -> bool:
    """Say whether two words are forms of one word."""
    one, other = _plain(one), _plain(other)
    if one == other:
        return True
    endings = NOUN_ENDINGS.get(language)
    if endings and not {_rest(one, other), _rest(other, one)} <= set(endings):
        return False
    return bool(stems(one, language) & stems(other, language))


@functools.cache
def stems(word: str, language: str) -> frozenset[str]:
    """The stems that a word can have; the parts of a compound before the last stay as they are."""
    before, hyphen, last = _plain(word).rpartition("-")
    found = {_stemmer(language)(last)}
    if language in MENDED:
        found = MENDED[language](last, found)
    return frozenset(before + hyphen + stem for stem in found)


def _russian(word: str, found: set[str]) -> set[str]:
    """Mend what Snowball does to Russian nouns."""
    if quality := QUALITY.fullmatch(word):
        return {quality[1]}
    short = word[:-1] if word[-1:] in SOFT else word  # правило, подслой, голов (голова)
    return {FLEETING.sub("", stem) for stem in (*found, short)}


MENDED = {"ru": _russian}


@functools.cache
def _stemmer(language: str) -> Callable[[str], str]:
    if language not in SNOWBALL:
        return str
    name = SNOWBALL[language]
    module = importlib.import_module(f"snowballstemmer.{name}_stemmer")
    return getattr(module, f"{name.title()}Stemmer")().stemWord


def _plain(word: str) -> str:
    return unicodedata.normalize("NFC", word).lower().translate(LIKE)


def _cut(phrase: str) -> _Phrase:
    """Cut a phrase at its words; there is at least one."""
    before, *between, after = WORD.split(phrase)
    words = tuple(match[0] for match in WORD.finditer(phrase))
    return _Phrase(phrase, words, tuple(map(_gap, between)), before, after)


def _gap(text: str) -> str:
    """What is between two words; a line end or a non-breaking space is a space."""
    return re.sub(r"\s+", " ", text)


def _rest(one: str, other: str) -> str:
    """What a word has after its common beginning with another."""
    length = 0
    while length < min(len(one), len(other)) and one[length] == other[length]:
        length += 1
    return one[length:]
