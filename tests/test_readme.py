"""What the readmes and CONTRIBUTING say exists: commands, files, links, the tree."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from course_lib.contracts.masks import causal_mask
from course_lib.report import ContractViolation

ROOT = Path(__file__).resolve().parent.parent
READMES = ["README.md", "README.ru.md"]
LANGUAGES = {"README.md": "en", "README.ru.md": "ru"}
DOCUMENTS = [*READMES, "CONTRIBUTING.md"]
PINS = ["requirements.txt", "requirements-build.txt", "requirements-dev.txt"]
LOCKS = [name.replace(".txt", ".lock") for name in PINS]
UNLISTED = {"LICENSE", "README.md", "README.ru.md", "pyproject.toml", *PINS, *LOCKS}


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def fences(name, language=""):
    return re.findall(rf"^```{language}\n(.*?)^```$", read(name), re.MULTILINE | re.DOTALL)


def commands(name):
    """Every command in a bash block or in inline code that starts with make or python."""
    inline = re.findall(r"`((?:make|python3?) [^`]+)`", read(name))
    blocks = [line for block in fences(name, "bash") for line in block.splitlines()]
    return [command for command in inline + blocks if command]


def targets():
    return set(re.findall(r"^([a-z-]+):(?!=)", read("Makefile"), re.MULTILINE))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_make_command_is_a_target(name):
    named = {word for c in commands(name) if c.startswith("make ") for word in c.split()[1:2]}
    assert named
    assert named <= targets()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_python_command_names_modules_and_files_that_exist(name):
    for command in commands(name):
        if not command.startswith("python"):
            continue
        for module in re.findall(r"-m (\S+)", command):
            assert importlib.util.find_spec(module), command
        for script in re.findall(r"\S+\.py", command):
            assert (ROOT / script).is_file(), command


@pytest.mark.skipif(shutil.which("make") is None, reason="make is optional; there is none here")
@pytest.mark.parametrize("target", sorted(targets()))
def test_make_can_say_what_each_target_would_do(target):
    done = subprocess.run(
        ["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("make") is None, reason="make is optional; there is none here")
def test_make_help_is_the_default_and_lists_every_target():
    shown = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"^  make ([a-z-]+) +\w", shown, re.MULTILINE)) == targets()


@pytest.mark.skipif(shutil.which("make") is None, reason="make is optional; there is none here")
@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["tests"], "did you mean: make test?"),
        (["tests/"], "did you mean: make test?"),
        (["build"], "did you mean: make notebooks, make site?"),
        (["reference/"], "did you mean: make reference?"),
        (["README.md"], "did you mean: make help?"),
        (["no-such-command"], "No rule to make target"),
        (["-n", "run", "module=3"], "no such variable: module; there are ARGS MODULE LANG"),
    ],
)
def test_what_only_looks_like_a_command_is_an_error_with_a_hint(asked, told):
    done = subprocess.run(["make", *asked], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert told in done.stderr


def test_the_commands_without_make_are_the_ones_that_make_runs():
    recipes = read("Makefile").replace("$(COURSE)", "python3 -m course_build.environment")
    for name in READMES:
        python = [line for line in "\n".join(fences(name, "bash")).splitlines() if "-m" in line]
        assert [line.split()[-1] for line in python] == ["course_build.lab", "pytest"]
        for command in python:
            assert command in recipes


def test_the_modules_that_make_runs_are_ours_whatever_is_installed():
    packages = set(re.findall(r"-m ((?:tests|course_\w+))\b", read("Makefile")))
    assert packages == {"tests", "course_build"}
    ask = "import sys; print(*(__import__(name).__file__ for name in sys.argv[1:]), sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", ask, *packages], cwd=ROOT, capture_output=True, text=True, check=True
    )
    homes = {Path(line).parent for line in done.stdout.splitlines()}
    assert homes == {ROOT / name for name in packages}


def outline(name):
    """What two readmes in different languages must have in common, in order."""
    kinds = r"^(#+ |```|!\[|- \*\*|\|---)"
    return re.findall(kinds, read(name), re.MULTILINE), fences(name, "bash")


def test_the_readmes_have_the_same_structure_and_the_same_commands():
    assert outline("README.md") == outline("README.ru.md")


@pytest.mark.parametrize("name", READMES)
def test_the_contract_says_of_the_shown_code_what_the_readme_shows(name, monkeypatch):
    monkeypatch.setattr("course_lib.text.LANGUAGE", LANGUAGES[name])
    (code,), (message,) = fences(name, "python"), fences(name, "text")
    check = causal_mask.check_causal_mask_contract
    with pytest.raises(ContractViolation) as refused:
        exec(code, {"torch": torch, check.__name__: check})
    assert f"{refused.value}\n" == message


def links(name):
    return re.findall(r"\]\((?!https?:)([^)#]+)\)", read(name))


def test_the_readmes_link_to_the_same_things_each_in_its_own_language():
    def neutral(name):
        others = (link for link in links(name) if "README" not in link)
        return sorted(re.sub(r"/(en|ru)/", "/*/", link) for link in others)

    assert neutral("README.md") == neutral("README.ru.md")
    assert "figures/ru/" in read("README.ru.md")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_relative_link_leads_somewhere(name):
    assert [link for link in links(name) if not (ROOT / link).exists()] == []


@pytest.mark.parametrize("name", READMES)
def test_a_readme_is_at_most_600_words_without_the_measured_table(name):
    prose = re.sub(r"<!-- score.*?/score -->", "", read(name), flags=re.DOTALL)
    assert len(prose.split()) <= 600


def tree(name):
    """The paths of a readme's tree; `a/en/, ru/` stands for two folders."""
    block = next(block for block in fences(name) if block.startswith("."))
    for entry in re.findall(r"^[|`]-- (.*?)  ", block, re.MULTILINE):
        first, *rest = entry.split(", ")
        yield first
        yield from (f"{Path(first).parent.as_posix()}/{other}" for other in rest)


@pytest.mark.parametrize("name", READMES)
def test_every_path_of_the_tree_exists(name):
    for path in tree(name):
        there = ROOT / path
        assert there.is_dir() if path.endswith("/") else there.is_file(), path


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="only git knows what belongs here")
@pytest.mark.parametrize("name", READMES)
def test_the_tree_leaves_nothing_out(name):
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    tops = {line.split("/")[0] for line in listed.stdout.splitlines()}
    visible = {top for top in tops if not top.startswith(".")}
    assert visible - UNLISTED == {path.split("/")[0] for path in tree(name)} - UNLISTED


def test_the_pins_are_exact_and_name_no_registry():
    for name in PINS:
        for line in read(name).splitlines():
            assert re.fullmatch(r"#.*||[a-z0-9-]+==[0-9.]+", line), line
    assert "torch==2.13.0" in read("requirements.txt").splitlines()


def test_the_code_is_clean():
    ruff = [sys.executable, "-m", "ruff", "check", "--quiet", "."]
    done = subprocess.run(ruff, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
