"""Check functions in files of others: each in a process of its own, many at once, here or afar.

    python -m course_lib.contracts attention path/to/file.py:my_attention

Exit code: 0 every function is accepted; 1 a function breaks its contract or is still a stub; 2 one
could not be run: no such file, function or contract, an error on import, sys.exit, a crash, a time
or memory limit. The worst of all counts.

The function's file is run in an empty folder, its own folder first on the path; its process is
watched, and ended with all it started. That holds off accidents; it is no security sandbox: the
code of a stranger who means harm belongs in a container.
"""

import contextlib
import importlib
import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from course_lib.contracts._runner_command import (
    Command,
    CommandError,
    exit_code,
    read_command,
    show_contracts,
    show_summary,
    show_verdict,
)
from course_lib.contracts._runner_process import admit_guards, judged_apart, stop_guards
from course_lib.contracts._runner_task import CandidateTask, read_task
from course_lib.contracts._runner_texts import runner_says

__all__ = ["judge_all", "judge_candidate", "main", "read_task"]


def judge_candidate(task: CandidateTask) -> dict[str, Any]:
    """Judge one candidate in a process of its own and return the verdict, ready for JSON.

    Raises nothing on account of the candidate: what cannot be run has the verdict "not_runnable".
    `read_task` makes the task. Any machine can judge it that has this package installed.
    """
    return judged_apart(task)


def judge_all(tasks: Iterable[CandidateTask], executor: Executor) -> Iterator[dict[str, Any]]:
    """Judge many candidates on any executor and yield the verdicts in the order of the tasks.

        judge_all(tasks, ThreadPoolExecutor(4))       four at once on this machine
        judge_all(tasks, client.get_executor())       on the workers of a dask.distributed Client

    The text of each candidate's file travels with its task. What that file imports from beside
    itself does not: a cluster's workers need it at the same path, on a shared disk.
    """
    tasks = list(tasks)
    futures = [executor.submit(judge_candidate, task) for task in tasks]
    try:
        for task, future in zip(tasks, futures, strict=True):
            try:
                verdict = future.result()
            except Exception as error:  # the engine lost the task or could not load this package
                named = {"error": type(error).__name__, "message": f": {error}"}
                reason = runner_says(task.language, "engine", **named)
                verdict = {"contract": task.contract, "candidate": task.candidate}
                verdict |= {"verdict": "not_runnable", "reason": reason, "seconds": 0.0}
            yield verdict
    finally:
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
        with _runner_executor(command) as executor:
            return _show_all(command, executor)
    except CommandError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(runner_says(command.language, "stopped"), file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader has seen enough: python -m ... | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 2


def _show_all(command: Command, executor: Executor) -> int:
    """Show each verdict as soon as it is there and those before it are shown."""
    verdicts = []
    for verdict in judge_all(command.tasks, executor):
        show_verdict(verdict, command)
        verdicts.append(verdict["verdict"])
    show_summary(verdicts, command)
    return exit_code(verdicts)


@contextlib.contextmanager
def _runner_executor(command: Command) -> Iterator[Executor]:
    """Open the executor that the command asks for; leave no process behind, however it ends."""
    if command.dask:
        try:
            client = importlib.import_module("distributed").Client(command.dask)
        except (ImportError, OSError, ValueError) as error:
            named = {"address": command.dask, "message": str(error)}
            raise CommandError(runner_says(command.language, "no_engine", **named)) from None
        with client:
            yield client.get_executor()
        return
    admit_guards()
    with ThreadPoolExecutor(command.jobs) as executor:
        try:
            yield executor
        except BaseException:
            stop_guards()
            raise
