"""Find the wrong formula that a wrong candidate equals, and say it in words."""

import itertools
from collections.abc import Callable

from course_lib.text import localized

_DEVIATION_TEXTS = {
    "one_way": {
        "en": "on fresh inputs it behaves exactly as if {what}",
        "ru": "на новых входах функция ведёт себя в точности так, как если бы {what}",
    },
    "or": {"en": " — or {what}", "ru": " — либо {what}"},
    "and": {"en": " and ", "ru": " и "},
}


def matching_deviations(
    options: dict[str, tuple[str, ...]], imitates: Callable[[dict[str, str]], bool]
) -> list[dict[str, str]]:
    """Find the fewest deviations from the formula with which an imitation equals the candidate.

    Args:
        options: the ways in which each part of the formula can be wrong
        imitates: tells whether the formula with these deviations equals the candidate
    """
    single = [{part: way} for part, ways in options.items() for way in ways]
    found = [deviation for deviation in single if imitates(deviation)]
    if found:
        return found
    pairs = (
        {**first, **second}
        for first, second in itertools.combinations(single, 2)
        if first.keys() != second.keys()
    )
    return [deviation for deviation in pairs if imitates(deviation)]


def describe_deviations(found: list[dict[str, str]], texts: dict[str, dict[str, str]]) -> str:
    """Put the deviations that equal the candidate into a sentence; nothing found, nothing said."""
    if not found or len(found) > 3:
        return ""
    joint = localized(_DEVIATION_TEXTS["and"])
    ways = [joint.join(localized(texts[way]) for way in each.values()) for each in found]
    text = localized(_DEVIATION_TEXTS["one_way"], what=ways[0])
    return text + "".join(localized(_DEVIATION_TEXTS["or"], what=way) for way in ways[1:])
