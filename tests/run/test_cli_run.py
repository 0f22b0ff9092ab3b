"""`make run` from its command line to its exit code, with a crew that starts no process."""

import json
import os
import signal
import subprocess
import sys
import time

import nbformat
import pytest

from course_build.run import cli, jobs, pool, session
from course_build.run.jobs import ROOT
from course_build.run.outcome import Limits
from course_build.run.session import alone, keep_seconds, read_seconds
from tests.run.doubles import FakeCrew, make_jobs


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course of three notebooks; `run(verbs, *argv)` runs it and returns the exit code."""
    monkeypatch.setattr(pool, "Crew", FakeCrew)
    monkeypatch.setattr(FakeCrew, "started", [])
    monkeypatch.setattr(jobs, "ROOT", tmp_path)
    monkeypatch.setattr(session, "SECONDS", tmp_path / "build" / "run-seconds.json")

    def run(verbs, *argv):
        make_jobs(tmp_path, **verbs)
        output = ["--output", str(tmp_path / "out")]
        return cli.main(["--edition", "learner", "--workers", "1", *output, *argv])

    run.folder = tmp_path
    return run


def rows(folder):
    told = json.loads((folder / "report.json").read_bytes())
    return {row["notebook"]: row["status"] for row in told["notebooks"]}


def test_a_run_that_passes_gives_0_a_table_on_stdout_and_both_reports(course, capsys):
    assert course({"module_01_a": "pass", "module_02_b": "pass"}) == 0
    told = capsys.readouterr()
    assert told.out.startswith("notebook ")
    assert "2 of 2 passed" in told.out
    assert told.err.startswith("[1/2] ✓ ")
    assert rows(course.folder / "out") == {"module_01_a": "passed", "module_02_b": "passed"}
    assert (course.folder / "out/junit.xml").is_file()
    assert (course.folder / "out/learner/en/module_01_a.ipynb").is_file()


def test_a_failure_gives_1_and_a_broken_worker_2_and_both_are_reported(course, capsys):
    assert course({"module_01_a": "fail", "module_02_b": "pass"}) == 1
    assert "module_01_a (learner, en): failed" in capsys.readouterr().out
    assert course({"module_02_b": "die"}) == 2
    assert rows(course.folder / "out") == {"module_01_a": "failed", "module_02_b": "broken"}


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_reports_are_written_takes_nothing_from_them(
    course, monkeypatch, signum
):
    heard = []
    before = signal.signal(signum, lambda *_: heard.append(signum))

    def write_reports(run, folder, write=session.write_reports):
        os.kill(os.getpid(), signum)
        write(run, folder)

    monkeypatch.setattr(session, "write_reports", write_reports)
    try:
        assert course({"module_01_a": "pass"}) == 0
        assert heard == []
        os.kill(os.getpid(), signum)
        assert heard == [signum]
    finally:
        signal.signal(signum, before)
    assert rows(course.folder / "out") == {"module_01_a": "passed"}


def test_a_parameter_that_a_notebook_lacks_is_refused_before_anything_runs(course, capsys):
    code = "seed = 18\nsteps = 5"
    for names in (["seed", "stpes"], ["stpes"]):
        write_parameters(course.folder, code)
        given = [word for name in names for word in ("-p", name, "1")]
        assert cli.main(["--edition", "learner", *given]) == 2
        told = capsys.readouterr().err
        assert told.startswith("-p stpes: module_01_a has no such parameter; it has: seed, steps (")
    assert FakeCrew.started == []


def test_the_limits_and_parameters_reach_the_plan(course, monkeypatch):
    monkeypatch.setattr(cli, "check_parameters", lambda *_: None)
    limits = ["--cell-limit", "7", "--limit", "9", "--total-limit", "60"]
    given = ["-p", "seed", "7", "-p", "name", "x y", "-p", "rates", "[1, 2]"]
    assert course({"module_01_a": "pass"}, *limits, *given, "--kernels", "plain") == 0
    plan = json.loads((course.folder / "out/report.json").read_bytes())["plan"]
    assert (plan["limits"]["cell"], plan["limits"]["wall"], plan["total_limit"]) == (7, 9, 60)
    assert plan["parameters"] == {"seed": 7, "name": "x y", "rates": [1, 2]}
    assert plan["kernels"] == "plain"
    assert cli.plan_of(cli.parse([])).limits == Limits()


@pytest.mark.parametrize("bad", ["0", "-1", "1.5", "x", "", "9999999999"])
@pytest.mark.parametrize("name", ["--cell-limit", "--limit", "--total-limit", "--workers"])
def test_a_limit_that_is_no_positive_number_is_refused(name, bad, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.parse([f"{name}={bad}"])
    assert stop.value.code == 2
    assert "a whole number from 1 is needed" in capsys.readouterr().err


def test_when_the_total_time_is_over_the_exit_code_is_1_and_the_report_says_so(course, capsys):
    code = course({"module_01_a": "sleep 60", "module_02_b": "pass"}, "--total-limit", "1")
    assert code == 1
    assert "ended early: total limit" in capsys.readouterr().out
    assert sorted(rows(course.folder / "out").values()) in (
        ["not run", "stopped"],
        ["passed", "stopped"],
    )


def test_shards_share_the_notebooks_and_an_empty_one_is_a_success_that_says_so(course, capsys):
    verbs = {"module_01_a": "pass", "module_02_b": "pass"}
    seen = []
    for number in (1, 2):
        assert course(verbs, "--shard", f"{number}/3") == 0
        seen += rows(course.folder / "out")
    assert sorted(seen) == sorted(verbs)
    capsys.readouterr()
    assert course(verbs, "--shard", "3/3") == 0
    assert capsys.readouterr().out == "shard 3/3 has no notebook: only 2 were chosen for 3\n"
    assert rows(course.folder / "out") == {}
    told = json.loads((course.folder / "out/report.json").read_bytes())
    assert (told["shard"], told["ended"]) == ("3/3", "complete")


def write_parameters(folder, code):
    """Write a notebook whose only cell holds parameters."""
    [job] = make_jobs(folder, module_01_a=code)
    notebook = nbformat.read(job.notebook, as_version=4)
    notebook.cells[0].metadata.tags = ["parameters"]
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "P", "language": "python"}
    nbformat.write(notebook, job.notebook)


def test_the_list_shows_the_parameters_and_what_they_are_by_default(course, capsys):
    write_parameters(course.folder, "seed = 18\nsteps: int = 5  # of training")
    assert cli.main(["--edition", "learner", "--list"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "module_01_a (learner, en)",
        "    -p seed 18",
        "    -p steps 5",
    ]
    assert FakeCrew.started == []


def test_the_seconds_of_a_partial_run_are_added_to_those_known(course, tmp_path, monkeypatch):
    path = tmp_path / "build" / "run-seconds.json"
    assert read_seconds(path) == {}
    course({"module_01_a": "pass", "module_02_b": "pass"})
    course({"module_01_a": "pass"}, "--module", "1")
    assert set(read_seconds(path)) == {"learner/en/module_01_a", "learner/en/module_02_b"}
    before = path.read_bytes()
    monkeypatch.setattr(cli, "check_parameters", lambda *_: None)
    course({"module_01_a": "fail", "module_03_c": "pass"}, "-p", "seed", "1")
    assert path.read_bytes() == before  # with other parameters it takes another time
    for content in (b"", b"[1]", b'{"a": "x"}', b'{"a": null}'):
        path.write_bytes(content)
        assert read_seconds(path) == {}
    path.unlink()
    path.mkdir()
    keep_seconds([], path)  # only the order depends on them: no error


def test_results_can_go_to_another_folder_and_the_message_of_a_read_only_one_says_so(
    course, capsys, monkeypatch
):
    def refuse(*_):
        raise PermissionError(13, "Permission denied", "/course/build")

    monkeypatch.setattr(cli, "run_course", refuse)
    assert course({"module_01_a": "pass"}) == 2
    assert "--output FOLDER" in capsys.readouterr().err


PROGRAM = """
import signal, sys
from pathlib import Path
from course_build.run import __main__ as entry, cli, jobs, pool, session
from tests.run.doubles import FakeCrew
folder = Path(sys.argv[1])
pool.Crew, jobs.ROOT, session.SECONDS = FakeCrew, folder, folder / "seconds.json"
sys.argv[1:] = ["--edition", "learner", "--workers", "1", "--output", str(folder / "out")]
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job of `&` ignores it
entry.run()
"""


def start(folder):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def await_(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("signum", "code", "ended"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_a_signal_leaves_reports_and_the_exit_code_that_names_it(tmp_path, signum, code, ended):
    make_jobs(tmp_path, module_01_a="pass ", module_02_b="sleep 60", module_03_c="")
    (tmp_path / "seconds.json").write_text(
        '{"learner/en/module_01_a": 9, "learner/en/module_02_b": 5}', encoding="utf-8"
    )
    process = start(tmp_path)
    await_((tmp_path / "out/learner/en/module_01_a.ipynb").exists)
    await_((tmp_path / "out/learner/en/.module_02_b.part").exists)
    process.send_signal(signum)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert f"ended early: {ended}" in out
    told = json.loads((tmp_path / "out/report.json").read_bytes())
    assert told["ended"] == ended
    assert list(rows(tmp_path / "out").values()) == ["passed", "stopped", "not run"]
    assert (tmp_path / "out/junit.xml").is_file()


def test_a_second_run_in_the_same_folder_waits_and_says_for_whom(tmp_path):
    make_jobs(tmp_path, module_01_a="pass")
    with alone(tmp_path / "out"):
        process = start(tmp_path)
        said = process.stderr.readline()
        assert f"the run of process {os.getpid()}, begun at " in said
        assert said.endswith("out: waiting for its end\n")
        assert "--output FOLDER" in process.stderr.readline()
        assert not (tmp_path / "out/report.json").exists()
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "1 of 1 passed" in out


def test_the_lock_of_a_run_that_was_killed_is_free(tmp_path):
    make_jobs(tmp_path, module_01_a="sleep 60")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/report.json").write_text('{"ended": "complete"}', encoding="utf-8")
    process = start(tmp_path)
    await_((tmp_path / "out/learner/en/.module_01_a.part").exists)
    process.kill()
    process.communicate()
    assert not (tmp_path / "out/report.json").exists()  # the one of the run before is gone
    make_jobs(tmp_path, module_01_a="pass")
    second = start(tmp_path)
    out, err = second.communicate(timeout=60)
    assert second.returncode == 0, err
    assert "waiting" not in err


def test_ctrl_c_before_all_is_imported_is_answered_without_a_traceback():
    code = (
        "import signal, sys\n"
        "class Slow:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'course_build.run.cli': signal.raise_signal(signal.SIGTERM)\n"
        "sys.meta_path.insert(0, Slow())\n"
        "from course_build.run.__main__ import run\nrun()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (143, "stopped before any notebook ran\n")


def test_ctrl_c_while_waiting_for_another_run_gives_130(tmp_path):
    make_jobs(tmp_path, module_01_a="pass")
    with alone(tmp_path / "out"):
        process = start(tmp_path)
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode == 130
        assert not (tmp_path / "out/report.json").exists()
