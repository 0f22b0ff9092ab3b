"""Check functions in files of others: each in a process of its own, many at once.

    python -m course_lib.contracts attention path/to/file.py:my_attention

Exit code: 0 every function is accepted; 1 a function breaks its contract or is still a stub; 2 one
could not be run: no such file, function or contract, an error on import, sys.exit, a crash, a time
or memory limit. The worst of all counts.

The function's file is run in an empty folder, its own folder first on the path, without a network
(on Linux); its process is watched, and ended with all it started. That holds off accidents; it is
no security sandbox: the code of a stranger who means harm belongs in a container.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from course_lib.checking.apart import Bench
from course_lib.checking.command import (
    Command,
    CommandError,
    exit_code,
    read_command,
    show_contracts,
    show_summary,
    show_verdict,
)
from course_lib.checking.task import CandidateTask, read_task
from course_lib.checking.texts import says

__all__ = ["judge_all", "judge_candidate", "main", "read_task"]


def judge_candidate(task: CandidateTask) -> dict[str, Any]:
    """Judge one candidate in a process of its own and return the verdict, ready for JSON.

    Raises nothing on account of the candidate: what cannot be run has the verdict "not_runnable".
    `read_task` makes the task.
    """
    return next(judge_all([task]))


def judge_all(tasks: Iterable[CandidateTask], jobs: int = 1) -> Iterator[dict[str, Any]]:
    """Judge candidates, so many at once, and yield the verdicts in the order of the tasks.

    When nobody wants the rest (or on Ctrl-C) what runs is ended, and no process is left.
    """
    tasks = list(tasks)
    contracts = {task.contract for task in tasks if not task.problem}
    with Bench(contracts) as bench, ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(bench.judge, task) for task in tasks]
        try:
            for future in futures:
                yield future.result()
        finally:
            bench.stop.set()
            for future in futures:
                future.cancel()


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    command = Command(())
    try:
        command = read_command(argv, __doc__)
        if command.listing:
            show_contracts(command)
            return 0
        return _show_all(command)
    except (CommandError, OSError) as error:
        if isinstance(error, BrokenPipeError):  # the reader has seen enough: ... | head
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        else:
            print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(says(command.language, "stopped"), file=sys.stderr)
        return 130


def _show_all(command: Command) -> int:
    """Show each verdict as soon as it is there and those before it are shown."""
    verdicts = []
    for verdict in judge_all(command.tasks, command.jobs):
        show_verdict(verdict, command)
        verdicts.append(verdict["verdict"])
    show_summary(verdicts, command)
    return exit_code(verdicts)
