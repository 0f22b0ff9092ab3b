"""Say a thing in the reader's language: one table a message, one constant for the language."""

import re

LANGUAGE = "en"  # each notebook sets its own

# What a language writes for Python's comma, point and hyphen; and between bare thousands.
_NUMBER_MARKS = {"en": ",.-", "ru": "\N{NO-BREAK SPACE},\N{MINUS SIGN}"}
LANGUAGES = tuple(_NUMBER_MARKS)  # in the order in which "English | русский" gives them
_BARE_THOUSANDS = {"en": "", "ru": "\N{NO-BREAK SPACE}"}


def localized(texts: dict[str, str], **values: object) -> str:
    """Pick the text of the reader's language and fill in its fields.

    Args:
        texts: one template a language code, e.g. {"en": "{n} rows", "ru": "строк: {n}"}; the
            first stands in for a language that a translation has not reached yet
        values: what goes into the fields of the template
    """
    template = texts[LANGUAGE] if LANGUAGE in texts else next(iter(texts.values()))
    return template.format(**values)


def both(text: str | tuple[str, ...]) -> dict[str, str]:
    """Split "English | русский"; what is said in one language only is said so in every one.

    A text that has " | " in it, as some code does, is given as a pair.
    """
    parts = tuple(text.split(" | ")) if isinstance(text, str) else text
    if len(parts) not in (1, len(LANGUAGES)):
        raise ValueError(f"one text, or one for each of {LANGUAGES}, got {text!r}")
    return dict(zip(LANGUAGES, parts * (len(LANGUAGES) // len(parts)), strict=True))


def say(text: str | tuple[str, ...], **values: object) -> str:
    """Say a text in the reader's language, with its fields filled in."""
    return localized(both(text), **values)


def reader_language() -> str:
    """The code of the reader's language, as in "en"."""
    return LANGUAGE


def written_number(number: float, digits: int = 0) -> str:
    """Write a number in the reader's language: 0.64 or 0,64; 10,000 or 10 000; never -0."""
    grouping = "," if round(abs(number), digits) >= 10_000 else ""
    return written_digits(f"{number:z{grouping}.{digits}f}")


def written_share(share: float) -> str:
    """Write a probability to two decimals: 0.64, <0.01, and 0 only where it is exactly 0."""
    if not share:
        return "0"
    return f"<{written_number(0.01, 2)}" if share < 0.005 else written_number(share, 2)


def written_digits(digits: str) -> str:
    """Write a number that stands in Python's digits with the marks of the reader's language.

    In English nothing changes: an axis has 10000 there, a sentence 10,000.
    """
    between = localized(_BARE_THOUSANDS)
    grouped = re.sub(
        r"(?<![\d.,])\d{5,}", lambda bare: f"{int(bare[0]):,}".replace(",", between), digits
    )
    return grouped.translate(str.maketrans(",.-", localized(_NUMBER_MARKS)))
