"""What came out last is what is recorded, and what is recorded is what is shown."""

import json
import math

import pytest
import torch

from course_lib.practice.progress import Progress
from course_lib.report import ContractReport, ContractViolation

from .conftest import EXERCISES, judge

CHOICES = {"yes": "yes, it is not masked", "no": "no, nan spreads"}


def recorded(folder, section="exercises"):
    return json.loads((folder / "module_03.progress.json").read_text())[section]


def shown(progress, capsys):
    capsys.readouterr()
    progress.show()
    return capsys.readouterr().out.splitlines()


# Exercises


def test_a_report_is_handed_back_and_its_clauses_recorded(progress, folder):
    report = progress.check("mask", judge, "right")
    assert isinstance(report, ContractReport)
    assert recorded(folder) == {
        "mask": {"state": "passed", "clauses": ["rows", "masks"], "contract": "check_it"}
    }


def test_a_violation_is_raised_as_it_is_and_its_diagnosis_recorded(progress, folder):
    with pytest.raises(ContractViolation, match='the clause "rows" is broken'):
        progress.check("mask", judge, "wrong")
    assert recorded(folder)["mask"] == {
        "state": "broken",
        "contract": "check_it",
        "clause": "rows",
        "mistakes": ["not_scaled", "mask_inverted"],
    }


@pytest.mark.parametrize("candidate", ["stub", "surprise"])
def test_a_report_with_an_open_circle_is_no_pass(progress, folder, candidate):
    progress.check("mask", judge, candidate)
    assert recorded(folder) == {"mask": {"state": "open", "contract": "check_it"}}


def test_what_came_last_counts(progress, folder):
    progress.check("mask", judge, "right")
    with pytest.raises(ContractViolation):
        progress.check("mask", judge, "wrong")
    assert recorded(folder)["mask"]["state"] == "broken"
    progress.check("mask", judge, "right")
    assert recorded(folder)["mask"]["state"] == "passed"
    assert "clause" not in recorded(folder)["mask"]
    progress.check("mask", judge, "stub")
    assert recorded(folder)["mask"]["state"] == "open"


def test_a_contract_is_given_all_that_follows_it(progress):
    seen = []
    report = ContractReport("check_it")
    assert progress.check("mask", lambda *given: seen.append(given) or report, 1, {2: 3}) is report
    assert seen == [(1, {2: 3})]


def test_another_error_than_a_violation_records_nothing(progress, folder):
    with pytest.raises(ZeroDivisionError):
        progress.check("mask", lambda _: 1 / 0, None)
    assert not list(folder.iterdir())


def test_an_exercise_that_is_not_in_the_table_is_refused(progress):
    with pytest.raises(ValueError, match="the exercises are .*'mask'.*got 'mosk'"):
        progress.check("mosk", judge, "right")


@pytest.mark.parametrize(
    ("module", "exercises", "message"),
    [
        ("../x", EXERCISES, "module names a file"),
        ("", EXERCISES, "module names a file"),
        ("module_03", {}, "exercises is empty"),
        ("module_03", {"a": ("easy", "Title")}, "one of the levels"),
        ("module_03", {"a": ("core", " ")}, "and a title"),
    ],
)
def test_a_table_that_cannot_be_kept_is_refused(folder, module, exercises, message):
    with pytest.raises(ValueError, match=message):
        Progress(module, exercises)


def test_a_restarted_kernel_knows_what_was_recorded(progress, begin, capsys):
    progress.check("mask", judge, "right")
    progress.predict("row", "Safe?", CHOICES, guess="no")
    assert "  Write the mask · warm-up · ✓ passed, clauses checked: 2" in shown(begin(), capsys)
    assert "  row · no · ○ not compared yet" in shown(begin(), capsys)


def test_a_file_that_is_deleted_begins_anew(progress, folder, capsys):
    progress.check("mask", judge, "right")
    (folder / "module_03.progress.json").unlink()
    assert shown(progress, capsys)[0] == "Contracts passed: 0 of 3  □□□"


