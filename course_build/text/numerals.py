"""Numbers as each language writes them, read as values: 0,85 is 0.85, and 5 550 is 5,550."""

import functools
import re
from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True)
class Writing:
    """The sign before the fraction, and the signs that may part groups of three digits.

    `zero` is how words for nought begin: it alone is a number in one language ("stays 0") and an
    adjective in the next.
    """

    decimal: str
    groups: str
    zero: tuple[str, ...] = ()


NO_BREAK = "\u00a0\u202f"
WRITINGS = {
    "de": Writing(",", "." + NO_BREAK, ("null",)),
    "en": Writing(".", "," + NO_BREAK, ("zero", "nought")),
    "es": Writing(",", "." + NO_BREAK),
    "fr": Writing(",", NO_BREAK),
    "it": Writing(",", "." + NO_BREAK),
    "ja": Writing(".", ","),
    "ko": Writing(".", ","),
    "pl": Writing(",", NO_BREAK),
    "pt": Writing(",", "." + NO_BREAK),
    "ru": Writing(",", NO_BREAK, ("нул", "нол", "обнул")),
    "tr": Writing(",", "." + NO_BREAK),
    "uk": Writing(",", NO_BREAK, ("нул", "обнул")),
    "zh": Writing(".", ","),
}
UNKNOWN = Writing(",", NO_BREAK)  # a language that is not listed: what most languages write
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
MINUS = "\u2212"


@dataclass(frozen=True)
class Number:
    """A number in a text: its value in one form for all languages, and how it is written there."""

    value: str
    shown: str
    start: int


def writing(language: str) -> Writing:
    """How a language writes numbers."""
    return WRITINGS.get(language, UNKNOWN)


def numbers(text: str, language: str) -> list[Number]:
    """Every number that is written in digits; a sign, a percent sign and a power belong to it."""
    groups = writing(language).groups
    return [
        Number(_value(found, groups), found[0], found.start())
        for found in _pattern(language).finditer(text)
    ]


def zero_words(text: str, language: str) -> list[tuple[int, str]]:
    """Where a text says nought in words, and the words."""
    begins = writing(language).zero
    words = re.finditer(r"[^\W\d_]+", text)
    return [(w.start(), w[0]) for w in words if w[0].lower().startswith(begins)]


@functools.cache
def _pattern(language: str) -> re.Pattern[str]:
    """A point may part the fraction in every language: versions (3.11) are written so."""
    way = writing(language)
    return re.compile(
        rf"(?P<sign>(?<![\w)\]])[-{MINUS}])?"
        rf"(?P<whole>\d{{1,3}}(?:[{re.escape(way.groups)}]\d{{3}})+(?!\d)|\d+)"
        rf"(?:[{re.escape(way.decimal)}.](?P<part>\d+))?"
        r"(?P<power>[eE][-+]?\d+\b|[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)?"
        rf"(?P<percent>[ {NO_BREAK}]?%)?"
    )


def _value(found: re.Match[str], groups: str) -> str:
    whole = found["whole"].translate(dict.fromkeys(map(ord, groups)))
    power = (found["power"] or "").translate(SUPERSCRIPTS)
    if power[:1] in ("e", "E"):
        exact, power = Decimal(f"{whole}.{found['part'] or 0}{power}"), ""
    else:
        exact = Decimal(f"{whole}.{found['part'] or 0}")
    digits = f"{exact.normalize():f}"
    sign = "-" if found["sign"] else ""
    return sign + digits + (f"^{power}" if power else "") + ("%" if found["percent"] else "")
