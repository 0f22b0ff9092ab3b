"""The runner against tiny notebooks, one for each way in which a notebook can fail."""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time

import nbformat
import psutil
import pytest

from course_build.base.findings import CourseError, Finding
from course_build.run import cli, crew, environment, jobs
from course_build.run.crew import Crew
from course_build.run.guard import is_loopback, refusal
from course_build.run.jobs import EDITIONS, ROOT, find_jobs
from course_build.run.machine_reports import report
from course_build.run.outcome import Job, Limits, Plan, Run, exit_code
from course_build.run.pool import run_jobs
from course_build.run.reports import describe, table
from course_build.run.verdict import plain
from course_lib.checking.alone import Alone
from course_lib.checking.held import end

pytestmark = pytest.mark.delivery

LIMITS = Limits(start=60, cell=60, wall=90, grace=10)

CASES = {
    "passes": ["print('hello')", "1 + 1"],
    "fails": ["x = 1", "y = 2\n\nz = undefined_name\n"],
    "exits": ["import sys\nsys.exit(0)", "print('never')"],
    "killed": ["print('alive')", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "1"],
    "reaches_out": ["import urllib.request\nurllib.request.urlopen('http://example.org')"],
    "reaches_address": ["import socket\nsocket.create_connection(('192.0.2.1', 80), timeout=1)"],
    "forgives": [
        "import socket\n"
        "try:\n    socket.create_connection(('192.0.2.1', 80), timeout=1)\n"
        "except OSError:\n    print('no network here, never mind')"
    ],
    "reaches_from_child": [
        "import subprocess, sys\n"
        "code = \"import socket; socket.getaddrinfo('example.org', 80)\"\n"
        "done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)\n"
        "assert done.returncode == 1 and 'notebooks run offline' in done.stderr, done"
    ],
    "loopback": [
        "import socket\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "client = socket.create_connection(('localhost', server.getsockname()[1]), timeout=5)\n"
        "client.close(); server.close()"
    ],
    "poisons": [
        "import os, pathlib\n"
        "pathlib.Path('random.py').write_text('raise SystemExit(3)')\n"
        "pathlib.Path.home().joinpath('left_behind').touch()\n"
        "os.environ['OMP_NUM_THREADS'] = '99'"
    ],
    "finds_clean_room": [
        "import os, pathlib, random\n"
        "assert list(pathlib.Path().iterdir()) == []\n"
        "assert not pathlib.Path.home().joinpath('left_behind').exists()\n"
        "assert os.environ['OMP_NUM_THREADS'] == '1'\n"
        "assert os.environ['PYTHONHASHSEED'] == '0'\n"
        "assert 'SECRET_OF_THE_PARENT' not in os.environ"
    ],
    "imports_library": ["import course_lib"],
    "parameters": ["steps = 1", "assert steps == 5, steps"],
}


def write_notebook(path, sources, *, tags=None, kernel="python3"):
    cells = [nbformat.v4.new_code_cell(text, id=f"cell-{n}") for n, text in enumerate(sources)]
    cells[0].metadata.tags = tags or []
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata.kernelspec = {"name": kernel, "display_name": kernel, "language": "python"}
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    return path


def make_job(folder, name, sources, *, edition="learner", **kwargs):
    path = write_notebook(folder / "in" / "en" / f"{name}.ipynb", sources, **kwargs)
    return Job(path, edition, "en", folder / "out" / f"{name}.ipynb")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """All cases in one run of two workers: each kernel costs a second, so each starts once."""
    folder = tmp_path_factory.mktemp("run тест")
    os.environ["SECRET_OF_THE_PARENT"] = "1"
    chosen = [
        make_job(folder, name, sources) for name, sources in CASES.items() if name != "parameters"
    ]
    chosen.append(make_job(folder, "no_kernel", ["1"], kernel="no-such-kernel"))
    chosen.append(make_job(folder, "stub", ["print('○ fake')"], tags=["exercise-check"]))
    shown = "class Report:\n    def __repr__(self): return '{}'\nReport()"
    for mark in "○✓":
        for edition in EDITIONS:
            name = f"{edition}{mark}"
            source = [shown.format(mark)]
            chosen.append(make_job(folder, name, source, edition=edition, tags=["exercise-check"]))
    try:
        done = run_jobs(chosen, Plan(limits=LIMITS))
        assert [outcome.job for outcome in done] == chosen  # told in order, whoever ended first
        return {outcome.job.name: outcome for outcome in done}
    finally:
        del os.environ["SECRET_OF_THE_PARENT"]


