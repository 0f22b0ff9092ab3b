"""python -m course_build.weight prints what the course weighs; --check only what is too heavy.

Exit codes: 0 within the budgets; 1 above one of them.
"""

import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from course_build.base.findings import DONE, WORK, Finding
from course_build.base.places import SETTINGS_FILE
from course_build.weight import measures
from course_build.weight.contracts import Subject, subjects

TABLE = "[tool.course.weight]"
Budget = Mapping[str, float]  # goal: ARCHITECTURE's; at_most: today's, as long as that is more


def main(arguments: list[str], root: Path) -> int:
    """Print the table, or else only hold the weights to it."""
    if arguments != ["--check"]:
        print("\n".join(table(root)))
    weighed, budgets = dict(measures.weights(root)), read_budgets(root)
    findings = too_heavy(weighed, budgets)
    for text in (*findings, *lighter(weighed, budgets)):
        print(text, file=sys.stderr)
    return WORK if findings else DONE


def read_budgets(root: Path) -> dict[str, Budget]:
    """The budgets by name."""
    settings = tomllib.loads((root / SETTINGS_FILE).read_text(encoding="utf-8"))
    budgets: dict[str, Budget] = settings["tool"]["course"]["weight"]
    return budgets


def too_heavy(
    weighed: Mapping[str, measures.Weight], budgets: Mapping[str, Budget]
) -> list[Finding]:
    """What is above its ceiling: where it is heaviest, and what to do about it."""
    findings = []
    mend = "delete, share or divide: make weigh shows where; only an issue raises a budget"
    for name, (value, where) in weighed.items():
        most, goal = ceiling(budgets[name]), budgets[name]["goal"]
        if value > most:
            message = f"{name}: {value:,.2f}; at most {most:,}, and the goal is {goal:,}"
            findings.append(Finding(where, None, None, "weight", message, mend))
    return findings


def lighter(weighed: Mapping[str, measures.Weight], budgets: Mapping[str, Budget]) -> Iterator[str]:
    """The ceilings that can come down by more than a hundredth, and to what."""
    for name, (value, _) in weighed.items():
        most, goal = ceiling(budgets[name]), budgets[name]["goal"]
        if value < 0.99 * most and most > goal:
            new = f"at_most = {value:.2f}" if value > goal else "no at_most: the goal is reached"
            yield f"lighter: in {TABLE}, {name!r} can have {new}"


def ceiling(budget: Budget) -> float:
    """What it may weigh today."""
    return budget.get("at_most", budget["goal"])


def table(root: Path) -> Iterator[str]:
    """Lines of at most 100 columns: rooms, notebooks, contracts, packages, budgets."""
    seconds = measures.seconds_of_tests(root)
    yield f"{'room':<40}{'lines':>10}{'seconds of tests':>20}"
    for room, lines in measures.lines_by_room(root).items():
        spent = f"{seconds[room]:,.0f}" if room in seconds else ""
        yield f"{room:<40}{lines:>10,}{spent:>20}".rstrip()
    whole = f"{sum(seconds.values()):,.0f}" if seconds else "no whole run yet"
    yield f"{'all tests, one after the other':<50}{whole:>20}"
    yield f"\n{'notebook':<50}{'KB':>10}{'folded lines':>20}"
    for kilobytes, folded, path in measures.notebooks(root):
        yield f"{path:<50}{kilobytes:>10,.0f}{folded:>20,}"
    yield f"\n{'subject':<40}{'contracts':>10}{'lines each':>12}{'mistakes':>12}{'lines each':>12}"
    found = subjects(root)
    sums = [sum(figures) for figures in zip(*(subject[1:] for subject in found), strict=True)]
    for path, contracts, lines, mistakes, wrong in (*found, Subject("all", *sums)):
        each, mistake = lines / max(contracts, 1), wrong / max(mistakes, 1)
        yield f"{path:<40}{contracts:>10}{each:>12,.0f}{mistakes:>12}{mistake:>12.1f}"
    yield "\na reader installs {} packages, {:,.0f} MB".format(*measures.packages(root))
    yield f"\n{'budget':<40}{'now':>12}{'at most':>12}{'goal':>12}   heaviest"
    budgets = read_budgets(root)
    for name, (value, where) in measures.weights(root):
        most, goal = ceiling(budgets[name]), budgets[name]["goal"]
        yield f"{name:<40}{value:>12,.2f}{most:>12,}{goal:>12,}   {Path(where).stem[:20]}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(__file__).resolve().parents[2]))
