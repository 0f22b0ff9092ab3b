"""The table of exercises, their checks and their headings say the same, or the build says where."""

import pytest

from .conftest import SOURCE, code, code_twins, prose
from .test_exercises import check, exercise

TABLE = 'progress = Progress("module_03", {{"root": ("{level}", "{title}")}})'
MAKER = code(
    "maker", "def Progress(module, exercises):\n    return sys\n\n\ndef judge(f):\n    pass"
)
CHECK = 'progress.check("root", judge, my_root)'


def table(level="core", en=TABLE, ru=TABLE):
    said = [en.format(level=level, title="The root"), ru.format(level=level, title="Корень")]
    return code_twins("table", *said)


def statement(en="core", ru="основное"):
    return prose("root-ask", f"### Exercise 1 ({en}). Root", f"### Упражнение 1 ({ru}). Корень")


SECTION = prose("section", "## One", "## Один")


def source(*, more=(), **parts):
    made = {"table": table(), "statement": statement(), "check": check(CHECK), **parts}
    said = [MAKER, made["table"], SECTION, made["statement"]]
    return [*said, *exercise(check=made["check"]), *more]


def test_a_table_that_fits_its_exercises_is_built(repo):
    repo.build(*source())
    assert repo.text("root-check") == CHECK


def test_a_source_without_a_table_is_left_alone(repo):
    repo.build(*exercise())


def test_a_check_may_prepare_what_it_checks(repo):
    repo.build(*source(check=check(f"x = 1\n\n{CHECK}")))


@pytest.mark.parametrize(
    ("level", "en", "ru"),
    [("warm-up", "warm-up", "разминка"), ("stretch", "stretch", "со звёздочкой")],
)
def test_each_level_has_its_word_in_each_language(repo, level, en, ru):
    repo.build(*source(table=table(level), statement=statement(en, ru)))


@pytest.mark.parametrize(
    ("en", "ru", "told"),
    [
        ("stretch", "основное", "### Exercise 1 (stretch). Root"),
        ("core", "разминка", "### Упражнение 1 (разминка). Корень"),
    ],
)
def test_a_heading_of_another_level_is_named_in_its_language(repo, en, ru, told):
    err = repo.refuse(*source(statement=statement(en, ru)))
    assert 'cell "root-ask": [exercise-level]' in err
    assert f"the heading of 'root' does not say its level: {told.removeprefix('### ')}" in err
    assert err.count("[exercise-level]") == 1
    assert f"-> write ({'core' if en != 'core' else 'основное'}) in it, or change" in err


def test_a_level_is_said_in_brackets(repo):
    bare = prose("root-ask", "### Score of a core", "### Основное об основном")
    assert repo.refuse(*source(statement=bare)).count("[exercise-level]") == 2


def test_each_language_is_held_to_its_own_table(repo):
    russian = TABLE.format(level="stretch", title="Корень")
    twins = code_twins("table", TABLE.format(level="core", title="The root"), russian)
    assert repo.refuse(*source(table=twins)).count("[exercise-level]") == 1


def test_only_the_nearest_heading_counts(repo):
    far = prose("far", "## Part (core)", "## Часть (основное)")
    near = prose("near", "### Exercise", "### Упражнение")
    assert repo.refuse(MAKER, table(), far, near, *exercise(check=check(CHECK))).count("near") == 2


def test_an_exercise_that_the_table_lacks_is_named(repo):
    other = table(en=TABLE.replace("root", "cube"), ru=TABLE.replace("root", "cube"))
    err = repo.refuse(*source(table=other))
    assert f"{SOURCE}:" in err
    assert 'cell "root-stub": [progress-exercise]' in err
    assert "the table of cell \"table\" lacks the exercise 'root'" in err
    assert 'cell "table": [progress-exercise]' in err
    assert "the table has 'cube', which is no exercise of this source" in err


def test_a_level_that_is_none_is_named(repo):
    err = repo.refuse(*source(table=table("easy")))
    assert 'cell "table": [progress-level]' in err
    assert "the level of 'root' is 'easy'\n    -> use one of warm-up, core, stretch" in err


@pytest.mark.parametrize(
    "text",
    [
        "judge(my_root)",
        f"{CHECK}\nNone",
        f"report = {CHECK}",
        f"{CHECK}\n{CHECK}",
        'progress.check("cube", judge, my_root)',
        'progress.check(f"root", judge, my_root)',
        "progress.check(name, judge, my_root)",
        "judge.check(1)",
    ],
)
def test_a_check_that_does_not_end_with_the_tables_check_is_refused(repo, text):
    err = repo.refuse(*source(check=check(text)))
    assert 'cell "root-check": [progress-check]' in err
    assert 'let the cell end with progress.check("root", contract, candidate)' in err


def test_a_check_outside_of_its_cell_is_refused(repo):
    err = repo.refuse(*source(more=[prose("p"), code("again", f"x = 1\n{CHECK}")]))
    assert 'cell "again": [progress-check]' in err
    assert "progress.check outside of an exercise's check" in err


@pytest.mark.parametrize(
    "text",
    [
        'progress = Progress("module_03", dict(root=("core", "Root")))',
        'progress = Progress("module_03", {"root": "core"})',
        'progress = Progress("module_03", {"root": ("core", "")})',
        'progress = Progress("module_03", {**{}})',
        'progress = Progress("module_03", {"root": ("core", f"Root")})',
        'progress = Progress(__name__, {"root": ("core", "Root")})',
        'progress = Progress(module="module_03", exercises={"root": ("core", "Root")})',
        'Progress("module_03", {"root": ("core", "Root")})',
        'x = [0]\nx[0] = Progress("module_03", {"root": ("core", "Root")})',
        'x = sys\nx.progress = Progress("module_03", {"root": ("core", "Root")})',
    ],
)
def test_a_table_that_cannot_be_read_is_refused(repo, text):
    err = repo.refuse(*source(table=code("table", text)))
    assert 'cell "table": [progress-table]' in err
    assert '-> write progress = Progress("module_NN", {"name": ("core", "title"), ...})' in err


def test_the_progress_of_another_module_is_refused(repo):
    other = TABLE.replace("module_03", "module_04")
    err = repo.refuse(*source(table=table(en=other, ru=other)))
    assert "[progress-module]" in err
    assert "-> write 'module_03'" in err


def test_a_name_that_stands_twice_in_the_table_is_refused(repo):
    twice = TABLE.replace("}}", ', "root": ("core", "Again")}}')
    err = repo.refuse(*source(table=table(en=twice, ru=twice)))
    assert "the exercise 'root' stands twice in the table" in err


def test_a_second_table_is_refused(repo):
    again = table().replace('"table"', '"again"')
    err = repo.refuse(*source(more=[prose("p"), again]))
    assert 'cell "again": [progress-twice]' in err
    assert 'the table of exercises is already in cell "table"' in err
