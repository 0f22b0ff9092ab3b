"""The command line: what is chosen, what is said, and how it ends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from course_build import cli
from course_build.base import findings
from course_build.base.chrome import CHROME
from course_build.base.findings import CourseError
from course_build.base.settings import parse_settings

from .conftest import FRAME, FRAME_LINES, NAME, SETTINGS, SOURCE, code, prose, said, stale

ROOT = Path(__file__).resolve().parents[2]


# Check


def test_check_accepts_what_was_just_built_and_writes_nothing(repo):
    repo.build(prose("p"))
    before = repo.outputs()
    ran = repo.run("--check")
    assert (ran.code, ran.out, ran.err) == (0, "2 notebooks are up to date\n", "")
    assert repo.outputs() == before


def test_check_names_what_is_missing_and_what_differs(repo):
    repo.build()
    (repo.root / f"notebooks/en/{NAME}.ipynb").unlink()
    path = repo.root / f"notebooks/ru/{NAME}.ipynb"
    path.write_bytes(path.read_bytes() + b" ")
    ran = repo.run("--check")
    assert ran.code == 1
    assert f"notebooks/en/{NAME}.ipynb: missing; run: make notebooks\n" in ran.err
    assert f"notebooks/ru/{NAME}.ipynb: differs; run: make notebooks\n" in ran.err
    assert not (repo.root / f"notebooks/en/{NAME}.ipynb").exists()


def test_check_needs_no_solved_notebooks(repo):
    repo.build()
    for path in repo.outputs():
        if path.startswith("build/"):
            (repo.root / path).unlink()
    assert repo.run("--check").code == 0


def test_check_of_a_stale_translation_is_work_to_do(repo):
    repo.build(prose("p"))
    repo.write(SOURCE, repo.read(SOURCE).replace("Some words.", "Other words."))
    ran = repo.run("--check")
    assert ran.code == 1
    assert "[stale-twin]" in ran.err
    assert f"notebooks/en/{NAME}.ipynb: differs" in ran.err
    assert f"notebooks/ru/{NAME}.ipynb: differs" not in ran.err


BUILDER = "python3 -m course_build.environment build_notebooks.py"


@pytest.mark.parametrize("arguments", [(), ("--check",), ("--preview",)])
def test_stale_cells_come_with_the_commands_to_copy(repo, arguments):
    repo.source(stale("p"), stale("q"))
    err = repo.run(*arguments).err
    assert f"    {BUILDER} diff 3:p 3:q\n    {BUILDER} confirm 3:p 3:q\n" in err


def test_many_stale_cells_take_a_few_lines_and_a_missing_one_is_not_among_them(repo):
    repo.source(*(stale(f"p{number}") for number in range(50)))
    err = repo.run("--check").err
    assert err.count("[stale-twin]") == 6
    assert f"{SOURCE}: and 44 more like these\n" in err
    assert f"    {BUILDER} diff 3\n    {BUILDER} confirm 3\n" in err
    assert len(err.split("\n")) < 16


def test_a_third_language_is_named_in_the_commands(repo, monkeypatch):
    monkeypatch.setitem(CHROME, "xx", CHROME["en"])
    repo.write("pyproject.toml", SETTINGS.replace('"ru"]', '"ru"]\ndrafts = ["xx"]'))
    repo.source(stale("p"))
    assert f"    {BUILDER} confirm 3:p --lang ru\n" in repo.run("--check").err


def test_a_missing_twin_is_broken_and_says_what_to_write_and_to_confirm(repo):
    repo.source(prose("p").split("\n\n")[0] + "\n")
    ran = repo.run("--check")
    assert ran.code == 2
    assert (
        '-> write it beside: # %% [markdown] lang="ru" key="p"\n'
        f"       then: {BUILDER} diff 3:p\n"
        f"             {BUILDER} confirm 3:p\n"
    ) in ran.err


def test_stale_cells_of_a_broken_source_are_said_in_short(repo):
    repo.source(stale("p"))
    repo.source(code("x", "undefined"), name="module_04_bad")
    ran = repo.run()
    assert ran.code == 2
    assert 'cell "p": [stale-twin] the en text changed' in ran.err
    assert "[undefined-name]" in ran.err


def test_a_reader_who_stops_reading_is_no_fault():
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run(
        [sys.executable, "build_notebooks.py", "status"],
        stdout=writing, stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_check_of_a_broken_source_is_broken(repo):
    repo.build()
    repo.source(code("x", "x = ("))
    assert repo.run("--check").code == 2


def test_check_sees_a_change_in_the_library(repo):
    repo.build(code("e", "from course_lib.scaling import scale"))
    path = "course_lib/door.py"
    repo.write(path, repo.read(path).replace("is not positive", "must be positive"))
    assert repo.run("--check").code == 1


# Choosing


@pytest.mark.parametrize(
    "name", ["3", "03", "module_03", NAME, SOURCE, f"./{SOURCE}", f"{NAME}.py"]
)
def test_one_module_can_be_chosen_by_number_name_or_path(repo, name):
    repo.source(name="module_04_other")
    repo.source()
    assert repo.run("--module", name, "--lang", "ru").code == 0
    assert sorted(repo.outputs()) == [
        f"build/solved/ru/{NAME}.ipynb",
        f"notebooks/ru/{NAME}.ipynb",
    ]


def test_several_modules_and_languages_can_be_chosen(repo):
    for name in ("module_04_other", "module_30_more", NAME):
        repo.source(name=name)
    assert repo.run("--module", "3", "4", "--lang", "ru", "en").code == 0
    assert len(repo.outputs()) == 8
    assert not any("module_30" in path for path in repo.outputs())


def test_a_broken_module_does_not_stop_another_that_was_chosen(repo):
    repo.source(code("x", "x = ("), name="module_04_bad")
    repo.source()
    assert repo.run("--module", "3").code == 0
    assert repo.run("--module", "4").code == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--module", "9"), f"there is no module '9'\n    -> choose from {NAME}"),
        (("--module", "toy"), "there is no module 'toy'"),
        (("--lang", "de"), "there is no language 'de'\n    -> choose from en, ru"),
        (("confirm", "begin"), "there is no module 'begin'"),
        (("diff", "9"), "there is no module '9'"),
        (("status", "--module", "9"), "there is no module '9'"),
        (("status", "--lang", "de"), "there is no language 'de'"),
        (("diff", "--lang", "en"), "nothing is translated into 'en'\n    -> choose from ru"),
        (("confirm", "9:begin"), "there is no module '9'"),
    ],
)
def test_what_is_not_there_cannot_be_chosen(repo, arguments, words):
    repo.source()
    ran = repo.run(*arguments)
    assert ran.code == 2
    assert f"build_notebooks.py:1: [usage]\n    {words}" in ran.err
    assert repo.outputs() == {}


@pytest.mark.parametrize("arguments", [["--check", "--preview"], ["--what"], ["x"]])
def test_a_command_that_is_not_understood_is_broken(repo, arguments):
    with pytest.raises(SystemExit) as ended:
        repo.run(*arguments)
    assert ended.value.code == 2


@pytest.mark.parametrize("name", sorted(cli.COMMANDS))
def test_a_command_stands_before_its_options(repo, name):
    repo.source()
    ran = repo.run("--check", name)
    assert ran.code == 2
    assert f"options stand before {name!r}\n    -> write build_notebooks.py {name} ..." in ran.err


@pytest.mark.parametrize("name", sorted(cli.COMMANDS))
def test_every_command_has_help_of_its_own(repo, name):
    with pytest.raises(SystemExit) as ended:
        repo.run(name, "--help")
    assert ended.value.code == 0
    assert cli.COMMANDS[name][1].split()[0] in repo.capsys.readouterr().out


def test_a_plain_build_imports_no_commands_module():
    script = (
        "import sys; from course_build import cli;"
        "print(*(m for m, _ in cli.COMMANDS.values() if m in sys.modules))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert ran.stdout.strip() == ""


def test_no_sources_at_all_is_an_error(repo):
    ran = repo.run()
    assert ran.code == 2
    assert "there is not one source in notebooks/src" in ran.err
    assert repo.run("--check").code == 2


@pytest.mark.parametrize("name", ["notes", "module_3_toy", "module_03_Toy", "module_03", "x_03_y"])
def test_a_source_has_a_modules_name(repo, name):
    repo.source(name=name)
    assert said(f"notebooks/src/{name}.py", 1, None, "source-name", name).search(repo.broken())


def test_a_number_belongs_to_one_module(repo):
    repo.source(name="module_03_another")
    err = repo.refuse()
    assert said(SOURCE, 1, None, "source-name", "module_03_another.py has the same").search(err)


def test_a_source_that_is_a_folder_is_named(repo):
    repo.source()
    (repo.root / "notebooks/src/module_04_x.py").mkdir()
    ran = repo.run()
    assert ran.code == 2
    assert "module_04_x.py:1: [file]\n    cannot read: Is a directory" in ran.err


def test_how_much_there_is_to_mend_is_counted(repo):
    repo.source(code("x", "x = ("))
    assert repo.run().err.endswith("\nbroken: 1 finding; nothing was written\n")
    repo.source(code("x", "x = ("), code("y", "y = ("))
    assert repo.run().err.endswith("\nbroken: 2 findings; nothing was written\n")
    repo.source(stale("p"), stale("q"))
    assert repo.run().err.endswith(
        "\nstale: 2 findings; nothing was written (--preview builds all the same, under a banner)\n"
    )


# Settings


SETTINGS_REFUSED = {
    "not TOML": ("[tool.course", "not valid TOML"),
    "no table": ("", "languages must be a list"),
    "no languages": (SETTINGS.replace('"en", "ru"', ""), "languages must be a list"),
    "a word": (SETTINGS.replace('["en", "ru"]', '"en"'), "languages must be a list"),
    "twice": (SETTINGS.replace('"ru"', '"en"'), "languages must be a list"),
    "a number": (SETTINGS.replace('"ru"', "1"), "languages must be a list"),
    "not a code": (SETTINGS.replace('"ru"', '"../x"'), "languages must be a list"),
    "no words": (SETTINGS.replace('"ru"', '"de"'), "no words for the language 'de'"),
    "a slug": (SETTINGS.replace('repository = ""', 'repository = "owner"'), "owner/name"),
    "a slug's type": (SETTINGS.replace('repository = ""', "repository = 1"), "owner/name"),
    "a branch": (SETTINGS.replace('"main"', '""'), "branch must be"),
    "a branch's type": (SETTINGS.replace('"main"', "1"), "branch must be"),
}


@pytest.mark.parametrize(("text", "words"), SETTINGS_REFUSED.values(), ids=SETTINGS_REFUSED.keys())
def test_settings_that_cannot_be_obeyed_are_refused(text, words):
    with pytest.raises(CourseError, match=rf"pyproject\.toml:1: \[settings\]\n.*{words}"):
        parse_settings(text)


def test_the_first_language_is_the_source_language(repo):
    settings = parse_settings(SETTINGS)
    assert (settings.languages, settings.repository, settings.branch) == (("en", "ru"), "", "main")
    repo.write("pyproject.toml", SETTINGS.replace('"en", "ru"', '"ru", "en"'))
    repo.source()
    assert "[unknown-attribute]\n    unknown attribute 'en'" in repo.broken()


def test_missing_settings_are_named(repo):
    (repo.root / "pyproject.toml").unlink()
    ran = repo.run()
    assert ran.code == 2
    assert "there is no pyproject.toml" in ran.err


# The script


def test_help_says_what_there_is_and_how_it_ends(repo):
    with pytest.raises(SystemExit) as ended:
        cli.main(["--help"], repo.root)
    assert ended.value.code == 0
    said_by_help = repo.capsys.readouterr().out
    for words in (
        "--check",
        "--preview",
        "--module",
        "--lang",
        *cli.COMMANDS,
        "exit codes: 0 done",
    ):
        assert words in said_by_help


def test_the_script_works_from_any_folder_and_hands_on_the_exit_code():
    ran = subprocess.run(
        [sys.executable, ROOT / "build_notebooks.py", "--module", "99"],
        capture_output=True, text=True, check=False, cwd="/",
    )  # fmt: skip
    assert ran.returncode == 2
    assert "there is no module '99'" in ran.stderr


def test_without_its_requirements_the_script_says_what_to_install():
    ran = subprocess.run(
        [sys.executable, "-E", "-S", ROOT / "build_notebooks.py", "confirm", "3:a b"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 2
    command = "python3 -m course_build.environment build_notebooks.py confirm '3:a b'"
    assert ran.stderr.startswith("jupytext is not installed for this Python.\n")
    assert ran.stderr.endswith(f": {command}\n")


INTERRUPTED = """
import sys
sys.argv = ["build_notebooks.py", "--check"]
sys.path.insert(0, {root!r})
class Stop:
    def find_spec(self, name, *rest):
        if name == {where!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Stop())
if {where!r} == "main":
    from course_build import cli
    def main(*arguments):
        raise KeyboardInterrupt
    cli.main = main
import runpy
runpy.run_path({root!r} + "/build_notebooks.py", run_name="__main__")
"""


@pytest.mark.parametrize("where", ["jupytext", "main"])
def test_ctrl_c_is_a_sentence_while_loading_and_while_building(where):
    script = INTERRUPTED.format(root=str(ROOT), where=where)
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (130, "")
    assert ran.stderr == "\nstopped; nothing is half-written\n"


def test_exit_codes_are_the_promised_ones():
    assert (findings.DONE, findings.WORK, findings.BROKEN) == (0, 1, 2)


def test_the_frame_of_these_tests_is_what_they_take_it_for():
    assert FRAME.count("\n") + 1 == FRAME_LINES