@pytest.mark.parametrize(
    "name", ["passes", "loopback", "poisons", "finds_clean_room", "reaches_from_child"]
)
def test_an_honest_notebook_passes(outcomes, name):
    assert outcomes[name].status == "passed", describe(outcomes[name])


def test_a_passing_notebook_reports_its_time_and_memory(outcomes):
    assert 0 < outcomes["passes"].seconds < LIMITS.wall
    assert 20 < outcomes["passes"].peak_mb < 1000
    executed = json.loads(outcomes["passes"].job.executed.read_text(encoding="utf-8"))
    assert executed["cells"][0]["outputs"][0]["text"] == ["hello\n"]


def test_a_failing_cell_is_named_by_number_key_line_and_error_without_colours(outcomes):
    outcome = outcomes["fails"]
    failure = outcome.failure
    assert outcome.status == "failed"
    assert (failure.cell, failure.cells, failure.key) == (2, 2, "cell-1")
    assert failure.reason == "NameError: name 'undefined_name' is not defined"
    assert ">    3 | z = undefined_name" in failure.source
    text = describe(outcome)
    assert "fails (learner, en): failed" in text
    assert "cell 2 of 2, key cell-1: NameError" in text
    assert "\x1b" not in text


def test_an_executed_copy_is_kept_of_a_notebook_that_failed(outcomes):
    for name in ("fails", "exits", "killed"):
        cells = json.loads(outcomes[name].job.executed.read_text(encoding="utf-8"))["cells"]
        assert any(cell.get("execution_count") for cell in cells), name


def test_sys_exit_0_is_a_failure_because_the_rest_never_ran(outcomes):
    failure = outcomes["exits"].failure
    assert failure.key == "cell-0"
    assert "sys.exit(0), so the 1 code cells after it never ran" in failure.reason


def test_a_killed_kernel_is_reported_at_the_cell_that_ran(outcomes):
    failure = outcomes["killed"].failure
    assert (failure.cell, failure.key) == (2, "cell-1")
    assert "the kernel died while this cell ran" in failure.reason
    assert "os.kill" in failure.source


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("reaches_out", "example.org:80"),
        ("reaches_address", "192.0.2.1:80"),
        ("forgives", "192.0.2.1:80"),
    ],
)
def test_a_network_attempt_is_refused_and_names_the_rule(outcomes, name, target):
    reason = outcomes[name].failure.reason
    assert f"tried to reach {target}" in reason
    assert "notebooks run offline" in reason


def test_the_library_cannot_be_imported_in_a_kernel(outcomes):
    assert "No module named 'course_lib'" in outcomes["imports_library"].failure.reason


def test_a_missing_kernel_is_named(outcomes):
    assert "no-such-kernel" in outcomes["no_kernel"].failure.reason


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("learner○", "passed"),
        ("learner✓", "failed"),
        ("solved✓", "passed"),
        ("solved○", "failed"),
    ],
)
def test_an_exercise_is_open_in_one_edition_and_passed_in_the_other(outcomes, name, status):
    assert outcomes[name].status == status
    if status == "failed":
        assert "exercise check must print" in outcomes[name].failure.reason


def test_an_exercise_check_must_return_its_report_not_print_it(outcomes):
    assert "it printed: no output at all" in outcomes["stub"].failure.reason


def test_parameters_reach_the_parameters_cell_and_unknown_ones_are_refused(tmp_path):
    sources = CASES["parameters"]
    job = make_job(tmp_path, "parameters", sources, tags=["parameters"])
    given = Plan({"steps": 5}, LIMITS)
    assert run_jobs([job], given)[0].status == "passed"
    with pytest.raises(jobs.ChoiceError, match="-p stpes: parameters has no such parameter; it"):
        cli.check_parameters([job], ["stpes"])


@pytest.mark.smoke
def test_in_one_run_one_passes_one_fails_and_one_is_ended_at_its_cell(tmp_path):
    cases = {name: CASES[name] for name in ("passes", "fails")}
    cases["loops"] = ["1", "while True: pass"]
    given = [make_job(tmp_path, name, sources) for name, sources in cases.items()]
    passes, fails, loops = run_jobs(given, Plan(limits=Limits(cell=4, wall=60)))
    assert passes.status == "passed", describe(passes)
    assert "undefined_name" in fails.failure.reason
    assert fails.failure.key == loops.failure.key == "cell-1"
    assert "longer than its limit of 4 s" in loops.failure.reason


