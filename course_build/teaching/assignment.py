"""A module as an assignment of nbgrader: what is solved, what is graded, what nobody may change.

A solution cell holds the stub, and after it the solution in a region that nbgrader takes out. A
check earns its points when it holds; under nbgrader it also fails where nothing was attempted.
"""

import ast
import re
from collections.abc import Collection, Mapping
from typing import Any

from course_build.base.chrome import say
from course_build.base.findings import CourseError, Finding
from course_build.notebook.glossary_links import PAGE
from course_build.source.code import parse_code
from course_build.teaching.editions import Notebook, without_solutions
from course_build.teaching.modules import Module
from course_build.teaching.needs import needed_cells

CONFIG = '''"""nbgrader's configuration of this course; its documentation tells the rest."""

c = get_config()  # noqa: F821
c.ClearSolutions.code_stub = {"python": ""}  # the stub stands above the solution already
c.Execute.timeout = 300  # seconds a cell
'''
ATTEMPT = """
if isinstance(autograded, Exception):
    raise autograded
display(autograded)
assert not str(autograded).startswith("✗"), autograded
assert autograded.attempted or "NBGRADER_EXECUTION" not in os.environ, autograded"""
LINK = re.compile(  # or code, in which nothing is a link
    r"(?P<code>(`+)(?!`).+?(?<!`)\2(?!`))"
    r"|(?<!!)\[(?P<words>(?:[^][]|\[[^][]*\])*)\]"
    r"\((?P<file>[^)#:\s]*)(?:#[^)\s]*)?(?:\s+\"[^\"]*\")?\)",
    re.DOTALL,
)
LOCKED_TAGS = {"hide-input", "parameters"}


def assignment(module: Module) -> Notebook:
    """The source notebook of an assignment; of the links under its title the glossary's stays."""
    solutions = {cell["id"]: cell["source"] for cell in module.solved["cells"]}
    stubs = {exercise.stub for exercise in module.exercises}
    checks = {exercise.check: exercise for exercise in module.exercises}
    fixed = locked_cells(module)
    glossary = f"[{say(module.language, 'glossary')}]({PAGE})"
    cells = []
    for cell in without_solutions(module.learner, module.exercises)["cells"]:
        key, source = cell["id"], cell["source"]
        if cell["cell_type"] == "markdown":
            source = unlinked(source.replace(module.head, glossary), {PAGE, ""})
            cells.append({**cell, "source": source})
        elif key in stubs:
            cells.append(_marked(cell, with_solution(source, solutions[key]), solution=True))
        elif key in checks:
            text = graded_check(key, source)
            cells.append(_marked(cell, text, points=checks[key].points, locked=True))
        else:
            cells.append(_marked(cell, source, locked=True) if key in fixed else cell)
    return {**module.learner, "cells": cells}


def locked_cells(module: Module) -> set[str]:
    """What grading rests on: the library, folded cells, parameters, and all that a check needs."""
    code = [cell for cell in module.learner["cells"] if cell["cell_type"] == "code"]
    checks = [exercise.check for exercise in module.exercises]
    stubs = [exercise.stub for exercise in module.exercises]
    needed = needed_cells([(cell["id"], cell["source"]) for cell in code], checks, stubs)
    fixed = {c["id"] for c in code if LOCKED_TAGS & set(c["metadata"].get("tags", ()))}
    return (needed | fixed | module.library) - set(stubs)


def with_solution(stub: str, solution: str) -> str:
    """The stub, and below it the solution in the region that nbgrader takes out."""
    return f"{stub}\n### BEGIN SOLUTION\n{solution}\n### END SOLUTION"


def graded_check(key: str, source: str) -> str:
    """A check whose report is shown, and that costs the points where nothing was attempted."""
    last = parse_code(source).body[-1]
    if not isinstance(last, ast.Expr):
        message = "the check does not end with the report of a contract"
        mend = "let the call of the contract be its last statement"
        raise CourseError([Finding("notebooks", None, key, "graded-check", message, mend)])
    lines = source.split("\n")
    lines[last.lineno - 1] = f"autograded = {lines[last.lineno - 1]}"
    return "import os\n\n" + "\n".join(lines) + ATTEMPT


def unlinked(text: str, present: Collection[str]) -> str:
    """Leave only the words of links to files that are not there; "" is the file itself."""

    def words(found: re.Match[str]) -> str:
        return found[0] if found["code"] or found["file"] in present else found["words"]

    return LINK.sub(words, text)


def _marked(
    cell: Mapping[str, Any],
    source: str,
    *,
    points: int | None = None,
    solution: bool = False,
    locked: bool = False,
) -> dict[str, Any]:
    told = {
        "schema_version": 3,
        "grade_id": cell["id"],
        "grade": points is not None,
        "solution": solution,
        "locked": locked,
        "task": False,
        "cell_type": cell["cell_type"],
    }
    if points is not None:
        told["points"] = points
    return {**cell, "source": source, "metadata": {**cell["metadata"], "nbgrader": told}}
