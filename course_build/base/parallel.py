"""Spreading work over the cores: the same results in the same order as doing it here."""

import contextlib
import os
import pickle
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
THREADS = Path("/proc/self/task")


def spread(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Do the work for every item, in as many processes as there are cores.

    What a helping process does not bring back, this one does itself: an error is raised here.
    """
    count = max(1, min(len(items), _usable_cores()))
    helpers: list[_Helper] = []
    try:
        with contextlib.suppress(OSError):  # as many as the system allows
            for number in range(1, count):
                helpers.append(_Helper(work, items[number::count]))
        done = dict(enumerate(map(work, items[::count])))
        results = {place * count: result for place, result in done.items()}
        for number, helper in enumerate(helpers, 1):
            brought = enumerate(helper.results())
            results |= {place * count + number: result for place, result in brought}
    finally:
        for helper in helpers:
            helper.end()
    return [results[n] if n in results else work(item) for n, item in enumerate(items)]


def _usable_cores() -> int:
    """How many processes may work: one where a fork would be unsafe, beside other threads."""
    try:
        alone = len(list(THREADS.iterdir())) == 1
    except OSError:  # not Linux
        alone = False
    return len(os.sched_getaffinity(0)) if alone else 1


class _Helper:
    """A forked process that does a share of the work and sends the results through a pipe."""

    def __init__(self, work: Callable[[Item], Result], items: Sequence[Item]) -> None:
        self._reading, writing = os.pipe()
        try:
            self._pid = os.fork()
        except OSError:
            os.close(self._reading)
            os.close(writing)
            raise
        if self._pid == 0:
            _help(work, items, writing)
        os.close(writing)

    def results(self) -> list[Any]:
        """Wait for the results; none if the helper could not finish."""
        try:
            with open(self._reading, "rb", closefd=False) as pipe:
                return pickle.load(pipe)
        except (pickle.UnpicklingError, EOFError):
            return []

    def end(self) -> None:
        """Make sure that the process is gone."""
        os.close(self._reading)
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _help(work: Callable[[Item], Result], items: Sequence[Item], writing: int) -> None:
    """Work in the forked process, which never returns; it is silent whatever happens."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        results = pickle.dumps([work(item) for item in items])
        with open(writing, "wb") as pipe:
            pipe.write(results)
    finally:
        os._exit(0)
