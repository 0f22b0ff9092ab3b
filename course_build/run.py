"""Run every rendered notebook headless with papermill, each in a fresh kernel, and report.

    python -m course_build.run [--edition learner] [--lang ru] [--module 3] [-p seed 7]

A kernel sees an empty working directory, an empty home, no repository and no network, so a
notebook that passes here is one that a stranger can run alone. Exit code 0: all passed; 1: a
notebook failed; 2: the run itself is broken (nothing to run, a worker that died).
"""

import argparse
import ast
import contextlib
import errno
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil

from course_build.build import build_course
from course_build.files import read_files, write_files
from course_build.findings import CourseError
from course_build.run_one import Failure
from course_build.settings import SETTINGS_FILE, parse_settings

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
EXECUTED = ROOT / "build" / "executed"
EDITIONS = ("learner", "solved")  # the committed one, and the one with the solutions in place
FORBIDDEN = ("course_lib", "course_build")  # what a kernel must not be able to import
KEPT = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH")  # all that a kernel inherits


class ChoiceError(Exception):
    """The command line names a notebook that is not there; the message says which are."""


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
    """Seconds that a notebook may take: to start its kernel, for one cell, from first to last."""

    start: int = 120
    cell: int = 180
    wall: int = 300
    grace: int = 10  # to save the partial copy once the wall limit is over


@dataclass(frozen=True)
class Outcome:
    """How one run went. `status` is passed, failed (the notebook) or broken (the worker)."""

    job: Job
    status: str
    seconds: float
    peak_mb: int | None = None
    failure: Failure | None = None


@dataclass(frozen=True)
class Plan:
    """What is the same for all notebooks of a run."""

    parameters: dict[str, Any] = field(default_factory=dict)
    limits: Limits = Limits()
    workers: int = 2


def find_jobs(
    folders: Mapping[str, Path], executed: Path, languages: Sequence[str], modules: Sequence[str]
) -> list[Job]:
    """List the notebooks in each edition's folder, narrowed to some languages and modules."""
    return [
        Job(path, edition, path.parent.name, executed / edition / path.parent.name / path.name)
        for edition, folder in folders.items()
        for path in sorted(folder.glob("*/*.ipynb"))
        if (not languages or path.parent.name in languages)
        and (not modules or any(_is_module(path.stem, module) for module in modules))
    ]


def _is_module(stem: str, module: str) -> bool:
    return stem == module or (module.isdecimal() and stem.startswith(f"module_{int(module):02d}_"))


def render_solved() -> None:
    """Render the edition with the solutions in place, which is not committed; CourseError."""
    settings = parse_settings((ROOT / SETTINGS_FILE).read_text(encoding="utf-8"))
    files = read_files(ROOT)
    course = build_course(files, settings, list(files.sources), settings.languages)
    write_files(ROOT, course.solved)


def find_course(
    editions: Sequence[str] = EDITIONS, languages: Sequence[str] = (), modules: Sequence[str] = ()
) -> list[Job]:
    """List the course's own notebooks: the committed ones, and the solved ones rendered now."""
    folders = {"learner": ROOT / "notebooks", "solved": ROOT / "build" / "solved"}
    if "solved" in editions:
        render_solved()
    chosen = {edition: folders[edition] for edition in editions}
    return find_jobs(chosen, EXECUTED, languages, modules)


def check_choice(languages: Sequence[str], modules: Sequence[str]) -> None:
    """Refuse a language or module of which no notebook is rendered, and name those there are."""
    jobs = find_jobs({"learner": ROOT / "notebooks"}, EXECUTED, (), ())
    if not jobs:
        raise ChoiceError("no notebook is rendered; `make notebooks` renders all")
    known = sorted({job.language for job in jobs})
    for language in languages:
        if language not in known:
            raise ChoiceError(f"--lang {language}: choose from {', '.join(known)}")
    names = sorted({job.name for job in jobs})
    for module in modules:
        if not any(_is_module(name, module) for name in names):
            raise ChoiceError(f"--module {module}: choose from {', '.join(map(_brief, names))}")


def _brief(stem: str) -> str:
    found = re.match(r"module_(\d\d)_", stem)
    return str(int(found[1])) if found else stem


def kernel_environment(box: Path) -> dict[str, str]:
    """Build the whole environment of a worker and its kernel; `box` is a fresh folder."""
    return {
        **{name: os.environ[name] for name in KEPT if name in os.environ},
        "HOME": str(box / "home"),
        "USERPROFILE": str(box / "home"),
        "TMPDIR": str(box / "tmp"),
        "TEMP": str(box / "tmp"),
        "PYTHONPATH": str(box / "guard"),
        "PYTHONHASHSEED": "0",
        "PYTHONUTF8": "1",
        "OMP_NUM_THREADS": "1",
    }


