"""What the course weighs is read right, and nothing passes above its budget or its old count."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from course_build.weight import types
from course_build.weight.__main__ import lighter, main, table, too_heavy
from course_build.weight.contracts import Subject, mistakes_named, subjects
from course_build.weight.measures import Weight, packages, seconds_of_tests, weights

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
BUDGETS = SETTINGS["course"]["weight"]

MISTAKES = "WRONG = mistakes(\n    build,\n    **made_in_a_loop,\n)\n" + "# fmt: on\n" * 3
SCORES = "|contract|named|\n|---|---:|\n|`layer`|9/9|2/2|\n|`root`|9/9|1/1|\n|`all`|9/9|3/3|\n"


@pytest.fixture
def course(tmp_path):
    """A small course: one subject with two contracts, one notebook with a folded cell."""
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# A"]},
        {"cell_type": "code", "metadata": {}, "source": ["a\n", "b"]},
        {
            "cell_type": "code",
            "metadata": {"jupyter": {"source_hidden": True}},
            "source": ["a\n", "b\n", "c"],
        },
    ]
    files = {
        "README.md": SCORES,
        "course_lib/contracts/norm/layer.py": "def check_layer_contract(f):\n    pass\n",
        "course_lib/contracts/norm/root.py": "def check_root_contract(f):\n    pass\n",
        "course_lib/contracts/norm/_shared.py": "x = 1\n" * 6,
        "course_lib/contracts/norm/mistakes.py": MISTAKES,
        "course_lib/attention.py": "x = 1\n" * 30,
        "tests/contracts/variants_norm.py": "x = 1\n" * 99,
        "tests/test_attention.py": "x = 1\n" * 47,
        "notebooks/src/module_01_a.py": "",
        "notebooks/en/module_01_a.ipynb": json.dumps({"cells": cells}).ljust(2000),
        "requirements.lock": "",
        "requirements.txt": "torch==2\n",
        "pyproject.toml": (ROOT / "pyproject.toml").read_text(encoding="utf-8"),
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    return tmp_path


def test_the_mistakes_of_the_course_are_counted_contract_by_contract():
    named = mistakes_named(ROOT)
    assert named.pop("all") == sum(named.values())
    assert sum(subject.mistakes for subject in subjects(ROOT)) == sum(named.values()) >= 712


def test_a_contract_weighs_its_share_of_the_subject_without_the_mistakes(course):
    assert subjects(course) == [Subject("course_lib/contracts/norm", 2, 10, 3, 7)]


def test_everything_with_a_budget_is_weighed(course):
    weighed = dict(weights(course))
    assert {name: round(weight.value, 2) for name, weight in weighed.items()} == {
        "KB of a notebook": 2.0,
        "folded lines of a notebook": 3,
        "lines of a contract, mean": 5,
        "lines of a contract, most": 5,
        "lines of a mistake, mean": 2.33,
        "lines of a mistake, most": 2.33,
        "lines of course_lib for a module": 30,
        "lines of tests for a line": 1.0,
        "packages a reader installs": 1,
    }
    assert weighed["KB of a notebook"].where == "notebooks/en/module_01_a.ipynb"
    assert weighed.keys() == BUDGETS.keys()


def test_what_is_too_heavy_is_named_with_what_to_do(course, capsys):
    assert main(["--check"], course) == 0
    (course / "tests/test_attention.py").write_text("x = 1\n" * 48)
    assert main(["--check"], course) == 1
    assert (
        "tests: [weight]\n    lines of tests for a line: 1.02; at most 1.0, and the goal is 1.0"
        in (capsys.readouterr().err)
    )


@pytest.mark.parametrize(
    ("value", "refused", "said"),
    [(101, True, ""), (100, False, ""), (99.5, False, ""), (80, False, "at_most = 80.00"),
     (50, False, "no at_most: the goal is reached")],
)  # fmt: skip
def test_a_ceiling_holds_until_it_can_come_down(value, refused, said):
    weighed, budgets = {"a": Weight(value, "b.py")}, {"a": {"goal": 50, "at_most": 100}}
    assert bool(too_heavy(weighed, budgets)) == refused
    assert [bool(said) and text.endswith(said) for text in lighter(weighed, budgets)] == (
        [True] if said else []
    )


def test_the_table_fits_a_terminal_and_names_every_budget():
    lines = list(table(ROOT))
    assert max(len(line) for text in lines for line in text.split("\n")) <= 100
    assert all(any(name in line for line in lines) for name in BUDGETS)


def test_seconds_are_those_of_the_last_whole_runs(course):
    assert seconds_of_tests(course) == {}
    (course / "build").mkdir()
    runs = '{"quick": {"tests": 1.5, "tests/a": 2}, "slow": {"tests": 0.5}}'
    (course / "build/test_seconds.json").write_text(runs)
    assert seconds_of_tests(course) == {"tests": 2.0, "tests/a": 2}
    assert re.search(r"(?m)^tests .* 2$", "\n".join(table(course)))


def test_what_a_reader_installs_here_is_counted(course):
    (course / "requirements.lock").write_text(
        "pytest==9 \\\n    --hash=sha256:0\nno_such==1\nelsewhere==1 ; sys_platform == 'plan9' \\\n"
    )
    (course / "requirements.txt").write_text("torch==2\npytest==9  # again\n")
    count, megabytes = packages(course)
    assert count == 3
    assert megabytes > 0.5


LINES = [
    "course_lib/a.py:3: error: one  [x]",
    "course_lib/b/c.py:3: error: two  [x]",
    "course_lib/bc.py:9: error: three  [x]",
    "course_lib/a.py:4: note: and so on",
]


def test_findings_of_types_belong_to_the_nearest_room():
    found = types.by_room(LINES, ["course_lib/b", "course_lib/a.py"])
    assert found == {"course_lib/a.py": LINES[:1], "course_lib/b": LINES[1:2], "": LINES[2:3]}


@pytest.mark.parametrize(
    ("allowed", "code", "words"),
    [({"a": 1}, 0, ""), ({"a": 0}, 1, "1 findings, at most 0"), ({"a": 2}, 0, "can have 1")],
)
def test_a_count_of_types_may_only_fall(allowed, code, words):
    said, got = types.compare({"a": ["line"]}, allowed)
    assert got == code
    assert words in "\n".join(said)


def test_a_room_that_is_not_in_the_table_has_no_finding_of_types():
    assert types.compare({"": ["line"]}, {}) == (["line"], 1)


def test_the_rooms_with_open_findings_exist():
    assert [room for room in SETTINGS["course"]["types"] if not (ROOT / room).exists()] == []
