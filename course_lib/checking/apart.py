"""Have one candidate judged in a process of its own, and put what came of it into a verdict."""

import contextlib
import json
import os
import secrets
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from course_lib.checking.alone import Alone
from course_lib.checking.held import LOOK, ROOT, START, Held, Nursery, end, make_folder
from course_lib.checking.plain import plain_json, printable
from course_lib.checking.task import CandidateTask
from course_lib.checking.texts import says
from course_lib.contracts import CONTRACTS

CROWD = 64  # processes at once
FILE = 1000  # MB of any one file, and of all that is printed
KEPT = 2000  # bytes kept of the beginning of the output, and as many of its end
_OVER = {"memory": "out_of_memory", "processes": "crowd"}
_WORKER_CODE = """
import sys
sys.path.insert(0, sys.argv[1])
from course_lib.checking.worker import main
main(sys.argv)
"""


class Bench:
    """Where candidates are judged: on Linux forked from a process that has imported torch once.

    `with Bench(names of contracts) as bench: bench.judge(task)`, from any number of threads. When
    the block ends, so do all processes; `stop`, an event, ends what runs before that.
    """

    def __init__(self, contracts: Iterable[str]) -> None:
        self.stop = threading.Event()
        self.nursery: Nursery | None = None
        self.folder = make_folder()
        if sys.platform == "linux" and (names := sorted(contracts)):
            order = {
                "folder": str(self.folder),
                "path": [ROOT],
                "preload": [CONTRACTS[f"check_{name}_contract"] for name in names],
                "entry": str(Path(__file__).with_name("worker.py")),
                "fenced": True,
            }
            self.nursery = Nursery(self.folder / "nursery", _environment(self.folder), order)

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *_: object) -> None:
        if self.nursery:
            self.nursery.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def judge(self, task: CandidateTask) -> dict[str, Any]:
        """Hold a candidate to its contract; return the verdict as JSON has it.

        Blocks until the verdict is there and no process of the candidate is left. One that was at
        work when the process with torch died is judged once more.
        """
        named = {"contract": task.contract, "candidate": task.candidate}
        begun = time.monotonic()
        told: dict[str, Any] = {"verdict": "not_runnable", "reason": task.problem, "seconds": 0.0}
        if task.problem:
            return named | told
        for _ in range(2):
            before = self._ready()
            try:
                outcome = self._once(task)
            except OSError as error:  # a full disk, for example
                outcome = {"why": "engine", "message": str(error)}
            if outcome.get("told") or self.stop.is_set() or before == self._ready():
                break
        told |= {"reason": _why_none(outcome, task)}
        told |= {"seconds": round(time.monotonic() - begun, 3)}
        printed = _printed_lines(outcome.get("printed"), task.language)
        told = named | (outcome.get("told") or told) | ({"printed": printed} if printed else {})
        return plain_json(told)

    def _ready(self) -> int:
        return self.nursery.ready(self.stop) if self.nursery else 0

    def _once(self, task: CandidateTask) -> dict[str, Any]:
        self.folder.mkdir(exist_ok=True)  # a candidate may have removed it
        box = make_folder(self.folder)
        try:
            return self._outcome(task, box)
        finally:
            shutil.rmtree(box, ignore_errors=True)

    def _outcome(self, task: CandidateTask, box: Path) -> dict[str, Any]:
        nonce = secrets.token_hex(16)
        request = _request(task, box, nonce)
        try:
            child = Held(self.nursery.address, request) if self.nursery else Alone(request)
        except OSError:
            return {"why": "guard_ended", "message": self.nursery.last_words()}
        with contextlib.closing(child):
            why = self._await_end(child, task, Path(request["limits"]["ready"]))
        if not why and "status" not in child.told:
            name = child.told.get("refused", signal.Signals(9).name)
            return {"why": "guard_ended", "message": name}
        return {
            "why": why,
            "code": child.told.get("status"),
            "told": None if why else read_verdict(box / "contract" / nonce, nonce),
            "printed": kept_ends(box / "log.txt"),
        }

    def _await_end(self, child: Held | Alone, task: CandidateTask, ready: Path) -> str:
        """Wait until the process has ended (""), or have it end and say why."""
        deadline, begun, why = time.monotonic() + START, False, ""
        while not why and not child.ended(LOOK / 4):
            if not begun and ready.exists():  # torch is there: from now on the candidate counts
                begun, deadline = True, time.monotonic() + task.timeout
            if self.stop.is_set():
                why = "stopped"
            elif time.monotonic() > deadline:
                why = "out_of_time" if begun else "no_start"
        if why:
            # to an endless loop, this signal is the question where it is
            question = getattr(signal, "SIGUSR1", 9) if why == "out_of_time" else 9
            if not end(child, question, 0.3) and self.nursery:
                self.nursery.kill()
        return why or _OVER.get(child.told.get("why"), "")


