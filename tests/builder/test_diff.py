"""What changed since a translation was confirmed: found by the stamp, shown word by word."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from course_build.base.chrome import CHROME
from course_build.text.word_diff import COLOURED, PLAIN, coloured, side_by_side, word_diff, wrapped

from .conftest import (
    FRAME_LINES,
    NAME,
    SETTINGS,
    SOURCE,
    Repository,
    code,
    code_twins,
    prose,
    stale,
)

ROOT = Path(__file__).resolve().parents[2]
BUILDER = "python3 -m course_build.environment build_notebooks.py"
AUTHOR = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")


@pytest.fixture
def git(repo, monkeypatch):
    """The course in a git repository of its own, whatever the machine's settings are."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")

    def run(*arguments):
        ran = subprocess.run(
            ["git", *AUTHOR, *arguments], cwd=repo.root, check=True, capture_output=True, text=True
        )
        return ran.stdout.strip()

    run("init", "-q", "-b", "main")
    return run


def commit(git, message, date="2026-03-01T12:00:00"):
    git("add", "-A")
    git("commit", "-q", "-m", message, "--date", date)
    return git("rev-parse", "--short", "HEAD")


def edit(repo, old, new, path=SOURCE):
    assert old in repo.read(path)
    repo.write(path, repo.read(path).replace(old, new, 1))


# Before: from git


def test_the_words_before_come_from_the_last_commit_that_had_them(repo, git):
    repo.source(prose("p", "We take the mean.", "Берём среднее."))
    commit(git, "one")
    edit(repo, "the mean", "a mean")
    second = commit(git, "two")
    edit(repo, "a mean", "a mean twice")
    commit(git, "three")
    ran = repo.run("diff")
    assert ran.code == 1
    assert "We take [-the-]{+a+} mean{+ twice+}." in ran.out
    assert re.search(rf"the en text changed in {second} \(\d{{4}}-\d\d-\d\d\)\n", ran.out)
    assert "Берём среднее." in ran.out


def test_a_change_that_is_not_committed_is_shown_too(repo, git):
    repo.source(prose("p", "Old words."))
    commit(git, "one")
    edit(repo, "Old words", "New words")
    out = repo.run("diff").out
    assert "[-Old-]{+New+} words." in out
    assert "the en text changed and is not committed yet\n" in out


def test_history_goes_on_under_the_files_earlier_name(repo, git):
    repo.source(prose("p", "Old words."), name="module_03_before")
    commit(git, "one")
    git("mv", "notebooks/src/module_03_before.py", SOURCE)
    edit(repo, "Old words", "New words")
    commit(git, "renamed and changed at once")
    assert "[-Old-]{+New+} words." in repo.run("diff", "3:p").out


def test_a_cell_whose_key_was_changed_is_found_by_its_stamp_alone(repo, git):
    repo.source(prose("p", "Old words."))
    commit(git, "one")
    repo.source(prose("other", "Old words.").replace("Old words", "New words"))
    commit(git, "two")
    assert "[-Old-]{+New+} words." in repo.run("diff", "3:other").out


def test_the_same_words_in_another_cell_do_not_hide_when_this_one_changed(repo, git):
    repo.source(prose("p", "Same words."), prose("q", "Same words."))
    commit(git, "one")
    edit(repo, "Same words.", "New words.")
    second = commit(git, "two")
    edit(repo, "# Игрушка", "# Игра")
    commit(git, "three")
    assert f"changed in {second} " in repo.run("diff", "3:p").out


def test_versions_that_cannot_be_read_are_passed_over(repo, git):
    repo.source(prose("p", "Old words."))
    commit(git, "one")
    for fault in (b"\xff\xfe", b"text outside\n# %%", b'# %% [markdown] lang="en" key=(\n', b""):
        repo.write(SOURCE, fault)
        commit(git, "broken")
    (repo.root / SOURCE).unlink()
    commit(git, "gone")
    repo.source(stale("p"))
    commit(git, "back")
    assert "[-Old-]{+New+} words." in repo.run("diff").out


def test_a_cell_in_an_older_way_of_writing_is_still_found(repo, git):
    older = prose("p", "Old words.").replace('key="p"', 'key="p" since="2020"')
    repo.source(older)
    commit(git, "one")
    repo.source(stale("p"))
    assert "[-Old-]{+New+} words." in repo.run("diff").out


