"""A draft is a language that may be incomplete: what is missing is shown in the source language.

The reader is told: a line above each text that is not in their language or older than the source's
text, and under the title how far the translation is. Code falls back without a word.
"""

from collections.abc import Sequence

from course_build.base.chrome import say
from course_build.source.twins import Unit


def mark(unit: Unit, language: str) -> str:
    """What a draft's notebook says above this unit's prose, or nothing."""
    if unit.in_language(language).lang != language:
        return say(language, "untranslated")
    return say(language, "outdated") if unit.is_stale(language) else ""


def progress(units: Sequence[Unit], language: str) -> str:
    """How many of the cells that have a language are translated and confirmed."""
    done, count = count_done(units, language)
    return "> " + say(language, "progress", done=done, count=count) if done < count else ""


def count_done(units: Sequence[Unit], language: str) -> tuple[int, int]:
    """How many units stand, confirmed, in this language, and how many there are to translate."""
    translatable = [unit for unit in units if unit.first.lang is not None]
    done = [
        unit
        for unit in translatable
        if unit.in_language(language).lang == language and not unit.is_stale(language)
    ]
    return len(done), len(translatable)
