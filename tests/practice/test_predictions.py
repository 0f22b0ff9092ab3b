"""A prediction is written down before its result, compared with it, and called late if it is."""

import json
import math
import re

import pytest
import torch

from course_lib import text

CHOICES = {"yes": "yes, it is not masked", "no": "no, nan spreads"}


def recorded(folder):
    return json.loads((folder / "module_03.progress.json").read_text())["predictions"]


def shown(progress, capsys):
    capsys.readouterr()
    progress.show()
    return capsys.readouterr().out.splitlines()


def test_a_question_in_plain_words_says_how_to_answer(progress, capsys):
    progress.predict("row", "Will row 1 be safe?", CHOICES)
    out = capsys.readouterr().out
    assert out.startswith("Prediction. Will row 1 be safe?\n  yes: yes, it is not")
    assert 'guess="yes"' in out
    progress.predict("params", "How many parameters?")
    out = capsys.readouterr().out
    assert "put guess=... into this cell's call, with a number in place of the dots" in out
    assert not re.search(r"\d", out), "a number there is a hint, or misleads"


def test_a_choice_is_recorded_and_compared_in_its_words(progress, folder, capsys):
    progress.predict("row", "Safe?", CHOICES, guess="yes")
    assert capsys.readouterr().out.startswith("Recorded: yes, it is not masked. ")
    assert recorded(folder)["row"]["guess"] == "yes"
    progress.compare("row", "no")
    out = capsys.readouterr().out
    assert out.startswith(
        "✗ A surprise. Predicted: yes, it is not masked; result: no, nan spreads. It teaches\n"
    )
    progress.compare("row", "yes")
    assert capsys.readouterr().out.startswith(
        "✓ As predicted. Predicted: yes, it is not masked; result: yes"
    )


def test_what_is_compared_is_printed_in_lines_that_a_page_shows_whole(progress, capsys):
    many = {"a": "the\xa0first of them " * 9, "b": "f(x) " + "y" * 100}
    progress.predict("row", "Which?", many, guess="a")
    progress.compare("row", "b")
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if len(line) > 84] == ["y" * 100 + "."]
    progress.compare("row", "a")
    lines = capsys.readouterr().out.splitlines()
    assert "the\xa0first of them the\xa0first" in " ".join(lines)
    assert 70 < max(map(len, lines)) <= 84


@pytest.mark.parametrize(
    ("guess", "actual", "within", "held"),
    [
        (100, 100, 0.0, True),
        (100, 101, 0.0, False),
        (90, 100, 0.1, True),
        (110, 100, 0.1, True),
        (89, 100, 0.1, False),
        (-90, -100, 0.1, True),
        (0, 0, 0.1, True),
        (1e-9, 0, 0.1, False),
        (12_000, torch.tensor(12_345), 0.1, True),
        (1, math.inf, 0.1, False),
        (1, math.nan, 0.1, False),
    ],
)
def test_a_number_holds_within_its_share_of_the_result(
    progress, folder, guess, actual, within, held
):
    progress.predict("params", "How many?", guess=guess)
    progress.compare("params", actual, within=within)
    assert recorded(folder)["params"]["held"] is held


def test_the_distance_of_a_number_is_said(progress, capsys):
    progress.predict("params", "How many?", guess=12_000)
    progress.compare("params", 12_345, within=0.1)
    assert "Off by 2.79%; up to 10% counts as right." in capsys.readouterr().out


def test_without_a_prediction_the_result_is_told_all_the_same(progress, capsys):
    progress.compare("params", 12_345)
    first = capsys.readouterr().out
    assert first.startswith("○ The result: 12345.\nNo prediction was recorded")
    progress.compare("params", 12_345)
    assert capsys.readouterr().out == "○ The result: 12345.\n"  # said once for all


def test_a_prediction_made_after_the_result_is_called_late(progress, folder, capsys):
    progress.compare("row", "no")
    progress.predict("row", "Safe?", CHOICES, guess="no")
    progress.compare("row", "no")
    assert recorded(folder)["row"]["late"] is True
    assert "✓ as predicted (predicted after the result was shown)" in "\n".join(
        shown(progress, capsys)
    )


def test_the_same_prediction_again_is_not_late_and_a_changed_one_forgets_its_outcome(
    progress, folder
):
    progress.predict("row", "Safe?", CHOICES, guess="yes")
    progress.compare("row", "no")
    progress.predict("row", "Safe?", CHOICES, guess="yes")
    assert recorded(folder)["row"]["late"] is False
    progress.predict("row", "Safe?", CHOICES, guess="no")
    assert recorded(folder)["row"] == {
        "said": {"en": ["Safe?", "no, nan spreads"]},
        "guess": "no",
        "seen": True,
        "late": True,
    }


@pytest.mark.parametrize(
    ("guess", "choices", "error", "message"),
    [
        ("maybe", CHOICES, ValueError, "guess must be one of \\['yes', 'no'\\]; got 'maybe'"),
        (1, CHOICES, ValueError, "guess must be one of"),
        ("many", None, TypeError, "guess must be a number; got 'many'"),
        (True, None, TypeError, "guess must be a number"),
        (math.inf, None, ValueError, "guess must be finite"),
        (math.nan, None, ValueError, "guess must be finite"),
        (10**400, None, ValueError, "guess must be finite"),
        (1, {"only": "one"}, ValueError, "choices must hold two or more"),
    ],
)
def test_a_guess_that_cannot_be_compared_is_refused(
    progress, folder, guess, choices, error, message
):
    with pytest.raises(error, match=message):
        progress.predict("row", "Safe?", choices, guess=guess)
    assert not list(folder.iterdir())


