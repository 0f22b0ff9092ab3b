"""Student and teacher editions of the real course, and the words around them."""

import re
from string import Formatter

import pytest

from course_build.notebook.exercises import leaks
from course_build.outputs.executed import joined
from course_build.source.cells import Cell
from course_build.teaching import catalogue
from course_build.teaching.words import WORDS

from .conftest import LANGUAGES, each_module

pytestmark = pytest.mark.delivery

LINK = re.compile(r"\]\(([^)#:\s]+)(?=[)#\s])")


def texts(notebook):
    return {cell["id"]: joined(cell["source"]) for cell in notebook["cells"]}


@each_module
def test_a_student_has_every_cell_but_the_solutions(made, language, stem):
    module = made.module(language, stem)
    student = texts(made.notebook(f"student/{language}/{stem}.ipynb"))
    learner, solved = texts(module.learner), texts(module.solved)
    assert learner.keys() - student.keys() == {e.solution for e in module.exercises}
    changed = [key for key, text in student.items() if text != learner[key]]
    assert changed == [module.learner["cells"][0]["id"]]
    hints = [text for text in student.values() if text.startswith("<details><summary>")]
    assert len(hints) >= len(module.exercises)
    for exercise in module.exercises:
        stub, solution = (
            Cell(stem, 1, 1, "code", exercise.stub, of[exercise.stub]) for of in (learner, solved)
        )
        assert leaks(solution, stub, list(student.items())) == []


@each_module
def test_a_teacher_has_every_solution_in_place_and_a_note_under_every_check(made, language, stem):
    module = made.module(language, stem)
    notebook = made.notebook(f"teacher/{language}/{stem}.ipynb")
    teacher, solved, learner = map(texts, (notebook, module.solved, module.learner))
    order = list(teacher)
    for exercise in module.exercises:
        assert teacher[exercise.stub] == solved[exercise.stub]
        note = order[order.index(exercise.check) + 1]
        assert learner[exercise.stub] in teacher[note]
        for contract in exercise.contracts:
            for mistake in made.known[contract]:
                assert f"| `{mistake['name']}` |" in teacher[note]
    assert len(order) == len(set(order))


def test_links_of_the_editions_and_assignments_lead_to_files_that_are_there(made):
    for path in made.files:
        if path.endswith(".py"):
            continue
        text = made.files[path].decode()
        if path.endswith(".ipynb"):
            cells = made.notebook(path)["cells"]
            text = "\n".join(joined(c["source"]) for c in cells if c["cell_type"] == "markdown")
        folder = path.rsplit("/", 1)[0]
        for link in LINK.findall(text):
            place = f"{folder}/{link}"
            while "/../" in place:
                place = re.sub(r"[^/]+/\.\./", "", place, count=1)
            assert place in made.files, (path, link)


def test_every_language_says_the_same_things_with_the_same_fields():
    def fields(words):
        return {key: {f[1] for f in Formatter().parse(text)} for key, text in words.items()}

    assert set(WORDS) == set(LANGUAGES)
    first, *others = map(fields, WORDS.values())
    assert all(other == first for other in others)


def test_a_table_of_mistakes_is_markdown_whatever_a_mistake_is_called():
    mistake = {"name": "m", "what": {"en": "a | b <i>"}, "fix": {"en": "x_1 * x_2"}}
    table = catalogue.mistakes_table([mistake], "en")
    assert table.split("\n")[-1] == r"| `m` | a \| b \<i\> | x\_1 \* x\_2 |"
