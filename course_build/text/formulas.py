"""Formulas in one form for all languages: only their words and decimal signs may be translated."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from course_build.text.numerals import writing

TOKEN = re.compile(r"\\[A-Za-z]+\*?|\\.|\s+|[^\\\s]|\\", re.DOTALL)
SPACES = {r"\,", r"\;", r"\:", r"\!", r"\ ", r"\quad", r"\qquad", "~"}
WORDS = {r"\text", r"\textrm", r"\textbf", r"\textit", r"\mbox"}
NAMES = {r"\mathrm", r"\mathit", r"\mathsf", r"\operatorname"}
SLOT = "\\text{...}"


@dataclass(frozen=True)
class Formula:
    """A formula's tokens, with a slot for each of its words, and these words."""

    tokens: tuple[str, ...]
    words: tuple[tuple[str, str], ...]

    def translates(self, source: "Formula") -> bool:
        """Same formula but for words; a name such as Var is kept or leaves the Latin alphabet."""
        return self.tokens == source.tokens and all(
            here == there or command in WORDS or not here.isascii()
            for (command, here), (_, there) in zip(self.words, source.words, strict=True)
        )


def read_formula(latex: str, language: str) -> Formula:
    """Leave out what cannot be seen: spaces, needless braces, the sentence's punctuation."""
    tokens = [t for t in TOKEN.findall(_without_number_signs(latex, language)) if not t.isspace()]
    kept: list[str] = []
    words: list[tuple[str, str]] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        place += 1
        if token in WORDS | NAMES and tokens[place : place + 1] == ["{"]:
            end = _closing(tokens, place)
            words.append((token, "".join(tokens[place + 1 : end])))
            kept.append(SLOT)
            place = end + 1
        elif token not in SPACES:
            kept.append(token)
    while kept and kept[-1] in (".", ",", ";", ":"):
        kept.pop()
    return Formula(tuple(_without_braces(kept)), tuple(words))


def _without_number_signs(latex: str, language: str) -> str:
    """Write 0{,}5 as 0.5 and 5{,}550 as 5550 where the language means that."""
    if writing(language).decimal == ",":
        return re.sub(r"(?<=\d)\{,\}(?=\d)", ".", latex)
    return re.sub(r"(?<=\d)\{,\}(?=\d{3}(?!\d))", "", latex)


def _closing(tokens: Sequence[str], start: int) -> int:
    """The place of the brace that closes the one at `start`, or the end."""
    depth = 0
    for place in range(start, len(tokens)):
        depth += {"{": 1, "}": -1}.get(tokens[place], 0)
        if depth == 0:
            return place
    return len(tokens)


def _without_braces(tokens: Sequence[str]) -> list[str]:
    """Braces around one token mean nothing: x^{2} is x^2."""
    kept: list[str] = []
    for token in tokens:
        kept.append(token)
        if token == "}" and len(kept) >= 3 and kept[-3] == "{":
            kept[-3:] = [kept[-2]]
    return kept
