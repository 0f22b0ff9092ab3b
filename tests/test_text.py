"""The language of a message: picked by one constant, filled in; the first text stands in."""

import pytest

from course_lib import text
from course_lib.text import localized

GREETING = {"en": "{n} rows", "ru": "строк: {n}"}


def test_the_checkout_speaks_english():
    assert localized(GREETING, n=3) == "3 rows"


def test_the_language_constant_decides(monkeypatch):
    monkeypatch.setattr(text, "LANGUAGE", "ru")
    assert localized(GREETING, n=3) == "строк: 3"


def test_braces_in_a_value_are_left_alone():
    assert localized(GREETING, n="{x}") == "{x} rows"


def test_a_language_that_a_table_lacks_gets_its_first_text(monkeypatch):
    monkeypatch.setattr(text, "LANGUAGE", "qtz")
    assert localized(GREETING, n=1) == "1 rows"
    assert localized({"qtz": "{n} vicoj", **GREETING}, n=1) == "1 vicoj"


def test_a_field_without_a_value_is_an_error():
    with pytest.raises(KeyError, match="n"):
        localized(GREETING)
