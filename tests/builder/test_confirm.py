"""Confirming: only stamps are written, and everything that is confirmed is named."""

import re

import pytest

from course_build.base.chrome import CHROME

from .conftest import NAME, SETTINGS, SOURCE, code, code_twins, prose, said, stale, stamp_by_hand


def without_stamp(key):
    """Twins whose translation was never confirmed."""
    english, russian = prose(key).split("\n\n")
    return english + "\n\n" + re.sub(r' en="\w+"', "  ", russian)


def test_confirming_makes_the_check_green_and_changes_the_stamp_only(repo):
    repo.source(stale("p"))
    before = repo.read(SOURCE)
    assert repo.run().code == 1
    assert repo.run("confirm", "3:p").code == 0
    after = repo.read(SOURCE)
    changed = [(a, b) for a, b in zip(before.split("\n"), after.split("\n"), strict=True) if a != b]
    [(old, new)] = changed
    assert old[:-10] == new[:-10] == '# %% [markdown] lang="ru" key="p" en='
    assert repo.run().code == 0


def test_what_is_confirmed_is_said_with_the_first_words_of_both_texts(repo):
    repo.source(stale("p", "Old.", "## A head\n\nNew words.", "## Заголовок\n\nСлова."))
    assert repo.run("confirm", "3:p").out == (
        "3:p confirmed in ru (was stale)\n"
        "    en | A head New words.\n"
        "    ru | Заголовок Слова.\n"
        "now render: python3 -m course_build.environment build_notebooks.py\n"
    )


def test_long_texts_are_cut_where_they_are_named(repo):
    repo.source(stale("p", "Old.", "word " * 60))
    lines = repo.run("confirm", "3:p").out.split("\n")
    assert max(map(len, lines)) < 90
    assert lines[1].endswith("word …")


def test_several_cells_are_confirmed_at_once_and_only_those(repo):
    repo.source(stale("p"), stale("q"), stale("r"))
    assert repo.run("confirm", "3:p", f"{NAME}:r").code == 0
    ran = repo.run()
    assert ran.err.count("[stale-twin]") == 1
    assert 'cell "q"' in ran.err


def test_a_module_alone_confirms_what_is_stale_in_it_and_names_each(repo):
    repo.source(stale("other"), name="module_04_other")
    repo.source(stale("p"), prose("fresh"), without_stamp("q"), code("x", "x = 1"))
    ran = repo.run("confirm", "3")
    assert ran.code == 0
    assert re.findall(r"^\S+ confirmed.*", ran.out, re.MULTILINE) == [
        "3:p confirmed in ru (was stale)",
        "3:q confirmed in ru (had no stamp)",
    ]
    assert repo.run("--module", "3").code == 0
    assert repo.run("--module", "4").code == 1


def test_code_that_is_not_python_is_named_by_its_first_words(repo):
    repo.source(code_twins("c", "print('a' b c", "print('б' b c").replace("b c", "b d", 1))
    assert "    en | print('a' b d\n" in repo.run("confirm", "3:c").out


def test_a_cell_named_twice_is_confirmed_and_told_once(repo):
    repo.source(stale("p"))
    assert repo.run("confirm", "3", "3:p", "03:p").out.count("3:p confirmed in ru") == 1


def test_without_a_name_nothing_is_confirmed(repo):
    repo.source(stale("p"), prose("fresh"), without_stamp("q"))
    before = repo.read(SOURCE)
    ran = repo.run("confirm")
    assert ran.code == 2
    assert "confirm has to be told what you have read: MODULE:KEY or MODULE\n" in ran.err
    assert "-> choose from 3:p, 3:q\n" in ran.err
    assert repo.read(SOURCE) == before
    repo.source()
    assert "-> there is nothing to confirm\n" in repo.run("confirm").err


def test_code_twins_are_confirmed_as_prose_is_and_named_by_their_own_strings(repo):
    cells = code_twins("c", 'print("one", "x", f"or {1}")', 'print("один", "x", f"или {1}")')
    repo.source(cells.replace('"one"', '"two"'))
    ran = repo.run("confirm", "3:c")
    assert ran.code == 0
    assert "    en | two · or\n    ru | один · или\n" in ran.out
    assert repo.run().code == 0


