"""Execute the rendered notebooks, each alone, and report.

    make run MODULE=3 LANG=ru EDITION=learner SHARD=1/2 ARGS="-p seed 1 -p steps 500"
    python -m course_build.run --module 3 --lang ru --edition learner --shard 1/2 -p seed 1

A kernel sees an empty working directory, an empty home, no repository and no network, so a
notebook that passes here is one that a stranger can run alone. How it went is told on the error
stream; the table goes to the standard one; the executed copies, report.json and junit.xml go to
build/executed/.

Exit codes: 0 all passed (or the shard is empty); 1 a notebook failed, or time was over before all
had run; 2 the run itself is broken (nothing to run, a worker that died, a disk that is full);
130 Ctrl-C and 143 SIGTERM: what had ended is kept and reported.
"""

import argparse
import ast
import errno
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from course_build.base.findings import CourseError
from course_build.run.cache import Cache
from course_build.run.jobs import (
    EDITIONS,
    EXECUTED,
    ChoiceError,
    check_choice,
    find_course,
    parse_shard,
    shard_of,
)
from course_build.run.outcome import Job, Limits, Plan, Run, exit_code
from course_build.run.reports import summary
from course_build.run.session import run_course

SIGNALS = {"interrupted": 130, "terminated": 143}


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _positive(text: str) -> int:
    if not re.fullmatch("0*[1-9][0-9]{0,8}", text):
        raise argparse.ArgumentTypeError(f"{text}: a whole number from 1 is needed")
    return int(text)


def _shard(text: str) -> tuple[int, int]:
    try:
        return parse_shard(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m course_build.run", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--edition", choices=[*EDITIONS, "all"], default="all", help="which edition (default: all)")
    add("--lang", nargs="+", default=[], metavar="CODE", help="the languages (default: all)")
    add(
        "--module",
        nargs="+",
        default=[],
        metavar="NAME",
        help="3, or a notebook's name (default: all)",
    )
    add(
        *("-p", "--parameter"),
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "VALUE"),
        help="set a variable of the notebooks' parameters cell; VALUE is a Python literal, or else "
        "a text (--list shows the names and what they are by default)",
    )
    add("--list", action="store_true", help="list the notebooks and their parameters; run nothing")
    _add_how(parser)
    return parser.parse_args(argv)


def _add_how(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how to run, not what."""
    add, limits = parser.add_argument, Limits()
    add("--workers", type=_positive, metavar="N", help="how many at once (default: as fits here)")
    add(
        "--shard",
        type=_shard,
        metavar="I/N",
        help="run one of N shares of the chosen notebooks; each is in exactly one share, the same "
        "on every machine that is given the same choice",
    )
    add(
        "--kernels",
        choices=["forked", "plain", "jupyter"],
        default="forked",
        help="forked from a preloaded process (fast), plain: a fresh Python each under the same "
        "limits, or jupyter's own, looked at from outside (default: %(default)s)",
    )
    add("--locale", default=Plan.locale, help="LC_ALL of the kernels (default: %(default)s)")
    _limit(parser, "--cell-limit", f"for one cell (default: {limits.cell})")
    _limit(parser, "--limit", f"for one notebook (default: {limits.wall})")
    _limit(parser, "--total-limit", "for all together (default: none)")
    add(
        "--cache",
        action="store_true",
        help="leave out what passed before, in build/cache, when nothing has changed since",
    )
    add(
        "--output",
        type=Path,
        default=EXECUTED,
        metavar="FOLDER",
        help="where all results go (default: build/executed)",
    )


def _limit(parser: argparse.ArgumentParser, name: str, words: str) -> None:
    parser.add_argument(name, type=_positive, metavar="SECONDS", help=f"time {words}")


def plan_of(options: argparse.Namespace) -> Plan:
    """Make the plan that the command line asks for."""
    limits = Limits()
    limits = replace(
        limits, cell=options.cell_limit or limits.cell, wall=options.limit or limits.wall
    )
    plan = Plan(
        {name: _value(text) for name, text in options.parameter},
        limits,
        total_limit=options.total_limit,
        kernels=options.kernels,
        locale=options.locale,
    )
    return replace(plan, workers=options.workers) if options.workers else plan


def check_cache(options: argparse.Namespace) -> None:
    """Refuse --cache where CI is set: there, every notebook must have run."""
    if options.cache and os.environ.get("CI", "").lower() not in ("", "0", "false"):
        raise ChoiceError(
            "--cache is refused where the environment has CI set: a CI run proves that every "
            "notebook runs. Leave --cache out"
        )


def choose(options: argparse.Namespace) -> list[Job]:
    """Find the notebooks that the command line names; ChoiceError when there is none."""
    editions = EDITIONS if options.edition == "all" else (options.edition,)
    check_cache(options)
    check_choice(options.lang, options.module)
    jobs = find_course(editions, options.lang, options.module, options.output)
    if not jobs:
        raise ChoiceError("no such notebook is rendered; `make notebooks` renders all")
    if options.parameter:
        check_parameters(jobs, [name for name, _ in options.parameter])
    return jobs


def check_parameters(jobs: list[Job], names: list[str]) -> None:
    """Refuse, before anything runs, a parameter that one of the notebooks does not have."""
    import papermill

    for job in jobs:
        known = papermill.inspect_notebook(str(job.notebook))
        for name in names:
            if name not in known:
                raise ChoiceError(
                    f"-p {name}: {job.name} has no such parameter; it has: "
                    f"{', '.join(known) or 'none'} (--module chooses the notebooks)"
                )


def listed(jobs: list[Job]) -> Iterator[str]:
    """List notebooks with the variables that -p can set, and their values when it does not."""
    import papermill

    for job in jobs:
        yield f"{job.name} ({job.edition}, {job.language})"
        for name, found in papermill.inspect_notebook(str(job.notebook)).items():
            yield f"    -p {name} {found['default']}"


def explain(error: OSError) -> str:
    """Say what went wrong with a file, and how to mend a folder that cannot be written."""
    if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS) or not error.filename:
        return str(error)
    path = Path(error.filename)
    return (
        f"cannot write {path.name} in the folder {path.parent} ({error.strerror}): make that "
        "folder writable, or let the results go to another one with --output FOLDER "
        "(and --edition learner: the solved notebooks are rendered into build/solved)"
    )


def complain(text: str) -> None:
    """Tell something on the error stream: the standard one is for the report."""
    print(text, file=sys.stderr, flush=True)


def main(argv: list[str] | None = None) -> int:
    """Run what the command line names and return the exit code."""
    options = parse(argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks ✓
    try:
        jobs = choose(options)
        if options.list:
            print("\n".join(listed(jobs)))
            return 0
        mine = shard_of(jobs, options.shard) if options.shard else jobs
        plan = plan_of(options)
        cache = Cache(plan, say=complain) if options.cache else None
        run = run_course(mine, plan, options.output, options.shard, cache)
    except OSError as error:
        complain(explain(error))
        return 2
    except (CourseError, ChoiceError) as error:
        complain(str(error))
        return 2
    return conclude(run, len(jobs), options.output)


def conclude(run: Run, chosen: int, folder: Path) -> int:
    """Print the report for people and return the exit code."""
    if run.shard and not run.outcomes:
        number, count = run.shard
        print(f"shard {number}/{count} has no notebook: only {chosen} were chosen for {count}")
        return 0
    print(summary(run, folder))
    return SIGNALS.get(run.ended, exit_code(run.outcomes))
