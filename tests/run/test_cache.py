"""--cache: a hit is the same bytes, every ingredient counts, nothing damaged is ever used."""

import json
from dataclasses import replace

import pytest

from course_build.run import cache as cache_module
from course_build.run import cli, pool, session
from course_build.run.cache import Cache, environment, installed, processor, runner_sources
from course_build.run.outcome import Limits, Outcome, Plan
from tests.run.doubles import FakeCrew, make_jobs

PLAN = Plan(workers=1)


@pytest.fixture
def job(tmp_path):
    return make_jobs(tmp_path, a="pass")[0]


def executed(job, content=b"executed copy"):
    job.executed.parent.mkdir(parents=True, exist_ok=True)
    job.executed.write_bytes(content)
    return Outcome(job, "passed", 4.5, 321, None, {"cell-0": 0.25})


def filled(tmp_path, job, plan=PLAN):
    """A cache that holds the job, whose executed copy is gone."""
    cache = Cache(plan, tmp_path / "cache")
    assert cache.find(job) is None
    cache.keep(executed(job))
    job.executed.unlink()
    return cache


def test_a_hit_puts_the_same_bytes_in_place_and_tells_of_the_earlier_run(tmp_path, job):
    said = []
    assert Cache(PLAN, tmp_path / "cache", said.append).find(job) is None
    filled(tmp_path, job)
    found = Cache(PLAN, tmp_path / "cache", said.append).find(job)
    assert job.executed.read_bytes() == b"executed copy"
    assert (found.status, found.seconds, found.peak_mb) == ("cached", 4.5, 321)
    assert found.cells == {"cell-0": 0.25}
    assert said == []


def test_a_changed_notebook_runs_again_and_takes_the_place_of_its_entry(tmp_path, job):
    cache = filled(tmp_path, job)
    before = sorted(path.name for path in (tmp_path / "cache").rglob("*"))
    job.notebook.write_bytes(job.notebook.read_bytes() + b" ")
    assert cache.find(job) is None
    cache.keep(executed(job, b"newer"))
    assert cache.find(job) is not None
    assert job.executed.read_bytes() == b"newer"
    assert sorted(path.name for path in (tmp_path / "cache").rglob("*")) == before


@pytest.mark.parametrize(
    "plan",
    [
        replace(PLAN, parameters={"seed": 7}),
        replace(PLAN, kernels="plain"),
        replace(PLAN, locale="ru_RU.UTF-8"),
        replace(PLAN, limits=Limits(cell=7)),
    ],
)
def test_another_plan_runs_again(tmp_path, job, plan):
    filled(tmp_path, job)
    assert Cache(plan, tmp_path / "cache").find(job) is None


def test_another_edition_or_language_is_another_notebook(tmp_path, job):
    cache = filled(tmp_path, job)
    others = (replace(job, edition="solved"), replace(job, language="ru"))
    assert [cache.find(other) for other in others] == [None, None]
    assert len({cache.digest(each) for each in (job, *others)}) == 3


def test_how_many_run_at_once_does_not_count(tmp_path, job):
    filled(tmp_path, job)
    plan = replace(PLAN, workers=7, total_limit=60)
    assert Cache(plan, tmp_path / "cache").find(job) is not None


@pytest.mark.parametrize("name", ["runner_sources", "processor", "installed"])
def test_another_runner_machine_or_package_runs_again(tmp_path, job, name, monkeypatch):
    filled(tmp_path, job)
    monkeypatch.setattr(cache_module, name, lambda: ["another"])
    assert Cache(PLAN, tmp_path / "cache").find(job) is None


def test_another_python_or_library_path_runs_again(tmp_path, job, monkeypatch):
    filled(tmp_path, job)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/elsewhere")
    assert Cache(PLAN, tmp_path / "cache").find(job) is None
    monkeypatch.delenv("LD_LIBRARY_PATH")
    with monkeypatch.context() as patch:  # where a cell finds the programs that it calls
        patch.setenv("PATH", "/elsewhere")
        assert Cache(PLAN, tmp_path / "cache").find(job) is None
    monkeypatch.setattr(cache_module.sys, "version", "3.99")
    assert Cache(PLAN, tmp_path / "cache").find(job) is None


def test_the_environment_names_what_decides_the_digits(tmp_path):
    assert any(line.startswith("torch==") for line in installed())
    assert "course_build/run/cache.py" in runner_sources()
    assert "course_lib/checking/supervisor.py" in runner_sources()
    source = tmp_path / "course_build" / "a.py"
    source.parent.mkdir()
    source.write_text("1", encoding="utf-8")
    before = runner_sources(tmp_path)
    source.write_text("2", encoding="utf-8")
    assert runner_sources(tmp_path) != before
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("model name\t: X\nMHz\t: 1\nflags\t: avx2\n\nflags : y", encoding="utf-8")
    assert processor(cpuinfo) == ["model name: X", "flags: avx2"]
    assert processor(tmp_path / "none")
    assert environment(PLAN) == environment(PLAN)


