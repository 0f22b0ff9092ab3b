"""Judge one candidate in a process of its own, which a supervisor watches."""

import faulthandler
import json
import linecache
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil

from course_lib.checking.plain import json_line
from course_lib.checking.task import known_contracts
from course_lib.checking.texts import says
from course_lib.report import ContractReport, ContractViolation
from course_lib.text import localized


class Unrunnable(Exception):
    """The candidate cannot be held to its contract; the message says why."""


def main(argv: list[str]) -> None:
    """Read the order from the file that the command line ends with, judge, leave the verdict.

    Ends with os._exit: threads and exit handlers of the candidate have no last word.
    """
    order = json.loads(Path(argv[-1]).read_text(encoding="utf-8"))
    os.unlink(argv[-1])  # a candidate shall not find it
    own = os.getpid()
    faulthandler.enable()
    if hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1)  # the question where an endless loop is
    tempfile.gettempdir()  # decided now: a candidate that deletes its own must not get everybody's
    sys.dont_write_bytecode = True
    sys.modules[localized.__module__].LANGUAGE = order["language"]
    contract = known_contracts()[order["contract"]]
    _leave_file(order["ready"], str(psutil.Process().memory_info().rss))
    verdict = _worker_verdict(contract, order)
    if os.getpid() == own:  # a forked candidate comes back here twice
        for stream in (sys.stdout, sys.stderr):
            _flush(stream)
        line = json_line({"nonce": order["nonce"], **verdict})
        _leave_file(order["verdict"], f"{line}\n")
    os._exit(0)


def _flush(stream: Any) -> None:
    try:
        stream.flush()
    except BaseException:  # closed, replaced or broken by the candidate
        return


def _leave_file(path: str, text: str) -> None:
    """Write a file at once or not at all."""
    unfinished = f"{path}.new"
    with open(unfinished, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(unfinished, path)


def _worker_verdict(contract: Callable[..., Any], order: dict[str, Any]) -> dict[str, Any]:
    """Judge; whatever the candidate raises becomes a verdict."""
    begun = time.perf_counter()
    try:
        functions = _load_functions(order)
        settings = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in order["settings"].items()
        }
        begun = time.perf_counter()
        told = _held_to(contract, functions, settings, order)
    except Unrunnable as error:
        told = {"verdict": "not_runnable", "reason": str(error)}
    return {**told, "seconds": round(time.perf_counter() - begun, 3)}


def _held_to(
    contract: Callable[..., Any],
    functions: list[Callable[..., Any]],
    settings: dict[str, Any],
    order: dict[str, Any],
) -> dict[str, Any]:
    try:
        return _tell_report(contract(*functions, **settings))
    except ContractViolation as violation:
        return _tell_violation(violation)
    except Exception as error:  # as a rule, what a candidate raises does not come through
        frames = traceback.extract_tb(error.__traceback__)
        own = any(frame.filename == order["path"] for frame in frames)
        key = "call_raised" if own else "contract_raised"
        raise Unrunnable(_told_error(key, error, order)) from error
    except BaseException as error:  # sys.exit, KeyboardInterrupt and their like do
        raise Unrunnable(_told_error("call_raised", error, order)) from error


def _load_functions(order: dict[str, Any]) -> list[Callable[..., Any]]:
    """Run the candidate's text as a module, once, and pick the functions out of it."""
    path, source = order["path"], order["source"]
    module = ModuleType("candidate")
    module.__file__ = path
    sys.modules[module.__name__] = module
    sys.path.insert(0, str(Path(path).parent))
    sys.argv = [path]
    linecache.cache[path] = len(source), None, source.splitlines(keepends=True), path
    try:
        exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
    except BaseException as error:
        raise Unrunnable(_told_error("import_raised", error, order)) from error
    return [_pick_function(module, name, order) for name in order["names"]]


def _pick_function(module: ModuleType, name: str, order: dict[str, Any]) -> Callable[..., Any]:
    """Find Class.method or function in the module."""
    named = {"file": order["file"], "name": name}
    found: Any = module
    try:
        for part in name.split("."):
            found = getattr(found, part)
    except AttributeError:
        public = [key for key, value in vars(module).items() if _is_own(key, value, module)]
        known = ", ".join(public[:8]) or says(order["language"], "nothing_defined")
        raise Unrunnable(says(order["language"], "no_function", known=known, **named)) from None
    if not callable(found):
        kind = type(found).__name__
        raise Unrunnable(says(order["language"], "not_callable", kind=kind, **named))
    return found


def _is_own(name: str, value: Any, module: ModuleType) -> bool:
    own = getattr(value, "__module__", None) == module.__name__
    return own and callable(value) and not name.startswith("_")


def _told_error(key: str, error: BaseException, order: dict[str, Any]) -> str:
    """Say what was raised, and at which line of the candidate's file."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == order["path"]]
    if isinstance(error, SyntaxError) and error.filename == order["path"]:
        lines, message = [error.lineno], error.msg
    else:
        message = " ".join(str(error).split())
    place = says(order["language"], "at_line", line=lines[-1]) if lines else ""
    shown = message if len(message) <= 300 else message[:299] + "…"
    shown = f": {shown}" if shown else ""
    named = {"file": order["file"], "error": type(error).__name__, "message": shown}
    return says(order["language"], key, place=place, **named)


def _tell_report(report: ContractReport) -> dict[str, Any]:
    return {
        "verdict": "accepted" if report.attempted else "not_attempted",
        "clauses": [vars(clause) for clause in report.clauses],
        "figures": dict(report.figures),
        "unchecked": report.unchecked,
        "notes": report.notes,
        "text": str(report),
    }


def _tell_violation(violation: ContractViolation) -> dict[str, Any]:
    return {
        "verdict": "violation",
        "clause": violation.clause,
        "meaning": violation.meaning,
        "measured": violation.measured,
        "allowed": violation.allowed,
        "failing_input": violation.failing_input,
        "mismatches": [mismatch._asdict() for mismatch in violation.mismatches],
        "diagnosis": violation.diagnosis,
        "mistakes": violation.mistakes,
        "text": str(violation),
    }
