"""The small file that keeps a learner's progress: whole at every moment, never thrown away."""

import importlib
import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from course_lib.practice._practice_texts import practice_words

_PROGRESS_SCHEMA = 1
_PROGRESS_LARGEST = 1_000_000  # bytes: more was never written here
_PROGRESS_PATIENCE = 5.0  # seconds to wait for another notebook that writes
_PROGRESS_STATES = {  # state: what its entry must tell
    "open": set(),
    "passed": {"contract", "clauses"},
    "broken": {"contract", "clause"},
}
PROGRESS_LARGEST_GUESS = 1e300


class _NewerProgress(Exception):
    """A later course wrote this: it is not ours to understand, nor to change."""


def _empty_progress(module: str) -> dict[str, Any]:
    sections = {name: {} for name in _PROGRESS_SECTIONS}
    return {"schema_version": _PROGRESS_SCHEMA, "module": module, **sections}


def _are_progress_words(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _is_progress_said(value: object, count: int) -> bool:
    """Is it language -> words, as many as that?"""
    return isinstance(value, dict) and all(
        _are_progress_words(words) and len(words) == count for words in value.values()
    )


def _is_exercise_entry(entry: dict[str, Any]) -> bool:
    words = (entry.get(name, "") for name in ("contract", "clause"))
    state = entry.get("state")
    return (
        isinstance(state, str)
        and state in _PROGRESS_STATES
        and _PROGRESS_STATES[state] <= entry.keys()
        and all(isinstance(word, str) for word in words)
        and all(_are_progress_words(entry.get(name, [])) for name in ("clauses", "mistakes"))
    )


def _is_prediction_entry(entry: dict[str, Any]) -> bool:
    guess = entry.get("guess")
    number = isinstance(guess, int | float) and not isinstance(guess, bool)
    number = number and abs(guess) <= PROGRESS_LARGEST_GUESS
    marks = (entry.get(name, False) for name in ("late", "seen", "held"))
    return (
        (number or guess is None or isinstance(guess, str))
        and all(isinstance(mark, bool) for mark in marks)
        and _is_progress_said(entry.get("said", {}), 2)
    )


def _is_quiz_entry(entry: dict[str, Any]) -> bool:
    return (
        type(entry.get("choice")) is int
        and isinstance(entry.get("right"), bool)
        and _is_progress_said(entry.get("said", {}), 1)
    )


_PROGRESS_SECTIONS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "exercises": _is_exercise_entry,
    "predictions": _is_prediction_entry,
    "quiz": _is_quiz_entry,
}


def _refuse_progress_constant(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


def _parse_progress(data: bytes, module: str) -> dict[str, Any]:
    """Read a file's bytes; ValueError for anything that this course cannot have written."""
    try:
        state = json.loads(data.decode("utf-8"), parse_constant=_refuse_progress_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(state, dict):
        raise ValueError("not an object")
    version = state.get("schema_version")
    if type(version) is not int or version < _PROGRESS_SCHEMA:
        raise ValueError("of no schema")
    if version > _PROGRESS_SCHEMA:
        raise _NewerProgress
    if state.get("module") != module:
        raise ValueError("of another module")
    state = _empty_progress(module) | state
    for section, fits in _PROGRESS_SECTIONS.items():
        entries = state[section]
        if not isinstance(entries, dict) or not all(
            isinstance(entry, dict) and fits(entry) for entry in entries.values()
        ):
            raise ValueError(f"{section} holds something else")
    json.dumps(state, ensure_ascii=False).encode("utf-8")  # half a character cannot be shown
    return state


def _hold_progress_folder(folder: Path) -> int | None:
    """Lock the folder until its number is closed; None where that cannot be done.

    A killed process lets go of it by itself, and no file is left.
    """
    try:
        fcntl = importlib.import_module("fcntl")
        flock, once = fcntl.flock, fcntl.LOCK_EX | fcntl.LOCK_NB
    except (ImportError, AttributeError):  # Windows; a browser, where fcntl is an empty shell
        return None
    try:
        held = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    until = time.monotonic() + _PROGRESS_PATIENCE
    while time.monotonic() < until:
        try:
            flock(held, once)
            return held
        except BlockingIOError:
            time.sleep(0.001)
        except OSError:  # a file system without locks
            break
    os.close(held)
    return None


@contextmanager
def _progress_turn(folder: Path) -> Iterator[None]:
    """Let one notebook at a time read, change and write."""
    held = _hold_progress_folder(folder)
    try:
        yield
    finally:
        if held is not None:
            os.close(held)


def _write_progress(path: Path, state: dict[str, Any]) -> None:
    """Write beside the file and move it into place: a reader sees the old or the new, whole."""
    text = json.dumps(state, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.writing")
    try:
        with open(beside, "xb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


class ProgressFile:
    """One module's progress in one folder; in memory only where the file cannot be used.

    What another notebook has written meanwhile is read before each change. `trouble` says in
    words why there is no file, as long as there is none.
    """

    def __init__(self, module: str, folder: Path) -> None:
        self.module = module
        # Where a link leads: moved into its place, a file would be written over the link itself.
        self.path = Path(os.path.realpath(folder / f"{module}.progress.json"))
        self.state = _empty_progress(module)
        self.trouble = ""

    def read(self) -> dict[str, Any]:
        """What is recorded now: section -> name -> entry."""
        if not self.trouble:
            with _progress_turn(self.path.parent):
                self._read_file()
        return self.state

    def change(self, section: str, name: str, entry: dict[str, Any]) -> None:
        """Record one entry and leave all others as they are."""
        with _progress_turn(self.path.parent):
            if not self.trouble:
                self._read_file()
            self.state[section][name] = entry
            if not self.trouble:
                try:
                    _write_progress(self.path, self.state)
                except OSError as error:
                    self._give_up("unwritable", error)

    def _read_file(self) -> None:
        try:
            if self.path.exists() and not self.path.is_file():
                raise OSError("not a file")
            with open(self.path, "rb") as file:
                data = file.read(_PROGRESS_LARGEST)  # a longer file is cut, so it is damaged
            self.state = _parse_progress(data, self.module)
        except FileNotFoundError:
            self.state = _empty_progress(self.module)
        except OSError as error:
            self._give_up("unreadable", error)
        except _NewerProgress:
            self._give_up("newer")
        except ValueError:
            self._put_aside()

    def _put_aside(self) -> None:
        """Keep a damaged file under another name and begin anew."""
        number = 1
        while (aside := self.path.with_name(self._damaged(number))).exists():
            number += 1
        try:
            os.rename(self.path, aside)
        except OSError as error:
            self._give_up("unreadable", error)
            return
        self.state = _empty_progress(self.module)
        print(practice_words("damaged", file=self.path.name, aside=aside.name))

    def _damaged(self, number: int) -> str:
        return f"{self.module}.damaged-{number}.progress.json"

    def _give_up(self, reason: str, error: OSError | None = None) -> None:
        """Go on in memory, and say why."""
        what = type(error).__name__ if error else ""
        self.trouble = practice_words(reason, file=self.path.name, what=what)
        print(self.trouble)