def test_a_course_in_a_folder_of_a_larger_repository_has_its_history(tmp_path, capsys, git, repo):
    inner = Repository(tmp_path / "inner", capsys)
    inner.source(prose("p", "Old words."))
    commit(git, "one")
    edit(inner, "Old words", "New words")
    assert "[-Old-]{+New+} words." in inner.run("diff").out


def test_settings_that_change_what_git_prints_change_nothing_here(repo, git):
    repo.source(prose("p", "Old words."))
    commit(git, "one")
    edit(repo, "Old words", "New words")
    for name in ("color.ui", "log.showSignature", "diff.renames"):
        git("config", name, "always" if name == "color.ui" else "true")
    git("config", "format.pretty", "fuller")
    git("config", "diff.external", "false")
    assert "[-Old-]{+New+} words." in repo.run("diff").out


def test_in_a_shallow_clone_the_last_build_speaks_for_the_history(repo, git, tmp_path, capsys):
    repo.build(prose("p", "Old words."))
    commit(git, "one")
    edit(repo, "Old words", "New words")
    commit(git, "two")
    git("clone", "-q", "--depth", "1", f"file://{repo.root}", str(tmp_path / "clone"))
    clone = Repository(tmp_path / "clone", capsys)
    assert "[-Old-]{+New+} words." in clone.run("diff").out
    shutil.rmtree(clone.root / "notebooks/en")
    assert "its earlier words are not known here" in clone.run("diff").out


# Before: without git


@pytest.fixture
def no_git(monkeypatch, tmp_path_factory):
    """A machine on which no git can be called."""
    monkeypatch.setenv("PATH", str(tmp_path_factory.mktemp("empty")))


LINKED = 'Take the [mean](glossary.md#mean "the sum \\"over\\" n").'


@pytest.mark.usefixtures("no_git")
def test_without_git_the_words_before_come_from_the_last_build(repo):
    repo.build(prose("p", "Old words."))
    repo.source(stale("p"))
    out = repo.run("diff").out
    assert "[-Old-]{+New+} words." in out
    assert f"the en text changed after the last build of notebooks/en/{NAME}.ipynb\n" in out


@pytest.mark.usefixtures("no_git")
def test_what_rendering_adds_under_the_title_is_no_change(repo):
    repo.source(name="module_04_other")
    repo.build()
    edit(repo, "Hello.", "Hello again.")
    assert "Hello{+ again+}." in repo.run("diff", "3").out


@pytest.mark.usefixtures("no_git")
def test_links_to_the_glossary_that_rendering_adds_are_no_change(repo):
    repo.build(prose("p", "Take the mean."))
    path = f"notebooks/en/{NAME}.ipynb"
    edit(repo, "Take the mean.", json.dumps(LINKED)[1:-1], path)
    assert repo.text("p") == LINKED
    edit(repo, "Take the mean", "Take a mean")
    assert "Take [-the-]{+a+} mean." in repo.run("diff").out


@pytest.mark.usefixtures("no_git")
@pytest.mark.parametrize("content", [None, b"", b"[1]", b'{"cells": [{"id": "p"}]}', b"\xff"])
def test_where_nothing_is_known_the_text_of_today_is_shown(repo, content):
    repo.source(stale("p"))
    if content is not None:
        repo.write(f"notebooks/en/{NAME}.ipynb", content)
    ran = repo.run("diff")
    assert ran.code == 1
    assert "its earlier words are not known here, the stamp" in ran.out
    assert "    New words.\n" in ran.out
    assert "    Слова.\n" in ran.out


def test_a_build_of_the_changed_text_is_not_taken_for_the_text_before(repo, no_git):
    repo.source(stale("p"))
    repo.run("--preview")
    assert "its earlier words are not known here" in repo.run("diff").out


# What is shown


def test_the_cell_the_place_and_the_command_are_said(repo):
    repo.source(stale("p"))
    out = repo.run("diff").out
    line = repo.read(SOURCE).split("\n").index(stale("p").split("\n\n")[1].split("\n")[0]) + 1
    assert out.startswith(f"3:p  {SOURCE}:{line}\n")
    assert out.endswith(f"confirm what you have read:\n    {BUILDER} confirm 3:p\n")


def test_a_translation_without_a_stamp_is_called_not_yet_confirmed(repo):
    repo.source(re.sub(r' en="\w+"', "", prose("p", "Words.")))
    ran = repo.run("diff")
    assert ran.code == 1
    assert "the ru text was not yet confirmed: compare it with the en text\n" in ran.out
    assert "    Words.\n" in ran.out


