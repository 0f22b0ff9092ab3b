"""Run many notebooks, a few at a time."""

import contextlib
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path

from course_build.run.crew import Crew
from course_build.run.notebook_file import problem
from course_build.run.outcome import Failure, Job, Outcome, Plan

ECHO = 1.0  # seconds in which a signal may come twice: from a terminal, and from who passes it on


class Interrupted(KeyboardInterrupt):
    """A signal stopped the run; `outcomes` says what had become of each notebook by then."""

    def __init__(self, outcomes: list[Outcome], cause: KeyboardInterrupt) -> None:
        super().__init__()
        self.outcomes = outcomes
        self.cause = cause


def run_jobs(
    jobs: list[Job],
    plan: Plan | None = None,
    tell: Callable[[Outcome], None] = lambda _: None,
    begin: Callable[[Job], None] = lambda _: None,
) -> list[Outcome]:
    """Run notebooks, the first ones first, and give their outcomes in the order of the jobs.

    `begin` hears of each as it starts (in the thread that runs it), `tell` as it ends. When the
    plan's total limit is over, what runs is ended with a partial copy ("stopped") and what waits
    does not run ("not run"). Ctrl-C does the same and raises Interrupted; a second one does not
    wait for the partial copies.
    """
    plan = plan or Plan()
    stop = threading.Event()
    futures: dict[Job, Future[Outcome]] = {}

    def run(job: Job) -> Outcome:
        begin(job)
        return _in_place(job, crew, stop)

    # The crew leaves first: its end ends what the pool's threads wait for.
    with ThreadPoolExecutor(plan.workers) as pool, Crew(plan) as crew:
        try:
            for job in jobs:
                futures[job] = pool.submit(run, job)
            left = _follow(futures, plan.total_limit, tell)
            if left:
                _end(futures, left, stop, tell)
        except KeyboardInterrupt as cause:
            left = [job for job, future in futures.items() if not future.done()]
            with contextlib.suppress(KeyboardInterrupt):
                _end(futures, left, stop, tell)
            raise Interrupted([_outcome(job, futures.get(job)) for job in jobs], cause) from None
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [_outcome(job, futures[job]) for job in jobs]


def _follow(
    futures: dict[Job, Future[Outcome]], limit: float | None, tell: Callable[[Outcome], None]
) -> list[Job]:
    """Tell of each job as it ends; return those that the total limit in seconds left over."""
    deadline = None if limit is None else time.monotonic() + limit
    jobs = {future: job for job, future in futures.items()}
    pending = set(jobs)
    while pending:
        patience = None if deadline is None else max(0.0, deadline - time.monotonic())
        done, pending = wait(pending, patience, FIRST_COMPLETED)
        for future in done:
            tell(_outcome(jobs[future], future))
        if not done:
            break
    return [jobs[future] for future in pending]


def _end(
    futures: dict[Job, Future[Outcome]],
    left: list[Job],
    stop: threading.Event,
    tell: Callable[[Outcome], None],
) -> None:
    """Stop what runs, drop what waits, and tell of both."""
    stop.set()
    running = [futures[job] for job in left if not futures[job].cancel()]
    begun = time.monotonic()
    while running:
        try:
            wait(running)
            break
        except KeyboardInterrupt:
            if time.monotonic() - begun > ECHO:
                raise
    for job in left:
        tell(_outcome(job, futures[job]))


def _outcome(job: Job, future: Future[Outcome] | None) -> Outcome:
    """Say how a job went; one whose worker raised an error is broken."""
    if future is None or future.cancelled():
        return Outcome(job, "not run", 0.0, failure=Failure("the run ended before its turn"))
    if not future.done():
        return Outcome(job, "stopped", 0.0, failure=Failure("the run was stopped at once"))
    error = future.exception()
    if error is not None:
        return Outcome(job, "broken", 0.0, failure=Failure(f"{type(error).__name__}: {error}"))
    return future.result()


def staged(job: Job) -> Path:
    """Say where an executed copy is written before it is put in place."""
    return job.executed.parent / f".{job.name}.part" / job.executed.name


def _in_place(job: Job, crew: Crew, stop: threading.Event) -> Outcome:
    """Run one notebook; its executed copy appears at once and whole, or not at all."""
    waiting = staged(job)
    try:
        outcome = crew.run(replace(job, executed=waiting), stop)
        if waiting.exists() and (outcome.status != "broken" or problem(waiting) is None):
            waiting.replace(job.executed)
        else:
            job.executed.unlink(missing_ok=True)
    finally:
        shutil.rmtree(waiting.parent, ignore_errors=True)
    return replace(outcome, job=job)