def damage_copy(copy, note):
    copy.write_bytes(copy.read_bytes()[:-1])


def lose_copy(copy, note):
    copy.unlink()


def cut_note(copy, note):
    note.write_bytes(note.read_bytes()[:20])


def lose_note(copy, note):
    note.unlink()


def strip_note(copy, note):
    told = json.loads(note.read_bytes())
    del told["sha256"]
    note.write_text(json.dumps(told), encoding="utf-8")


def other_shape(copy, note):
    note.write_text("[1, 2]", encoding="utf-8")


def other_cells(copy, note):
    note.write_text(json.dumps(json.loads(note.read_bytes()) | {"cells": [1]}), encoding="utf-8")


def not_text(copy, note):
    note.write_bytes(b"\xff\xfe\x00")


@pytest.mark.parametrize(
    "hurt",
    [
        damage_copy,
        lose_copy,
        cut_note,
        lose_note,
        strip_note,
        other_shape,
        other_cells,
        not_text,
    ],
)
def test_a_damaged_entry_is_said_to_be_one_never_used_and_made_anew(tmp_path, job, hurt):
    filled(tmp_path, job)
    folder = tmp_path / "cache/learner/en"
    hurt(folder / "a.ipynb", folder / "a.json")
    said = []
    cache = Cache(PLAN, tmp_path / "cache", said.append)
    assert cache.find(job) is None
    assert not job.executed.exists()
    [line] = said
    assert line.startswith("cache: the entry of learner/en/a is damaged (")
    assert "\n" not in line
    cache.keep(executed(job))
    assert cache.find(job) is not None


@pytest.mark.parametrize("status", ["failed", "broken", "stopped", "not run", "cached"])
def test_only_what_passed_is_kept(tmp_path, job, status):
    cache = Cache(PLAN, tmp_path / "cache")
    cache.find(job)
    cache.keep(replace(executed(job), status=status))
    assert not (tmp_path / "cache").exists()


def test_a_notebook_that_was_changed_while_it_ran_is_not_kept(tmp_path, job):
    cache = Cache(PLAN, tmp_path / "cache")
    cache.find(job)
    job.notebook.write_bytes(b"{}")
    cache.keep(executed(job))
    assert not (tmp_path / "cache").exists()


def test_a_cache_that_cannot_be_written_does_not_stop_the_run(tmp_path, job):
    (tmp_path / "cache").write_text("a file where the folder should be", encoding="utf-8")
    said = []
    cache = Cache(PLAN, tmp_path / "cache", said.append)
    assert cache.find(job) is None
    cache.keep(executed(job))
    assert "cannot be kept" in said[-1]


def test_nothing_in_the_cache_can_run(tmp_path, job):
    filled(tmp_path, job)
    names = {path.suffix for path in (tmp_path / "cache").rglob("*") if path.is_file()}
    assert names == {".ipynb", ".json"}


def test_a_second_run_takes_all_that_passed_from_the_cache(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(pool, "Crew", FakeCrew)
    monkeypatch.setattr(FakeCrew, "started", [])
    monkeypatch.setattr(session, "SECONDS", tmp_path / "seconds.json")
    jobs = make_jobs(tmp_path, a="pass", b="fail", c="pass")
    output = tmp_path / "executed"

    def run():
        FakeCrew.started.clear()
        run = session.run_course(jobs, PLAN, output, cache=Cache(PLAN, tmp_path / "cache"))
        return [outcome.status for outcome in run.outcomes]

    assert run() == ["passed", "failed", "passed"]
    copy = jobs[0].executed.read_bytes()
    jobs[0].executed.unlink()
    assert run() == ["cached", "failed", "cached"]
    assert FakeCrew.started == ["b"]
    assert jobs[0].executed.read_bytes() == copy
    rows = json.loads((output / "report.json").read_bytes())["notebooks"]
    assert (rows[0]["seconds"], rows[0]["original_seconds"]) == (0.0, 0.5)
    assert (rows[1]["seconds"], rows[1]["original_seconds"]) == (0.5, None)
    assert "✓ a (learner, en): cached, it took 0.5 s" in capsys.readouterr().err


@pytest.mark.parametrize(("ci", "refused"), [("true", True), ("1", True), ("false", False)])
def test_the_cache_is_refused_where_ci_is_set(ci, refused, monkeypatch, capsys):
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(cli, "find_course", lambda *_: [])
    assert cli.main(["--cache"]) == 2
    assert ("--cache is refused where" in capsys.readouterr().err) is refused
