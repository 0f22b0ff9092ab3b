"""One whole run: alone in its folder, longest notebooks first, with progress and reports."""

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from course_build.run.cache import Cache
from course_build.run.jobs import EXECUTED, ROOT, label, longest_first
from course_build.run.machine_reports import REPORTS, write_reports
from course_build.run.outcome import Job, Outcome, Plan, Run, Terminated
from course_build.run.pool import Interrupted, run_jobs
from course_build.run.progress import Lines, Live, following
from course_build.run.reports import short
from course_build.run.writing import write_whole

SECONDS = ROOT / "build" / "run-seconds.json"  # of the last run of each notebook that passed
LOCK, HOLDER = ".run.lock", ".run.holder"


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Let one run at a time write into a folder; another one waits and says for whom.

    The lock ends with the process that holds it, however that ends.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock, holder = FileLock(folder / LOCK), folder / HOLDER
    try:
        lock.acquire(timeout=0)
    except Timeout:
        try:
            who = holder.read_text(encoding="utf-8")
        except OSError:
            who = "another run"
        print(f"{who} is writing into {short(folder)}: waiting for its end", file=sys.stderr)
        print("(Ctrl-C leaves; --output FOLDER writes elsewhere)", file=sys.stderr, flush=True)
        lock.acquire()
    try:
        now = datetime.now().strftime("%H:%M:%S")
        holder.write_text(f"the run of process {os.getpid()}, begun at {now},", encoding="utf-8")
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def read_seconds(path: Path) -> dict[str, float]:
    """Read how long notebooks took before; nothing when the file is missing or damaged."""
    try:
        told = json.loads(path.read_bytes())
        return {str(name): float(value) for name, value in told.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def keep_seconds(outcomes: list[Outcome], path: Path) -> None:
    """Add what passed to the seconds that are known; they only set the order, so no matter if not.

    What other notebooks took stays, also when only a few ran.
    """
    new = {label(o.job): o.seconds for o in outcomes if o.status == "passed"}
    text = json.dumps(read_seconds(path) | new, indent=1, sort_keys=True) + "\n"
    with contextlib.suppress(OSError):
        write_whole(path, text.encode())


def _from_cache(jobs: list[Job], cache: Cache | None, progress: Lines | Live) -> dict[Job, Outcome]:
    """Take from the cache what is there, and tell of each."""
    hits = {}
    for job in jobs if cache else ():
        outcome = cache.find(job)
        if outcome is not None:
            hits[job] = outcome
            progress.tell(outcome)
    return hits


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Let no signal cut short what is being written; one that comes meanwhile changes nothing."""
    signals = (signal.SIGINT, signal.SIGTERM)
    if threading.current_thread() is not threading.main_thread():
        signals = ()  # Python hears them in its main thread alone
    before = {signum: signal.signal(signum, signal.SIG_IGN) for signum in signals}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def first_of(error: BaseException | None) -> Interrupted | None:
    """Find the interrupt that ended a run behind a second one that came while it closed."""
    while error is not None and not isinstance(error, Interrupted):
        error = error.__context__
    return error


def _run(
    jobs: list[Job],
    plan: Plan,
    cache: Cache | None,
    progress: Lines | Live,
) -> tuple[list[Outcome], str]:
    """Run notebooks, keep and tell what comes of each, and say how the run ended."""

    def tell(outcome: Outcome) -> None:
        if cache:
            cache.keep(outcome)
        progress.tell(outcome)

    if not jobs:
        return [], "complete"
    try:
        ordered = longest_first(jobs, read_seconds(SECONDS))
        outcomes = run_jobs(ordered, plan, tell, progress.begin)
    except KeyboardInterrupt as signalled:
        stop = first_of(signalled)
        if stop is None:
            raise
        ended = "terminated" if isinstance(stop.cause, Terminated) else "interrupted"
        return stop.outcomes, ended
    over = any(outcome.status in ("stopped", "not run") for outcome in outcomes)
    return outcomes, "total limit" if over else "complete"


def run_course(
    jobs: list[Job],
    plan: Plan | None = None,
    output: Path = EXECUTED,
    shard: tuple[int, int] | None = None,
    cache: Cache | None = None,
) -> Run:
    """Run notebooks as `make run` does, and leave report.json and junit.xml in the output folder.

    A run that a signal stopped is reported like any other; its `ended` says so.
    """
    plan = plan or Plan()
    with alone(output):
        for name in REPORTS:  # of an earlier run; a run that is killed shall have none
            (output / name).unlink(missing_ok=True)
        started, begun = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
        with following(len(jobs), plan) as progress:
            hits = _from_cache(jobs, cache, progress)
            rest = [job for job in jobs if job not in hits]
            outcomes, ended = _run(rest, plan, cache, progress)
        by_job = hits | {outcome.job: outcome for outcome in outcomes}
        seconds = round(time.monotonic() - begun, 2)
        run = Run([by_job[job] for job in jobs], plan, seconds, started, shard, ended)
        with undisturbed():
            if not plan.parameters:
                keep_seconds(outcomes, SECONDS)
            write_reports(run, output)
    return run
