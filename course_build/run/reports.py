"""Tell people how a run went: a line, an excerpt of each failure, a table."""

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from course_build.run.jobs import ROOT
from course_build.run.outcome import GOOD, Job, Outcome, Run

# What a terminal obeys instead of showing it, and what no XML or UTF-8 can hold.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def printable(text: str) -> str:
    """Spell out control characters and lone surrogates, which a notebook's error may hold."""
    return CONTROL.sub(lambda found: ascii(found.group())[1:-1], text)


def short(path: Path) -> str:
    """Name a path as seen from the repository, when it is inside."""
    path = Path(os.path.realpath(path))  # Path.resolve refuses a loop of links
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)


def one_line(outcome: Outcome) -> str:
    """Tell in one line how one notebook went."""
    job = outcome.job
    head = f"{'✓' if outcome.status in GOOD else '✗'} {job.name} ({job.edition}, {job.language}): "
    if outcome.status == "cached":
        return head + f"cached, it took {outcome.seconds:.1f} s"
    took = "" if outcome.status == "not run" else f" in {outcome.seconds:.1f} s"
    said = str(outcome.failure).splitlines()[:1] if outcome.failure else []
    return printable(head + ": ".join([outcome.status + took, *said]))


def describe(outcome: Outcome, parameters: Mapping[str, Any] | None = None) -> str:
    """Tell how one notebook went; for a failure also its place, source and error.

    And where its executed copy is, and the command that runs this notebook alone again.
    """
    job, failure = outcome.job, outcome.failure
    if failure is None:
        return one_line(outcome)
    took = "" if outcome.status == "not run" else f" in {outcome.seconds:.1f} s"
    head = f"✗ {job.name} ({job.edition}, {job.language}): {outcome.status}{took}"
    parts = [f"in {short(job.notebook)}", str(failure)]
    if job.executed.exists():
        parts.append(f"what ran is kept in {short(job.executed)}")
    parts.append(f"to run it alone: {again(job, parameters or {})}")
    body = printable("\n".join(parts))
    return head + "\n" + "\n".join("    " + line for line in body.splitlines())


def again(job: Job, parameters: Mapping[str, Any]) -> str:
    """Give the command that runs one notebook of the course again."""
    found = re.match(r"module_(\d\d)_", job.name)
    name = str(int(found[1])) if found else job.name
    command = f"make run MODULE={name} LANG={job.language} EDITION={job.edition}"
    given = [word for name, value in parameters.items() for word in ("-p", name, repr(value))]
    return command + (f" ARGS={shlex.quote(shlex.join(given))}" if given else "")


def table(outcomes: list[Outcome]) -> str:
    """Lay the outcomes out as a table in plain text.

    Seconds in brackets are those of the earlier run that is cached.
    """
    rows = [("notebook", "edition", "lang", "seconds", "cells", "peak MB", "status")]
    for outcome in outcomes:
        seconds = f"{outcome.seconds:.1f}"
        rows.append(
            (
                outcome.job.name,
                outcome.job.edition,
                outcome.job.language,
                f"({seconds})" if outcome.status == "cached" else seconds,
                f"{sum(outcome.cells.values()):.1f}" if outcome.cells else "-",
                "-" if outcome.peak_mb is None else str(outcome.peak_mb),
                outcome.status,
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    right = {3, 4, 5}  # numbers
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def total_line(run: Run) -> str:
    """Sum a run up: how many notebooks passed, in what time, and how well the workers were used."""
    passed = sum(outcome.status in GOOD for outcome in run.outcomes)
    workers = f"{run.plan.workers} worker{'s' if run.plan.workers > 1 else ''}"
    line = f"{passed} of {len(run.outcomes)} passed in {run.seconds:.1f} s with {workers}"
    if run.efficiency is not None:
        line += f"; cells {run.cell_seconds:.1f} s, {run.efficiency:.0%} of the workers' time"
    if any(outcome.status == "cached" for outcome in run.outcomes):
        line += "; seconds in brackets: of the run that is cached"
    if run.ended != "complete":
        line += f"; ended early: {run.ended}"
    return line


def summary(run: Run, folder: Path) -> str:
    """Give the whole report for people: failures, table, total, and where the files are."""
    failures = [
        describe(outcome, run.plan.parameters)
        for outcome in run.outcomes
        if outcome.failure is not None and outcome.status != "not run"
    ]
    ends = f"{total_line(run)}\nexecuted copies, report.json and junit.xml: {short(folder)}"
    return "\n\n".join([*failures, table(run.outcomes), ends])
