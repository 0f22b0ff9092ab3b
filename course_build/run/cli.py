"""The runner's command line.

    python -m course_build.run [--edition learner] [--lang ru] [--module 3] [-p seed 7]

A kernel sees an empty working directory, an empty home, no repository and no network, so a
notebook that passes here is one that a stranger can run alone. Exit code 0: all passed; 1: a
notebook failed; 2: the run itself is broken (nothing to run, a worker that died).
"""

import argparse
import ast
import errno
import json
import sys
from pathlib import Path
from typing import Any

from course_build.findings import CourseError
from course_build.run.jobs import EDITIONS, EXECUTED, ChoiceError, check_choice, find_course
from course_build.run.outcome import Job, Outcome, Plan, exit_code
from course_build.run.pool import run_jobs
from course_build.run.reports import describe, report, short, table


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m course_build.run", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--edition", choices=[*EDITIONS, "all"], default="all", help="which edition (default: all)"
    )
    parser.add_argument("--lang", nargs="+", default=[], metavar="CODE", help="the languages")
    parser.add_argument(
        "--module", nargs="+", default=[], metavar="NAME", help="3, or the notebook's name"
    )
    parser.add_argument(
        "-p",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "VALUE"),
        help="set a variable of the notebooks' parameters cell",
    )
    return parser.parse_args(argv)


def run_course(jobs: list[Job], plan: Plan | None = None) -> list[Outcome]:
    """Run the notebooks, telling of each as it ends, and leave build/executed/report.json."""
    outcomes = run_jobs(jobs, plan, lambda outcome: print(describe(outcome), flush=True))
    text = json.dumps(report(outcomes), ensure_ascii=False, indent=1) + "\n"
    EXECUTED.mkdir(parents=True, exist_ok=True)
    (EXECUTED / "report.json").write_text(text, encoding="utf-8", newline="\n")
    return outcomes


def explain(error: OSError) -> str:
    """Say what went wrong with a file, and how to mend a folder that cannot be written."""
    if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS) or not error.filename:
        return str(error)
    path = Path(error.filename)
    return (
        f"cannot write {path.name} in the folder {path.parent} ({error.strerror}): make that "
        "folder writable, or copy the course to a folder of yours and run it there"
    )


def main(argv: list[str] | None = None) -> int:
    """Run what the command line names and return the exit code."""
    options = parse(argv)
    editions = EDITIONS if options.edition == "all" else (options.edition,)
    try:
        check_choice(options.lang, options.module)
        jobs = find_course(editions, options.lang, options.module)
        if not jobs:
            print("no such notebook is rendered; `make notebooks` renders all", file=sys.stderr)
            return 2
        outcomes = run_course(jobs, Plan({name: _value(text) for name, text in options.p}))
    except OSError as error:
        print(explain(error), file=sys.stderr)
        return 2
    except (CourseError, ChoiceError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"\n{table(outcomes)}\n\nexecuted copies and report.json: {short(EXECUTED)}")
    return exit_code(outcomes)
