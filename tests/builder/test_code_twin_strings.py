"""The strings of code twins hold the same numbers, formulas and names."""

import re

import pytest

from .conftest import FRAME_LINES, code_twins

CODE_LOUD = {
    "a number": ("numbers", 'print("2 to 256")', 'print("от 2 до 255")', "ru (line 8) has 255"),
    "swapped strings": ("numbers", 'f("1", "2")', 'f("2", "1")', "ru (line 8) has 2"),
    "a formula": ("formulas", 'f("a $x_i$")', 'f("а $x_j$")', "ru (line 8) has $x_j$"),
    "in an f-string": ("numbers", 'f(f"{x} of 3")', 'f(f"{x} из 4")', "ru (line 8) has 4"),
    "in a format string": ("numbers", 'f("{n:.2f} 1")', 'f("{n:.2f} 2")', "has 2;"),
    "in a later line": ("numbers", 'f(1)\nf("1 a")', 'f(1)\nf("2 б")', "ru (line 10) has 2"),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "en", "ru", "words"), CODE_LOUD.values(), ids=CODE_LOUD.keys())
def test_strings_of_code_twins_hold_the_same_numbers_and_formulas(repo, kind, en, ru, words):
    names = "f = x = print\n"
    err = repo.refuse(code_twins("c", names + en, names + ru))
    assert f'cell "c": [parity-{kind}]' in err
    place = re.search(r"line (\d+)", words)
    if place:
        more = FRAME_LINES - 1
        words = words.replace(place[1], str(int(place[1]) + more), 1)
    assert words in err


def test_a_string_may_write_numbers_as_its_language_does(repo):
    en = 'print("0.5 of 5,550 at $x = 0.5$", f"{1} 8%", "{n:.2f}".format(n=1), "It is 0")'
    ru = 'print("0,5 из 5\u202f550 при $x = 0{,}5$", f"{1} 8 %", "{n:.2f}".format(n=1), "Нуль")'
    repo.build(code_twins("c", en, ru))


def test_a_code_twin_can_be_allowed_to_differ_in_its_strings(repo):
    cells = code_twins("c", 'print("1")', 'print("2")')
    differs = 'differs="numbers: counted from one"'
    repo.build(cells.replace('"ru" key="c"', f'"ru" key="c" {differs}'))
    err = repo.refuse(
        code_twins("c", 'print("1")', 'print("1")').replace(
            '"ru" key="c"', f'"ru" key="c" {differs}'
        )
    )
    assert "[needless-allowance]" in err


def test_strings_of_a_stale_twin_are_not_compared_but_shown(repo):
    repo.source(code_twins("c", 'print("1")', 'print("1")').replace('"1"', '"2"', 1))
    ran = repo.run()
    assert ran.code == 1
    assert "[stale-twin]" in ran.err
    assert "parity" not in ran.err
