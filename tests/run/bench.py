"""Hold the runner and the builder to their targets of speed: `make bench-run`.

Everything is measured in one run, in turns; medians are shown. The targets:

- all real notebooks take at most 1.15 x (what their cells take + one import a worker) / cores;
- the same notebooks in forked and in fresh kernels have the same bytes, and forked ones are faster;
- a cold build takes no longer than one jupytext call; one without changes, the interpreter's start
  apart, at most a quarter of it; the cost of a course grows no faster than its modules.

What other programs took of the cores is told beside each measurement: when it is not near zero, or
when a target is missed narrowly, measure again on a machine that does nothing else. Exit code 0:
all targets were met; 1: one was missed.
"""

import argparse
import heapq
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from course_build.run.jobs import EDITIONS, find_course, longest_first
from course_build.run.outcome import Job, Outcome, Plan
from course_build.run.pool import run_jobs
from course_build.run.reports import describe
from course_build.run.session import SECONDS, read_seconds
from course_lib.checking.capacity import usable_cpus
from tests.builder import bench as builder

from .notebooks import job_of, write_notebook

UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")  # workarounds for old builds; they slow NumPy
OVERHEAD = 1.15
SMALL = [
    "import torch\nimport matplotlib.pyplot as plt",
    "torch.manual_seed(0)\nx = torch.randn(256, 32)\ny = x.sin().sum(1, keepdim=True)\n"
    "net = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))\n"
    "steps = torch.optim.Adam(net.parameters(), lr=1e-2)\nlosses = []",
    "for _ in range(150):\n    loss = (net(x) - y).square().mean()\n    steps.zero_grad()\n"
    "    loss.backward()\n    steps.step()\n    losses.append(loss.item())\nlosses[-1]",
    "plt.plot(losses);",
]


@dataclass(frozen=True)
class Measured:
    """One run: seconds on the clock, the share of the cores that others took, what came of it."""

    wall: float
    others: float
    outcomes: tuple[Outcome, ...] = ()

    @property
    def cells(self) -> list[float]:
        """The seconds that the cells of each notebook took."""
        return [sum(outcome.cells.values()) for outcome in self.outcomes]


def least(cells: list[float], one_import: float, workers: int, cores: int) -> float:
    """Seconds that a run without any overhead of its own would take, by the target's definition."""
    return (sum(cells) + workers * one_import) / cores


def packed(cells: list[float], one_import: float, workers: int) -> float:
    """Seconds of the same when a notebook cannot be divided: the longest first, on each worker."""
    ends = [one_import] * workers
    for seconds in sorted(cells, reverse=True):
        heapq.heapreplace(ends, ends[0] + seconds)
    return max(ends)


def _own_cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def _busy() -> float:
    times = psutil.cpu_times()
    return sum(times[:8]) - times.idle - getattr(times, "iowait", 0.0)


def measured(action) -> Measured:
    """Do something that may return outcomes; nothing may fail in it."""
    busy, own, begun = _busy(), _own_cpu(), time.perf_counter()
    outcomes = tuple(action() or ())
    wall = time.perf_counter() - begun
    others = max(0.0, _busy() - busy - (_own_cpu() - own)) / (wall * (os.cpu_count() or 1))
    for outcome in outcomes:
        if outcome.status != "passed":
            raise SystemExit(describe(outcome))
    return Measured(wall, others, outcomes)


def in_turns(tasks, rounds: int) -> dict[str, list[Measured]]:
    """Do everything in turns, and after each round let another one begin."""
    found: dict[str, list[Measured]] = {name: [] for name in tasks}
    names = list(tasks)
    for turn in range(rounds):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            found[name].append(measured(tasks[name]))
            last = found[name][-1]
            print(f"  {name}: {last.wall:.1f} s, others {last.others:.0%}", flush=True)
    return found


def wall(found: list[Measured]) -> float:
    """The median of the seconds on the clock."""
    return statistics.median(one.wall for one in found)


def judge(name: str, value: float, most: float) -> bool:
    """Print one target and whether it is met."""
    met = value <= most
    print(f"{'met   ' if met else 'MISSED'} {name}: {value:.3f}, wanted at most {most:.2f}")
    return met


def import_torch() -> None:
    """Import torch in a fresh Python."""
    subprocess.run([sys.executable, "-c", "import torch"], check=True)


def _elsewhere(jobs: list[Job], folder: Path, kernels: str) -> list[Job]:
    return [
        replace(job, executed=folder / kernels / job.edition / job.language / job.executed.name)
        for job in jobs
    ]


def _runs(jobs: list[Job], folder: Path) -> dict:
    """Return the runs of the jobs by kind of kernel."""
    return {
        kernels: lambda kernels=kernels: run_jobs(
            _elsewhere(jobs, folder, kernels), Plan(kernels=kernels)
        )
        for kernels in ("forked", "plain")
    }


