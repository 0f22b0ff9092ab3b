"""The words of a view: complete, with the right fields, and lists as the reader writes them."""

import string
from collections.abc import Iterable, Mapping

from course_lib.plots.checks import check_label
from course_lib.text import localized

_SEPARATOR = {"en": ", ", "ru": "; "}  # a comma would run into the decimals


def check_view_words(words: Mapping[str, str], *plain: str, **fields: str) -> None:
    """Require exactly these words, each with no other fields than it may have.

    Args:    plain: the words without fields; fields: word -> the fields it may have, "kept total"
    """
    if not isinstance(words, Mapping):
        raise TypeError(f"words must be a dict; got {type(words).__name__}")
    wanted = {**dict.fromkeys(plain, ""), **fields}
    missing, unknown = sorted(wanted.keys() - words), sorted(words.keys() - wanted)
    if missing or unknown:
        raise ValueError(f"words must hold exactly the words asked for: {missing=}, {unknown=}")
    for name, text in words.items():
        check_label(f"words[{name!r}]", text)
        _check_fields(name, text, wanted[name].split())


def _check_fields(name: str, text: str, allowed: list[str]) -> None:
    try:
        used = {field for _, field, _, _ in string.Formatter().parse(text) if field is not None}
    except ValueError as error:
        raise ValueError(f"words[{name!r}] is no text with fields ({error}): {text!r}") from None
    if not used <= set(allowed):
        raise ValueError(
            f"words[{name!r}] may use the fields {allowed}; got {sorted(used - set(allowed))}"
        )


def written_list(parts: Iterable[str]) -> str:
    """Join parts that may hold numbers: "sun 0.33, moon 0.67", or with a semicolon."""
    return localized(_SEPARATOR).join(parts)
