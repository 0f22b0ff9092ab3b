"""What a run shows while it goes: lines in a pipe, a table on a terminal."""

import io
import os
import subprocess
import sys

import pytest
from rich.console import Console

from course_build.run.jobs import ROOT
from course_build.run.outcome import Failure, Outcome, Plan
from course_build.run.pool import staged
from course_build.run.progress import Live, following, is_live
from tests.run.doubles import make_jobs


class Terminal(io.StringIO):
    """A stream that calls itself a terminal."""

    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("environment", "streams", "live"),
    [
        ({"TERM": "xterm"}, [Terminal(), Terminal()], True),
        ({"TERM": "xterm"}, [io.StringIO(), Terminal()], False),
        ({"TERM": "xterm"}, [Terminal(), io.StringIO()], False),
        ({"TERM": "dumb"}, [Terminal(), Terminal()], False),
        ({}, [Terminal(), Terminal()], False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, [Terminal(), Terminal()], False),
        ({"TERM": "xterm", "NO_COLOR": ""}, [Terminal(), Terminal()], True),
    ],
)
def test_the_table_is_drawn_only_on_a_terminal_that_wants_it(environment, streams, live):
    assert is_live(environment, *streams) is live


def test_in_a_pipe_each_notebook_is_one_line_on_the_error_stream(tmp_path, capsys):
    jobs = make_jobs(tmp_path, **{f"n{n}": "pass" for n in range(10)})
    with following(len(jobs), Plan(workers=1)) as progress:
        for job in jobs[:2]:
            progress.begin(job)
        progress.tell(Outcome(jobs[0], "passed", 1.26, 300))
        progress.tell(Outcome(jobs[1], "failed", 2.0, 300, Failure("ValueError: a\nb", 1, 2, "k")))
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.splitlines() == [
        "[ 1/10] ✓ n0 (learner, en): passed in 1.3 s",
        "[ 2/10] ✗ n1 (learner, en): failed in 2.0 s: cell 1 of 2, key k: ValueError: a",
    ]


def shown(live):
    console = Console(file=io.StringIO(), width=100)
    console.print(live)
    return console.file.getvalue()


def test_the_table_lists_what_runs_with_its_cell_and_counts_what_ended(tmp_path):
    jobs = make_jobs(tmp_path, first="pass", second="pass", third="pass")
    console = Console(file=io.StringIO(), width=100)
    live = Live(3, console)
    for job in jobs[:2]:
        live.begin(job)
    staged(jobs[1]).parent.mkdir(parents=True)
    staged(jobs[1]).with_suffix(".cell").write_text("7/40", encoding="ascii")
    text = shown(live)
    assert "first" in text
    assert "starting" in text
    assert "cell 7/40" in text
    assert "third" not in text
    assert "0 of 3 done, 0 failed" in text
    live.tell(Outcome(jobs[0], "failed", 1.0, failure=Failure("[bold]no[/bold]")))
    live.tell(Outcome(jobs[1], "passed", 1.0))
    text = shown(live)
    assert "first" not in text
    assert "2 of 3 done, 1 failed" in text
    assert "[1/3] ✗ first (learner, en): failed in 1.0 s: [bold]no[/bold]\n" in (
        console.file.getvalue()
    )


PROGRAM = """
from pathlib import Path
from course_build.run.outcome import Job, Outcome, Plan
from course_build.run.progress import following
job = Job(Path("a.ipynb"), "learner", "en", Path("out/a.ipynb"))
with following(1, Plan(workers=1)) as progress:
    progress.begin(job)
    progress.tell(Outcome(job, "passed", 1.0))
print("the report")
"""


@pytest.mark.parametrize(("variables", "draws"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_on_a_real_terminal_the_table_is_drawn_and_gone_at_the_end(variables, draws):
    pty = pytest.importorskip("pty", reason="terminals of this kind are POSIX's")
    parent, child = pty.openpty()
    plain = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    done = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env={**plain, "TERM": "xterm", "PYTHONUTF8": "1", **variables},
        stdout=child,
        stderr=child,
    )
    os.close(child)
    text = b""
    while True:
        try:
            piece = os.read(parent, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        text += piece
    os.close(parent)
    assert done.wait(30) == 0
    assert ("1 of 1 done" in text.decode()) is draws
    assert (b"\x1b[" in text) is draws
    *_, last = text.decode().splitlines()
    assert last.endswith("the report")
    assert "[1/1] ✓ a (learner, en): passed in 1.0 s" in text.decode()
