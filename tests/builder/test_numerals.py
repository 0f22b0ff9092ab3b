"""Numbers are read as each language writes them; formulas as all languages write them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_build.text.formulas import read_formula
from course_build.text.numerals import WRITINGS, numbers, writing, zero_words

SAME = {
    "a fraction": ("0.85", "0,85", "0.85"),
    "groups": ("5,550 pairs", "5\u202f550 пар", "5550"),
    "groups without a sign": ("1,000", "1000", "1000"),
    "millions": ("1,234,567.5", "1\u00a0234\u00a0567,5", "1234567.5"),
    "percent": ("8%", "8\u00a0%", "8%"),
    "a power": ("10⁻⁷", "10⁻⁷", "10^-7"),
    "an exponent": ("1e-9", "0,000000001", "0.000000001"),
    "a minus": ("−5 degrees", "-5 градусов", "-5"),
    "a version": ("Python 3.11", "Python 3.11", "3.11"),
    "a name": ("GPT-2", "GPT-2", "2"),
    "zeros at the end": ("2.50", "2,5", "2.5"),
}


@pytest.mark.parametrize(("en", "ru", "value"), SAME.values(), ids=SAME.keys())
def test_a_number_is_the_same_value_in_both_languages(en, ru, value):
    assert [n.value for n in numbers(en, "en")] == [value]
    assert [n.value for n in numbers(ru, "ru")] == [value]


MANY = {
    "a list": ("1, 2 and 3", "en", ["1", "2", "3"]),
    "a Russian list": ("1, 2 и 3,5", "ru", ["1", "2", "3.5"]),
    "a range": ("5–10", "ru", ["5", "10"]),
    "a hyphened range": ("5-10", "en", ["5", "10"]),
    "a division": ("1/16", "en", ["1", "16"]),
    "the end of a sentence": ("It is 3. Then 4.", "en", ["3", "4"]),
    "English groups in Russian": ("5,550", "ru", ["5.55"]),
    "Russian groups in English": ("0,85", "en", ["0", "85"]),
    "groups parted by a plain space": ("5 550", "ru", ["5", "550"]),
    "German groups": ("5.550,5 und 3.11", "de", ["5550.5", "3.11"]),
    "four digits behind a sign": ("1,2345", "en", ["1", "2345"]),
    "no number": ("two", "en", []),
}


@pytest.mark.parametrize(("text", "language", "values"), MANY.values(), ids=MANY.keys())
def test_signs_between_numbers_are_understood(text, language, values):
    assert [n.value for n in numbers(text, language)] == values


@given(st.decimals(0, 10**9, places=2), st.sampled_from(sorted(WRITINGS)))
def test_what_a_language_writes_it_reads_again(number, language):
    way = writing(language)
    written = f"{number:,}".translate(str.maketrans({",": way.groups[0], ".": way.decimal}))
    [read] = numbers(f"a {written}; b", language)
    assert Decimal(read.value) == number
    assert (read.shown, read.start) == (written, 2)


def test_a_language_that_is_not_listed_writes_a_decimal_comma():
    assert [n.value for n in numbers("1\u00a0000,5", "qtz")] == ["1000.5"]


def test_nought_in_words_is_seen():
    assert zero_words("It stays zero.", "en") == [(9, "zero")]
    assert [word for _, word in zero_words("Нулевая строка; с нуля", "ru")] == ["Нулевая", "нуля"]
    assert zero_words("nulo", "qtz") == []


# Formulas


ALIKE = {
    "spaces": (r"a\,b + c", r"a b+c"),
    "words": (r"x \text{ or } y", r"x \text{ или } y"),
    "a name in words": (r"\mathrm{loss}_n", r"\mathrm{потери}_n"),
    "a fraction": ("0.5", "0{,}5"),
    "groups": ("5{,}550", r"5\,550"),
    "needless braces": ("x^{2}", "x^2"),
    "the sentence's punctuation": ("x = y.", "x = y,"),
    "a Latin word for a word": (r"x \text{ or } y", r"x \text{ oder } y"),
    "a name kept": (r"\mathrm{Var}(x)", r"\mathrm{Var}(x)"),
    "an unclosed word": (r"\text{or", r"\text{или"),
}
OTHER = {
    "a digit": ("x + 1", "x + 2"),
    "a sign": ("a - b", "a + b"),
    "an index": ("x_i", "x_j"),
    "a name": (r"\mathrm{Var}(x)", r"\mathrm{Vor}(x)"),
    "a function": (r"\operatorname{softmax}(x)", r"\operatorname{softmin}(x)"),
    "a word less": (r"x \text{ or } y", "x y"),
    "order": ("ab", "ba"),
    "braces around two": ("x^{12}", "x^12"),
    "a command": (r"\le", r"\ge"),
    "letters, not a command": (r"\le", "le"),
}


@pytest.mark.parametrize(("en", "ru"), ALIKE.values(), ids=ALIKE.keys())
def test_a_formula_translates_in_words_and_decimal_signs(en, ru):
    assert read_formula(ru, "ru").translates(read_formula(en, "en"))


@pytest.mark.parametrize(("en", "ru"), OTHER.values(), ids=OTHER.keys())
def test_anything_else_is_another_formula(en, ru):
    assert not read_formula(ru, "ru").translates(read_formula(en, "en"))
    assert not read_formula(en, "ru").translates(read_formula(ru, "en"))


def test_groups_as_english_writes_them_are_a_fraction_in_russian():
    assert not read_formula("5{,}550", "ru").translates(read_formula("5550", "en"))