def _environment(temporary: Path) -> dict[str, str]:
    return {
        **os.environ,
        **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
        "PYTHONIOENCODING": "utf-8:backslashreplace",
        **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary)),
    }


def _request(task: CandidateTask, box: Path, nonce: str) -> dict[str, Any]:
    """Furnish a candidate's folder, and write the request for its process."""
    candidate, private = box / "candidate", box / "contract"
    candidate.mkdir()
    private.mkdir()
    (box / "log.txt").touch()
    order = {
        "contract": task.contract,
        "file": Path(task.path).name,
        "path": task.path,
        "names": task.names,
        "source": task.source,
        "settings": dict(task.settings),
        "language": task.language,
        "ready": str(private / "ready"),
        "verdict": str(private / nonce),
        "nonce": nonce,
    }
    (private / "order.json").write_text(json.dumps(order), encoding="utf-8")
    memory = task.memory * 2**20 / 10**6
    return {
        "argv": [sys.executable, "-P", "-c", _WORKER_CODE, ROOT, str(private / "order.json")],
        "env": _environment(candidate),
        "cwd": str(candidate),
        "log": str(box / "log.txt"),
        "limits": {
            "memory_mb": memory,
            "ready": order["ready"],
            "processes": CROWD,
            "file_mb": FILE,
        },
        "fork": True,
    }


def read_verdict(path: Path, nonce: str) -> dict[str, Any] | None:
    """Read what the checking process left; None if that is not its word, whole."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) and told.pop("nonce", None) == nonce else None


def kept_ends(log: Path) -> dict[str, Any]:
    """What was printed: its size, its beginning, and its end where the two do not meet."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            parts = [file.read(2 * KEPT if size <= 2 * KEPT else KEPT)]
            if size > 2 * KEPT:
                file.seek(size - KEPT)
                parts.append(file.read(KEPT))
    except OSError:  # the candidate has removed it
        size, parts = 0, []
    left_out = max(0, size - 2 * KEPT)
    texts = [part.decode("utf-8", "replace") for part in parts]
    return {"size": size, "left_out": left_out, "parts": texts}


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
    limits = {"out_of_memory": task.memory, "crowd": CROWD, "no_start": START}
    limit = limits.get(why, task.timeout)
    name = "" if code is None else _exit_name(code)
    message = printable(outcome.get("message", ""))
    return says(task.language, why, limit=limit, name=name, code=code, message=message)


def _printed_lines(printed: dict[str, Any] | None, language: str) -> dict[str, Any] | None:
    """Cut what a candidate printed down to a few lines."""
    if not printed or not printed["size"]:
        return None
    parts = [_few_lines(printable(part)) for part in printed["parts"]]
    if len(parts) == 2:
        omitted = says(language, "omitted", size=printed["left_out"])
        parts = [[*parts[0][:4], omitted], parts[1][-4:]]
    lines = [line for part in parts for line in part]
    if len(lines) > 12:
        lines = [*lines[:6], "…", *lines[-5:]]
    return {"bytes": printed["size"], "lines": lines}


def _few_lines(text: str) -> list[str]:
    return [line if len(line) <= 200 else line[:199] + "…" for line in text.splitlines()]
