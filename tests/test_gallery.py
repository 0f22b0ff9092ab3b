"""Predictions of the gallery: open, surprised, right."""

import pytest

from course_lib import text
from course_lib.mistakes.gallery import check_predictions

MEASURED = {"dropped": True, "copied": False}


def test_an_open_prediction_is_not_attempted_and_lists_the_names():
    report = check_predictions({"dropped": True, "copied": None}, MEASURED)
    assert not report.attempted
    assert str(report).startswith("○ check_predictions: not attempted")
    assert "write True or False for each of: dropped, copied" in str(report)


def test_right_predictions_pass():
    report = check_predictions(dict(MEASURED), MEASURED)
    assert [(row.name, row.measured, row.allowed) for row in report.clauses] == [
        ("dropped", "True", "True"),
        ("copied", "False", "False"),
    ]
    assert str(report).startswith("✓ check_predictions: all 2 clauses hold")


def test_a_surprise_is_named_with_what_was_measured_and_stops_nothing():
    report = check_predictions({"dropped": True, "copied": True}, MEASURED)
    assert str(report).startswith("○ check_predictions: a surprise: copied\n")
    assert [(row.measured, row.allowed) for row in report.clauses][1] == ("False", "True")
    assert report["right"] == 1


def test_the_table_sets_what_was_predicted_beside_what_was_measured():
    report = check_predictions({"dropped": True, "copied": True}, MEASURED)
    rows = [line.split() for line in str(report).split("\n")[1:4]]
    assert rows == [
        ["clause", "measured", "predicted", "what", "it", "means"],
        ["dropped", "True", "True", "as", "predicted"],
        ["copied", "False", "True", "a", "surprise"],
    ]


def test_a_surprise_is_named_in_russian_too(monkeypatch):
    monkeypatch.setattr(text, "LANGUAGE", "ru")
    report = check_predictions({"dropped": False, "copied": True}, MEASURED)
    assert str(report).startswith("○ check_predictions: неожиданность: dropped, copied\n")


def test_other_names_are_an_error_at_the_door():
    with pytest.raises(ValueError, match=r"the names are \['dropped', 'copied'\], got"):
        check_predictions({"dropped": True}, MEASURED)
