"""What a build costs grows with the course and no faster, counted in calls of functions."""

import json
import re
import sys
from collections import Counter

import pytest

from course_build.base.files import read_files
from course_build.base.places import SOURCES
from course_build.base.settings import SETTINGS_FILE, parse_settings
from course_build.base.stamp import stamp_of
from course_build.building.course import build_course

from . import bench
from .bench import slope
from .conftest import code, prose
from .copies import ROOT, another, copy_course

pytestmark = pytest.mark.delivery


def toy(repo, count):
    """Write so many modules, none like another, each with its own library file."""
    for number in range(count):
        library = f"course_lib/part_{number}.py"
        repo.write(library, f"def f_{number}(x: int) -> int:\n    return x + {number}\n")
        words = f"Words about {number} and more.", f"Слова про {number} и ещё."
        repo.source(
            *(prose(f"p{place}-{number}", *words) for place in range(4)),
            code("e", f"from course_lib.part_{number} import f_{number}"),
            code("c", f"print(f_{number}({number}))"),
            name=f"module_{number:02d}_toy",
        )


def calls_of(action) -> Counter[str]:
    """Do something and count the calls of functions, by their kind: Python's own or in C."""
    counted: Counter[str] = Counter()

    def count(frame, event, argument):
        counted[event] += 1

    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(None)
    return counted


def build(repo):
    files = read_files(repo.root)
    settings = parse_settings(repo.read(SETTINGS_FILE))
    return build_course(files, settings, list(files.sources), settings.languages)


@pytest.mark.parametrize("kind", ["call", "c_call"])
def test_twice_the_modules_take_twice_the_calls(repo, kind):
    toy(repo, 2)
    build(repo)  # whatever is done once in a process
    costs = {}
    for count in (10, 20, 40):
        toy(repo, count)
        build_of = calls_of(lambda: build(repo))
        costs[count] = build_of[kind]
    assert slope(costs) < 1.02, costs
    first, second = (costs[20] - costs[10]) / 10, (costs[40] - costs[20]) / 20
    assert second == pytest.approx(first, rel=0.05)


class Options:
    module = lang = None


@pytest.mark.parametrize("kind", ["call", "c_call"])
def test_a_stamp_takes_as_many_calls_for_every_module(repo, kind):
    costs = {}
    for count in (10, 20, 40):
        toy(repo, count)
        found = calls_of(lambda: stamp_of(repo.root, Options, b"", read_files(repo.root)))
        costs[count] = found[kind]
    assert slope(costs) < 1.02, costs


def test_the_exponent_of_growth():
    assert slope({1: 3, 10: 30, 100: 300}) == pytest.approx(1)
    assert slope({1: 3, 10: 300, 100: 30000}) == pytest.approx(2)


def test_a_copy_of_a_module_differs_from_it_in_every_cell_and_builds(tmp_path):
    settings = parse_settings((ROOT / SETTINGS_FILE).read_text(encoding="utf-8"))
    one, other = (another(number).split("\n") for number in (1, 2))
    assert len(one) == len(other)
    assert sum(a != b for a, b in zip(one, other, strict=True)) > 300
    course = copy_course(tmp_path / "copy", 2)
    files = read_files(course)
    built = build_course(files, settings, list(files.sources), settings.languages)
    assert (len(built.notebooks), built.stale) == (2 * len(settings.languages), ())


@pytest.mark.parametrize(("cold", "verdict"), [(2.0, "reached"), (5.0, "missed")])
def test_the_bench_says_whether_the_aim_was_reached(tmp_path, monkeypatch, capsys, cold, verdict):
    def cost_of(command, folder):
        modules = len(list((folder / SOURCES).glob("module_*.py")))
        seconds = cold * modules / 2 if command == bench.BUILD else 4.0
        return bench.Cost(seconds, seconds)

    monkeypatch.setattr(bench, "cost_of", cost_of)
    numbers = tmp_path / "numbers.json"
    bench.main(["--rounds", "1", "--sizes", "1", "3", "--json", str(numbers)])
    told = capsys.readouterr().out
    assert re.search(rf"^cold / jupytext .* at most 1.00: {verdict}$", told, re.MULTILINE)
    assert "exponent of growth, cpu, all sizes: 1.000" in told
    assert json.loads(numbers.read_text())["growth"]["3"]["wall"] == pytest.approx(1.5 * cold)
