"""Every English cell has its Russian twin at once after it, and nothing drifts silently."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_build.source.cells import parse_source
from course_build.source.twins import pair_twins, stamp

from .conftest import (
    FRAME_LINES,
    SETTINGS,
    SOURCE,
    code,
    code_twins,
    prose,
    said,
    stale,
    stamp_by_hand,
)

AFTER = FRAME_LINES + 1  # the first line after the frame


def english(key, text="Words.", more=""):
    return f'# %% [markdown] lang="en" key="{key}"{more}\nr"""\n{text}\n"""\n'


def russian(key, text="Слова.", more=""):
    return (
        f'# %% [markdown] lang="ru" key="{key}" en="{stamp_by_hand("Words.")}"{more}\n'
        f'r"""\n{text}\n"""\n'
    )


def test_each_notebook_shows_its_own_twin(repo):
    repo.build(prose("p", "English words.", "Русские слова."))
    assert repo.text("p", "en") == "English words."
    assert repo.text("p", "ru") == "Русские слова."


@pytest.mark.parametrize(
    ("cell", "language"), [(english("p"), "ru"), (russian("p"), "en")], ids=["ru", "en"]
)
def test_a_missing_twin_is_named(repo, cell, language):
    err = repo.refuse(cell, code("x", "x = 1"))
    assert said(SOURCE, AFTER, "p", "missing-twin", f"the {language} twin is missing").search(err)
    assert f'# %% [markdown] lang="{language}" key="p"' in err


def test_a_missing_code_twin_is_named_with_a_code_header(repo):
    err = repo.refuse('# %% lang="en" key="c"\nx = 1\n')
    assert said(SOURCE, AFTER, "c", "missing-twin").search(err)
    assert '# %% lang="ru" key="c"' in err


def test_twins_in_the_wrong_order_are_refused(repo):
    err = repo.refuse(russian("p"), english("p"))
    assert said(SOURCE, AFTER, "p", "swapped-order", "ru, en").search(err)


@pytest.mark.parametrize("swap", [False, True])
def test_twins_that_do_not_touch_are_refused_once(repo, swap):
    pair = [english("p"), russian("p")][:: -1 if swap else 1]
    err = repo.refuse(pair[0], code("x", "x = 1"), pair[1])
    first_lines = pair[0].count("\n") + 1 + 3  # the first twin, a blank line, the cell between
    assert said(SOURCE, AFTER + first_lines, "p", "twin-not-adjacent", f"line {AFTER}").search(err)
    assert err.count("[") == 1


DUPLICATES = {
    "shared": [code("k", "x = 1"), code("k", "x = 2")],
    "shared, apart": [code("k", "x = 1"), code("m", "y = 1"), code("k", "x = 2")],
    "shared and twins": [code("k", "x = 1"), prose("k")],
    "twins and shared": [prose("k"), code("k", "x = 1")],
    "twins, apart": [prose("k"), code("m", "y = 1"), prose("k")],
    "twins, together": [prose("k"), prose("k")],
    "one language twice": [prose("k"), english("k")],
    "a shared cell and one twin": [code("k", "x = 1"), russian("k")],
}


@pytest.mark.parametrize("cells", DUPLICATES.values(), ids=DUPLICATES.keys())
def test_one_key_stands_for_one_cell(repo, cells):
    err = repo.refuse(*cells)
    assert f"cell \"k\": [duplicate-key]\n    the key 'k' is already taken at line {AFTER}" in err


def test_prose_is_never_shared(repo):
    err = repo.refuse('# %% [markdown] key="p"\nr"""\nWords.\n"""\n')
    assert said(SOURCE, AFTER, "p", "no-language").search(err)


def test_twins_are_of_one_kind(repo):
    err = repo.refuse(english("p"), '# %% lang="ru" key="p" en="00000000"\nx = 1\n')
    assert said(SOURCE, AFTER + 5, "p", "twin-kind", "code cell is the twin of a mark").search(err)


@pytest.mark.parametrize(
    "more", [' role="hint" exercise="e"', ' tags=["t"]', ' exercise="e"', ' reference="r"']
)
def test_twins_have_the_same_attributes(repo, more):
    err = repo.refuse(english("p"), russian("p", more=more))
    name = more.split("=")[0].strip()
    assert said(SOURCE, AFTER + 5, "p", "twin-attributes", f"{name}=").search(err)


@pytest.mark.parametrize(
    "cells",
    [(english("p", more=' en="03a6ef09"'), russian("p")), (code("p", "x = 1", ' en="03a6ef09"'),)],
    ids=["source language", "shared"],
)
def test_only_translations_bear_a_stamp(repo, cells):
    err = repo.refuse(*cells)
    assert said(SOURCE, AFTER, "p", "needless-stamp", "03a6ef09").search(err)


# Stamps


def test_the_stamp_is_the_start_of_the_sha_256_of_the_text():
    # printf 'Words.' | sha256sum
    assert stamp("Words.") == "44dcebcd"


def test_the_stamp_of_words_that_are_not_ascii():
    # printf 'Привет, мир' | sha256sum
    assert stamp("Привет, мир") == "2a2e7636"


LINES = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n")), max_size=5)


@given(LINES, st.sampled_from(["\n", "\r\n", "\r"]), st.text(" \t"), st.integers(0, 3))
def test_white_space_at_line_ends_and_around_does_not_count(lines, newline, spaces, blank):
    text = newline.join(line + spaces for line in lines)
    assert stamp(newline * blank + text + newline * blank) == stamp("\n".join(lines))


@given(st.text())
def test_composed_and_decomposed_letters_are_the_same_text(text):
    assert stamp(unicodedata.normalize("NFD", text)) == stamp(unicodedata.normalize("NFC", text))


@given(st.text(st.characters(categories=["L", "N"]), min_size=1), st.characters(categories=["L"]))
def test_any_other_change_changes_the_stamp(text, letter):
    text = unicodedata.normalize("NFC", text)
    changed = unicodedata.normalize("NFC", text + letter)
    assert (stamp(text) == stamp(changed)) == (text == changed)


def test_indents_and_blank_lines_inside_do_count():
    assert len({stamp("a\nb"), stamp("a\n b"), stamp("a\n\nb"), stamp(" a\nb")}) == 4


def test_a_stale_twin_is_named_with_its_place(repo):
    repo.source(stale("p"))
    ran = repo.run()
    assert ran.code == 1
    place = f'{SOURCE}:{AFTER + 5}: cell "p": [stale-twin]'
    assert f"{place} the en text changed after the ru text was confirmed\n" in ran.err


def test_a_twin_that_was_never_confirmed_is_stale(repo):
    repo.source(english("p"), '# %% [markdown] lang="ru" key="p"\nr"""\nСлова.\n"""\n')
    ran = repo.run()
    assert ran.code == 1
    place = f'{SOURCE}:{AFTER + 5}: cell "p": [stale-twin]'
    assert f"{place} the ru text was not yet confirmed\n" in ran.err


def test_changed_code_makes_its_code_twin_stale(repo):
    cells = code_twins("c", 'print("one")', 'print("один")')
    repo.source(cells.replace('"one"', '"two"'))
    ran = repo.run()
    assert ran.code == 1
    assert "[stale-twin]" in ran.err


def test_nothing_is_written_while_a_translation_is_stale(repo):
    repo.build(prose("p"))
    before = repo.outputs()
    repo.source(prose("p").replace("Some words.", "Other words."))
    assert repo.run().code == 1
    assert repo.outputs() == before


def test_a_stale_translation_does_not_stop_the_other_languages(repo):
    repo.source(prose("p").replace("Some words.", "Other words."))
    assert repo.run("--lang", "en").code == 0
    assert repo.text("p", "en") == "Other words."
    assert repo.run("--lang", "ru").code == 1


def test_twins_count_to_three_in_a_course_of_three_languages(monkeypatch):
    languages = ("en", "ru", "xx")
    cells = english("p") + russian("p") + english("p").replace('lang="en"', 'lang="xx"')
    units, findings = pair_twins(parse_source("s.py", cells, languages), languages)
    assert findings == []
    assert [cell.lang for cell in units[0].cells] == ["en", "ru", "xx"]
    _, findings = pair_twins(parse_source("s.py", english("p"), languages), languages)
    assert [finding.rule for finding in findings] == ["missing-twin", "missing-twin"]


def test_a_course_in_one_language_needs_no_twins(repo):
    repo.write("pyproject.toml", SETTINGS.replace('"en", "ru"', '"en"'))
    repo.write(
        SOURCE,
        english("t", "# Title")
        + code("i", "import sys", ' role="imports"')
        + code("s", "seed = 1", ' tags=["parameters"]'),
    )
    assert repo.run().code == 0
    assert repo.text("t") == "# Title"
    repo.write(SOURCE, repo.read(SOURCE).replace("# Title", "# Title\nHello."))
    assert repo.run().code == 0
    assert repo.text("t") == "# Title\nHello."