def test_code_twins_are_compared_too(repo, git):
    repo.source(code_twins("c", "for i in x:\n    print('one')", "for i in x:\n    print('один')"))
    commit(git, "one")
    edit(repo, "'one'", "'two'")
    out = repo.run("diff").out
    assert "    [en]\n    for i in x:\n        print('[-one-]{+two+}')\n\n    [ru]\n" in out
    assert "        print('один')\n" in out


def test_only_the_cells_that_are_named_are_shown_and_confirmed(repo):
    repo.source(*(stale(f"p{number}") for number in range(9)))
    out = repo.run("diff", "3:p1", "3:p4").out
    assert re.findall(r"^3:\S+", out, re.MULTILINE) == ["3:p1", "3:p4"]
    assert out.endswith(f"{BUILDER} confirm 3:p1 3:p4\n")


def test_a_module_is_confirmed_by_its_number_only_where_all_of_it_was_shown(repo):
    keys = [f"p{number}" for number in range(9)]
    repo.source(*map(stale, keys))
    assert repo.run("diff", "3").out.endswith(f"{BUILDER} confirm 3\n")
    names = [f"3:{key}" for key in keys[:8]]
    assert repo.run("diff", *names).out.endswith(f"{BUILDER} confirm {' '.join(names)}\n")


def test_cells_that_need_nothing_are_said_to(repo):
    repo.source(prose("p"), code("x", "x = 1"))
    ran = repo.run("diff", "3:p")
    assert (ran.code, ran.out) == (0, "3:p: the ru text is confirmed\n")
    assert repo.run("diff").out == "nothing to show: no translation is stale\n"


@pytest.mark.parametrize("name", ["3:m", f"{SOURCE}:m"])
def test_of_a_cell_without_translation_the_text_and_the_header_to_write_are_shown(repo, name):
    repo.source(prose("p"), prose("m").split("\n\n")[0] + "\n")
    ran = repo.run("diff", name)
    assert ran.code == 1
    assert ran.out == (
        f"3:m  {SOURCE}:{FRAME_LINES + 11}\n"
        "    there is no ru text yet: write it below its twins, under a header\n"
        '    that begins # %% [markdown] lang="ru" key="m"\n'
        "\n    [en]\n    Some words.\n\n"
    )


def test_what_is_not_translated_is_named_where_no_cell_was_asked_for(repo):
    repo.source(stale("p"), *(prose(f"m{n}").split("\n\n")[0] + "\n" for n in range(9)))
    ran = repo.run("diff")
    assert ran.code == 1
    assert "not translated into ru yet: 3:m0, 3:m1, 3:m2, 3:m3, 3:m4, 3:m5, 3:m6, 3:m7 and 1" in (
        ran.out
    )
    assert ran.out.endswith(f"{BUILDER} confirm 3:p\n")


def test_what_a_draft_lacks_is_shown_only_where_it_is_asked_for(repo, monkeypatch):
    monkeypatch.setitem(CHROME, "xx", CHROME["en"])
    repo.write("pyproject.toml", SETTINGS.replace('"ru"]', '"ru"]\ndrafts = ["xx"]'))
    repo.source(prose("p"))
    ran = repo.run("diff")
    assert (ran.code, ran.out) == (0, "nothing to show: no translation is stale\n")
    ran = repo.run("diff", "3:p", "--lang", "xx")
    assert ran.code == 0
    assert "there is no xx text yet" in ran.out


def test_an_unknown_key_suggests_a_near_one(repo):
    repo.source(stale("scaled-dot"))
    ran = repo.run("diff", "3:scale-dot")
    assert ran.code == 2
    assert "-> choose one of 3:scaled-dot\n" in ran.err


def test_a_wide_terminal_has_the_texts_beside_each_other(repo, monkeypatch):
    repo.source(stale("p", "Old.", "# Head\n\nNew words.", "# Глава\n\nНовые слова."))
    monkeypatch.setenv("COLUMNS", "130")
    lines = [line.split("│") for line in repo.run("diff").out.split("\n") if "│" in line]
    rows = [[part.strip() for part in line] for line in lines]
    assert ["# Head", "# Глава"] in rows
    assert ["New words.", "Новые слова."] in rows
    monkeypatch.setenv("COLUMNS", "80")
    assert "│" not in repo.run("diff").out


