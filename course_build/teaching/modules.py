"""What the exports are made from: each module in each language, with what is known of it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course_build.base.decode import decode
from course_build.base.places import Files, notebook_path, solved_path, stem_of
from course_build.base.settings import Settings
from course_build.building.course import Course, read_units
from course_build.library.embed import is_embed
from course_build.notebook.head import links
from course_build.outputs.executed import joined
from course_build.pages.glossary_page import page_path
from course_build.source.cells import parse_source
from course_build.source.header import LIBRARY_KEY
from course_build.teaching.graded import Graded, graded


@dataclass(frozen=True)
class Module:
    """One module in one language: both editions, its exercises, the keys of its library cells.

    `head` is the line of links under the title.
    """

    stem: str
    language: str
    learner: Mapping[str, Any]
    solved: Mapping[str, Any]
    exercises: Sequence[Graded]
    library: frozenset[str]
    head: str


def modules(course: Course, files: Files, settings: Settings) -> Iterator[Module]:
    """Read every module that the course was built from, in every language."""
    stems = [stem_of(path) for path in files.modules]
    for path in files.modules:
        units = read_units(
            parse_source(path, decode(path, files.sources[path]), settings.languages), settings
        )
        exercises = graded(units)
        embeds = [unit.first.key for unit in units if is_embed(unit.first)]
        library = frozenset([*embeds, LIBRARY_KEY])
        stem = stem_of(path)
        for language in settings.languages:
            has_glossary = page_path(language) in course.pages
            yield Module(
                stem=stem,
                language=language,
                learner=_read(course.notebooks[notebook_path(language, stem)]),
                solved=_read(course.solved[solved_path(language, stem)]),
                exercises=exercises,
                library=library,
                head=links(stem, stems, language, settings, has_glossary),
            )


def _read(content: bytes) -> dict[str, Any]:
    """A notebook whose cells hold their text in one piece."""
    notebook = json.loads(content)
    cells = [{**cell, "source": joined(cell["source"])} for cell in notebook["cells"]]
    return {**notebook, "cells": cells}
