"""Show on the error stream how a run goes: a live table on a terminal, else plain lines."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TextIO

from course_build.run.outcome import GOOD, Job, Outcome, Plan
from course_build.run.pool import staged
from course_build.run.reports import one_line


class Lines:
    """One line as each notebook ends."""

    def __init__(self, total: int, say: Callable[[str], None]) -> None:
        self.total = total
        self.say = say
        self.done = 0

    def begin(self, job: Job) -> None:
        """Hear that a notebook starts."""

    def tell(self, outcome: Outcome) -> None:
        """Hear how a notebook ended."""
        self.done += 1
        width = len(str(self.total))
        self.say(f"[{self.done:>{width}}/{self.total}] {one_line(outcome)}")


class Live:
    """The notebooks that are running, below the lines of those that have ended."""

    def __init__(self, total: int, console: Any) -> None:
        self.lines = Lines(total, partial(console.print, markup=False, soft_wrap=True))
        self.failed = 0
        self.begun = time.monotonic()
        self.running: dict[Job, float] = {}

    def begin(self, job: Job) -> None:
        """Hear that a notebook starts (in any thread)."""
        self.running[job] = time.monotonic()

    def tell(self, outcome: Outcome) -> None:
        """Hear how a notebook ended, and print its line above the table."""
        self.running.pop(outcome.job, None)
        self.failed += outcome.status not in GOOD
        self.lines.tell(outcome)

    def __rich__(self) -> Any:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        now, total, done = time.monotonic(), self.lines.total, self.lines.done
        table = Table.grid(padding=(0, 2))
        for job, since in list(self.running.items()):
            place = f"{job.edition}, {job.language}"
            took = Text(f"{now - since:5.0f} s")
            table.add_row(Text(f"▸ {job.name}"), Text(place), took, Text(running_cell(job)))
        told = f"{done} of {total} done, {self.failed} failed"
        bar = ProgressBar(total, done, width=24)
        table.add_row(bar, Text(told), Text(f"{now - self.begun:5.0f} s"))
        return table


def running_cell(job: Job) -> str:
    """Say which cell of a notebook is running: "cell 3/40", or "starting" before the first."""
    try:
        return "cell " + staged(job).with_suffix(".cell").read_text(encoding="ascii")
    except (OSError, ValueError):
        return "starting"


def is_live(environment: dict[str, str], *streams: TextIO) -> bool:
    """Say whether all of the streams are terminals on which lines can be drawn again."""
    plain = environment.get("NO_COLOR") or environment.get("TERM", "dumb") in ("dumb", "unknown")
    return not plain and all(stream and stream.isatty() for stream in streams)


@contextlib.contextmanager
def following(total: int, plan: Plan) -> Iterator[Lines | Live]:
    """Give what hears of each notebook's begin and end and shows it."""
    if not total or not is_live(dict(os.environ), sys.stdout, sys.stderr):
        yield Lines(total, partial(print, file=sys.stderr, flush=True))
        return
    from rich import live
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    shown = Live(total, console)
    with live.Live(shown, console=console, refresh_per_second=4, transient=True):
        yield shown
