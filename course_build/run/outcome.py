"""What a run is asked for and what it answers: plain values."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_lib.checking.capacity import usable_workers


class Terminated(KeyboardInterrupt):
    """The run was ended with SIGTERM: by a CI system, say, or at a shutdown."""


@dataclass(frozen=True)
class Job:
    """One notebook to run and where its executed copy goes."""

    notebook: Path
    edition: str
    language: str
    executed: Path

    @property
    def name(self) -> str:
        return self.notebook.stem


@dataclass(frozen=True)
class Limits:
    """What one notebook may take: seconds, and MB (10^6 bytes) and processes of its kernel."""

    start: int = 120  # to start its kernel
    cell: int = 180
    wall: int = 300  # from first to last
    grace: int = 10  # to save the partial copy once the wall limit is over
    memory_mb: int = 3000  # the kernel and all that it starts; two fit into a runner of 7 GB
    processes: int = 64
    file_mb: int = 1000  # any one file that it writes
    output_mb: int = 50  # all that its cells print and show


@dataclass(frozen=True)
class Plan:
    """What is the same for all notebooks of a run."""

    parameters: dict[str, Any] = field(default_factory=dict)
    limits: Limits = Limits()
    workers: int = field(default_factory=usable_workers)
    total_limit: float | None = None  # seconds for all notebooks together
    kernels: str = "forked"  # from a preloaded process, or "plain": a fresh interpreter each
    locale: str = "C.UTF-8"  # LC_ALL of the kernels


@dataclass(frozen=True)
class Failure:
    """What went wrong in a notebook: the place (cell number among all cells, key) and the words."""

    reason: str
    cell: int | None = None
    cells: int | None = None
    key: str | None = None
    source: str = ""
    calls: str = ""  # from the failing line to the error

    def __str__(self) -> str:
        place = "" if self.cell is None else f"cell {self.cell} of {self.cells}, key {self.key}: "
        return "\n".join(part for part in (place + self.reason, self.source, self.calls) if part)


@dataclass(frozen=True)
class Outcome:
    """How one run went.

    `status` is passed, cached (it passed before, unchanged: `seconds` are of then), failed (the
    notebook), broken (the worker), stopped (ended from outside while it ran) or not run.
    """

    job: Job
    status: str
    seconds: float
    peak_mb: int | None = None
    failure: Failure | None = None
    cells: dict[str, float] = field(default_factory=dict)  # seconds of each code cell, by its id
    kernel: str = ""  # forked, plain or jupyter (its own way, not held: not on Linux)
    network: str = ""  # what kept the network away: a namespace, or the guard in Python alone


@dataclass(frozen=True)
class Run:
    """A whole run: how all its notebooks went, in what time, and how it ended."""

    outcomes: list[Outcome]
    plan: Plan
    seconds: float
    started: str = ""  # UTC, ISO 8601
    shard: tuple[int, int] | None = None  # this one of so many
    ended: str = "complete"  # or "total limit", "interrupted" (Ctrl-C), "terminated" (SIGTERM)

    @property
    def cell_seconds(self) -> float:
        """The time that code cells took in this run, of all notebooks together."""
        return sum(sum(o.cells.values()) for o in self.outcomes if o.status != "cached")

    @property
    def efficiency(self) -> float | None:
        """The share of the workers' time that went into code cells; None when no cell ran.

        Of the workers that could have a notebook each: one notebook occupies one worker.
        """
        ran = sum(outcome.status != "cached" for outcome in self.outcomes)
        taken = self.seconds * min(self.plan.workers, ran)
        return self.cell_seconds / taken if taken and self.cell_seconds else None


GOOD = {"passed", "cached"}


def exit_code(outcomes: list[Outcome]) -> int:
    """Give 0 when all passed, 2 when nothing ran or a worker broke, else 1.

    A notebook that was stopped or that did not run, because time was over, has not passed: 1.
    """
    statuses = {outcome.status for outcome in outcomes}
    if not outcomes or "broken" in statuses:
        return 2
    return 1 if statuses - GOOD else 0
