"""An exercise in JupyterLab: the stub, a wrong attempt, the hints one by one, the solution."""

import pytest

from course_lib.report import _REPORT_TEXTS
from course_lib.text import both

from .attempts import SLIPS
from .desk import NAMES, read_notebook
from .exercises import find_exercises
from .looks import speaks
from .pictures import keep_picture

pytestmark = [pytest.mark.delivery, pytest.mark.xdist_group("lab")]

EXERCISES = {names: find_exercises(read_notebook(*names)) for names in NAMES}
EVERY = [(*names, exercise) for names, found in EXERCISES.items() for exercise in found]
SLIPPED = [one for one in EVERY if one[-1].asked in SLIPS]


def each(exercises):
    ids = [f"{language}-{name[:9]}-{exercise.stub}" for language, name, exercise in exercises]
    return pytest.mark.parametrize(("language", "name", "exercise"), exercises, ids=ids)


def spaced(words):
    """The same words with one plain space between any two, as `run` returns them."""
    return " ".join(words.split())


@pytest.mark.parametrize(("language", "name"), NAMES)
def test_two_exercises_or_more_of_each_notebook_are_tried_with_a_known_mistake(language, name):
    assert sum(exercise.asked in SLIPS for exercise in EXERCISES[language, name]) >= 2


@each(EVERY)
def test_a_stub_is_told_apart_from_a_wrong_answer(notebook, exercise, language):
    (shown,) = [cell for cell in notebook.cells if cell["key"] == exercise.check]
    words = " ".join(output["text"] for output in shown["outputs"]).strip()
    not_attempted = both(_REPORT_TEXTS["not_attempted"])[language].partition(": ")[2]
    assert words.startswith("○")
    assert not_attempted in words


@each(SLIPPED)
def test_a_known_mistake_typed_in_is_named_in_the_language_of_the_page(
    notebook, exercise, language
):
    slip = SLIPS[exercise.asked]
    assert exercise.code.count(slip.right) == 1
    notebook.type_over(exercise.stub, exercise.code.replace(slip.right, slip.wrong), exercise.code)
    assert notebook.run(exercise.stub) == ""
    told = notebook.run(exercise.check)
    keep_picture(notebook, exercise.stub, f"{exercise.stub}-broken")
    assert told.startswith("✗")
    assert slip.name in told
    for texts in (slip.mistake.what, slip.mistake.fix):
        mine = spaced(texts[language])
        assert mine in told
        assert {other for other in map(spaced, texts.values()) if other in told} == {mine}
    assert speaks(language, told)


@each(EVERY)
def test_hints_open_one_by_one_and_the_solution_passes(notebook, exercise, language):
    folds = [*exercise.hints, exercise.solution]
    assert exercise.hints
    for number, fold in enumerate(folds):
        assert [notebook.is_unfolded(each) for each in folds[number:]] == [False] * len(
            folds[number:]
        )
        notebook.unfold(fold)
        assert notebook.is_unfolded(fold)
    notebook.copy_code(exercise.solution)
    notebook.paste_over(exercise.stub)
    assert notebook.source(exercise.stub).strip() == exercise.code.strip()
    assert notebook.run(exercise.stub) == ""
    told = notebook.run(exercise.check)
    assert told.startswith("✓")
    assert speaks(language, told)
