"""How long a section takes: an estimate that says how it is made, the same in every language.

Words are read at the pace of a text to be understood, a line of visible code and a figure take a
look; an exercise takes as long as its solving usually does. Folded code is not counted, but what
folds in an output is words: a question of the quiz with the explanations of its choices.
"""

import re
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

from course_build.outputs.executed import joined
from course_build.site.clean import SVG
from course_build.text.prose import count_words

WORDS_A_MINUTE = 130
CODE_LINE, FIGURE, EXERCISE = 4 / 60, 0.5, 30.0  # minutes; a core exercise takes 20 to 60
FOLDED, STUB = "hide-input", "exercise"  # tags
HTML, FOLD, TAG = "text/html", "<details", re.compile("<[^>]*>")


def minutes(cells: Sequence[Mapping[str, Any]]) -> int:
    """Whole minutes, at least one, for reading these cells and solving their exercises."""
    return max(1, ceil(sum(map(_cell, cells))))


def _cell(cell: Mapping[str, Any]) -> float:
    if cell["cell_type"] == "markdown":
        return count_words(joined(cell["source"])) / WORDS_A_MINUTE
    tags = cell["metadata"].get("tags", ())
    lines = 0 if FOLDED in tags else len(joined(cell["source"]).split("\n"))
    figures = sum(SVG in output.get("data", {}) for output in cell.get("outputs", ()))
    shown = [joined(output.get("data", {}).get(HTML, "")) for output in cell.get("outputs", ())]
    asked = sum(count_words(TAG.sub(" ", html)) for html in shown if FOLD in html)
    seen = lines * CODE_LINE + figures * FIGURE + asked / WORDS_A_MINUTE
    return seen + (STUB in tags) * EXERCISE
