"""Run many notebooks, a few at a time."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed

from course_build.run.one import Crew
from course_build.run.outcome import Job, Outcome, Plan


def run_jobs(
    jobs: list[Job], plan: Plan | None = None, tell: Callable[[Outcome], None] = lambda _: None
) -> list[Outcome]:
    """Run all notebooks, a few at a time; `tell` hears of each as it ends; order is kept."""
    plan = plan or Plan()
    stop = threading.Event()
    outcomes: dict[Job, Outcome] = {}
    with Crew(plan) as crew, ThreadPoolExecutor(plan.workers) as pool:
        futures = [pool.submit(crew.run, job, stop) for job in jobs]
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
