"""nbgrader itself takes the export: it releases, repairs, runs and grades what a student hands in.

A whole lesson is graded, with -m thorough one of each module; everything else is proven on the
cells that the exercises need, which take seconds.
"""

import copy
import re

import pytest

from course_build.notebook.exercises import leaks
from course_build.outputs.executed import joined
from course_build.source.cells import Cell
from course_build.teaching.exports import assignment_name
from course_build.teaching.needs import needed_cells

from .conftest import LANGUAGES, PAIRS, STEMS, each_module

pytestmark = pytest.mark.delivery
CHOSEN = list(zip(LANGUAGES, STEMS, strict=False))  # the others: -m thorough
MISTAKES = {  # module, exercise: what to change in the solution, and what the check then says
    ("module_03", "mask-offset"): ("query_offset + torch.arange", "torch.arange", "offset_ignored"),
    ("module_03", "attention"): (" / math.sqrt(q.shape[-1])", "", "check_attention_contract"),
    ("module_03", "planted"): ("scale_by_d_v", "not_scaled", "check_planted_answers"),
    ("module_03", "merge-heads"): (
        ".transpose(1, 2).flatten(start_dim=2)",
        ".reshape(len(heads), heads.shape[2], -1)",
        "check_multi_head_contract",
    ),
    ("module_03", "nll"): ("[:, :-1].double()", "[:, 1:].double()", "not_shifted_start_dropped"),
    ("module_03", "sampling"): ("reached >= top_p", "reached > top_p", "extra_on_equality"),
    ("module_04", "attention"): (" / math.sqrt(d_head)", "", "not_scaled"),
    ("module_04", "cache"): ('["position_embedding"][place]', '["position_embedding"][0]', "cache"),
    ("module_04", "fix"): ("k=self.length, ", "", "check_cache_contract"),
    ("module_04", "nucleus"): ("1 + int(", "int(", "check_sampler_contract"),
    ("module_04", "balance"): ("if spare > 0 else math.inf", "", "check_examples"),
}


def thorough_but(chosen, pairs):
    """Each of these notebooks; those that are not chosen where the proof is thorough."""
    marked = [
        pytest.param(*each, marks=[] if each in chosen else [pytest.mark.thorough])
        for each in pairs
    ]
    return pytest.mark.parametrize(("language", "stem"), marked)


class Assignment:
    """A module's assignment in a language, with ways to hand something in."""

    def __init__(self, made, language, stem):
        self.name, self.stem = assignment_name(stem), stem
        self.module = made.module(language, stem)
        path = f"nbgrader/{language}/source/{self.name}/{stem}.ipynb"
        self.source = made.notebook(path)
        self.path = path.removeprefix(f"nbgrader/{language}/source/")

    @property
    def exercises(self):
        return self.module.exercises

    def points(self, *, without=()):
        return {e.check: 0 if e.name in without else e.points for e in self.exercises}

    def shortened(self):
        """The exercises without the lesson; predictions need all of it, so they are left out."""
        quick = [e for e in self.exercises if not e.is_prediction]
        cells = [c for c in self.source["cells"] if c["cell_type"] == "code"]
        code = [(cell["id"], joined(cell["source"])) for cell in cells]
        kept = needed_cells(code, [key for e in quick for key in (e.stub, e.check)])
        short = copy.copy(self)
        short.source = {**self.source, "cells": [c for c in cells if c["id"] in kept]}
        short.module = copy.copy(self.module)
        shown = [e for e in self.exercises if e.check in kept]
        object.__setattr__(short.module, "exercises", shown)
        return short

    def solved(self, *, wrong=()):
        """The solutions; those of the wrong exercises with one mistake each."""
        notebook = copy.deepcopy(self.source)
        cells = {cell["id"]: cell for cell in notebook["cells"]}
        for exercise in self.exercises:
            if exercise.name in wrong:
                right, mistake, _ = MISTAKES[self.name, exercise.name]
                text = joined(cells[exercise.stub]["source"])
                assert right in text, exercise.name
                cells[exercise.stub]["source"] = text.replace(right, mistake)
        return notebook, cells


def mistaken(assignment):
    return [e for e in assignment.exercises if (assignment.name, e.name) in MISTAKES]


def test_most_exercises_have_a_mistake_to_plant(made):
    for stem in STEMS:
        assignment = Assignment(made, LANGUAGES[0], stem)
        planted = {e.name for e in mistaken(assignment)}
        assert {name for module, name in MISTAKES if module == assignment.name} == planted
        assert len(planted) >= 5


