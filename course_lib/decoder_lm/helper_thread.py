"""Work for several threads at once: NumPy lets go of Python's lock while it computes."""

import os
import queue
import select
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

_WATCH_SECONDS = 0.002  # to be woken takes 50 microseconds, a layer's share of the work 200


class Crew:
    """Run one function for each part of a model: part 0 here, each other part in its own thread.

    The threads start at the first job and end with the crew. One job at a time: `run` comes back
    when all parts are done, also when it is interrupted.
    """

    def __init__(self, parts: int) -> None:
        self.parts = parts
        self._board: Any = None
        self._threads: list[threading.Thread] = []

    def run(self, work: Callable[..., Any], *arguments: Any) -> None:
        """Call work(part, *arguments) for every part; return when all are done.

        Raises:  what a part raised, after the others have ended
        """
        if self.parts == 1:
            work(0, *arguments)
            return
        if not self._threads or not all(thread.is_alive() for thread in self._threads):
            _start_crew(self)  # at first, and in a forked process, which has no threads yet
        board = self._board
        try:
            board.job = (board.job[0] + 1, work, arguments)  # at once for all: one assignment
            _wake_crew(board)
            work(0, *arguments)
        finally:
            _await_crew(board)
            board.job = (board.job[0], None, ())  # or it would keep the model alive
        for failure in board.failures:
            if failure is not None:
                raise failure


class _Board:
    """What the threads of a crew see of each other; job[0] counts the jobs, None ends them.

    An alarm is a queue in C. An Event is locked by Python code: one interrupt in the middle of
    `set` leaves it locked, and the next `set` waits for ever.
    """

    def __init__(self, parts: int) -> None:
        self.job: tuple[int, Any, tuple[Any, ...]] = (0, None, ())
        self.finished = [0] * parts  # the number of the last job of each part
        self.failures: list[BaseException | None] = [None] * parts
        self.asleep = [False] * parts
        self.alarms: list[queue.SimpleQueue[None]] = [queue.SimpleQueue() for _ in range(parts)]


def _start_crew(crew: "Crew") -> None:
    board = crew._board = _Board(crew.parts)
    crew._threads = [
        # daemon: a crew that nobody dismissed must not keep Python from ending
        threading.Thread(target=_serve_crew, args=(board, part), daemon=True)
        for part in range(1, crew.parts)
    ]
    for thread in crew._threads:
        thread.start()
    weakref.finalize(crew, _dismiss_crew, board)  # they hold the board alone: a crew can go


def _serve_crew(board: Any, part: int) -> None:
    """Do one job after another until the number is None."""
    while True:
        _await_job(board, part)
        number, work, arguments = board.job
        if number is None:
            return
        try:
            work(part, *arguments)
            board.failures[part] = None
        except BaseException as failure:  # whatever it is: a dead part would be awaited for ever
            board.failures[part] = failure
        del work, arguments  # a thread that waits must not keep the model alive
        board.finished[part] = number


def _await_job(board: Any, part: int) -> None:
    if _look_out(lambda: board.job[0] != board.finished[part]):
        return
    board.asleep[part] = True  # said before looking again: a new job sees it, or is seen
    while board.job[0] == board.finished[part]:
        board.alarms[part].get()  # it may be left from an earlier job: hence the loop
    board.asleep[part] = False


def _await_crew(board: Any) -> None:
    """Wait until every part has done the job on the board; an interrupt is raised only then."""
    interrupt = None
    while True:
        try:
            while not _look_out(lambda: all(each == board.job[0] for each in board.finished[1:])):
                _wake_crew(board)  # an interrupt may have come before the alarms
                time.sleep(1e-4)
            break
        except BaseException as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


def _look_out(happened: Callable[[], bool]) -> bool:
    """Look again and again for two milliseconds; say whether it has happened."""
    end = time.perf_counter() + _WATCH_SECONDS
    while not happened():
        if time.perf_counter() > end:
            return False
        if os.name == "nt":
            time.sleep(0)
        else:
            select.select((), (), (), 0)  # lets go of Python's lock; time.sleep(0) takes 70 µs here
    return True


def _wake_crew(board: Any) -> None:
    for asleep, alarm in zip(board.asleep, board.alarms, strict=True):
        if asleep:
            alarm.put(None)


def _dismiss_crew(board: Any) -> None:
    board.job = (None, None, ())
    for alarm in board.alarms:
        alarm.put(None)
