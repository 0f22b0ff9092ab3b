"""Which notebooks run, in which order, on which machine; what make passes on."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_build.run import jobs as jobs_module
from course_build.run.jobs import ROOT, code_size, longest_first, parse_shard, shard_of
from course_build.run.outcome import Job
from tests.run.doubles import make_jobs

sizes = st.lists(st.integers(0, 50), min_size=0, max_size=12)


def named(count):
    return [Job(Path(f"{n}.ipynb"), "learner", "en", Path(f"out/{n}.ipynb")) for n in range(count)]


def test_what_took_longest_before_runs_first(tmp_path):
    jobs = make_jobs(tmp_path, a="1", b="1", c="1")
    seconds = {"learner/en/a": 2.0, "learner/en/b": 9.0, "learner/en/c": 5.0, "learner/ru/a": 99.0}
    assert [job.name for job in longest_first(jobs, seconds)] == ["b", "c", "a"]


def test_a_notebook_that_never_ran_is_placed_by_the_size_of_its_code(tmp_path):
    jobs = make_jobs(tmp_path, a="x" * 10, b="x" * 30, new="x" * 20)
    assert code_size(jobs[2]) == 20
    known = {"learner/en/a": 5.0, "learner/en/b": 15.0}  # half a second a character
    assert [job.name for job in longest_first(jobs, known)] == ["b", "new", "a"]
    assert [job.name for job in longest_first(jobs, {})] == ["b", "new", "a"]


def test_a_file_that_is_no_notebook_has_no_size(tmp_path):
    [job] = make_jobs(tmp_path, a="1")
    for content in (b"", b"[]", b'{"cells": 3}', b"\xff"):
        job.notebook.write_bytes(content)
        assert code_size(job) == 0


@settings(deadline=None)
@given(sizes, st.integers(1, 8))
def test_every_notebook_is_in_exactly_one_shard_and_the_shards_are_even(weights, count):
    jobs = named(len(weights))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs_module, "code_size", lambda job: weights[int(job.name)])
        shards = [shard_of(jobs, (number + 1, count)) for number in range(count)]
    together = [job for shard in shards for job in shard]
    assert sorted(job.name for job in together) == sorted(job.name for job in jobs)
    loads = [sum(max(1, weights[int(job.name)]) for job in shard) for shard in shards]
    assert max(loads) - min(loads) <= max([1, *weights])


def test_one_big_notebook_weighs_as_much_as_many_small_ones(tmp_path):
    jobs = make_jobs(tmp_path, big="x" * 80, **{f"small{n}": "x" * 10 for n in range(8)})
    assert {len(shard_of(jobs, (1, 2))), len(shard_of(jobs, (2, 2)))} == {1, 8}


@settings(deadline=None)
@given(st.permutations(range(7)))
def test_machines_that_list_the_notebooks_in_another_order_agree(order):
    jobs = named(7)
    shuffled = [jobs[n] for n in order]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs_module, "code_size", lambda job: 5 - int(job.name) // 2)
        for number in (1, 2, 3):
            assert set(shard_of(jobs, (number, 3))) == set(shard_of(shuffled, (number, 3)))


def test_local_timings_do_not_move_a_notebook_to_another_shard(tmp_path):
    jobs = make_jobs(tmp_path, a="x" * 9, b="x" * 8, c="x" * 7)
    slow = longest_first(jobs, {"learner/en/c": 900.0})
    assert set(shard_of(jobs, (1, 2))) == set(shard_of(slow, (1, 2)))


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "1/0", "-1/2", "1/2/3", "a/b", "1 / 2", ""])
def test_a_shard_that_cannot_be_is_refused_with_the_way_to_write_it(text):
    with pytest.raises(ValueError, match="write I/N with 1 <= I <= N"):
        parse_shard(text)


def test_a_shard_is_read():
    assert parse_shard("2/16") == (2, 16)


def command_of(*variables, **environment):
    """What `make run` would do, also when another make runs the tests: it passes MAKEFLAGS on."""
    own = ("MAKE", "ARGS")
    outside = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    done = subprocess.run(
        ["make", "-n", "run", *variables],
        cwd=ROOT,
        env={**outside, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()[5:]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is optional; there is none here")
def test_make_passes_on_what_its_command_line_gives_and_no_environment_variable():
    assert command_of(LANG="en_US.UTF-8", MODULE="4", SHARD="1/2", EDITION="x") == []
    given = command_of("LANG=ru", "MODULE=3 4", "SHARD=1/2", "ARGS=-p seed 1", LANG="de_DE.UTF-8")
    assert given == ["--module", "3", "4", "--lang", "ru", "--shard", "1/2", "-p", "seed", "1"]
    assert command_of("EDITION=solved") == ["--edition", "solved"]
