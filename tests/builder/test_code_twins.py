"""Code twins run the same code; only the words in their strings differ."""

import re

import pytest

from .conftest import FRAME_LINES, SOURCE, code_twins, said

SAME = {
    "words": ('print("one")', 'print("один")'),
    "comments and layout": ('f(1,\n  "a")  # why', 'f(1, "б")'),
    "an f-string": ('f"{x:.2f} tokens of {y!r}"', 'f"{y!r}: токенов {x:.2f}"'),
    "an f-string without fields": ('f"words"', '"слова"'),
    "fields of format": ('"{n} of {total:d}".format', '"из {total:d} - {n}".format'),
    "percent fields": ('"%d of %s" % (1, "b")', '"%d из %s" % (1, "б")'),
    "a remainder": ('f(7 % x, "a")', 'f(7 % x, "б")'),
    "a unicode prefix": ('f(u"a")', 'f("б")'),
    "percent signs before a sum": ('print("50 % of" + x)', 'print("50 % от" + x)'),
    "percent signs in words": ('print("50 % of it")', 'print("50 % от него")'),
    "formulas": (r'title(r"$\mathrm{loss}_{n}$")', r'title(r"$\mathrm{потери}_{n}$")'),
    "escaped braces": ('"{{a}} {b}".format', '"{{в}} {b}".format'),
    "quotes": ("g('a')", 'g("б")'),
    "a docstring": ('def f():\n    """Words."""', 'def f():\n    """Слова."""'),
    "fields with a field in them": ('"{n:{w}}".format', '"n {n:{w}}".format'),
    "braces that hold no field": ('"a set {a, b}"', '"множество {а, б}"'),
    "a brace alone": ('g("a {")', 'g("б {")'),
    "a raw string": (r'g(r"\d", "a")', r'g("\\d", "б")'),
    "a command": ("%matplotlib inline\nx = 1", "%matplotlib inline\nx = 1"),
}


@pytest.mark.parametrize(("en", "ru"), SAME.values(), ids=SAME.keys())
def test_twins_that_say_the_same_are_accepted(repo, en, ru):
    names = "f = g = x = y = title = print\n"
    repo.build(code_twins("c", names + en, names + ru))
    assert repo.text("c", "en") == names + en
    assert repo.text("c", "ru") == names + ru


