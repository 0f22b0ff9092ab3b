"""Which words are right: the dictionaries of a language and the project's own list."""

import functools
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from course_build.proofreading.languages import Table, script_of

MOST_OFFERED = 3
NAME_PARTS = re.compile("[A-Z]?[a-z]+")
SHORTEST_PART = 5  # of a name made of words: Attention, but not Swi


@dataclass(frozen=True)
class Entry:
    """One line of a word list: the word, and why it may resemble another."""

    word: str
    reason: str
    line: int


class Words:
    """The words of one language: a dictionary, and forms of the words that the project adds."""

    def __init__(
        self, table: Table, entries: Iterable[Entry] = (), terms: Iterable[str] = ()
    ) -> None:
        self.table = table
        self.terms = frozenset(terms)  # words of terms, which keep the spelling of their field
        self.entries = tuple(entries)
        self.used: set[str] = set()
        self.variants: dict[str, str] = {}  # our spelling -> the dictionary's, as met in texts
        self._added = {form: e.word for e in self.entries for form in forms(e.word, table)}
        self._known: dict[str, bool] = {}
        self._dots: dict[str, bool] = {}
        self._near: dict[str, tuple[str, ...]] = {}

    def knows(self, word: str) -> bool:
        """Say whether a word is right; a word of the list is noted as used."""
        if word not in self._known:
            self._known[word] = self._look_up(word.replace("’", "'"))
        return self._known[word]

    def lacks_dots(self, word: str) -> bool:
        """Say whether a word is without the dots (ё) that every reading of it has."""
        if word not in self._dots:
            self._dots[word] = self._lacks_dots(word.lower())
        return self._dots[word]

    def one_edit_away(self, word: str) -> tuple[str, ...]:
        """The first dictionary words, in order of the edits, that one edit makes of this one."""
        if word not in self._near:
            near = filter(self.in_dictionary, edits(word, self.table.letters))
            self._near[word] = tuple(islice(dict.fromkeys(near), MOST_OFFERED))
        return self._near[word]

    def _look_up(self, word: str) -> bool:
        return (
            self._is_listed(word)
            or self.in_dictionary(word)
            or self._is_name(word)
            or self._is_variant(word)
            or bool(self.table.possessive)
            and word.endswith(self.table.possessive)
            and self._look_up(word.removesuffix(self.table.possessive))
        )

    def _lacks_dots(self, word: str) -> bool:
        plain, dotted = self.table.dots or ("", "")
        if not dotted or plain not in word or dotted in word:
            return False
        known = [p for p in _morphology(self.table.inflects).parse(word) if p.is_known]
        return bool(known) and all(dotted in parse.word for parse in known)

    def in_dictionary(self, word: str) -> bool:
        """Say whether a dictionary knows the word, without the project's list.

        Where there is one for morphology it counts too: Hunspell's lacks plain forms (вниманий).
        """
        return dictionary(self.table.dictionary).lookup(word) or bool(
            self.table.inflects and _morphology(self.table.inflects).word_is_known(word.lower())
        )

    def _is_listed(self, word: str) -> bool:
        """A listed word may begin with a capital; what is listed with capitals must have them."""
        for spelled in (word, word[0].lower() + word[1:]):
            if spelled in self._added:
                self.used.add(self._added[spelled])
                return True
        return False

    def _is_name(self, word: str) -> bool:
        """Names like SwiGLU or FlashAttention: no listed word misspelled, each long part a word."""
        if not is_mixed(word) or script_of(word[0]) != "LATIN":
            return False
        parts = [part for part in NAME_PARTS.findall(word) if len(part) >= SHORTEST_PART]
        listed = {entry.word.casefold() for entry in self.entries}
        misspelled = listed.intersection(edits(word.casefold(), self.table.letters))
        return not misspelled and all(map(self.in_dictionary, parts))

    def _is_variant(self, word: str) -> bool:
        for ours, theirs in self.table.variants:
            other = re.sub(ours, theirs, word)
            if other != word and self.in_dictionary(other):
                self.variants[word] = other
                return True
        return False


def is_mixed(word: str) -> bool:
    """Say whether capitals stand elsewhere than words have them: LoRA, FlashAttention."""
    return word not in (word.lower(), word.upper(), word.capitalize())


def forms(word: str, table: Table) -> set[str]:
    """The forms in which a listed word may stand in a text."""
    if table.inflects:
        parses = _morphology(table.inflects).parse(word)
        own = [parse for parse in parses if parse.normal_form == word.lower()] or parses[:1]
        return {word} | {form.word for parse in own for form in parse.lexeme}
    return {word + ending for ending in table.endings}


def share_a_word(one: str, other: str, table: Table | None) -> bool:
    """Say whether two forms that look alike can be of one word: not вложенный and вложение."""
    if table is None or not table.inflects:
        return True
    parse = _morphology(table.inflects).parse
    lemmas = [{form.normal_form for form in parse(word.lower())} for word in (one, other)]
    return bool(lemmas[0] & lemmas[1])


def edits(word: str, letters: str) -> Iterator[str]:
    """Every text that one change of a letter makes of a word: swap, drop, replace, insert."""
    cuts = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    yield from (a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1 and b[0] != b[1])
    yield from (a + b[1:] for a, b in cuts if b)
    yield from (a + letter + b[1:] for a, b in cuts if b for letter in letters if letter != b[0])
    yield from (a + letter + b for a, b in cuts for letter in letters)


@functools.cache
def dictionary(name: str):
    """A dictionary that spylls carries, by its name under hunspell/data; loaded once."""
    from spylls.hunspell import Dictionary, data, readers

    class Closing(readers.FileReader):
        """spylls leaves its files open; read each at once instead."""

        def _open(self, path, encoding):
            text = Path(path).read_text(encoding=encoding, errors="surrogateescape")
            return io.StringIO(text)

    path = Path(data.__file__).parent / name
    aff, context = readers.read_aff(Closing(f"{path}.aff"))
    dic = Closing(f"{path}.dic", encoding=context.encoding)
    return Dictionary(aff, readers.read_dic(dic, aff=aff, context=context))


@functools.cache
def headwords(name: str) -> frozenset[str]:
    """The words that head a dictionary's entries, in lower case."""
    return frozenset(word.stem.casefold() for word in dictionary(name).dic.words)


@functools.cache
def _morphology(language: str):
    import pymorphy3

    return pymorphy3.MorphAnalyzer(lang=language)
