"""The declared ranges: what they say, that the pins agree, what is installed at either end."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from course_build import environment
from course_build.environment.compat import __main__ as compat
from course_build.environment.compat.ranges import (
    ENDS,
    RangeError,
    declared,
    requirements,
    wrong_python,
)

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
PINS = (ROOT / "requirements.txt").read_text(encoding="utf-8")
PROJECT = tomllib.loads(SETTINGS)["project"]
BOUNDS = declared(SETTINGS)
PACKAGES = {name: bound for name, bound in BOUNDS.items() if name != "python"}


def toml(python=">=3.11", *dependencies):
    return (
        f'[project]\nrequires-python = "{python}"\ndependencies = {list(dependencies)}\n'
        '[project.optional-dependencies]\nplots = ["matplotlib>=3.8"]\n'
    )


def parsed(text):
    return {r.name: r.specifier for r in map(Requirement, text.splitlines())}


# What is declared


def test_the_ranges_are_those_that_packaging_reads():
    extras = PROJECT["optional-dependencies"]["plots"]
    wanted = {r.name: r.specifier for r in map(Requirement, PROJECT["dependencies"] + extras)}
    assert {name: SpecifierSet(f">={bound}") for name, bound in PACKAGES.items()} == wanted
    assert SpecifierSet(f">={BOUNDS['python']}") == SpecifierSet(PROJECT["requires-python"])


def test_every_pin_is_inside_its_range():
    pins = parsed("\n".join(line for line in PINS.splitlines() if re.match("[a-z]", line)))
    for name, bound in PACKAGES.items():
        (pin,) = pins[name]
        assert SpecifierSet(f">={bound}").contains(pin.version), name


def test_all_that_the_library_imports_is_declared():
    roots = set()
    for path in (ROOT / "course_lib").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                roots |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                roots.add(node.module.partition(".")[0])
    others = roots - set(sys.stdlib_module_names) - {"course_lib"}
    assert {name.lower() for name in others} == PACKAGES.keys()


def test_the_oldest_python_is_the_same_everywhere():
    oldest = BOUNDS["python"]
    assert ".".join(map(str, environment.OLDEST)) == oldest
    ruff = tomllib.loads(SETTINGS)["tool"]["ruff"]["target-version"]
    assert ruff == "py" + oldest.replace(".", "")
    for name in ("README.md", "README.ru.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert set(re.findall(r"Python\s(3\.\d+)", text)) == {oldest}, name


@pytest.mark.parametrize("line", ["torch>=2.4,<3", "torch~=2.4", "torch", "torch>=2.4; a == 'b'"])
def test_a_range_of_another_form_is_refused_by_name(line):
    with pytest.raises(RangeError, match=re.escape(repr(line))):
        declared(toml(">=3.11", line))
    with pytest.raises(RangeError, match="'python>=3.11,<3.14'"):
        declared(toml(">=3.11,<3.14"))


# What is installed


def test_the_oldest_are_the_lower_bounds_themselves_and_the_tools_keep_their_pins():
    pins = "torch==2.13.0\n# tools\npapermill==2.7.0  # why\n"
    text = requirements("oldest", {"python": "3.11", "torch": "2.4", "psutil": "5.9"}, pins)
    assert text == "torch==2.4\npsutil==5.9\npapermill==2.7.0\n"


def test_the_newest_have_no_upper_bound():
    text = requirements("newest", {"python": "3.11", "torch": "2.4"}, "torch==2.13.0\nrich==1.0\n")
    assert text == "torch>=2.4\nrich==1.0\n"


@pytest.mark.parametrize("end", ENDS)
def test_the_course_own_requirements_differ_in_the_declared_packages_only(end):
    installed = parsed(requirements(end, BOUNDS, PINS))
    pins = parsed("\n".join(line for line in PINS.splitlines() if re.match("[a-z]", line)))
    assert installed.keys() == pins.keys()
    assert {name for name in pins if installed[name] != pins[name]} == PACKAGES.keys()


def test_a_requirement_that_is_no_pin_is_refused():
    with pytest.raises(RangeError, match="'-r more.txt'"):
        requirements("oldest", {"python": "3.11"}, "-r more.txt\n")


# With which Python


def test_the_oldest_are_proved_with_the_oldest_python_only():
    bounds = {"python": "3.11"}
    assert wrong_python("oldest", bounds, (3, 11)) is None
    assert "make compat PYTHON=python3.11" in wrong_python("oldest", bounds, (3, 12))
    assert wrong_python("newest", bounds, (3, 11)) is None
    assert wrong_python("newest", bounds, (3, 14)) is None


# The command


@pytest.fixture
def steps(tmp_path, monkeypatch):
    """The command with a made-up environment: what it would run, and the codes to answer."""
    ran, codes = [], {}

    def answer(command, environment):
        ran.append((command[1:], environment))
        return next((code for word, code in codes.items() if word in command), 0)

    for name in compat.LIBRARY:
        path = tmp_path / name
        if name == "course_lib":
            path.mkdir()
        else:
            path.write_bytes((ROOT / name).read_bytes())
    for name in ("requirements.txt", "requirements-dev.txt"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    monkeypatch.setattr(compat, "ROOT", tmp_path)
    monkeypatch.setattr(compat, "ensure", lambda venv, files: Path(sys.executable))
    monkeypatch.setattr(compat, "run", answer)
    return ran, codes


def test_notebooks_run_where_the_library_is_not_and_then_the_library_alone(steps, tmp_path, capfd):
    ran, _ = steps
    assert compat.main(["newest", "--lang", "ru"]) == 0
    commands = [command for command, _ in ran]
    folder = tmp_path / "build" / "compat" / "newest"
    assert ["build_notebooks.py", "--check"] in commands
    run = ["-m", "course_build.run", "--output", str(folder / "executed"), "--lang", "ru"]
    assert run in commands
    library = str(folder / "library")
    assert [c[:3] for c, e in ran if e.get("PYTHONPATH")] == [
        ["-P", "-m", "course_lib.contracts"]
    ] * len(compat.OWN)
    assert {e.get("PYTHONPATH") for _, e in ran} == {None, library}
    versions = ", ".join([r"Python \S+", *(rf"{name} \S+" for name in PACKAGES)])
    assert re.fullmatch(rf"\[course\] newest ran: {versions}\n", capfd.readouterr().out)


@pytest.mark.parametrize(("word", "code"), [("--check", 1), ("--output", 2), ("sampling", 1)])
def test_the_worst_step_is_the_exit_code_and_the_others_run(steps, word, code):
    ran, codes = steps
    codes[word] = code
    assert compat.main(["newest"]) == code
    assert len(ran) == 4 + len(compat.OWN)


def test_ctrl_c_in_a_step_ends_all(steps):
    ran, codes = steps
    codes["--check"] = 130
    assert compat.main(["newest"]) == 130
    assert len(ran) == 2


def test_what_cannot_be_tried_is_a_sentence_and_exit_code_2(steps, tmp_path, capfd):
    (tmp_path / "requirements.txt").write_text("torch\n", encoding="utf-8")
    assert compat.main(["newest"]) == 2
    assert "'torch'; write it as name==version" in capfd.readouterr().err
