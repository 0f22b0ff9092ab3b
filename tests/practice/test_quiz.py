"""Every choice is explained, right or wrong, and the one chosen last is recorded."""

import json

import pytest

from course_lib import text
from course_lib.practice.quiz import answer, ask

CHOICES = {
    "the keys": (True, "Each query shares out one unit."),
    "the queries": (False, "Then columns sum to 1."),
    "both": (False, "A matrix has two axes."),
}


@pytest.fixture
def asked(progress, capsys):
    ask(progress, "axis", "Along which axis?", CHOICES)
    capsys.readouterr()
    return progress


def recorded(folder):
    return json.loads((folder / "module_03.progress.json").read_text(encoding="utf-8"))["quiz"]


def test_in_plain_words_the_choices_are_numbered_and_nothing_is_given_away(asked, capsys):
    ask(asked, "axis", "Along which axis?", CHOICES)
    assert capsys.readouterr().out == (
        "Quiz question. Along which axis?\n  1. the keys\n  2. the queries\n  3. both\n"
        'To record your answer, run answer(progress, "axis", 1) with the number of your choice.\n'
    )


def test_the_order_is_the_authors(progress, capsys):
    ask(progress, "axis", "Along which axis?", dict(reversed(CHOICES.items())))
    assert "1. both\n  2. the queries\n  3. the keys" in capsys.readouterr().out


@pytest.mark.parametrize(("choice", "said"), [(1, "✓ right. "), (3, "✗ not right. ")])
def test_an_answer_is_explained_and_recorded(asked, folder, capsys, choice, said):
    answer(asked, "axis", choice)
    assert capsys.readouterr().out == f"{said}{list(CHOICES.values())[choice - 1][1]}\n"
    assert recorded(folder) == {
        "axis": {"said": {"en": ["Along which axis?"]}, "choice": choice, "right": choice == 1}
    }


def test_the_last_answer_counts(asked, folder):
    answer(asked, "axis", 1)
    answer(asked, "axis", 3)
    assert recorded(folder) == {
        "axis": {"said": {"en": ["Along which axis?"]}, "choice": 3, "right": False}
    }


def test_asking_records_nothing(asked, folder):
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("choice", [0, 4, -1, "1", True, 1.0, None])
def test_a_choice_that_there_is_not_is_refused(asked, folder, choice):
    with pytest.raises(ValueError, match="choice must be a whole number from 1 to 3; got"):
        answer(asked, "axis", choice)
    assert list(folder.iterdir()) == []


def test_a_question_that_was_not_asked_says_to_run_its_cell(progress):
    with pytest.raises(ValueError, match="The question 'axis' has not been asked yet: run its"):
        answer(progress, "axis", 1)


@pytest.mark.parametrize(
    ("name", "question", "choices", "message"),
    [
        ("", "Why?", CHOICES, "needs a name and words"),
        ("a", " ", CHOICES, "needs a name and words"),
        ("a", "Why?", {"one": (True, "Yes.")}, "exactly one of two or more"),
        ("a", "Why?", {"one": (False, "No."), "two": (False, "No.")}, "exactly one of two or more"),
        ("a", "Why?", {"one": (True, "Yes."), "two": (True, "Yes.")}, "exactly one of two or more"),
        ("a", "Why?", {"one": (True, "Yes."), "two": (None, "No.")}, "exactly one of two or more"),
        ("a", "Why?", {"one": (None, "Yes."), "two": (False, "No.")}, "exactly one of two or more"),
        ("a", "Why?", {"one": (True, "Yes."), "two": (False, " ")}, "none for \\['two'\\]"),
    ],
)
def test_a_question_that_could_mislead_is_refused(progress, name, question, choices, message):
    with pytest.raises(ValueError, match=message):
        ask(progress, name, question, choices)


def test_progress_shows_what_was_answered_and_what_was_not(asked, capsys):
    ask(asked, "scale", "Why divide?", CHOICES)
    answer(asked, "axis", 2)
    capsys.readouterr()
    asked.show()
    shown = capsys.readouterr().out.splitlines()
    place = shown.index("Quiz: 0 of 2 right")
    assert shown[place + 1 : place + 3] == [
        "  Along which axis? · ✗ not right",
        "  Why divide? · ○ nothing yet",
    ]


def test_an_answer_of_an_earlier_session_is_counted(asked, begin, capsys):
    answer(asked, "axis", 1)
    capsys.readouterr()
    begin().show()
    assert "Quiz: 1 of 1 right\n  Along which axis? · ✓ right\n" in capsys.readouterr().out


def test_a_question_of_an_earlier_session_is_read_in_the_language_of_the_notebook(
    asked, begin, capsys, monkeypatch
):
    answer(asked, "axis", 2)
    monkeypatch.setattr(text, "LANGUAGE", "ru")
    back = begin()
    ask(back, "axis", "Вдоль какой оси?", CHOICES)
    answer(back, "axis", 2)
    for language, question in {"ru": "Вдоль какой оси?", "en": "Along which axis?"}.items():
        monkeypatch.setattr(text, "LANGUAGE", language)
        capsys.readouterr()
        begin().show()
        assert f"  {question} · ✗" in capsys.readouterr().out
