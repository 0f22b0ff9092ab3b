"""What is graded: each exercise of a module, its cells, its level and what it is worth."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from course_build.base.findings import CourseError, Finding
from course_build.notebook.exercises import exercises
from course_build.source.cells import Cell
from course_build.source.code import parse_code
from course_build.source.twins import Unit

POINTS = {"warm-up": 1, "core": 2, "stretch": 3}
CONTRACT = re.compile(r"\bcheck_(\w+)_contract\b")


@dataclass(frozen=True)
class Graded:
    """An exercise as a grader sees it; the keys of its cells are the same in every language.

    `contracts` names the contracts that its check holds the learner's code to.
    """

    name: str
    level: str
    stub: str
    check: str
    solution: str
    contracts: tuple[str, ...]
    is_prediction: bool

    @property
    def points(self) -> int:
        return POINTS[self.level]


def graded(units: Sequence[Unit]) -> list[Graded]:
    """List the exercises of a module in their order; raises CourseError for an unknown level."""
    levels = dict(_levels(units))
    return [_graded(name, cells, levels) for name, cells in exercises(units).items()]


def _graded(name: str, cells: Sequence[Cell], levels: dict[str, str]) -> Graded:
    by_role = {cell.role: cell for cell in cells}
    check = by_role["check"]
    level = levels.get(name, "core")
    if level not in POINTS:
        message = f"the exercise {name!r} has the level {level!r}"
        mend = f"use one of {', '.join(POINTS)}"
        raise CourseError([Finding(check.path, check.line, check.key, "level", message, mend)])
    return Graded(
        name=name,
        level=level,
        stub=by_role["stub"].key,
        check=check.key,
        solution=by_role["solution"].key,
        contracts=tuple(dict.fromkeys(CONTRACT.findall(check.text))),
        is_prediction="check_predictions" in check.text,
    )


def _levels(units: Sequence[Unit]) -> Iterator[tuple[str, str]]:
    """Read the levels in the module's table: Progress("module", {exercise: (level, title)})."""
    for unit in units:
        if unit.first.kind != "code" or "Progress(" not in unit.first.text:
            continue
        for node in ast.walk(parse_code(unit.first.text)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Progress":
                for name, (level, _) in ast.literal_eval(node.args[1]).items():
                    yield name, level