def same_bytes(found: dict[str, list[Measured]]) -> list[str]:
    """Name the notebooks whose executed copies differ between forked and fresh kernels."""
    pairs = zip(found["forked"][-1].outcomes, found["plain"][-1].outcomes, strict=True)
    return [
        describe(one)
        for one, other in pairs
        if one.job.executed.read_bytes() != other.job.executed.read_bytes()
    ]


def bench_small(folder: Path, count: int, rounds: int) -> bool:
    """Small notebooks in forked kernels, in fresh ones, and by papermill one after the other."""
    jobs = [
        job_of(folder, write_notebook(folder / "in" / "en" / f"n{number:02d}.ipynb", SMALL))
        for number in range(count)
    ]

    def papermill() -> None:
        for job in jobs:
            options = ["--no-progress-bar", "--log-level", "ERROR"]
            command = [sys.executable, "-m", "papermill", *options]
            out = folder / "by-papermill.ipynb"
            subprocess.run(
                [*command, str(job.notebook), str(out)], check=True, stderr=subprocess.DEVNULL
            )

    print(f"\n{count} small torch notebooks")
    found = in_turns(_runs(jobs, folder / "out") | {"papermill": papermill}, rounds)
    forked, plain, one_by_one = (wall(found[name]) for name in ("forked", "plain", "papermill"))
    print(f"papermill one by one / forked: {one_by_one / forked:.1f}")
    met = judge("forked / plain, small notebooks", forked / plain, 1.0)
    return judge("small notebooks that differ", len(same_bytes(found)), 0) and met


def bench_real(folder: Path, rounds: int, editions: tuple[str, ...]) -> bool:
    """All notebooks of the course against what their cells and one import a worker take."""
    jobs = longest_first(find_course(editions), read_seconds(SECONDS))
    workers, cores = Plan().workers, usable_cpus()
    print(f"\n{len(jobs)} real notebooks, {workers} workers on {cores} cores")
    found = in_turns(_runs(jobs, folder) | {"import torch": import_torch}, rounds)
    one_import = wall(found["import torch"])
    ratios = [
        (run.wall / least(run.cells, one_import, workers, cores), run) for run in found["forked"]
    ]
    ratio, run = sorted(ratios, key=lambda pair: pair[0])[len(ratios) // 2]
    print(f"cells {sum(run.cells):.1f} s, one import of torch {one_import:.1f} s")
    bound = packed(run.cells, one_import, workers)
    print(f"of that, undivided notebooks need {bound:.1f} s: run / that = {run.wall / bound:.3f}")
    met = judge("run / ((cells + imports) / cores)", ratio, OVERHEAD)
    return judge("forked / plain", wall(found["forked"]) / wall(found["plain"]), 1.0) and met


def bench_builder(folder: Path) -> bool:
    """The builder against one jupytext call, and its growth."""
    print("\nbuilder")
    numbers = folder / "builder.json"
    builder.main(["--json", str(numbers)])
    told = json.loads(numbers.read_text(encoding="utf-8"))
    real = {name: cost["wall"] for name, cost in told["real"].items()}
    large = {int(n): cost["wall"] for n, cost in told["growth"].items() if int(n) >= 5}
    unchanged = (real["unchanged"] - real["interpreter"]) / real["jupytext"]
    met = [
        judge("cold build / jupytext", real["cold"] / real["jupytext"], 1.0),
        judge("(unchanged - start) / jupytext", unchanged, builder.QUARTER),
        judge("exponent of growth", builder.slope(large), 1.1),
    ]
    return all(met)


def main(arguments: list[str] | None = None) -> int:
    """Measure, tell, and say by the exit code whether all targets were met."""
    parser = argparse.ArgumentParser(prog="python -m tests.run.bench", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--rounds", type=int, default=3, help="of small and real notebooks")
    parser.add_argument("--small", type=int, default=16, metavar="N", help="how many small ones")
    parser.add_argument("--edition", choices=EDITIONS, help="of the real ones (default: both)")
    parts = ("small", "real", "builder")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    chosen = parser.parse_args(arguments)
    for name in UNSET:
        if os.environ.pop(name, None) is not None:
            print(f"{name} was set; it is not set in what follows")
    print("load average:", *(f"{load:.1f}" for load in os.getloadavg()))
    met = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "small" in chosen.only:
            met.append(bench_small(folder / "small", chosen.small, chosen.rounds))
        if "real" in chosen.only:
            editions = (chosen.edition,) if chosen.edition else EDITIONS
            met.append(bench_real(folder / "real", chosen.rounds, editions))
        if "builder" in chosen.only:
            met.append(bench_builder(folder))
    return 0 if all(met) else 1


if __name__ == "__main__":
    raise SystemExit(main())
