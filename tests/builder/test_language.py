"""A shared cell may hold a comment in every language; each notebook keeps its own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_build.source.language import select_comments

from .conftest import FRAME_LINES, SOURCE, code, code_twins, said

LANGUAGES = ("en", "ru")
SHARED = """def f(x):
    # en: take the root
    # ru: извлеките корень
    # en: then return
    # ru: и верните
    return x**0.5  # a common remark"""


def test_each_notebook_keeps_its_own_comments(repo):
    repo.build(code("c", SHARED))
    lines = "def f(x):\n    # {}\n    # {}\n    return x**0.5  # a common remark"
    assert repo.text("c", "en") == lines.format("take the root", "then return")
    assert repo.text("c", "ru") == lines.format("извлеките корень", "и верните")


def test_what_looks_like_a_pair_in_a_string_is_left_alone(repo):
    text = 's = """\n# en: not a comment\n"""'
    repo.build(code("c", text))
    assert repo.text("c", "en") == repo.text("c", "ru") == text


def test_an_empty_comment_stays_a_comment(repo):
    repo.build(code("c", "# en:\n# ru:\nx = 1"))
    assert repo.text("c", "en") == "#\nx = 1"


def test_a_tab_stays_a_tab(repo):
    repo.build(code("c", "if 1:\n\t# en: a\n\t# ru: б\n\tx = 1"))
    assert repo.text("c", "ru") == "if 1:\n\t# б\n\tx = 1"


WRONG = {
    "no Russian": ("x = 1\n# en: a\ny = 1", 2, "# ru: line is missing"),
    "no English": ("x = 1\n# ru: б\ny = 1", 2, "# en: line is not where"),
    "the wrong order": ("# ru: б\n# en: a\nx = 1", 1, "# en: line is not where"),
    "two English, then two Russian": (
        "# en: a\n# en: b\n# ru: а\n# ru: б\nx = 1",
        1,
        "# ru: line is missing",
    ),
    "two Russian": ("# en: a\n# ru: б\n# ru: в\nx = 1", 1, "# ru: line is there twice"),
    "a line between": ("# en: a\nx = 1\n# ru: б", 1, "# ru: line is not where"),
    "another indent": ("if 1:\n    # en: a\n  # ru: б\n    x = 1", 2, "indented alike"),
    "after code": ("x = 1  # en: a\n# ru: б", 1, "alone on its line"),
    "Russian after code": ("x = 1\n# en: a\ny = 1  # ru: б", 2, "indented alike"),
    "the second pair": ("# en: a\n# ru: б\n# en: c\nx = 1", 3, "# ru: line is missing"),
    "no space": ("#en: a\nx = 1", 1, "# ru: line is missing"),
}


@pytest.mark.parametrize(("text", "line", "words"), WRONG.values(), ids=WRONG.keys())
def test_a_pair_that_is_not_a_pair_is_refused(repo, text, line, words):
    err = repo.refuse(code("c", text))
    assert said(SOURCE, FRAME_LINES + 1 + line, "c", "comment-pair", words).search(err)


def test_a_code_twin_has_no_pairs(repo):
    err = repo.refuse(code_twins("c", "# en: a\n# ru: б\nx = 1", "x = 1"))
    assert said(SOURCE, FRAME_LINES + 2, "c", "comment-pair", "one language").search(err)


WORDS = st.from_regex(r"[a-zA-Zа-яё0-9 ,.-]{0,20}", fullmatch=True)


@given(st.lists(st.one_of(st.just("x = 1"), st.tuples(WORDS, WORDS))))
def test_the_notebooks_differ_in_the_pairs_only(parts):
    text = "\n".join(p if isinstance(p, str) else f"# en: {p[0]}\n# ru: {p[1]}" for p in parts)
    for place, language in enumerate(LANGUAGES):
        wanted = [p if isinstance(p, str) else f"# {p[place].strip()}".rstrip() for p in parts] or [
            ""
        ]
        selected = select_comments(text, language, LANGUAGES)
        assert [line for _, line in selected] == wanted
        numbers = [number for number, _ in selected]
        assert numbers == sorted(numbers)
        written = text.split("\n")
        assert all(
            line in ("x = 1", "") or line.removeprefix("#").strip() in written[n - 1]
            for n, line in selected
        )