def _furnish(box: Path, job: Job, plan: Plan) -> None:
    for name in ("cwd", "home", "tmp", "guard"):
        (box / name).mkdir()
    shutil.copyfile(HERE / "offline.py", box / "guard" / "sitecustomize.py")
    order = {
        "notebook": str(job.notebook.resolve()),
        "executed": str(job.executed.resolve()),
        "edition": job.edition,
        "parameters": plan.parameters,
        "forbidden": FORBIDDEN,
        "cwd": str(box / "cwd"),
        "result": str(box / "result.json"),
        "ipc": str(box / "k") if sys.platform == "linux" else "",
        "start_limit": plan.limits.start,
        "cell_limit": plan.limits.cell,
        "wall_limit": plan.limits.wall,
    }
    (box / "job.json").write_text(json.dumps(order), encoding="utf-8")


def family(pid: int) -> list[psutil.Process]:
    """List a process and all that descend from it (the kernel has a process group of its own)."""
    try:
        parent = psutil.Process(pid)
        return [*parent.children(recursive=True), parent]
    except psutil.NoSuchProcess:
        return []


def end_family(worker: subprocess.Popen, grace: float) -> None:
    """Ask a worker to save what it has and leave, then kill whatever of its family is left."""
    processes = family(worker.pid)
    worker.terminate()
    try:
        worker.wait(grace)
    except subprocess.TimeoutExpired:
        processes = family(worker.pid)
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    worker.wait()
    psutil.wait_procs(processes, timeout=grace)


def _wait(worker: subprocess.Popen, limits: Limits, stop: threading.Event) -> bool:
    """Wait for a worker, and return whether it had to be ended."""
    deadline = time.monotonic() + limits.wall
    while True:
        try:
            worker.wait(0.2)
            return False
        except subprocess.TimeoutExpired:
            if stop.is_set() or time.monotonic() > deadline:
                end_family(worker, limits.grace)
                return True


def _outcome(box: Path, job: Job, seconds: float, ended: bool, limits: Limits) -> Outcome:
    result = box / "result.json"
    if result.exists():
        told = json.loads(result.read_text(encoding="utf-8"))
        failure = Failure(**told["failure"]) if told["failure"] else None
        return Outcome(job, "failed" if failure else "passed", seconds, told["peak_mb"], failure)
    if ended:
        reason = f"the notebook ran longer than its limit of {limits.wall} s"
        return Outcome(job, "failed", seconds, failure=Failure(reason))
    log = (box / "log.txt").read_text(encoding="utf-8", errors="replace").strip()
    reason = "the worker died before it could report; the end of its log:\n" + log[-2000:]
    return Outcome(job, "broken", seconds, failure=Failure(reason))


def run_job(job: Job, plan: Plan, stop: threading.Event) -> Outcome:
    """Run one notebook in a worker process of its own, under the limits."""
    job.executed.parent.mkdir(parents=True, exist_ok=True)
    job.executed.unlink(missing_ok=True)
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="course-", ignore_cleanup_errors=True) as name:
        box = Path(name)
        _furnish(box, job, plan)
        with (box / "log.txt").open("wb") as log:
            worker = subprocess.Popen(
                [sys.executable, "-P", str(HERE / "run_one.py"), str(box / "job.json")],
                cwd=box / "cwd",
                env=kernel_environment(box),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            ended = _wait(worker, plan.limits, stop)
        return _outcome(box, job, round(time.perf_counter() - begun, 1), ended, plan.limits)


def run_jobs(
    jobs: list[Job], plan: Plan | None = None, tell: Callable[[Outcome], None] = lambda _: None
) -> list[Outcome]:
    """Run all notebooks, a few at a time; `tell` hears of each as it ends; order is kept."""
    plan = plan or Plan()
    stop = threading.Event()
    outcomes: dict[Job, Outcome] = {}
    with ThreadPoolExecutor(plan.workers) as pool:
        futures = [pool.submit(run_job, job, plan, stop) for job in jobs]
        try:
            for future in as_completed(futures):
                outcome = future.result()
                outcomes[outcome.job] = outcome
                tell(outcome)
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [outcomes[job] for job in jobs]


def describe(outcome: Outcome) -> str:
    """Tell how one notebook went: one line, or for a failure its place, source and error too."""
    job = outcome.job
    mark = "✓" if outcome.status == "passed" else "✗"
    head = f"{mark} {job.name} ({job.edition}, {job.language}): {outcome.status}"
    head += f" in {outcome.seconds:.1f} s"
    if outcome.failure is None:
        return head
    kept = f"what ran is kept in {_short(job.executed)}" if job.executed.exists() else ""
    body = "\n".join(part for part in (str(outcome.failure), kept) if part)
    return head + "\n" + "\n".join("    " + line for line in body.splitlines())


def _short(path: Path) -> str:
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
                "executed": _short(outcome.job.executed),
                "failure": None if outcome.failure is None else asdict(outcome.failure),
            }
            for outcome in outcomes
        ],
    }


def exit_code(outcomes: list[Outcome]) -> int:
    """Give 0 when all passed, 1 when a notebook failed, 2 when nothing ran or a worker broke."""
    statuses = {outcome.status for outcome in outcomes}
    if not outcomes or "broken" in statuses:
        return 2
    return 1 if "failed" in statuses else 0


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
    print(f"\n{table(outcomes)}\n\nexecuted copies and report.json: {_short(EXECUTED)}")
    return exit_code(outcomes)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # leave no worker behind then either
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("stopped; what had ended is kept", file=sys.stderr)
        sys.exit(130)
