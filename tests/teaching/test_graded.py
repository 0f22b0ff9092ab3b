"""What is graded: levels from the module's own table, points from levels, contracts from checks."""

import pytest

from course_build.base.findings import CourseError
from course_build.source.cells import Cell
from course_build.source.twins import Unit
from course_build.teaching.graded import POINTS, graded


def cells(name="mask", check="check_mask_contract(my_mask)"):
    texts = {"stub": "my_mask = None", "check": check, "hint": "Look.", "solution": "my_mask = 1"}
    return [
        Cell("p", 1, 2, "code", f"ex-{role}", text, role=role, exercise=name)
        for role, text in texts.items()
    ]


def table(levels):
    text = f"progress = Progress('module_03', {levels!r})"
    return Cell("p", 1, 2, "code", "progress", text)


def read(*found):
    return graded([Unit((cell,)) for cell in found])


def test_an_exercise_has_the_level_of_its_table_and_the_points_of_its_level():
    for level, points in POINTS.items():
        [exercise] = read(table({"mask": (level, "Write it")}), *cells())
        assert (exercise.name, exercise.level, exercise.points) == ("mask", level, points)
        assert exercise.contracts == ("mask",)
        assert not exercise.is_prediction
    assert list(POINTS.values()) == sorted(POINTS.values())


def test_a_prediction_is_known_by_its_check():
    check = "progress.check('mask', check_predictions, my_mask, passed)"
    [exercise] = read(*cells(check=check))
    assert (exercise.is_prediction, exercise.contracts) == (True, ())


def test_the_contract_of_a_check_through_progress_is_found():
    [exercise] = read(*cells(check="progress.check('mask', check_causal_mask_contract, my_mask)"))
    assert exercise.contracts == ("causal_mask",)


def test_an_unknown_level_is_refused():
    with pytest.raises(CourseError, match="'mask' has the level 'hard'"):
        read(table({"mask": ("hard", "Write it")}), *cells())
