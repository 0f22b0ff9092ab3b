"""What came out last is what is recorded, and what is recorded is what is shown."""

import json

import pytest

from course_lib.practice.progress import Progress
from course_lib.report import ContractReport, ContractViolation

from .conftest import EXERCISES, judge

CHOICES = {"yes": "yes, it is not masked", "no": "no, nan spreads"}


def recorded(folder):
    return json.loads((folder / "module_03.progress.json").read_text())["exercises"]


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


def test_a_violation_is_handed_back_and_its_diagnosis_recorded(progress, folder):
    violation = progress.check("mask", judge, "wrong")
    assert isinstance(violation, ContractViolation)
    assert 'the clause "rows" is broken' in repr(violation)  # as a notebook shows it
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


def plain_contract(function):
    """A contract as a learner writes it: asserts, and figures to show."""
    assert function(2) == 4, "two squared is four"
    return {"error": 0.0}


def unwritten(number):
    raise NotImplementedError


@pytest.mark.parametrize(
    ("candidate", "state", "said"),
    [
        (lambda x: x * x, "passed", "✓ plain_contract: every assert holds"),
        (lambda x: x, "broken", "✗ plain_contract: two squared is four"),
        (lambda x: x / 0, "broken", "✗ plain_contract: ZeroDivisionError: division by zero"),
        (unwritten, "open", "○ plain_contract: not attempted"),
    ],
)
def test_a_contract_of_plain_asserts_is_reported_too(progress, folder, candidate, state, said):
    assert str(progress.check("mask", plain_contract, candidate)).split("\n")[0] == said
    assert recorded(folder)["mask"]["state"] == state


def test_what_passed_in_this_session_takes_the_place_of_ours(progress, begin, capsys):
    assert progress.adopt("mask", "yours", "ours") == "ours"
    progress.check("mask", judge, "right")
    assert progress.adopt("mask", "yours", "ours") == "yours"
    assert begin().adopt("mask", "yours", "ours") == "ours"  # what passed once may be another now
    progress.check("mask", judge, "wrong")
    assert progress.adopt("mask", "yours", "ours") == "ours"
    assert "From here on the lesson uses your" in capsys.readouterr().out


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
    assert f"  Safe? · {CHOICES['no']} · ○ not compared yet" in shown(begin(), capsys)


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


def test_an_exercise_that_the_table_has_no_more_counts_for_nothing(progress, capsys):
    for name in ("gone", "mask"):
        entry = {"state": "passed", "clauses": ["rows"], "contract": "check_it"}
        progress.file.change("exercises", name, entry)
    lines = shown(progress, capsys)
    assert lines[0] == "Contracts passed: 1 of 3  ■□□"
    assert "gone" not in "".join(lines)


def test_showing_writes_nothing(progress, folder):
    progress.show()
    progress.certificate("Ada")
    assert not list(folder.iterdir())