def sleepers(marker):
    return [p for p in psutil.process_iter(["cmdline"]) if marker in (p.info["cmdline"] or [])]


def test_a_notebook_over_the_wall_limit_is_ended_with_all_its_processes(tmp_path):
    marker = f"wall-{os.getpid()}"
    child = f"[sys.executable, '-c', 'import time; time.sleep(99)', '{marker}']"
    sources = [f"import subprocess, sys\nsubprocess.Popen({child})", "while True: pass"]
    job = make_job(tmp_path, "wall", sources)
    begun = time.monotonic()
    outcome = run_jobs([job], Plan(limits=Limits(cell=60, wall=4)))[0]
    assert time.monotonic() - begun < 20
    assert "longer than its limit of 4 s" in outcome.failure.reason
    assert outcome.failure.key == "cell-1"
    assert job.executed.exists()
    assert sleepers(marker) == []


def test_a_worker_deaf_to_its_end_is_killed_with_what_it_started(tmp_path):
    marker, log = f"deaf-{os.getpid()}", tmp_path / "log"
    code = (
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "sleep = [sys.executable, '-c', 'import time; time.sleep(99)', sys.argv[1]]\n"
        "subprocess.Popen(sleep, start_new_session=True)\nprint('deaf', flush=True)\n"
        "time.sleep(99)"
    )
    worker = Alone(
        {
            "argv": [sys.executable, "-c", code, marker],
            "env": dict(os.environ),
            "cwd": str(tmp_path),
            "log": str(log),
            "limits": {},
        }
    )
    while "deaf" not in log.read_text(encoding="utf-8"):
        assert not worker.ended(0.05)
    assert end(worker, signal.SIGTERM, grace=0.3)
    assert worker.told["status"] == -signal.SIGKILL
    assert sleepers(marker) == []


@pytest.mark.parametrize("kernels", ["plain", "jupyter"])
def test_a_worker_that_dies_is_broken_not_failed(tmp_path, monkeypatch, kernels):
    job = make_job(tmp_path, "broken", ["1"])
    job.executed.parent.mkdir()
    job.executed.write_text("of an earlier run", encoding="utf-8")
    monkeypatch.setattr(crew, "furnish", lambda box, *_: environment.make_box(box))  # no job.json
    with Crew(Plan(limits=LIMITS, kernels=kernels)) as ours:
        outcome = ours.run(job, threading.Event())
    assert outcome.status == "broken"
    assert "died before it could report" in outcome.failure.reason
    assert "job.json" in outcome.failure.reason
    assert not job.executed.exists()
    assert exit_code([outcome]) == 2


def test_a_repository_that_can_be_imported_fails_the_run(tmp_path, monkeypatch):
    job = make_job(tmp_path, "leak", ["1"])
    monkeypatch.setattr(environment, "FORBIDDEN", ("json", "course_lib"))
    with Crew(Plan(limits=LIMITS)) as ours:
        outcome = ours.run(job, threading.Event())
    assert outcome.status == "broken"
    assert outcome.failure.reason.startswith("json can be imported in the kernel")


def test_ctrl_c_ends_the_workers_and_leaves_no_process(tmp_path):
    marker = f"ctrl-c-{os.getpid()}"
    write_notebook(
        tmp_path / "in" / "en" / "a.ipynb",
        [
            f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', "
            f"'import time; time.sleep(99)', '{marker}'])"
        ],
    )
    code = (
        "import signal, sys; from pathlib import Path\n"
        "from course_build.run.jobs import find_jobs\n"
        "from course_build.run.pool import run_jobs\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a job of `&` ignores it
        f"jobs = find_jobs({{'learner': Path({str(tmp_path / 'in')!r})}},"
        f" Path({str(tmp_path / 'out')!r}), [], [])\n"
        "try: run_jobs(jobs)\n"
        "except KeyboardInterrupt: sys.exit(130)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    while not sleepers(marker):
        assert parent.poll() is None
        time.sleep(0.1)
    parent.send_signal(signal.SIGINT)
    assert parent.wait(20) == 130
    assert sleepers(marker) == []


def test_jobs_are_selected_by_language_and_module(tmp_path):
    for language in ("en", "ru"):
        for name in ("module_03_a", "module_04_b"):
            write_notebook(tmp_path / "nb" / language / f"{name}.ipynb", ["1"])
    sources = {"learner": tmp_path / "nb"}

    def found(languages, modules):
        listed = find_jobs(sources, tmp_path / "out", languages, modules)
        return [(job.language, job.name) for job in listed]

    assert len(found([], [])) == 4
    assert found(["ru"], ["3"]) == [("ru", "module_03_a")]
    assert found([], ["4"]) == [("en", "module_04_b"), ("ru", "module_04_b")]
    assert found(["en"], ["module_03_a"]) == [("en", "module_03_a")]
    assert found(["de"], []) == []
    assert found([], ["x"]) == []


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--lang", "de"], "--lang de: choose from en, ru\n"),
        (["--lang", "en", "de"], "--lang de: choose from en, ru\n"),
        (["--module", "4"], "--module 4: choose from intro, 3\n"),
        (["--lang", "ru", "--module", "intro"], "no such notebook is rendered"),
    ],
)
def test_a_choice_that_is_not_there_is_told_what_is(argv, told, tmp_path, monkeypatch, capsys):
    for name in ("en/module_03_a", "ru/module_03_a", "en/intro"):
        write_notebook(tmp_path / "notebooks" / f"{name}.ipynb", ["1"])
    monkeypatch.setattr(jobs, "ROOT", tmp_path)
    assert cli.main(["--edition", "learner", *argv]) == 2
    assert capsys.readouterr().err.startswith(told)