def test_the_folder_of_the_start_stays_the_folder(progress, folder, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    progress.check("mask", judge, "right")
    assert recorded(folder)["mask"]["state"] == "passed"


# What is shown


def test_everything_recorded_is_shown(progress, capsys):
    progress.check("mask", judge, "right")
    with pytest.raises(ContractViolation):
        progress.check("attention", judge, "wrong")
    progress.predict("row", "Safe?", CHOICES, guess="no")
    progress.compare("row", "no")
    assert shown(progress, capsys) == [
        "Contracts passed: 1 of 3  ■□□",
        "Exercises",
        "  Write the mask · warm-up · ✓ passed, clauses checked: 2",
        '  Write attention · core · ✗ the clause "rows" is broken; behaves like not_scaled, '
        "mask_inverted",
        "  Find the bug · stretch · ○ not passed yet",
        "Predictions",
        "  Safe? · no, nan spreads · ✓ as predicted",
        "Kept in module_03.progress.json beside this notebook; it never leaves your computer. "
        "Delete the file to begin anew.",
    ]


def test_showing_writes_nothing(progress, folder):
    progress.show()
    progress.certificate("Ada")
    assert not list(folder.iterdir())


# Predictions


def test_a_question_in_plain_words_says_how_to_answer(progress, capsys):
    progress.predict("row", "Will row 1 be safe?", CHOICES)
    out = capsys.readouterr().out
    assert out.startswith("Predict before you run: Will row 1 be safe?\n  yes: yes, it is not")
    assert 'guess="yes"' in out
    progress.predict("params", "How many parameters?")
    assert "guess=1000" in capsys.readouterr().out


def test_a_choice_is_recorded_and_compared_in_its_words(progress, folder, capsys):
    progress.predict("row", "Safe?", CHOICES, guess="yes")
    assert capsys.readouterr().out.startswith("Recorded: yes, it is not masked. ")
    assert recorded(folder, "predictions")["row"]["guess"] == "yes"
    progress.compare("row", "no")
    out = capsys.readouterr().out
    assert out.startswith(
        "✗ A surprise. Predicted: yes, it is not masked; result: no, nan spreads. It teaches"
    )
    progress.compare("row", "yes")
    assert capsys.readouterr().out.startswith(
        "✓ As predicted. Predicted: yes, it is not masked; result: yes"
    )


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
    assert recorded(folder, "predictions")["params"]["held"] is held


def test_the_distance_of_a_number_is_said(progress, capsys):
    progress.predict("params", "How many?", guess=12_000)
    progress.compare("params", 12_345, within=0.1)
    assert "Off by 2.79%; up to 10% counts as right." in capsys.readouterr().out


def test_without_a_prediction_the_result_is_told_all_the_same(progress, capsys):
    progress.compare("params", 12_345)
    assert capsys.readouterr().out.startswith("○ The result is 12345. You recorded no prediction")


def test_a_prediction_made_after_the_result_is_called_late(progress, folder, capsys):
    progress.compare("row", "no")
    progress.predict("row", "Safe?", CHOICES, guess="no")
    progress.compare("row", "no")
    assert recorded(folder, "predictions")["row"]["late"] is True
    assert "✓ as predicted (predicted after the result was shown)" in "\n".join(
        shown(progress, capsys)
    )


def test_the_same_prediction_again_is_not_late_and_a_changed_one_forgets_its_outcome(
    progress, folder
):
    progress.predict("row", "Safe?", CHOICES, guess="yes")
    progress.compare("row", "no")
    progress.predict("row", "Safe?", CHOICES, guess="yes")
    assert recorded(folder, "predictions")["row"]["late"] is False
    progress.predict("row", "Safe?", CHOICES, guess="no")
    assert recorded(folder, "predictions")["row"] == {"guess": "no", "seen": True, "late": True}


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
    assert capsys.readouterr().out.startswith("○ The result is ")


@pytest.mark.parametrize(("kept", "actual"), [("yes", 3), (3, "yes")])
def test_a_guess_of_another_kind_than_the_result_is_no_guess(progress, capsys, kept, actual):
    progress.file.change("predictions", "row", {"guess": kept, "seen": False, "late": False})
    progress.compare("row", actual, within=0.1)
    assert capsys.readouterr().out.startswith("○ The result is ")


def test_numpy_and_torch_numbers_are_recorded_as_numbers(progress, folder):
    progress.predict("a", "How many?", guess=torch.tensor(3).numpy()[()])
    progress.predict("b", "How much?", guess=torch.tensor(0.5).numpy()[()])
    assert {n: e["guess"] for n, e in recorded(folder, "predictions").items()} == {"a": 3, "b": 0.5}