def test_confirming_gives_a_first_stamp(repo):
    repo.source(without_stamp("p"))
    assert 'key="p"  \n' in repo.read(SOURCE)
    assert repo.run("confirm", "3:p").code == 0
    assert f'key="p" en="{stamp_by_hand("Some words.")}"\n' in repo.read(SOURCE)
    assert repo.run().code == 0


@pytest.mark.parametrize(
    "header",
    [
        '# %% [markdown] en="00000000" lang="ru" key="p"',
        "# %% [markdown] lang='ru' en='00000000' key='p'",
        '# %% [markdown] lang="ru" key="p" en = "00000000"',
    ],
)
def test_a_stamp_is_found_wherever_it_stands(repo, header):
    english = prose("p").split("\n\n")[0]
    repo.source(f'{english}\n\n{header}\nr"""\nСлова.\n"""\n')
    assert repo.run().code == 1
    assert repo.run("confirm", "3:p").code == 0
    assert repo.run().code == 0
    assert "00000000" not in repo.read(SOURCE)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("3:p", "3:p was already confirmed in ru"),
        ("3", "3: every translation in this module was already confirmed"),
    ],
)
def test_what_is_confirmed_already_is_left_alone(repo, name, words):
    repo.source(prose("p"))
    before = (repo.root / SOURCE).stat().st_mtime_ns
    ran = repo.run("confirm", name)
    assert (ran.code, ran.out) == (0, f"{words}\n")
    assert (repo.root / SOURCE).stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("key", "choice"),
    [
        ("zzz", "3:title, 3:begin, 3:notes"),
        ("x", "3:title, 3:begin, 3:notes"),
        ("note", "3:notes"),
        ("ote", "3:notes"),
    ],
)
def test_a_cell_without_translation_cannot_be_confirmed(repo, key, choice):
    repo.source(code("x", "x = 1"), prose("notes"))
    ran = repo.run("confirm", f"3:{key}")
    assert ran.code == 2
    assert f"{SOURCE}:1: [unknown-key]\n    no en cell with a translation has the key" in ran.err
    assert f"-> choose one of {choice}\n" in ran.err


def test_one_unknown_key_confirms_nothing(repo):
    repo.source(stale("p"))
    before = repo.read(SOURCE)
    assert repo.run("confirm", "3:p", "3:nothing").code == 2
    assert repo.read(SOURCE) == before


def test_a_translation_that_is_not_there_cannot_be_confirmed(repo):
    repo.source(prose("p").split("\n\n")[0] + "\n", stale("q"))
    before = repo.read(SOURCE)
    ran = repo.run("confirm", "3:q", "3:p")
    assert ran.code == 2
    assert said(SOURCE, before[: before.index('key="p"')].count("\n") + 1, "p", "missing-twin",
                "no ru text to confirm").search(ran.err)  # fmt: skip
    assert repo.read(SOURCE) == before


def test_confirming_works_in_a_source_that_is_broken_elsewhere(repo):
    repo.source(stale("p"), code("x", "x = ("))
    assert repo.run("confirm", "3:p").code == 0


@pytest.fixture
def three(repo, monkeypatch):
    """A course with a third language, a draft, in which the cell p is stale twice."""
    monkeypatch.setitem(CHROME, "xx", CHROME["en"])
    repo.write("pyproject.toml", SETTINGS.replace('"ru"]', '"ru"]\ndrafts = ["xx"]'))
    third = stale("p").split("\n\n")[1].replace('lang="ru"', 'lang="xx"')
    repo.source(stale("p") + "\n" + third, prose("q"))
    return repo


def test_one_language_can_be_confirmed_alone(three):
    assert three.run("confirm", "3:p", "--lang", "xx").out.startswith("3:p confirmed in xx")
    assert three.run("--check").err.count("[stale-twin]") == 1
    assert three.run("confirm", "3:p").out.startswith("3:p confirmed in ru")


def test_without_a_language_all_translations_are_confirmed_and_each_is_named(three):
    out = three.run("confirm", "3").out
    assert "3:p confirmed in ru (was stale)\n" in out
    assert "3:p confirmed in xx (was stale)\n" in out


def test_what_a_draft_lacks_does_not_stop_the_rest(three):
    assert three.run("confirm", "3:q").out == "3:q was already confirmed in ru\n"
    assert three.run("confirm", "3:q", "--lang", "xx").code == 2
