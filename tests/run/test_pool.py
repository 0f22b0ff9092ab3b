"""Many notebooks at once: the order, the limit on time, Ctrl-C, and what is in place when."""

import os
import signal
import threading
import time

import pytest

from course_build.run import pool
from course_build.run.outcome import Plan, exit_code
from course_build.run.pool import Interrupted, run_jobs
from course_lib.checking import capacity
from tests.run.doubles import FakeCrew, make_jobs


@pytest.fixture
def crew(monkeypatch):
    monkeypatch.setattr(pool, "Crew", FakeCrew)
    monkeypatch.setattr(FakeCrew, "started", [])
    monkeypatch.setattr(FakeCrew, "at_once", [])
    return FakeCrew


def statuses(outcomes):
    return {outcome.job.name: outcome.status for outcome in outcomes}


@pytest.fixture
def interrupts(monkeypatch):
    """Send Ctrl-C after so many seconds each."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timers = []

    def send(*after):
        for seconds in after:
            timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
            timers.append(timer)
            timer.start()

    yield send
    for timer in timers:
        timer.join()
    signal.signal(signal.SIGINT, before)


def test_the_first_of_the_list_start_first_as_many_at_once_as_there_are_workers(tmp_path, crew):
    jobs = make_jobs(tmp_path, **{f"n{n}": "sleep 0.05" for n in range(6)})
    begun, told = [], []
    done = run_jobs(jobs, Plan(workers=2), lambda o: told.append(o.job), begun.append)
    assert [outcome.job for outcome in done] == jobs
    assert set(crew.started[:2]) == {"n0", "n1"}
    assert max(crew.at_once) == 2
    assert set(begun) == set(told) == set(jobs)


def test_a_worker_that_raises_is_broken_and_the_others_run(tmp_path, crew):
    done = run_jobs(make_jobs(tmp_path, a="die", b="pass", c="vanish"), Plan(workers=1))
    assert statuses(done) == {"a": "broken", "b": "passed", "c": "broken"}
    assert "No space left" in done[0].failure.reason
    assert exit_code(done) == 2


def test_an_executed_copy_is_replaced_whole_and_nothing_else_stays_beside_it(tmp_path, crew):
    jobs = make_jobs(tmp_path, a="sleep 0.2", b="fail", c="vanish")
    for job in jobs:
        job.executed.parent.mkdir(parents=True, exist_ok=True)
        job.executed.write_text("of an earlier run", encoding="utf-8")
    seen = []
    thread = threading.Timer(0.1, lambda: seen.append(jobs[0].executed.read_bytes()))
    thread.start()
    run_jobs(jobs, Plan(workers=3))
    thread.join()
    assert seen == [b"of an earlier run"]
    folder = jobs[0].executed.parent
    assert sorted(path.name for path in folder.iterdir()) == ["a.ipynb", "b.ipynb"]
    assert (folder / "a.ipynb").read_bytes() == jobs[0].notebook.read_bytes() + b"\n"


def test_when_the_total_limit_is_over_what_runs_is_stopped_and_the_rest_not_run(tmp_path, crew):
    jobs = make_jobs(tmp_path, quick="pass", long="sleep 60", waits="pass", too="pass")
    told = []
    begun = time.monotonic()
    done = run_jobs(jobs, Plan(workers=1, total_limit=0.3), lambda o: told.append(o.status))
    assert time.monotonic() - begun < 30
    assert statuses(done) == {
        "quick": "passed",
        "long": "stopped",
        "waits": "not run",
        "too": "not run",
    }
    assert sorted(told) == sorted(outcome.status for outcome in done)
    assert jobs[1].executed.exists()  # the partial copy
    assert not jobs[2].executed.exists()
    assert exit_code(done) == 1


def test_ctrl_c_keeps_what_ended_and_the_partial_copies(tmp_path, crew, interrupts):
    jobs = make_jobs(tmp_path, quick="pass", long="sleep 60", waits="pass")
    interrupts(0.5)
    with pytest.raises(Interrupted) as stop:
        run_jobs(jobs, Plan(workers=1))
    expected = {"quick": "passed", "long": "stopped", "waits": "not run"}
    assert statuses(stop.value.outcomes) == expected
    assert jobs[1].executed.exists()


def test_the_same_ctrl_c_heard_twice_still_waits_for_the_partial_copy(tmp_path, crew, interrupts):
    jobs = make_jobs(tmp_path, long="sleep 60 1.0")
    interrupts(0.4, 0.7)
    with pytest.raises(Interrupted) as stop:
        run_jobs(jobs, Plan(workers=1))
    assert stop.value.outcomes[0].failure.cell == 1
    assert jobs[0].executed.exists()


def test_a_second_ctrl_c_does_not_wait(tmp_path, crew, interrupts):
    jobs = make_jobs(tmp_path, long="sleep 60 60")
    interrupts(0.3, 1.6)
    begun = time.monotonic()
    with pytest.raises(Interrupted) as stop:
        run_jobs(jobs, Plan(workers=1))
    assert time.monotonic() - begun < 30
    assert statuses(stop.value.outcomes) == {"long": "stopped"}


def test_nothing_to_run_is_nothing_done(crew):
    assert run_jobs([], Plan(workers=1)) == []


@pytest.mark.parametrize(
    ("cpus", "memory", "workers"), [(8, 100_000, 8), (8, 3700, 3), (4, 100, 1), (1, 9000, 1)]
)
def test_as_many_workers_as_cpus_unless_the_memory_is_short(monkeypatch, cpus, memory, workers):
    monkeypatch.setattr(capacity, "usable_cpus", lambda: cpus)
    monkeypatch.setattr(capacity, "free_memory_mb", lambda: memory)
    assert Plan().workers == workers


@pytest.mark.parametrize(
    ("quota", "expected"), [("max 100000", 6), ("250000 100000", 2), ("1000 100000", 1), ("", 6)]
)
def test_a_containers_quota_counts(tmp_path, monkeypatch, quota, expected):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(6), raising=False)
    monkeypatch.setattr(os, "process_cpu_count", lambda: 6, raising=False)
    (tmp_path / "cpu.max").write_text(quota, encoding="ascii")
    assert capacity.usable_cpus(tmp_path) == expected


def test_a_containers_memory_counts(tmp_path):
    (tmp_path / "memory.max").write_text("3000000000", encoding="ascii")
    (tmp_path / "memory.current").write_text("2999000000", encoding="ascii")
    assert capacity.free_memory_mb(tmp_path) == 1
    (tmp_path / "memory.max").write_text("max", encoding="ascii")
    assert capacity.free_memory_mb(tmp_path) > 1
