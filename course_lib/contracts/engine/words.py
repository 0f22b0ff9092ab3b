"""A text in the reader's languages, written in one line: "English | русский"."""

from typing import Any

from course_lib.text import LANGUAGES, localized


def both(text: str | tuple[str, ...]) -> dict[str, str]:
    """Split "English | русский"; what is said in one language only is said so in every one.

    A text that has " | " in it, as some code does, is given as a pair.
    """
    parts = tuple(text.split(" | ")) if isinstance(text, str) else text
    if len(parts) not in (1, len(LANGUAGES)):
        raise ValueError(f"one text, or one for each of {LANGUAGES}, got {text!r}")
    return dict(zip(LANGUAGES, parts * (len(LANGUAGES) // len(parts)), strict=True))


def say(text: str | tuple[str, ...], **values: Any) -> str:
    """Say a text in the reader's language, with its fields filled in."""
    return localized(both(text), **values)
