"""With a kernel and ipywidgets there are controls: native, labelled; they record and explain."""

import json
import re
from types import SimpleNamespace

import ipywidgets
import pytest

from course_lib import live
from course_lib.practice import _practice_output
from course_lib.practice.quiz import answer, ask

from .shown import words

CHOICES = {
    "the <keys>": (True, "Each query shares out 1 < 2 units."),
    "the queries": (False, "Then columns sum to 1."),
    "both": (False, "A matrix has two axes."),
}
GUESSES = {"yes": "yes, it is <safe>", "no": "no, nan spreads"}
VIEW = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def clicked(monkeypatch, outputs):
    """A kernel in which somebody can click; what is displayed."""
    monkeypatch.delenv("COURSE_STATIC", raising=False)
    monkeypatch.setattr(live, "get_ipython", lambda: SimpleNamespace(kernel=object()))
    yield outputs
    ipywidgets.Widget.close_all()


def controls(outputs):
    """The widgets of the last output."""
    return list(
        walk(ipywidgets.widget_serialization["from_json"](f"IPY_MODEL_{shown_id(outputs)}", None))
    )


def shown_id(outputs):
    return outputs[-1][VIEW]["model_id"]


def walk(widget):
    yield widget
    for child in getattr(widget, "children", ()):
        yield from walk(child)


def only(kind, found):
    (one,) = [widget for widget in found if type(widget) is kind]
    return one


def told(found):
    """What is said below the controls."""
    return found[-1].value


def recorded(folder, section):
    return json.loads((folder / "module_03.progress.json").read_text(encoding="utf-8"))[section]


def question(progress, outputs):
    ask(progress, "axis", "Along which axis?", CHOICES)
    return controls(outputs)


# Questions


def test_one_output_holds_the_controls_the_page_and_the_text(progress, clicked):
    question(progress, clicked)
    assert len(clicked) == 1
    assert set(clicked[0]) == {"text/html", "text/plain", VIEW}
    assert set(clicked[0][VIEW]) == {"version_major", "version_minor", "model_id"}
    assert "<details>" in clicked[0]["text/html"]


@pytest.mark.parametrize("choice", [1, 2, 3])
def test_choosing_explains_every_choice_and_records_it(progress, clicked, folder, choice):
    found = question(progress, clicked)
    radio = only(ipywidgets.RadioButtons, found)
    assert (radio.value, told(found)) == (None, "")
    radio.value = choice
    right, why = list(CHOICES.values())[choice - 1]
    verdict = "✓ right. " if right else "✗ not right. "
    assert told(found) == f'<p role="status">{verdict}{why.replace("<", "&lt;")}</p>'
    assert recorded(folder, "quiz") == {
        "axis": {"said": {"en": ["Along which axis?"]}, "choice": choice, "right": right}
    }


def test_choosing_again_explains_the_new_choice(progress, clicked, folder):
    found = question(progress, clicked)
    radio = only(ipywidgets.RadioButtons, found)
    for choice in (2, 1, 3):
        radio.value = choice
    assert "A matrix has two axes." in told(found)
    assert recorded(folder, "quiz") == {
        "axis": {"said": {"en": ["Along which axis?"]}, "choice": 3, "right": False}
    }


def test_radio_buttons_show_all_choices_in_order_under_a_label(progress, clicked):
    found = question(progress, clicked)
    radio = only(ipywidgets.RadioButtons, found)
    assert radio._options_labels == tuple(CHOICES)
    assert radio.description == "Your choice"
    assert radio.style.description_width == "initial"
    assert not radio.disabled
    assert "course-choices" in radio._dom_classes
    assert "<style>.course-choices " in found[1].value
    assert "Along which axis?" in found[1].value


def test_an_earlier_answer_is_shown_again_with_its_explanation(progress, clicked, begin):
    question(progress, clicked)
    answer(progress, "axis", 2)
    found = question(begin(), clicked)
    assert only(ipywidgets.RadioButtons, found).value == 2
    assert "Then columns sum to 1." in told(found)


def test_an_earlier_answer_that_is_no_choice_any_more_is_not_shown(progress, clicked, begin):
    progress.file.change("quiz", "axis", {"choice": 4, "right": False})
    assert only(ipywidgets.RadioButtons, question(begin(), clicked)).value is None


# Predictions


def test_a_choice_is_recorded_when_it_is_made(progress, clicked, folder, capsys):
    progress.predict("row", "Safe?", GUESSES)
    found = controls(clicked)
    radio = only(ipywidgets.RadioButtons, found)
    assert radio._options_labels == tuple(GUESSES.values())
    assert (radio.value, radio.description) == (None, "Your choice")
    radio.value = "no"
    assert told(found).startswith('<p role="status">Recorded: no, nan spreads. ')
    radio.value = "yes"
    assert "Recorded: yes, it is &lt;safe&gt;. " in told(found)
    assert recorded(folder, "predictions") == {
        "row": {
            "said": {"en": ["Safe?", "yes, it is <safe>"]},
            "guess": "yes",
            "seen": False,
            "late": False,
        }
    }
    progress.compare("row", "yes")
    assert capsys.readouterr().out.startswith(
        "✓ As predicted. Predicted: yes, it is <safe>; result"
    )


