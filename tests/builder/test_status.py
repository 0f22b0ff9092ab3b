"""The state of the translations at a glance, and what to do next."""

import re

import pytest

from course_build.base.chrome import CHROME

from .conftest import FRAME_LINES, NAME, SETTINGS, SOURCE, code, code_twins, prose, said, stale

BUILDER = "python3 -m course_build.environment build_notebooks.py"


def row(out, *first):
    """The numbers of one row of the table."""
    line = next(line for line in out.split("\n") if line.split()[: len(first)] == list(first))
    return [int(number) for number in line.split()[len(first) :]]


def english_only(key):
    return prose(key).split("\n\n")[0] + "\n"


def unstamped(key):
    return re.sub(r' en="\w+"', "", prose(key))


def test_every_cell_of_a_translation_is_counted_by_its_state(repo):
    repo.source(
        stale("s", ru="Два слова."), unstamped("u"), unstamped("v"), english_only("m"),
        code("shared", "x = 1"), code_twins("c", 'print("a")', 'print("б")'),
    )  # fmt: skip
    ran = repo.run("status")
    assert ran.code == 1
    assert ran.out.startswith("module         language  cells  paired  stale  unconfirmed  missing")
    # cells: title, begin, s, u, v, m, c; words: prose alone
    assert row(ran.out, NAME, "en") == [7, 3 + 2 * 5]
    assert row(ran.out, "ru") == [7, 6, 1, 2, 1, 2 + 1 + 2 + 1 + 1]


def test_where_nothing_is_to_do_status_says_so(repo):
    repo.source(prose("p"))
    ran = repo.run("status")
    assert (ran.code, ran.err) == (0, "")
    assert "\n\nnothing to do: every translation is confirmed against today's text\n" in ran.out


def test_work_is_named_with_its_place_and_the_next_command(repo):
    repo.source(stale("p"), english_only("m"), unstamped("u"))
    out = repo.run("status").out
    assert 'cell "p": [stale-twin] the en text changed after the ru text was confirmed\n' in out
    assert 'cell "m": [missing-twin] the ru twin is missing\n' in out
    assert 'cell "u": [stale-twin] the ru text was not yet confirmed\n' in out
    assert f"    {BUILDER} diff 3:p 3:u\n    {BUILDER} confirm 3:p 3:u\n" in out


def test_a_missing_twin_alone_is_work_too(repo):
    repo.source(english_only("m"))
    ran = repo.run("status")
    assert ran.code == 1
    words = "see what is not translated, write it beside its source, then confirm it:\n"
    assert f"{words}    {BUILDER} diff 3:m\n    {BUILDER} confirm 3:m\n" in ran.out


@pytest.mark.parametrize(
    "fault",
    [
        code("x", "x = ("),
        code("e", "from course_lib.nowhere import nothing"),
        prose("begin"),
        prose("long", "word " * 199 + "word"),
    ],
)
def test_status_works_in_a_source_with_other_faults(repo, fault):
    repo.source(stale("p"), fault)
    ran = repo.run("status")
    assert ran.code == 1
    assert f"{BUILDER} diff 3:p\n" in ran.out


def test_of_a_key_that_is_taken_twice_the_first_twins_are_compared(repo):
    repo.source(prose("p"), stale("p"))
    assert repo.run("status").code == 0


def test_a_source_whose_cells_cannot_be_read_is_named_and_the_others_are_shown(repo):
    repo.source(stale("p"))
    repo.source('# %% [markdown] lang="en" key="open"\nr"""\nno end\n', name="module_04_bad")
    ran = repo.run("status")
    assert ran.code == 2
    assert re.search(r"^module_04_bad  broken$", ran.out, re.MULTILINE)
    assert said("notebooks/src/module_04_bad.py", FRAME_LINES + 1, "open", "markdown-block").search(
        ran.err
    )
    assert f"{BUILDER} diff 3:p\n" in ran.out


def test_a_broken_source_is_not_called_done(repo):
    repo.source()
    repo.write("notebooks/src/module_04_bad.py", "text outside\n")
    ran = repo.run("status")
    assert ran.code == 2
    assert "nothing to do" not in ran.out


def test_modules_and_languages_can_be_chosen(repo):
    repo.source(stale("q"), name="module_04_other")
    repo.source()
    assert repo.run("status", "--module", "3", "--lang", "ru").code == 0
    ran = repo.run("status", "--module", "4")
    assert ran.code == 1
    assert NAME not in ran.out


def test_a_draft_is_counted_and_is_no_work(repo, monkeypatch):
    monkeypatch.setitem(CHROME, "xx", CHROME["en"])
    repo.write("pyproject.toml", SETTINGS.replace('"ru"]', '"ru"]\ndrafts = ["xx"]'))
    third = stale("p").split("\n\n")[1].replace('lang="ru"', 'lang="xx"')
    repo.source(prose("p", "New words.") + "\n" + third)
    ran = repo.run("status")
    assert ran.code == 0
    assert row(ran.out, "xx", "(draft)") == [3, 1, 1, 0, 2, 1]
    assert f"{BUILDER} diff 3:p --lang xx\n" in ran.out
    assert "[" not in ran.out
    words = "xx is a draft, 2 cells are not translated yet:\n"
    assert f"{words}    {BUILDER} export --lang xx\n" in ran.out
    assert "nothing to do" not in ran.out


def test_what_another_draft_lacks_is_not_said_of_the_language_that_was_chosen(repo, monkeypatch):
    monkeypatch.setitem(CHROME, "xx", CHROME["en"])
    repo.write("pyproject.toml", SETTINGS.replace('"ru"]', '"ru"]\ndrafts = ["xx"]'))
    repo.source()
    assert "draft" not in repo.run("status", "--lang", "ru").out
    assert "nothing to do" not in repo.run("status").out


def test_a_course_in_one_language_has_nothing_to_translate(repo):
    repo.write("pyproject.toml", SETTINGS.replace('"en", "ru"', '"en"'))
    repo.write(SOURCE, english_only("p"))
    ran = repo.run("status")
    assert (ran.code, row(ran.out, NAME, "en")) == (0, [1, 2])


def test_status_writes_nothing(repo):
    repo.source(stale("p"))
    before = repo.read(SOURCE)
    repo.run("status")
    assert repo.outputs() == {}
    assert repo.read(SOURCE) == before
