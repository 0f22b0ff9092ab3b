"""The source notebooks for nbgrader: metadata, points, what may be changed; without nbgrader."""

import ast
import re

import nbformat
import pytest

from course_build.base.findings import CourseError
from course_build.outputs.executed import joined
from course_build.teaching.assignment import graded_check, unlinked, with_solution
from course_build.teaching.exports import assignment_name

from .conftest import LANGUAGES, STEMS, each_module

pytestmark = pytest.mark.delivery


def source(made, language, stem):
    return made.notebook(f"nbgrader/{language}/source/{assignment_name(stem)}/{stem}.ipynb")


@each_module
def test_nbgraders_own_validator_takes_the_metadata(made, language, stem):
    from nbgrader.nbgraderformat import MetadataValidator

    notebook = nbformat.from_dict(source(made, language, stem))
    nbformat.validate(notebook)
    MetadataValidator().validate_nb(notebook)
    told = [c["metadata"]["nbgrader"] for c in notebook["cells"] if "nbgrader" in c["metadata"]]
    assert {each["schema_version"] for each in told} == {3}
    exercises = made.module(language, stem).exercises
    points = {each["grade_id"]: each["points"] for each in told if each["grade"]}
    assert points == {exercise.check: exercise.points for exercise in exercises}
    solutions = {each["grade_id"] for each in told if each["solution"]}
    assert solutions == {exercise.stub for exercise in exercises}


def test_all_languages_grade_the_same_cells(made):
    for stem in STEMS:
        told = [
            {c["id"]: c["metadata"].get("nbgrader") for c in source(made, code, stem)["cells"]}
            for code in LANGUAGES
        ]
        assert all(each == told[0] for each in told)


@each_module
def test_what_a_check_rests_on_is_locked_and_a_lesson_to_play_with_is_not(made, language, stem):
    module = made.module(language, stem)
    code = [c for c in source(made, language, stem)["cells"] if c["cell_type"] == "code"]
    locked = {c["id"] for c in code if c["metadata"].get("nbgrader", {}).get("locked")}
    for exercise in module.exercises:
        for contract in exercise.contracts:
            name = re.compile(rf"^from course_lib.*\bcheck_{contract}_contract\b", re.MULTILINE)
            [place] = [c["id"] for c in code if name.search(joined(c["source"]))]
            assert place in locked
    assert "course-lib" in locked
    assert len(code) - len(locked) > 20


def test_the_stub_stands_above_the_region_of_the_solution():
    text = with_solution("x = None", "x = 1")
    assert text == "x = None\n### BEGIN SOLUTION\nx = 1\n### END SOLUTION"


def test_a_check_shows_its_report_and_wants_an_attempt_from_the_autograder_only(monkeypatch):
    class Report:
        attempted = False

    text = graded_check("c", "def f():\n    pass\n\n\ncheck(\n    f\n)")
    shown = []
    scope = {"check": lambda f: Report(), "display": shown.append}
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    exec(compile(ast.parse(text), "check", "exec"), scope)
    assert len(shown) == 1
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    with pytest.raises(AssertionError):
        exec(compile(ast.parse(text), "check", "exec"), scope)
    Report.attempted = True
    exec(compile(ast.parse(text), "check", "exec"), scope)


def test_a_check_that_ends_without_a_report_is_refused():
    with pytest.raises(CourseError, match="does not end with the report"):
        graded_check("c", "x = 1")


def test_links_to_what_is_not_there_become_words():
    text = "[a](there.md#x) [b [c]](../ru/gone.md) [d](https://x.org) ![e](gone.svg) [f](#x)"
    kept = "[a](there.md#x) b [c] [d](https://x.org) ![e](gone.svg) [f](#x)"
    assert unlinked(text, {"there.md", ""}) == kept
    assert unlinked('[a](gone.md#x "What (it) is.") [f](#x)', ()) == "a f"


def test_what_looks_like_a_link_in_code_stays():
    text = "`heads[0](x)` and\n```python\nmodel[1](x)\n``` and [a](gone.md), ``b[`0`](y)``"
    assert unlinked(text, ()) == text.replace("[a](gone.md)", "a")
