"""Predictions, quiz, progress and views, by mouse and keyboard in JupyterLab."""

import json

import pytest

from course_lib.practice._practice_texts import _PRACTICE_TEXTS
from course_lib.text import both

from .desk import NAMES, read_notebook
from .driver import NAMELESS
from .exercises import find_exercises
from .looks import speaks
from .pictures import keep_pictures
from .practice import find_cells, find_predictions, find_quiz, find_views

pytestmark = [
    pytest.mark.delivery,
    pytest.mark.xdist_group("lab"),
    pytest.mark.parametrize(("language", "name"), NAMES),
]


def words(entry, language, **values):
    return both(_PRACTICE_TEXTS[entry])[language].format(**values)


def places(notebook, document):
    """Where to take pictures of a notebook: {label: cell}."""
    figures = [c["key"] for c in notebook.cells if any(o["figures"] for o in c["outputs"])]
    found = {
        "top": [document["cells"][0]["id"]],
        "folded": [cell["key"] for cell in notebook.cells if cell["placeholder"]],
        "figure": figures,
        "predict": [prompt.key for prompt in find_predictions(document)],
        "quiz": [prompt.key for prompt in find_quiz(document)],
        "view": find_views(document),
    }
    return {label: keys[0] for label, keys in found.items() if keys}


def test_a_prediction_made_by_a_click_is_held_against_what_comes(notebook, language, name):
    document = read_notebook(language, name)
    prompt = next(each for each in find_predictions(document) if each.choices)
    chosen = list(prompt.choices.values())[-1]
    cell = notebook.cell(prompt.key)
    notebook.reads(prompt.key, prompt.question)
    cell.get_by_label(chosen, exact=True).check()
    notebook.reads(prompt.key, words("recorded", language, guess=chosen))
    (comparing,) = find_cells(document, "compare", prompt.name)
    without, _, _ = words("compare_nothing", language, actual="|").partition("|")
    assert without in notebook.output(comparing)
    told = notebook.run(comparing)
    assert chosen in told
    assert ("✓" in told) != ("✗" in told)
    assert speaks(language, told)


def test_a_number_is_predicted_by_keyboard(notebook, language, name):
    prompt = next(
        each for each in find_predictions(read_notebook(language, name)) if not each.choices
    )
    field = notebook.cell(prompt.key).get_by_label(words("your_number", language))
    field.fill("7")
    field.press("Tab")
    notebook.page.keyboard.press("Enter")
    notebook.reads(prompt.key, words("recorded", language, guess="7"))


def test_every_choice_of_the_quiz_is_explained_right_or_wrong(notebook, language, name):
    questions = find_quiz(read_notebook(language, name))
    for prompt in questions:
        for choice, (right, explanation) in prompt.choices.items():
            notebook.cell(prompt.key).get_by_label(choice, exact=True).check()
            said = words("right" if right else "wrong", language)
            notebook.reads(prompt.key, f"{said}. {explanation}")


def test_a_view_moved_by_keyboard_says_in_words_what_it_shows_now(notebook, language, name):
    views = find_views(read_notebook(language, name))
    assert views
    for key in views:
        assert speaks(language, notebook.move(key))


def test_every_control_has_a_name_and_letters_typed_at_it_do_nothing_to_the_cells(
    notebook, language, name
):
    document = read_notebook(language, name)
    prompts = [*find_predictions(document), *find_quiz(document)]
    for key in [*find_views(document), *(prompt.key for prompt in prompts)]:
        assert notebook.ask(NAMELESS, key) == []
    notebook.cell(key).get_by_role("radio").first.focus()
    for letter in "bddx":
        notebook.page.keyboard.press(letter)
    assert notebook.ask("panel.content.widgets.length") == len(document["cells"])


def test_what_was_done_is_shown_and_outlives_the_kernel(notebook, language, name):
    document = read_notebook(language, name)
    exercise = find_exercises(document)[0]
    notebook.copy_code(exercise.solution)
    notebook.paste_over(exercise.stub)
    notebook.run(exercise.stub)
    assert notebook.run(exercise.check).startswith("✓")
    shown = find_cells(document, "show")[-1]
    notebook.run(shown)
    before = notebook.cell(shown).locator("table").all_inner_texts()
    assert "✓" in before[0]
    bar = notebook.cell(shown).locator("progress")
    assert 1 <= int(bar.get_attribute("value")) <= int(bar.get_attribute("max"))
    (kept,) = notebook.file.parent.glob(f"{name[:9]}.progress.json")
    assert json.loads(kept.read_text(encoding="utf-8"))["exercises"]

    keep_pictures(notebook, places(notebook, document) | {"progress": shown})
    (begin,) = find_cells(document, "Progress", name[:9])
    notebook.start_anew(begin)
    notebook.run(begin)
    notebook.run(shown)
    assert notebook.cell(shown).locator("table").first.inner_text() == before[0]
    assert bar.get_attribute("value") != "0"
