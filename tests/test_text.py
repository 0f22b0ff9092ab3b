"""The language of a message: picked by one constant, filled in; and numbers as it has them."""

import pytest

from course_lib import text
from course_lib.text import localized, written_digits, written_number, written_share

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


@pytest.mark.parametrize(
    ("number", "digits", "english", "russian"),
    [
        (0.644, 2, "0.64", "0,64"),
        (3, 0, "3", "3"),
        (1024, 0, "1024", "1024"),
        (10_000, 0, "10,000", "10\N{NO-BREAK SPACE}000"),
        (9999.7, 0, "10,000", "10\N{NO-BREAK SPACE}000"),
        (9999.4, 0, "9999", "9999"),
        (9999.7, 1, "9999.7", "9999,7"),
        (-0.004, 2, "0.00", "0,00"),
        (-12_345, 0, "-12,345", "\N{MINUS SIGN}12\N{NO-BREAK SPACE}345"),
        (1234567.25, 1, "1,234,567.2", "1\N{NO-BREAK SPACE}234\N{NO-BREAK SPACE}567,2"),
        (-0.5, 1, "-0.5", "\N{MINUS SIGN}0,5"),
        (0.123456, 6, "0.123456", "0,123456"),
    ],
)
def test_numbers_are_written_as_the_language_writes_them(
    monkeypatch, number, digits, english, russian
):
    assert written_number(number, digits) == english
    monkeypatch.setattr(text, "LANGUAGE", "ru")
    assert written_number(number, digits) == russian


@pytest.mark.parametrize(
    ("digits", "russian"),
    [
        ("1000", "1000"),
        ("10000", "10\N{NO-BREAK SPACE}000"),
        ("1234567.25", "1\N{NO-BREAK SPACE}234\N{NO-BREAK SPACE}567,25"),
        ("0.00001", "0,00001"),
        ("\N{MINUS SIGN}2.5", "\N{MINUS SIGN}2,5"),
        ("1e-05", "1e\N{MINUS SIGN}05"),
        ("1,234,567", "1\N{NO-BREAK SPACE}234\N{NO-BREAK SPACE}567"),
    ],
)
def test_digits_get_the_marks_of_the_language_and_stay_in_english(monkeypatch, digits, russian):
    assert written_digits(digits) == digits
    monkeypatch.setattr(text, "LANGUAGE", "ru")
    assert written_digits(digits) == russian


def test_a_small_share_is_no_zero(monkeypatch):
    shares = (0, 1e-300, 0.0049, 0.005, 0.644)
    assert [written_share(share) for share in shares] == ["0", "<0.01", "<0.01", "0.01", "0.64"]
    monkeypatch.setattr(text, "LANGUAGE", "ru")
    assert [written_share(share) for share in shares] == ["0", "<0,01", "<0,01", "0,01", "0,64"]