def test_nothing_to_run_is_an_error(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(jobs, "ROOT", tmp_path)
    assert cli.main(["--edition", "learner"]) == 2
    assert "make notebooks" in capsys.readouterr().err


def test_sources_that_do_not_build_stop_the_run(monkeypatch, capsys):
    def broken():
        raise CourseError([Finding("notebooks/src/a.py", 7, "key", "rule", "what", "how")])

    monkeypatch.setattr(jobs, "render_solved", broken)
    assert cli.main([]) == 2
    assert "notebooks/src/a.py:7" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_stops_the_run(monkeypatch, tmp_path, capsys):
    write_notebook(tmp_path / "nb" / "en" / "module_03_a.ipynb", ["1"])
    output = tmp_path / "executed"
    output.write_text("a file where the folder should be", encoding="utf-8")
    found = find_jobs({"learner": tmp_path / "nb"}, output, [], [])
    monkeypatch.setattr(cli, "find_course", lambda *_: found)
    assert cli.main(["--output", str(output)]) == 2
    assert "executed" in capsys.readouterr().err


def test_a_folder_without_permission_is_named_with_the_way_to_mend_it(monkeypatch, capsys):
    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied", "/course/build")

    monkeypatch.setattr(cli, "find_course", refuse)
    assert cli.main([]) == 2
    told = capsys.readouterr().err
    assert told.startswith("cannot write build in the folder /course (Permission denied): make")


def test_the_table_and_report_name_every_notebook(outcomes):
    every = list(outcomes.values())
    lines = table(every).splitlines()
    assert lines[0].split()[:4] == ["notebook", "edition", "lang", "seconds"]
    assert len(lines) == len(every) + 1
    rows = json.loads(json.dumps(report(Run(every, Plan(), 1.0))))["notebooks"]
    assert {row["notebook"] for row in rows} == set(outcomes)
    assert exit_code(every) == 1
    assert exit_code([outcomes["passes"]]) == 0
    assert exit_code([]) == 2


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        (b"localhost", True),
        (None, True),
        ("", True),
        ("127.evil.example", False),
        ("example.org", False),
        ("10.0.0.1", False),
        ("0.0.0.0", False),
        ("fe80::1", False),
    ],
)
def test_loopback_is_told_from_the_world(host, expected):
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    ("event", "args", "target"),
    [
        ("socket.connect", (None, ("192.0.2.1", 80)), "192.0.2.1:80"),
        ("socket.connect", (None, ("2001:db8::1", 80, 0, 0)), "2001:db8::1:80"),
        ("socket.sendto", (None, ("192.0.2.1", 53)), "192.0.2.1:53"),
        ("socket.gethostbyname", ("example.org",), "example.org"),
        ("socket.connect", (None, "/tmp/local.sock"), None),
        ("socket.sendmsg", (None, None), None),
        ("open", ("example.org", "r", 0), None),
    ],
)
def test_what_reaches_out_is_refused(event, args, target):
    message = refusal(event, args)
    assert message is None if target is None else f"reach {target}," in message


def test_a_long_error_is_cut_to_a_screen_and_coloured_text_made_plain():
    text = plain("\x1b[31mred\x1b[0m\n" + "line\n" * 100)
    assert text.startswith("red\nline")
    assert text.endswith("... 61 more lines")
