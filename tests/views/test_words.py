"""The words of a view: all there, with no field too many, and lists as each language has them."""

import pytest

from course_lib import text
from course_lib.views.words import check_view_words, written_list

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


def test_a_list_is_parted_by_what_no_number_holds(monkeypatch):
    assert written_list(["sun 0.33", "moon 0.67"]) == "sun 0.33, moon 0.67"
    monkeypatch.setattr(text, "LANGUAGE", "ru")
    assert written_list(["солнце 0,33", "луна 0,67"]) == "солнце 0,33; луна 0,67"
