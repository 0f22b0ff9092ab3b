"""A difference that is meant is allowed in the header of the translation, for a reason."""

import jupytext
import pytest

from course_build.source.allowances import KINDS

from .conftest import FRAME_LINES, SOURCE, code, prose, said

FAULTS = {
    "no reason": ("numbers", "numbers has no reason"),
    "an empty reason": ("numbers: ", "numbers has no reason"),
    "a reason without words": ("numbers: -", "numbers has no reason"),
    "an unknown kind": ("tone: it is warmer", "'tone' is not a kind"),
    "nothing": ("", "not a list of different kinds"),
    "a kind twice": ("code: it is so; code: it is so", "not a list of different kinds"),
    "letters that are not ASCII": ("numbers: два", "not ASCII"),
    "an empty entry": ("code: it is so;", "not a list of different kinds"),
}


@pytest.mark.parametrize(("differs", "words"), FAULTS.values(), ids=FAULTS.keys())
def test_an_allowance_names_kinds_that_exist_and_reasons(repo, differs, words):
    cells = prose("p", "1 `x`", "2 `y`")
    err = repo.refuse(cells.replace('"ru" key="p"', f'"ru" key="p" differs="{differs}"'))
    assert said(SOURCE, FRAME_LINES + 6, "p", "allowance", words).search(err)
    assert f"kinds of {', '.join(KINDS)}" in err


def test_an_allowance_that_is_not_needed_is_a_finding(repo):
    cells = prose("p", "It is 1.", "Это 2.")
    differs = "numbers: counted from one; links: none"
    err = repo.refuse(cells.replace('"ru" key="p"', f'"ru" key="p" differs="{differs}"'))
    assert said(SOURCE, FRAME_LINES + 6, "p", "needless-allowance", "the links of").search(err)
    assert err.count("needless-allowance") == 1
    assert "parity-numbers" not in err


@pytest.mark.parametrize(
    "cells",
    [
        prose("p").replace('"en" key="p"', '"en" key="p" differs="code: no reason"'),
        code("p", "x = 1", ' differs="code: no reason"'),
    ],
    ids=["source language", "shared"],
)
def test_only_a_translation_may_differ(repo, cells):
    err = repo.refuse(cells)
    assert said(SOURCE, FRAME_LINES + 1, "p", "allowance", "not a translation").search(err)


def test_an_allowance_survives_jupytext_and_never_reaches_a_notebook(repo):
    differs = "differs=\"numbers: two = 2 (a, b); links: see #1, 'why'\""
    cells = prose("p", "It is 2.", "Это два [а](б).").replace(
        '"ru" key="p"', f'"ru" key="p" {differs}'
    )
    repo.build(cells)
    text = repo.read(SOURCE)
    again = jupytext.writes(jupytext.reads(text, fmt="py:percent"), fmt="py:percent")
    assert differs in again
    repo.write(SOURCE, again)
    assert repo.run("--check").code == 0
    assert "differs" not in repo.read("notebooks/ru/module_03_toy.ipynb")