DIFFERENT = {
    "a number": ("f(1)", "f(2)", "2 is not 1"),
    "a name": ("f(x)", "f(y)", "'y' is not 'x'"),
    "an operator": ("x + y", "x - y", "the code differs"),
    "a type": ("f(1)", "f(1.0)", "the code differs"),
    "a boolean for a number": ("f(True)", "f(1)", "the code differs"),
    "a string for a number": ("f(1)", 'f("1")', "the code differs"),
    "bytes": ('f(b"a")', 'f(b"b")', "b'b' is not b'a'"),
    "a value returned": ("def g():\n    return", "def g():\n    return x", "the code differs"),
    "a value less": ("def g():\n    return x", "def g():\n    return", "the code differs"),
    "a list for a value": ("del x", "x", "the code differs"),
    "a statement more": ("x", "x\ny", "there is more"),
    "a statement less": ("x\ny", "x", "there is less"),
    "an argument more": ('f("a")', 'f("а", x)', "there is more"),
    "a keyword": ('f(a="a")', 'f(б="а")', "'б' is not 'a'"),
    "a field more": ('f("a")', 'f("{n}")', r"the placeholders \['{n}'\] are not \[\]"),
    "a field less": ('f("{n}")', 'f("а")', r"the placeholders \[\] are not \['{n}'\]"),
    "another field": ('f("{n}")', 'f("{м}")', "placeholders"),
    "an empty field": ('f("{}")', 'f("а")', "placeholders"),
    "another format": ('f("{n:.2f}")', 'f("{n:.3f}")', "placeholders"),
    "another conversion": ('f("{n!r}")', 'f("{n}")', "placeholders"),
    "a field twice": ('f("{n}")', 'f("{n} {n}")', "placeholders"),
    "an f-string's field": ('f(f"{x}")', 'f(f"{y}")', r"placeholders \['{y}'\]"),
    "an f-string's conversion": ('f(f"{x!r}")', 'f(f"{x}")', r"\['{x}'\] are not \['{x!r}'\]"),
    "an f-string's format": ('f(f"{x:.2f}")', 'f(f"{x:.{y}f}")', "placeholders"),
    "an f-string for a string": ('f("{x}")', 'f(f"{x} {y}")', "placeholders"),
    "percent fields": ('"%d" % x', '"%s" % x', r"placeholders \['%s'\] are not \['%d'\]"),
    "named percent fields": ('"%(a)d" % x', '"%(b)d" % x', "placeholders"),
    "what percent takes": ('"%d" % x', '"%d" % y', "'y' is not 'x'"),
    "an f-string under percent": ('f"{x} %d" % x', 'f"{y} %d" % x', r"placeholders \['{y}'\]"),
    "a field's inner field": ('f("{n:{w}}")', 'f("{n:{v}}")', "placeholders"),
    "a field with an inner field": ('f("{n:{w}}")', 'f("{m:{w}}")', "placeholders"),
    "a name of the code": ('f("d_model")', 'f("ширина")', "the name 'd_model' became 'ширина'"),
    "a name misspelt": ('f("d_model")', 'f("d_modell")', "the name 'd_model' became"),
    "words left out": ('f("words")', 'f("")', "the words of 'words' are missing"),
    "words left out of an f-string": ('f(f"w {x}")', 'f(f"{x}")', "the words of .* are missing"),
    "percent for plus": ('"%d" % x', '"%d" + x', "the code differs"),
}


@pytest.mark.parametrize(("en", "ru", "words"), DIFFERENT.values(), ids=DIFFERENT.keys())
def test_twins_that_do_not_run_the_same_are_refused(repo, en, ru, words):
    err = repo.refuse(code_twins("c", en, ru))
    assert "-> make the code of the twins equal" in err
    [line] = re.findall(rf'^{SOURCE}:(\d+): cell "c": \[code-twins\]\n    .*{words}', err, re.M)
    second = FRAME_LINES + 1 + en.count("\n") + 3
    assert second < int(line) <= second + 1 + ru.count("\n")


def test_both_lines_that_differ_are_shown(repo):
    err = repo.refuse(
        code_twins("c", 'a = 1\nprint("one", a)\nb = 2', 'a = 1\n\nprint("один", a)\nb = 3')
    )
    line = FRAME_LINES + 1 + 4 + 1 + 4  # the English twin, a blank line, and the fourth line
    assert said(SOURCE, line, "c", "code-twins", "3 is not 2").search(err)
    assert "ru | b = 3\n" in err
    assert f"en | b = 2  (line {FRAME_LINES + 4})" in err


def allowed(en, ru, differs):
    cells = code_twins("c", en, ru)
    return cells.replace('lang="ru" key="c"', f'lang="ru" key="c" differs="{differs}"')


def test_code_that_differs_can_be_allowed_with_a_reason(repo):
    repo.build(allowed("sep = 1", "sep = 2", "code: the Russian example counts pairs"))
    assert (repo.text("c", "en"), repo.text("c", "ru")) == ("sep = 1", "sep = 2")


def test_where_code_may_differ_no_other_allowance_is_called_needless(repo):
    repo.build(allowed('x = 1, "2"', 'x = 2, "3"', "code: it is so; numbers: it is so"))


def test_code_that_may_differ_and_does_not_is_a_finding(repo):
    err = repo.refuse(allowed("x = 1", "x = 1", "code: it is so"))
    assert "[needless-allowance]\n    differs allows other code" in err


def test_an_allowance_of_another_kind_does_not_allow_other_code(repo):
    err = repo.refuse(allowed("x = 1", "x = 2", "numbers: it is so"))
    assert "[code-twins]" in err
    assert 'or allow it: differs="code: reason"' in err
