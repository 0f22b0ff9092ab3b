"""The words of a view: all there, with no field too many, and numbers as each language has them."""

import pytest

from course_lib import text
from course_lib.views.words import check_view_words, written_list, written_number

GOOD = {"label": "Mask", "title": "{kept} of {total}"}


def check(words):
    check_view_words(words, "label", title="kept total")


def test_right_words_pass_also_when_a_field_is_left_out():
    check(GOOD)
    check({**GOOD, "title": "{total}, {total} and {{braces}}"})


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        ({"label": "Mask"}, ValueError, r"missing=\['title'\], unknown=\[\]"),
        ({**GOOD, "lable": "Mask"}, ValueError, r"missing=\[\], unknown=\['lable'\]"),
        ({**GOOD, "label": " "}, ValueError, r"words\['label'\] is blank"),
        ({**GOOD, "label": 3}, TypeError, r"words\['label'\] must be a str; got int"),
        ({**GOOD, "title": "{left}"}, ValueError, r"\['kept', 'total'\]; got \['left'\]"),
        ({**GOOD, "title": "{kept[0]}"}, ValueError, r"got \['kept\[0\]'\]"),
        ({**GOOD, "label": "{kept}"}, ValueError, r"may use the fields \[\]; got \['kept'\]"),
        ({**GOOD, "title": "{kept"}, ValueError, r"is no text with fields .*: '\{kept'"),
        ([("label", "Mask")], TypeError, "words must be a dict; got list"),
    ],
)
def test_wrong_words_are_named(words, error, message):
    with pytest.raises(error, match=message):
        check(words)


@pytest.mark.parametrize(
    ("number", "digits", "english", "russian"),
    [
        (0.644, 2, "0.64", "0,64"),
        (3, 0, "3", "3"),
        (1024, 0, "1024", "1024"),
        (10_000, 0, "10,000", "10\N{NO-BREAK SPACE}000"),
        (9999.7, 0, "10,000", "10\N{NO-BREAK SPACE}000"),
        (9999.4, 0, "9999", "9999"),
        (1234567.25, 1, "1,234,567.2", "1\N{NO-BREAK SPACE}234\N{NO-BREAK SPACE}567,2"),
        (-0.5, 1, "-0.5", "-0,5"),
    ],
)
def test_numbers_are_written_as_the_language_writes_them(
    monkeypatch, number, digits, english, russian
):
    assert written_number(number, digits) == english
    monkeypatch.setattr(text, "LANGUAGE", "ru")
    assert written_number(number, digits) == russian


def test_a_list_is_parted_by_what_no_number_holds(monkeypatch):
    assert written_list(["sun 0.33", "moon 0.67"]) == "sun 0.33, moon 0.67"
    monkeypatch.setattr(text, "LANGUAGE", "ru")
    assert written_list(["солнце 0,33", "луна 0,67"]) == "солнце 0,33; луна 0,67"
