"""Compare the builder's speed with one jupytext call, and see how it grows with the course.

Everything is measured in one run, in turns, in processes of its own; medians are shown. Both the
clock and the processors' time are: on a machine that does other things only the second is fair,
and it counts what all cores do. Nothing here promises a speed.
"""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .copies import MODEL, MOST, copy_course

KINDS = ("wall", "cpu")
SIZES = (1, 2, 5, 10, 25, 50, MOST)
PYTHON = sys.executable
BUILD = [PYTHON, "build_notebooks.py"]
QUARTER = 0.25  # of a jupytext call: a build that changes nothing, the interpreter's start apart


@dataclass(frozen=True)
class Cost:
    """Seconds: on the clock (wall), and of all processors together (cpu)."""

    wall: float
    cpu: float


def cost_of(command: Sequence[str], folder: Path) -> Cost:
    """Run a command, which must succeed, and say what it cost."""
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode} in {folder}")
    return Cost(wall, usage.ru_utime + usage.ru_stime)


def forget(folder: Path) -> None:
    """Remove all that a build writes; the builder's compiled code stays."""
    for path in (folder / "build", *folder.glob("notebooks/[a-z]*")):
        if path.name != "src":
            shutil.rmtree(path, ignore_errors=True)


def cold(folder: Path) -> Cost:
    """A build in a checkout where none was made before."""
    forget(folder)
    return cost_of(BUILD, folder)


def in_turns(tasks: Mapping[str, Callable[[], Cost]], rounds: int) -> dict[str, Cost]:
    """Do everything in turns, and after each round let another one begin; the medians."""
    found: dict[str, list[Cost]] = {name: [] for name in tasks}
    names = list(tasks)
    for turn in range(rounds):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            found[name].append(tasks[name]())
    return {name: _median(costs) for name, costs in found.items()}


def _median(costs: Sequence[Cost]) -> Cost:
    return Cost(*(statistics.median(vars(cost)[kind] for cost in costs) for kind in KINDS))


def _copy_compiled(folder: Path, count: int | None) -> Path:
    """A course whose builder ran before: its code is compiled."""
    copy_course(folder, count)
    cost_of([PYTHON, "-m", "compileall", "-q", "course_build"], folder)
    return folder


def against_jupytext(folder: Path, rounds: int) -> dict[str, Cost]:
    """The real course: a cold build, one without changes, one jupytext call, the interpreter."""
    _copy_compiled(folder, None)
    source = f"notebooks/src/{MODEL}.py"
    converting = [PYTHON, "-m", "jupytext", "--quiet", "--to", "ipynb", source, "-o", "out.ipynb"]

    def unchanged() -> Cost:
        if not (folder / "build/notebooks.stamp").exists():
            cost_of(BUILD, folder)
        return cost_of(BUILD, folder)

    tasks = {
        "jupytext": lambda: cost_of(converting, folder),
        "cold": lambda: cold(folder),
        "unchanged": unchanged,
        "interpreter": lambda: cost_of([PYTHON, "-c", ""], folder),
    }
    return in_turns(tasks, rounds)


def growth(folder: Path, sizes: Sequence[int], rounds: int) -> dict[int, Cost]:
    """Cold builds of courses of these sizes."""
    courses = {str(size): _copy_compiled(folder / f"{size}", size) for size in sizes}
    tasks = {name: (lambda course=course: cold(course)) for name, course in courses.items()}
    return {int(name): cost for name, cost in in_turns(tasks, rounds).items()}


def slope(costs: Mapping[int, float]) -> float:
    """The exponent of growth: the slope of a line through the logarithms; 1 is linear."""
    points = [(math.log(size), math.log(cost)) for size, cost in costs.items()]
    return statistics.linear_regression(*zip(*points, strict=True)).slope


def tell_ratios(costs: Mapping[str, Cost]) -> None:
    """Print what was measured of the real course, and whether it is as quick as it should be."""
    print(f"{'the real course':30}{'clock':>10}{'processors':>12}")
    for name, cost in costs.items():
        print(f"{name:30}{cost.wall:9.3f}s{cost.cpu:11.3f}s")
    for name, wanted, of in (
        ("cold / jupytext", 1.0, lambda c: c["cold"] / c["jupytext"]),
        (
            "(unchanged - start) / jupytext",
            QUARTER,
            lambda c: (c["unchanged"] - c["interpreter"]) / c["jupytext"],
        ),
    ):
        wall, cpu = (of({n: getattr(c, kind) for n, c in costs.items()}) for kind in KINDS)
        print(
            f"{name:30}{wall:10.2f}{cpu:12.2f}   wanted on the clock: at most {wanted:.2f}: "
            f"{'reached' if wall <= wanted else 'missed'}"
        )


def tell_growth(costs: Mapping[int, Cost]) -> None:
    """Print the time for each module at every size, and how it grows."""
    print(f"\n{'modules':30}{'clock':>10}{'a module':>12}{'processors':>12}{'a module':>12}")
    for size, cost in costs.items():
        print(
            f"{size:<30}{cost.wall:9.2f}s{cost.wall / size:11.3f}s"
            f"{cost.cpu:11.2f}s{cost.cpu / size:11.3f}s"
        )
    for kind in KINDS:
        of_kind = {size: getattr(cost, kind) for size, cost in costs.items()}
        large = {size: cost for size, cost in of_kind.items() if size >= 5}
        for name, chosen in (("all sizes", of_kind), ("from 5 modules on", large)):
            if len(chosen) > 1:
                print(f"exponent of growth, {kind}, {name}: {slope(chosen):.3f} (linear: 1)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and tell."""
    parser = argparse.ArgumentParser(prog="python -m tests.builder.bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="for the real course")
    parser.add_argument("--growth-rounds", type=int, default=1, help="0: leave growth out")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="MODULES")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        ratios = against_jupytext(Path(folder, "real"), chosen.rounds)
        tell_ratios(ratios)
        sizes = (
            growth(Path(folder), chosen.sizes, chosen.growth_rounds) if chosen.growth_rounds else {}
        )
        if sizes:
            tell_growth(sizes)
    if chosen.json:
        numbers = {"real": ratios, "growth": sizes}
        plain = {what: {n: vars(c) for n, c in costs.items()} for what, costs in numbers.items()}
        chosen.json.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
