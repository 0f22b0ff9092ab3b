"""A definition that a notebook shows is explained beside it, in the notebook's language."""

import re
from collections.abc import Sequence

from course_build.base.findings import Finding
from course_build.library.embed import SHOWN, is_embed
from course_build.source.bound import names_bound
from course_build.source.cells import Cell
from course_build.source.twins import Unit
from course_build.text.glossary import Term
from course_build.text.pieces import pieces
from course_build.text.prose import parse_prose
from course_build.text.stems import find


def unexplained(units: Sequence[Unit], terms: Sequence[Term], language: str) -> list[Finding]:
    """The shown definitions that neither the prose before nor the prose after names.

    A text names a definition by its identifier, set as code, or by its word in the glossary.
    """
    findings = []
    for place, unit in enumerate(units):
        cell = unit.first
        if cell.role in SHOWN and is_embed(cell):
            beside = _prose_beside(units, place, language)
            for name in sorted(names_bound(cell.text)):
                words = _words_for(name, terms, language)
                if not any(_names(text, name, words, language) for text in beside):
                    findings.append(_finding(cell, name, beside, language))
    return findings


def _prose_beside(units: Sequence[Unit], place: int, language: str) -> list[Cell]:
    """The nearest prose cell before and the nearest after."""
    sides = (reversed(units[:place]), units[place + 1 :])
    nearest = [next((u for u in side if u.first.kind == "markdown"), None) for side in sides]
    return [unit.in_language(language) for unit in nearest if unit is not None]


def _words_for(name: str, terms: Sequence[Term], language: str) -> list[str]:
    named = [term for term in terms if name in term.identifiers]
    words = [term.words[language] for term in named if language in term.words]
    return [form for word in words for form in (word.name, *word.also)]


def _names(cell: Cell, name: str, words: Sequence[str], language: str) -> bool:
    code = [p.shown for p in pieces(parse_prose(cell.text), language) if p.kind == "code"]
    if any(name in re.findall(r"\w+", shown) for shown in code):
        return True
    return any(find(word, cell.text, language) for word in words)


def _finding(cell: Cell, name: str, beside: Sequence[Cell], language: str) -> Finding:
    keys = " nor ".join(f"{text.key!r}" for text in beside)
    message = f"in {language}, {name} is shown and not named in the prose beside it, {keys}"
    mend = f"say there what `{name}` is, or name it with its word in the glossary"
    return cell.finding("unexplained", message, mend)
