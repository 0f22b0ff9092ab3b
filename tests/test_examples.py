"""Worked examples accept the right numbers, and show the first that is missed."""

import math

import pytest

from course_lib import text
from course_lib.contracts import ContractViolation
from course_lib.mistakes.examples import check_examples

EXAMPLES = {"small": ({"x": 4.0}, 2.0), "endless": ({"x": math.inf}, math.inf)}


def test_right_numbers_are_a_report_with_one_row_each():
    report = check_examples(lambda x: x**0.5, EXAMPLES)
    assert report.attempted
    assert [row.name for row in report.clauses] == ["small", "endless"]
    assert str(report).startswith("✓ check_examples")


def test_a_stub_is_not_attempted():
    def stub(x):
        raise NotImplementedError

    assert str(check_examples(stub, EXAMPLES)).startswith("○ check_examples")


@pytest.mark.parametrize("language", ["en", "ru"])
@pytest.mark.parametrize(
    ("candidate", "name"),
    [
        (lambda x: x / 2 + 1e-3, "small"),
        (lambda x: math.nan, "small"),
        (lambda x: None, "small"),
        (lambda x: "2.0.0", "small"),
        (lambda x: x**0.5 if x < 9 else 3.0, "endless"),
    ],
)
def test_the_first_wrong_number_is_shown_with_its_example(candidate, name, language, monkeypatch):
    monkeypatch.setattr(text, "LANGUAGE", language)
    with pytest.raises(ContractViolation, match="x = ") as caught:
        check_examples(candidate, EXAMPLES)
    assert caught.value.clause == name


def test_an_error_of_the_candidate_is_told_and_chained():
    with pytest.raises(ContractViolation, match="raised ZeroDivisionError: ") as caught:
        check_examples(lambda x: 1 // 0, EXAMPLES)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
