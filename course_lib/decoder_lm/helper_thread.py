"""Work for several threads at once: NumPy lets go of Python's lock while it computes."""

import queue
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

_LOOKS = 2_000  # into an empty queue, some hundred microseconds, before a thread goes to sleep


class Crew:
    """Run one function for each part of a model: part 0 here, each other part in its own thread.

    The threads start at the first job and end with the crew.
    """

    def __init__(self, parts: int) -> None:
        self.parts = parts
        self._threads: list[threading.Thread] = []
        self._jobs: list[Any] = []
        self._done: Any = None

    def run(self, work: Callable[..., Any], *arguments: Any) -> None:
        """Call work(part, *arguments) for every part; return when all are done.

        Raises:  what a part raised, after the others have ended
        """
        if self.parts == 1:
            work(0, *arguments)
            return
        if not self._threads or not self._threads[0].is_alive():
            _start_crew(self)  # at first, and in a forked process, which has no threads yet
        for part, jobs in enumerate(self._jobs, start=1):
            jobs.put((work, part, arguments))
        try:
            work(0, *arguments)
        finally:
            failures = [_awaited(self._done) for _ in self._jobs]
        for failure in failures:
            if failure is not None:
                raise failure


def _start_crew(crew: "Crew") -> None:
    crew._done = queue.SimpleQueue()
    crew._jobs = [queue.SimpleQueue() for _ in range(1, crew.parts)]
    crew._threads = [
        threading.Thread(target=_serve_crew, args=(jobs, crew._done), daemon=True)
        for jobs in crew._jobs
    ]
    for thread in crew._threads:
        thread.start()
    weakref.finalize(crew, _dismiss_crew, crew._jobs)


def _serve_crew(jobs: Any, done: Any) -> None:
    """Do one job after another; None is the last."""
    while (job := _awaited(jobs)) is not None:
        work, part, arguments = job
        try:
            work(part, *arguments)
            done.put(None)
        except BaseException as failure:
            done.put(failure)
        del job, work, arguments  # or the thread would keep the model alive


def _awaited(items: Any) -> Any:
    """Take the next item. It comes at once or not for long: look for it before going to sleep.

    To be woken takes 50 microseconds, a layer's share of the work 200.
    """
    for _ in range(_LOOKS):
        if not items.empty():
            break
        time.sleep(0)  # let others have Python's lock, and the core if they need it
    return items.get()


def _dismiss_crew(jobs: list[Any]) -> None:
    for each in jobs:
        each.put(None)
