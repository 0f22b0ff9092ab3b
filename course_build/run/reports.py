"""Tell people and machines how a run went."""

import platform
from dataclasses import asdict
from pathlib import Path
from typing import Any

from course_build.run.jobs import ROOT
from course_build.run.outcome import Outcome


def describe(outcome: Outcome) -> str:
    """Tell how one notebook went: one line, or for a failure its place, source and error too."""
    job = outcome.job
    mark = "✓" if outcome.status == "passed" else "✗"
    head = f"{mark} {job.name} ({job.edition}, {job.language}): {outcome.status}"
    head += f" in {outcome.seconds:.1f} s"
    if outcome.failure is None:
        return head
    kept = f"what ran is kept in {short(job.executed)}" if job.executed.exists() else ""
    body = "\n".join(part for part in (str(outcome.failure), kept) if part)
    return head + "\n" + "\n".join("    " + line for line in body.splitlines())


def short(path: Path) -> str:
    """Name a path as seen from the repository, when it is inside."""
    path = path.resolve()
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)


def table(outcomes: list[Outcome]) -> str:
    """Lay the outcomes out as a table in plain text."""
    rows = [("notebook", "edition", "lang", "seconds", "peak MB", "status")]
    rows += [
        (
            outcome.job.name,
            outcome.job.edition,
            outcome.job.language,
            f"{outcome.seconds:.1f}",
            "-" if outcome.peak_mb is None else str(outcome.peak_mb),
            outcome.status,
        )
        for outcome in outcomes
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    right = {3, 4}  # numbers
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def report(outcomes: list[Outcome]) -> dict[str, Any]:
    """Put the outcomes into a value that JSON can hold."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "notebooks": [
            {
                "notebook": outcome.job.name,
                "edition": outcome.job.edition,
                "language": outcome.job.language,
                "status": outcome.status,
                "seconds": outcome.seconds,
                "peak_mb": outcome.peak_mb,
                "executed": short(outcome.job.executed),
                "failure": None if outcome.failure is None else asdict(outcome.failure),
            }
            for outcome in outcomes
        ],
    }
