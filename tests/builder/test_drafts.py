"""A draft language may be incomplete: what it lacks is shown in English, and says so."""

import pytest

from course_build.base.chrome import CHROME
from course_build.base.findings import CourseError
from course_build.base.settings import parse_settings

from .conftest import FRAME_LINES, NAME, SETTINGS, SOURCE, code, code_twins, prose, said
from .conftest import stamp_by_hand as stamp

DRAFT = SETTINGS + 'drafts = ["qtz"]\n'
UNTRANSLATED = CHROME["en"]["untranslated"]
OUTDATED = CHROME["en"]["outdated"]


@pytest.fixture
def drafting(repo):
    """A course with a draft language of which nothing is written."""
    repo.write("pyproject.toml", DRAFT)
    return repo


def third(key, text, en="Some words.", more=""):
    """The draft's prose twin, confirmed against this English."""
    header = f'# %% [markdown] lang="qtz" key="{key}" en="{stamp(en)}"{more}'
    return f'{header}\nr"""\n{text}\n"""\n'


def third_code(key, text, en):
    return f'# %% lang="qtz" key="{key}" en="{stamp(en)}"\n{text}\n'


# What is there and what is not


def test_an_empty_draft_is_the_english_notebook_with_marks(drafting):
    drafting.build(prose("p"), code("x", "x = 1"))
    head = drafting.text("title", "qtz").split("\n")
    assert head[0] == "# A toy"
    assert (
        head[4] == "> **A translation in progress:** 0 of 3 cells; the others are shown in English."
    )
    assert head[6:] == [UNTRANSLATED, "", "Hello."]
    assert drafting.text("p", "qtz") == f"{UNTRANSLATED}\n\nSome words."
    assert drafting.text("x", "qtz") == "x = 1"
    assert drafting.text("imports", "qtz") == drafting.text("imports", "en")


def test_the_other_notebooks_only_get_a_link_to_the_draft(drafting):
    drafting.build(prose("p"))
    assert drafting.text("p") == "Some words."
    assert drafting.text("title").split("\n")[2].endswith(
        f" · This notebook in the language qtz: [qtz/{NAME}.ipynb](../qtz/{NAME}.ipynb)"
    )  # fmt: skip
    assert "Этот блокнот на языке qtz:" in drafting.text("title", "ru")
    assert "in progress" not in drafting.text("title")
    assert drafting.text("title", "qtz").count("](../") == 2


def test_check_is_green_for_an_unfinished_draft_and_knows_its_files(drafting):
    drafting.build(prose("p"))
    ran = drafting.run("--check")
    assert (ran.code, ran.out) == (0, "3 notebooks are up to date\n")
    drafting.write("notebooks/qtz/module_09_stray.ipynb", "{}")
    ran = drafting.run("--check")
    assert ran.code == 1
    assert "notebooks/qtz/module_09_stray.ipynb: [orphan]" in ran.err


def test_a_language_that_is_given_up_leaves_orphans_that_are_named(drafting):
    drafting.build(prose("p"))
    drafting.write("pyproject.toml", SETTINGS)
    drafting.write(f"notebooks/src/{NAME}.ipynb", "{}")  # jupytext may pair one with the source
    ran = drafting.run()
    assert ran.code == 1
    assert "notebooks/src" not in ran.err
    assert f"notebooks/qtz/{NAME}.ipynb: [orphan]" in ran.err


def test_a_translated_cell_is_shown_without_a_mark_and_counted(drafting):
    drafting.build(prose("p") + "\n" + third("p", "Vorto."))
    assert drafting.text("p", "qtz") == "Vorto."
    assert "1 of 3 cells" in drafting.text("title", "qtz")


def test_a_draft_with_every_cell_has_no_banner(drafting):
    source = drafting.source
    source(prose("p") + "\n" + third("p", "Vorto."))
    text = drafting.read(SOURCE)
    title = third("title", "# Ludilo\n\nSaluton.", "# A toy\n\nHello.")
    text = text.replace('# %% key="imports"', title + '\n# %% key="imports"')
    text = text.replace('# %% [markdown] lang="en" key="p"', third("begin", "Vorto.") + "\n"
                        '# %% [markdown] lang="en" key="p"')  # fmt: skip
    drafting.write(SOURCE, text)
    assert drafting.run().code == 0
    assert "in progress" not in drafting.text("title", "qtz")
    assert drafting.text("title", "qtz").startswith("# Ludilo\n\nThis notebook in English: ")


def test_changed_english_marks_the_drafts_cell_and_breaks_nothing(drafting):
    drafting.build(prose("p", "Other words.") + "\n" + third("p", "## Kapo\n\nVorto."))
    assert drafting.text("p", "qtz") == f"## Kapo\n\n{OUTDATED}\n\nVorto."
    assert "0 of 3 cells" in drafting.text("title", "qtz")
    assert drafting.run("--check").code == 0


def test_a_confirmed_draft_cell_is_held_to_the_english_one(drafting):
    twins = prose("p", "## Head\n\nWords.", "## Глава\n\nСлова.")
    err = drafting.refuse(twins + "\n" + third("p", "Vorto.", "## Head\n\nWords."))
    assert f'{SOURCE}:{FRAME_LINES + 15}: cell "p": [' in err
    assert "qtz" in err