def test_a_number_is_recorded_when_the_button_is_pressed(progress, clicked, folder):
    progress.predict("params", "How many?")
    found = controls(clicked)
    number, button = only(ipywidgets.FloatText, found), only(ipywidgets.Button, found)
    assert (number.description, button.description) == ("Your number", "Record my prediction")
    number.value = 12_000
    assert not (folder / "module_03.progress.json").exists()
    button.click()
    assert recorded(folder, "predictions")["params"]["guess"] == 12_000
    assert told(found).startswith('<p role="status">Recorded: 12000. ')


def test_each_press_records_the_number_that_stands_there_then(progress, clicked, folder):
    progress.predict("params", "How many?")
    found = controls(clicked)
    number, button = only(ipywidgets.FloatText, found), only(ipywidgets.Button, found)
    assert number.value == 0
    for value in (-3, 0.5, 0):
        number.value = value
        button.click()
        number.value = 7
        assert recorded(folder, "predictions")["params"]["guess"] == value
        assert f"Recorded: {value}. " in told(found)


def test_what_is_pressed_or_chosen_after_the_result_is_late(progress, clicked, folder):
    progress.compare("params", 3)
    progress.compare("row", "no")
    progress.predict("params", "How many?")
    found = controls(clicked)
    only(ipywidgets.FloatText, found).value = 3
    only(ipywidgets.Button, found).click()
    progress.predict("row", "Safe?", GUESSES)
    only(ipywidgets.RadioButtons, controls(clicked)).value = "no"
    for name in ("params", "row"):
        assert recorded(folder, "predictions")[name]["late"] is True
    progress.compare("params", 3)
    assert recorded(folder, "predictions")["params"]["late"] is True


def test_the_question_above_the_controls_shows_its_words_as_they_are(progress, clicked):
    progress.predict("row", "Is <u>1</u> < 2?", GUESSES)
    title = controls(clicked)[1].value
    assert "Prediction. Is &lt;u&gt;1&lt;/u&gt; &lt; 2?" in title


def test_an_earlier_prediction_is_shown_again_and_stays_as_it_was(progress, clicked, begin, folder):
    progress.predict("row", "Safe?", GUESSES, guess="no")
    progress.predict("params", "How many?", guess=12_000)
    progress.compare("row", "no")
    before = recorded(folder, "predictions")
    fresh = begin()
    fresh.predict("row", "Safe?", GUESSES)
    assert only(ipywidgets.RadioButtons, controls(clicked)).value == "no"
    assert "Recorded: no" in told(controls(clicked))
    fresh.predict("params", "How many?")
    assert only(ipywidgets.FloatText, controls(clicked)).value == 12_000
    assert recorded(folder, "predictions") == before
    fresh.predict("zero", "How many?", guess=0)
    fresh.predict("zero", "How many?")
    assert "Recorded: 0" in told(controls(clicked))


@pytest.mark.parametrize(("kept", "choices"), [("maybe", GUESSES), (3, GUESSES), ("yes", None)])
def test_a_guess_that_todays_question_cannot_have_is_not_shown(progress, clicked, kept, choices):
    progress.file.change("predictions", "row", {"guess": kept, "seen": False, "late": False})
    progress.predict("row", "Safe?", choices)
    assert told(controls(clicked)) == ""


def test_a_guess_given_in_code_shows_no_controls(progress, clicked):
    progress.predict("row", "Safe?", GUESSES, guess="no")
    assert clicked == []


def test_all_controls_can_be_reached_by_keyboard_and_none_is_hidden(progress, clicked):
    question(progress, clicked)
    found = controls(clicked)
    progress.predict("params", "How many?")
    for widget in [*found, *controls(clicked)]:
        assert getattr(widget, "tabbable", None) in (None, True)
        assert widget.layout.visibility is None
        assert widget.layout.display is None


# Where nobody can click


def test_no_random_id_is_in_an_output_when_pictures_are_asked_for(progress, clicked, monkeypatch):
    monkeypatch.setenv("COURSE_STATIC", "1")
    ask(progress, "axis", "Along which axis?", CHOICES)
    progress.predict("row", "Safe?", GUESSES)
    progress.predict("params", "How many?")
    assert [set(bundle) for bundle in clicked] == [{"text/html", "text/plain"}] * 3
    assert not re.search("[0-9a-f]{32}", json.dumps(clicked))


def test_where_widgets_cannot_be_imported_the_page_tells_how_to_answer(
    progress, clicked, monkeypatch
):
    monkeypatch.setattr(live, "load_widgets", lambda: exec("raise ImportError"))
    ask(progress, "axis", "Along which axis?", CHOICES)
    assert VIEW not in clicked[0]
    assert 'answer(progress, "axis", 1)' in words(clicked.page)


def test_outside_ipython_only_the_text_is_printed(progress, monkeypatch, capsys):
    monkeypatch.setattr(_practice_output, "get_ipython", lambda: None)
    progress.show()
    assert "<" not in capsys.readouterr().out