@each_module
def test_what_nbgrader_releases_is_the_learners_notebook_without_solutions(
    made, grader, language, stem
):
    assignment = Assignment(made, language, stem)
    course = grader(language, assignment.path, assignment.source)
    released = course.released(assignment.name, stem)
    cells = {cell["id"]: joined(cell["source"]) for cell in released["cells"]}
    learner = {cell["id"]: cell["source"] for cell in assignment.module.learner["cells"]}
    solved = {cell["id"]: cell["source"] for cell in assignment.module.solved["cells"]}
    for exercise in assignment.exercises:
        assert cells[exercise.stub].strip() == learner[exercise.stub]
        assert exercise.solution not in cells
        stub, solution = (
            Cell(stem, 1, 1, "code", exercise.stub, text[exercise.stub])
            for text in (learner, solved)
        )
        assert leaks(solution, stub, list(cells.items())) == []
    assert "SOLUTION" not in "".join(cells.values())
    code = [cell for cell in released["cells"] if cell["cell_type"] == "code"]
    locked = {cell["id"] for cell in code if cell["metadata"].get("editable") is False}
    assert {exercise.check for exercise in assignment.exercises} <= locked
    assert not locked & {exercise.stub for exercise in assignment.exercises}


@thorough_but(CHOSEN, PAIRS)
def test_points_are_earned_and_lost_exercise_by_exercise(made, grader, language, stem):
    assignment = Assignment(made, language, stem).shortened()
    course = grader(language, assignment.path, assignment.source)
    released = course.released(assignment.name, stem)
    course.submit("untouched", assignment.name, stem, released)
    names = [exercise.name for exercise in mistaken(assignment)]
    handed_in = {"odd": names[1::2], "even": names[::2]}
    for student, wrong in handed_in.items():
        notebook, cells = assignment.solved(wrong=wrong)
        if student == "even":
            edit(assignment, cells, wrong[0])
        course.submit(student, assignment.name, stem, notebook)
    said = course.run("autograde", assignment.name)

    scores = course.scores(assignment.name)
    assert scores["untouched"] == dict.fromkeys(assignment.points(), 0)
    for student, wrong in handed_in.items():
        assert scores[student] == assignment.points(without=wrong)
        shown = course.graded(student, assignment.name, stem)
        for exercise in mistaken(assignment):
            told = MISTAKES[assignment.name, exercise.name][2]
            assert (told in shown[exercise.check][1]) >= (exercise.name in wrong), exercise.name
    changed = re.findall(r"Attribute 'checksum' for cell (\S+) has changed", said)
    assert len(changed) == 2
    shown = course.graded("even", assignment.name, stem)
    sources = {cell["id"]: joined(cell["source"]) for cell in assignment.source["cells"]}
    assert all(shown[key][0] == sources[key] for key in changed)


def edit(assignment, cells, name):
    """Cheat at an exercise: its check is emptied, and what the check calls always says yes."""
    [exercise] = [e for e in assignment.exercises if e.name == name]
    [contract] = exercise.contracts
    cells[exercise.check]["source"] = "pass"
    name = f"check_{contract}_contract"
    given = re.compile(rf"^from course_lib.*\b{name}\b", re.MULTILINE)
    [place] = [key for key, cell in cells.items() if given.search(joined(cell["source"]))]
    cells[place]["source"] = f"def {name}(candidate):\n    return candidate"


@thorough_but(CHOSEN[:1], CHOSEN)
def test_a_whole_solved_lesson_earns_all_points(made, grader, language, stem):
    assignment = Assignment(made, language, stem)
    course = grader(language, assignment.path, assignment.source)
    course.submit("solved", assignment.name, stem, assignment.solved()[0])
    course.run("autograde", assignment.name)
    assert course.scores(assignment.name)["solved"] == assignment.points()


def test_a_check_that_was_deleted_waits_for_the_teacher(made, grader):
    assignment = Assignment(made, LANGUAGES[0], STEMS[0]).shortened()
    course = grader(LANGUAGES[0], assignment.path, assignment.source)
    released = course.released(assignment.name, assignment.stem)
    gone = assignment.exercises[0].check
    kept = [c for c in released["cells"] if c["id"] != gone and c["cell_type"] == "markdown"]
    course.submit("deleter", assignment.name, assignment.stem, {**released, "cells": kept})
    course.run("autograde", assignment.name, "--student", "deleter")
    assert course.scores(assignment.name)["deleter"][gone] is None