def test_a_complete_language_still_fails(drafting):
    drafting.source(prose("p").replace("Some words.", "Other words."))
    ran = drafting.run()
    assert ran.code == 1
    assert ran.err.count("[stale-twin]") == 1
    err = drafting.refuse(prose("p").split("\n\n")[0] + "\n\n" + third("p", "Vorto."))
    assert said(SOURCE, FRAME_LINES + 1, "p", "missing-twin", "the ru twin").search(err)


def test_a_draft_without_its_english_is_broken(drafting):
    err = drafting.refuse(prose("p"), third("q", "Vorto."))
    assert "the en twin is missing" in err


# Where it stands


def test_the_drafts_twin_comes_after_the_complete_ones(drafting):
    english, russian = prose("p").split("\n\n")
    err = drafting.refuse(english, third("p", "Vorto."), russian)
    assert said(SOURCE, FRAME_LINES + 1, "p", "swapped-order", "en, qtz, ru").search(err)


def test_a_drafts_twin_that_stands_elsewhere_is_not_lost(drafting):
    err = drafting.refuse(prose("p"), code("x", "x = 1"), third("p", "Vorto."))
    assert "[twin-not-adjacent]" in err


# Code


def test_code_falls_back_and_comes_back(drafting):
    twins = code_twins("c", 'print("one")', 'print("один")')
    drafting.build(twins)
    assert drafting.text("c", "qtz") == 'print("one")'
    drafting.build(twins + "\n" + third_code("c", 'print("unu")', 'print("one")'))
    assert drafting.text("c", "qtz") == 'print("unu")'
    assert "1 of 3 cells" in drafting.text("title", "qtz")


def test_stale_code_of_a_draft_is_not_run(drafting):
    twins = code_twins("c", 'x = 2\nprint("one")', 'x = 2\nprint("один")')
    drafting.build(twins + "\n" + third_code("c", 'print("unu")', 'print("one")'))
    assert drafting.text("c", "qtz") == 'x = 2\nprint("one")'
    assert "0 of 3 cells" in drafting.text("title", "qtz")


def test_a_drafts_comments_are_optional_line_by_line(drafting):
    drafting.build(code("c", "# en: a\n# ru: а\n# en: b\n# ru: б\n# qtz: bo\nx = 1"))
    assert drafting.text("c", "qtz") == "# a\n# bo\nx = 1"
    assert drafting.text("c", "ru") == "# а\n# б\nx = 1"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# en: a\n# qtz: ao\nx = 1", "the # ru: line is missing"),
        ("# en: a\n# qtz: ao\n# ru: а\nx = 1", "the # ru: line is not where it belongs"),
        ("# en: a\n# ru: а\n  # qtz: ao\nx = 1", "not indented alike"),
        ("# qtz: ao\n# en: a\n# ru: а\nx = 1", "the # en: line is not where it belongs"),
    ],
)
def test_a_drafts_comment_is_in_its_place(drafting, text, words):
    assert words in drafting.refuse(code("c", text))


# Hints


def test_the_mark_of_a_hint_is_inside_it(drafting):
    exercise = ' exercise="e"'
    drafting.build(
        code("stub", "def f():\n    raise NotImplementedError", ' role="stub"' + exercise),
        code("check", "f", ' role="check"' + exercise),
        prose("hint", more=' role="hint"' + exercise),
        code("solution", "def f():\n    return 1", ' role="solution"' + exercise),
    )
    summary = "<details><summary>Hint 1 of 1</summary>"
    assert drafting.text("hint", "qtz") == (
        f"{summary}\n\n{UNTRANSLATED}\n\nSome words.\n\n</details>"
    )


# Settings


@pytest.mark.parametrize("drafts", ['"qtz"', '["en"]', '["ru"]', '["qtz", "qtz"]', "[1]", '["Q"]'])
def test_drafts_are_other_languages(drafts):
    with pytest.raises(CourseError, match=r"drafts must be a list of codes that languages lacks"):
        parse_settings(SETTINGS + f"drafts = {drafts}\n")


def test_drafts_come_after_the_complete_languages():
    settings = parse_settings(DRAFT)
    assert settings.languages == ("en", "ru", "qtz")
    assert settings.complete == ("en", "ru")
    assert settings.drafts == ("qtz",)
    assert parse_settings(SETTINGS).drafts == ()


def test_promoting_a_draft_makes_its_gaps_errors(drafting, monkeypatch):
    drafting.build(prose("p") + "\n" + third("p", "Vorto."))
    monkeypatch.setitem(CHROME, "qtz", CHROME["en"])
    drafting.write("pyproject.toml", SETTINGS.replace('"ru"', '"ru", "qtz"'))
    err = drafting.broken()
    assert err.count("[missing-twin]\n    the qtz twin is missing") == 2
    assert 'cell "p"' not in err


def test_a_language_without_words_of_the_builder_cannot_be_promoted(drafting):
    drafting.build(prose("p"))
    drafting.write("pyproject.toml", SETTINGS.replace('"ru"', '"ru", "qtz"'))
    assert "the builder has no words for the language 'qtz'" in drafting.broken()
