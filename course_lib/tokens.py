"""Tokens: a small vocabulary of whole words, from text to ids and back."""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from course_lib.integers import is_integer

# A word in angle brackets, a word (a hyphen or apostrophe may stand inside), or one other sign.
_TOKEN = re.compile(r"<\w+>|\w+(?:['’-]\w+)*|[^\w\s]")
_TIGHT_BEFORE = frozenset(".,!?:;…»)")
_TIGHT_AFTER = frozenset("«(")
_SENTENCE_ENDS = frozenset(".!?…")


class Vocabulary:
    """Map the words of a small, closed language to the ids 0, 1, 2 ... and back.

    Capitals do not count when reading; when writing, a sentence begins with one. `words[id]` is
    the bare word, as a figure's label needs it.

    Args:    words: each exactly one token, in the order of their ids; signs such as "." and
             marks such as "<end>" are words too
    Raises:  ValueError for a word given twice or one that the reader could not find in a text
    """

    def __init__(self, words: Sequence[str]) -> None:
        _check_vocabulary_words(words)
        self.words = tuple(words)
        self._ids = {word.casefold(): token for token, word in enumerate(words)}

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, text: str) -> list[int]:
        """Return the id of every word and sign; ValueError for one that is not here."""
        _check_vocabulary_text(text, self._ids)
        return [self._ids[word.casefold()] for word in _TOKEN.findall(text)]

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of these ids, spaced and capitalised as a reader expects.

        The text of the first ids is always the beginning of the text of all of them, so a text
        that grows token by token can be shown as it comes.
        """
        _check_vocabulary_ids(token_ids, len(self))
        return "".join(_written_words([self.words[token] for token in token_ids]))


def unknown_words(vocabulary: Vocabulary, text: str) -> dict[str, list[str]]:
    """Map each word of a text that the vocabulary lacks to the words it may have been meant to be.

    Each of these is written as the vocabulary has it; there may be none.
    """
    written = {word.casefold(): word for word in vocabulary.words}
    strange = _words_not_in({word: token for token, word in enumerate(written)}, text)
    return {word: [written[each] for each in close] for word, close in strange.items()}


def _written_words(words: list[str]) -> Iterator[str]:
    """Put the spaces before the words, and the capitals at the beginning of sentences."""
    tight, starts = True, True
    for word in words:
        space = "" if tight or word in _TIGHT_BEFORE else " "
        yield space + (word[:1].upper() + word[1:] if starts else word)
        tight = word in _TIGHT_AFTER
        mark = word in _TIGHT_AFTER or word in _TIGHT_BEFORE  # «Sun ...: the capital is to come
        starts = word in _SENTENCE_ENDS or word.startswith("<") or (starts and mark)


def _check_vocabulary_text(text: Any, known: Mapping[str, int]) -> None:
    if not isinstance(text, str):
        raise TypeError(f"text must be a str, got {type(text).__name__}")
    for word, close in _words_not_in(known, text).items():
        hint = f"did you mean {' or '.join(map(repr, close))}?" if close else "see .words"
        raise ValueError(f"{word!r} is not among the {len(known)} words of this vocabulary; {hint}")


def _words_not_in(known: Mapping[str, int], text: str) -> dict[str, list[str]]:
    strange = [word for word in _TOKEN.findall(text) if word.casefold() not in known]
    return {word: difflib.get_close_matches(word.casefold(), known, n=3) for word in strange}


def _check_vocabulary_ids(token_ids: Sequence[Any], size: int) -> None:
    for position, token in enumerate(token_ids):
        if not is_integer(token) or not 0 <= token < size:
            raise ValueError(
                f"token_ids[{position}] must be an id from 0 to {size - 1}, got {token!r}"
            )


def _check_vocabulary_words(words: Any) -> None:
    if isinstance(words, str) or not isinstance(words, Sequence) or len(words) == 0:
        raise TypeError(f"words must be a non-empty list of str, got {words!r}")
    seen: dict[str, str] = {}
    for word in words:
        if not isinstance(word, str):
            raise TypeError(f"words must hold str, got {word!r} ({type(word).__name__})")
        if _TOKEN.findall(word) != [word]:
            raise ValueError(
                f"{word!r} is not one token: a text is cut into {_TOKEN.findall(word)} there"
            )
        if word.casefold() in seen:
            raise ValueError(
                f"{word!r} stands twice (as {seen[word.casefold()]!r}): capitals do not count, "
                "and each word needs an id of its own"
            )
        seen[word.casefold()] = word