def on_a_terminal(root, **environment):
    """What the command writes to a terminal."""
    script = "import sys; from pathlib import Path; from course_build.cli import main;"
    script += f"sys.exit(main(['diff'], Path({str(root)!r})))"
    reading, writing = pty.openpty()
    known = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
    subprocess.run(
        [sys.executable, "-c", script], stdout=writing, cwd=ROOT, check=False,
        env=known | environment,
    )  # fmt: skip
    os.close(writing)
    said = os.read(reading, 100_000).decode()
    os.close(reading)
    return said


def test_a_terminal_gets_colours_and_lines_unless_told_not_to(repo, git):
    repo.source(prose("p", "Old words."))
    commit(git, "one")
    edit(repo, "Old words", "New words")
    assert "\x1b[31;9mOld\x1b[0m\x1b[32;4mNew\x1b[0m words." in on_a_terminal(repo.root)
    plain = on_a_terminal(repo.root, NO_COLOR="1")
    assert "[-Old-]{+New+} words." in plain
    assert "\x1b" not in plain


# Word by word


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("same", "same", "same"),
        ("a b c", "a x c", "a [-b-]{+x+} c"),
        ("a b c d", "a x y d", "a [-b c-]{+x y+} d"),
        ("one, two.", "two, two.", "[-one-]{+two+}, two."),
        ("", "new", "{+new+}"),
        ("old", "", "[-old-]"),
        ("a\n\nb", "a\n\nb\n\nc", "a\n\nb{+\n\nc+}"),
        (r"\frac{a}{b}", r"\frac{a}{c}", r"\frac{a}{[-b-]{+c+}}"),
        ("x\u00a0y", "x y", "x[-\u00a0-]{+ +}y"),
        ("f(a, b)", "f(c, d)", "f([-a, b-]{+c, d+})"),
        ("a\n\nb", "c\n\nd", "[-a-]{+c+}\n\n[-b-]{+d+}"),
    ],
)
def test_changes_are_marked_by_words(before, after, shown):
    assert word_diff(before, after, PLAIN) == shown


def test_marks_taken_away_leave_either_text():
    before = "The scores [x-1] are {a+b}, so divide\nby  the root.\n\n    indented"
    after = "Scores [x-2] are {a+c}; divide\nby the root of it.\n\n\n    Indented, so"
    marked = word_diff(before, after, COLOURED)
    assert re.sub("\x01.*?\x02|[\x03\x04]", "", marked, flags=re.DOTALL) == after
    assert re.sub("\x03.*?\x04|[\x01\x02]", "", marked, flags=re.DOTALL) == before


def test_a_change_over_several_lines_is_coloured_on_each():
    assert coloured(["a \x03b", "c", "d\x04 e"]) == [
        "a \x1b[32;4mb\x1b[0m", "\x1b[32;4mc\x1b[0m", "\x1b[32;4md\x1b[0m e",
    ]  # fmt: skip


def test_lines_are_broken_at_spaces_and_keep_their_indents():
    assert wrapped("aa bb cc\n\n  b c d", 6) == ["aa bb", "cc", "", "  b c", "d"]


def test_columns_stay_straight_whatever_the_marks():
    left = word_diff("one two three", "one 2 three", COLOURED)
    for line in side_by_side(left, "раз два три", 40):
        assert re.sub(r"\x1b\[[\d;]*m", "", line).index("│") == 19


def test_paragraphs_stand_beside_each_other_if_there_are_as_many():
    assert side_by_side("a b c d e\n\nf", "x\n\ny", 9) == [
        "a b │ x", "c d │", "e   │", "    │", "f   │ y",
    ]  # fmt: skip
    assert side_by_side("a\n\nb\n\nc", "x\n\ny", 9)[0] == "a   │ x"


def test_a_third_language_is_shown_for_itself(repo, monkeypatch):
    from course_build.base.chrome import CHROME

    monkeypatch.setitem(CHROME, "xx", CHROME["en"])
    repo.write("pyproject.toml", SETTINGS.replace('"ru"]', '"ru"]\ndrafts = ["xx"]'))
    third = stale("p", ru="Xyz.").split("\n\n")[1].replace('lang="ru"', 'lang="xx"')
    repo.source(prose("p", "New words.") + "\n" + third)
    out = repo.run("diff").out
    assert "Xyz." in out
    assert "Слова." not in out
    assert out.endswith(f"{BUILDER} confirm 3:p --lang xx\n")
    assert repo.run("diff", "--lang", "ru").code == 0
