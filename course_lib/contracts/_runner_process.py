"""Have one candidate judged in guarded processes, and put what came of it into a verdict."""

import contextlib
import json
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from course_lib.contracts._runner_guard import GUARD_CROWD, GUARD_START, end_processes
from course_lib.contracts._runner_plain import plain_json, printable
from course_lib.contracts._runner_task import CandidateTask
from course_lib.contracts._runner_texts import runner_says

GUARD_GRACE = 30.0  # seconds for a guard to tidy up and answer, beyond the candidate's limits
_RUNNER_GUARDS: set[subprocess.Popen] = set()  # those at work now, to be stopped on Ctrl-C
_RUNNER_STOPPING = threading.Event()
_GUARD_CODE = "import sys; sys.path.append(sys.argv[1]); from _runner_guard import guard; guard()"


def judged_apart(task: CandidateTask) -> dict[str, Any]:
    """Hold a candidate to its contract in processes of its own; return the verdict as JSON has it.

    Blocks until the verdict is there and no process of the candidate is left.
    """
    named = {"contract": task.contract, "candidate": task.candidate}
    begun = time.monotonic()
    if task.problem:
        return {**named, "verdict": "not_runnable", "reason": task.problem, "seconds": 0.0}
    outcome = _ask_guard(task)
    printed = _printed_lines(outcome.get("printed"), task.language)
    told = outcome.get("told") or {
        "verdict": "not_runnable",
        "reason": _why_none(outcome, task),
        "seconds": outcome.get("seconds", round(time.monotonic() - begun, 3)),
    }
    return plain_json({**named, **told, **({"printed": printed} if printed else {})})


def admit_guards() -> None:
    """Let guards start again after `stop_guards`."""
    _RUNNER_STOPPING.clear()


def stop_guards() -> None:
    """Let every guard at work, and any that is starting now, end its candidate and leave."""
    _RUNNER_STOPPING.set()
    for guard in list(_RUNNER_GUARDS):
        with contextlib.suppress(OSError):
            guard.stdin.close()


def _ask_guard(task: CandidateTask) -> dict[str, Any]:
    """Start a guard, give it the order, wait for its answer."""
    code = Path(__file__).resolve().parent
    folder = tempfile.mkdtemp(prefix="contract-")
    nonce, mark = secrets.token_hex(16), secrets.token_hex(8)
    order = {
        "nonce": nonce,
        "mark": mark,
        "folder": folder,
        "root": str(code.parents[1]),
        "limits": {"timeout": task.timeout, "memory": task.memory},
        "task": _order_of(task),
    }
    guard = subprocess.Popen(
        [sys.executable, "-P", "-c", _GUARD_CODE, str(code)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # Ctrl-C is for the command, which then tells the guards
    )
    _RUNNER_GUARDS.add(guard)
    late = threading.Timer(GUARD_START + task.timeout + GUARD_GRACE, guard.kill)
    late.daemon = True
    late.start()
    try:
        with contextlib.suppress(OSError, ValueError):  # gone already, or stopped
            guard.stdin.write(json.dumps(order).encode() + b"\n")
            guard.stdin.flush()
            if _RUNNER_STOPPING.is_set():
                guard.stdin.close()
        answer = guard.stdout.read()
        guard.wait()
    finally:
        late.cancel()
        with contextlib.suppress(OSError):
            guard.stdin.close()
        guard.stdout.close()
        _RUNNER_GUARDS.discard(guard)
    outcome = _read_answer(answer, nonce) or _guard_lost(guard, answer, mark)
    shutil.rmtree(folder, ignore_errors=True)
    return outcome


def _order_of(task: CandidateTask) -> dict[str, Any]:
    return {
        "contract": task.contract,
        "file": Path(task.path).name,
        "path": task.path,
        "names": task.names,
        "source": task.source,
        "settings": dict(task.settings),
        "language": task.language,
    }


def _read_answer(answer: bytes, nonce: str) -> dict[str, Any] | None:
    for line in reversed(answer.splitlines()):
        with contextlib.suppress(ValueError):
            outcome = json.loads(line)
            if isinstance(outcome, dict) and outcome.get("nonce") == nonce:
                return outcome
    return None


def _guard_lost(guard: subprocess.Popen, answer: bytes, mark: str) -> dict[str, Any]:
    """A guard that was killed leaves a candidate behind: find it by its mark, and end it."""
    end_processes(None, mark)
    last = answer.decode("utf-8", "replace").strip().splitlines()[-1:]
    return {"why": "guard_ended", "message": last[0] if last else _exit_name(guard.returncode)}


def _exit_name(code: int) -> str:
    """Name how a process ended: SIGKILL, or its exit code."""
    if code < 0:
        with contextlib.suppress(ValueError):
            return signal.Signals(-code).name
    return str(code)


def _why_none(outcome: dict[str, Any], task: CandidateTask) -> str:
    """Say why there is no verdict."""
    why, code = outcome["why"], outcome.get("code")
    if not why:
        why = "signal" if code is not None and code < 0 else "no_verdict"
    limits = {"out_of_memory": task.memory, "crowd": GUARD_CROWD, "no_start": GUARD_START}
    limit = limits.get(why, task.timeout)
    name = "" if code is None else _exit_name(code)
    message = printable(outcome.get("message", ""))
    return runner_says(task.language, why, limit=limit, name=name, code=code, message=message)


def _printed_lines(printed: dict[str, Any] | None, language: str) -> dict[str, Any] | None:
    """Cut what a candidate printed down to a few lines."""
    if not printed or not printed["size"]:
        return None
    parts = [_few_lines(printable(part)) for part in printed["parts"]]
    if len(parts) == 2:
        omitted = runner_says(language, "omitted", size=printed["left_out"])
        parts = [[*parts[0][:4], omitted], parts[1][-4:]]
    lines = [line for part in parts for line in part]
    if len(lines) > 12:
        lines = [*lines[:6], "…", *lines[-5:]]
    return {"bytes": printed["size"], "lines": lines}


def _few_lines(text: str) -> list[str]:
    return [line if len(line) <= 200 else line[:199] + "…" for line in text.splitlines()]
