"""A rendered notebook as a student gets it, and as a teacher reads it."""

from collections.abc import Mapping, Sequence
from typing import Any

from course_build.teaching.catalogue import Known, mistakes_table
from course_build.teaching.graded import Graded
from course_build.teaching.modules import Module
from course_build.teaching.words import say

Notebook = dict[str, Any]
NOTE = "-teacher"


def student_edition(module: Module) -> Notebook:
    """The learner's notebook without the cells that hold solutions."""
    notebook = without_solutions(module.learner, module.exercises)
    return with_banner(notebook, say(module.language, "student"))


def without_solutions(notebook: Mapping[str, Any], exercises: Sequence[Graded]) -> Notebook:
    """Take the folded solutions out of a notebook."""
    solutions = {exercise.solution for exercise in exercises}
    return {**notebook, "cells": [c for c in notebook["cells"] if c["id"] not in solutions]}


def teacher_edition(module: Module, known: Known) -> Notebook:
    """The solved notebook, with a note for the teacher under each check."""
    stubs = {cell["id"]: cell["source"] for cell in module.learner["cells"]}
    checks = {exercise.check: exercise for exercise in module.exercises}
    cells = []
    for cell in without_solutions(module.solved, module.exercises)["cells"]:
        cells.append(cell)
        exercise = checks.get(cell["id"])
        if exercise:
            text = note(exercise, stubs[exercise.stub], known, module.language)
            cells.append(prose_cell(exercise.check + NOTE, text))
    return with_banner({**module.solved, "cells": cells}, say(module.language, "teacher"))


def note(exercise: Graded, stub: str, known: Known, language: str) -> str:
    """What a teacher wants beside an exercise: level, points, the stub, the mistakes it knows."""
    level = say(language, exercise.level)
    told = say(language, "note", exercise=exercise.name, level=level, points=exercise.points)
    if exercise.is_prediction:
        told += " " + say(language, "prediction")
    elif not exercise.contracts:
        told += " " + say(language, "free")
    parts = [told, details(say(language, "stub"), f"```python\n{stub}\n```")]
    for contract in exercise.contracts:
        mistakes = known.get(contract, ())
        if mistakes:
            summary = say(language, "mistakes", count=len(mistakes))
            parts.append(details(summary, mistakes_table(mistakes, language)))
    return "\n\n".join(parts)


def details(summary: str, body: str) -> str:
    """A fold, as Jupyter shows Markdown in HTML: with blank lines around it."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def prose_cell(key: str, text: str) -> dict[str, Any]:
    """A cell of Markdown."""
    return {"cell_type": "markdown", "id": key, "metadata": {}, "source": text}


def with_banner(notebook: Mapping[str, Any], text: str) -> Notebook:
    """Say under the title which edition this is."""
    first, *rest = notebook["cells"]
    title, _, body = first["source"].partition("\n")
    return {**notebook, "cells": [{**first, "source": f"{title}\n\n> {text}\n{body}"}, *rest]}