@pytest.mark.parametrize("actual", [True, None, [1.0]])
def test_a_result_that_is_no_choice_and_no_number_is_refused(progress, actual):
    with pytest.raises(TypeError, match="actual must be the name of a choice or a number"):
        progress.compare("row", actual)


@pytest.mark.parametrize(
    ("choices", "actual", "message"),
    [
        (CHOICES, "maybe", "actual must be one of \\['yes', 'no'\\], as was asked; got 'maybe'"),
        (CHOICES, 3, "actual must be one of"),
        (None, "yes", "actual must be a number, as was asked; got 'yes'"),
    ],
)
def test_a_result_that_was_no_possible_answer_is_refused(progress, choices, actual, message):
    progress.predict("row", "Safe?", choices)
    with pytest.raises(ValueError, match=message):
        progress.compare("row", actual)


@pytest.mark.parametrize(
    ("kept", "choices", "actual"),
    [("maybe", CHOICES, "no"), (3, CHOICES, "no"), ("yes", None, 3)],
)
def test_a_guess_that_todays_question_cannot_have_is_no_guess(
    progress, capsys, kept, choices, actual
):
    progress.file.change("predictions", "row", {"guess": kept, "seen": False, "late": False})
    progress.predict("row", "Safe?", choices)
    assert "Recorded" not in capsys.readouterr().out
    progress.compare("row", actual)
    assert capsys.readouterr().out.startswith("○ The result: ")


@pytest.mark.parametrize(("kept", "actual"), [("yes", 3), (3, "yes")])
def test_a_guess_of_another_kind_than_the_result_is_no_guess(progress, capsys, kept, actual):
    progress.file.change("predictions", "row", {"guess": kept, "seen": False, "late": False})
    progress.compare("row", actual, within=0.1)
    assert capsys.readouterr().out.startswith("○ The result: ")


def test_numpy_and_torch_numbers_are_recorded_as_numbers(progress, folder):
    progress.predict("a", "How many?", guess=torch.tensor(3).numpy()[()])
    progress.predict("b", "How much?", guess=torch.tensor(0.5).numpy()[()])
    assert {n: e["guess"] for n, e in recorded(folder).items()} == {"a": 3, "b": 0.5}


def test_what_nobody_predicted_in_an_earlier_session_is_not_listed(progress, begin, capsys):
    progress.predict("row", "Safe?", CHOICES)
    progress.compare("row", "no")
    assert not any("row" in line or "Safe?" in line for line in shown(begin(), capsys))


def test_who_comes_back_reads_what_was_asked_and_answered_before_any_question_is_asked(
    progress, begin, capsys
):
    progress.predict("row", "Safe?", CHOICES, guess="yes")
    progress.predict("params", "How many?", guess=12_000)
    progress.compare("row", "yes")
    lines = shown(begin(), capsys)
    assert "  Safe? · yes, it is not masked · ✓ as predicted" in lines
    assert "  How many? · 12000 · ○ not compared yet" in lines


def test_what_was_said_in_another_language_is_shown_and_both_are_known_once_both_have_asked(
    progress, begin, capsys, monkeypatch
):
    progress.predict("row", "Safe?", CHOICES, guess="yes")
    monkeypatch.setattr(text, "LANGUAGE", "ru")
    back = begin()
    (line,) = [line for line in shown(back, capsys) if "Safe?" in line]
    assert line.startswith("  Safe? (на другом языке: выполните ячейку с этим вопросом, и он поя")
    assert line.endswith(" · yes, it is not masked · ○ ещё не сравнили")
    back.predict("row", "Безопасно?", {"yes": "да", "no": "нет"})
    assert "  Безопасно? · да · ○ ещё не сравнили" in shown(begin(), capsys)
    monkeypatch.setattr(text, "LANGUAGE", "en")
    assert "  Safe? · yes, it is not masked · ○ not compared yet" in shown(begin(), capsys)
    begin().predict("row", "Safe?", CHOICES, guess="no")
    monkeypatch.setattr(text, "LANGUAGE", "ru")
    assert not any("да ·" in line for line in shown(begin(), capsys))


def test_a_question_reads_as_today_and_what_was_kept_without_words_goes_by_its_name(
    progress, folder, capsys
):
    progress.file.change("predictions", "row", {"guess": "yes", "question": "Was it?"})
    progress.predict("params", "How many?")
    lines = shown(progress, capsys)
    assert "  row · yes · ○ not compared yet" in lines
    assert "  How many? · ○ nothing yet · " in lines
    progress.predict("row", "Safe?", CHOICES)
    written = progress.file.path.stat().st_mtime_ns
    progress.predict("row", "Safe?", CHOICES)
    assert progress.file.path.stat().st_mtime_ns == written
    assert f"  Safe? · {CHOICES['yes']} · ○ not compared yet" in shown(progress, capsys)
