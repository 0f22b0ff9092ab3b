"""How far a learner has come: contracts passed, predictions made, questions answered."""

import re
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from course_lib.practice._certificate import (
    certificate_facts,
    certificate_pages,
    checked_certificate_name,
)
from course_lib.practice._practice_output import (
    practice_bar,
    practice_lines,
    practice_page,
    practice_paragraph,
    practice_say,
    practice_show,
    practice_table,
)
from course_lib.practice._practice_texts import (
    practice_level,
    practice_recalled,
    practice_words,
)
from course_lib.practice._predictions import Predictions
from course_lib.practice._progress_file import ProgressFile
from course_lib.report import ContractReport, ContractViolation

PROGRESS_LEVELS = ("warm-up", "core", "stretch")


class _Session:
    """What was asked and what passed since the kernel started; that may take the place of ours."""

    def __init__(self) -> None:
        self.passed: set[str] = set()
        self.questions: dict[str, tuple[str, Mapping[str, tuple[bool, str]]]] = {}

    def adopt(self, name: str, yours: Any, ours: Any) -> Any:
        """What the lesson goes on with: yours if its check passed in this session, else ours."""
        chosen = yours if name in self.passed else ours
        words = "adopted" if name in self.passed else "ours"
        print(practice_words(words, name=getattr(chosen, "__name__", name)))
        return chosen


class Progress(_Session):
    """What a learner has achieved in one module, kept in a file beside the notebook only.

    Args:    module: as "module_03", names the file; exercises: name -> (level, title)
    Raises:  ValueError for a name that no file may have, or an unknown level
    """

    def __init__(self, module: str, exercises: Mapping[str, tuple[str, str]]) -> None:
        super().__init__()
        _check_progress_arguments(module, exercises)
        self.module, self.exercises = module, dict(exercises)
        self.file = ProgressFile(module, Path.cwd())
        self.predictions = Predictions(self.file)

    def check(self, name: str, contract: Callable[..., Any], *candidate: Any) -> Any:
        """Call the contract, record what came out, and return it: report or violation."""
        return _check_and_record(self, name, contract, *candidate)

    def predict(
        self,
        name: str,
        question: str,
        choices: Mapping[str, str] | None = None,
        *,
        guess: Any = None,
    ) -> None:
        """Ask for a prediction, of a choice or a number; with a guess, record it."""
        _predict(self.predictions, name, question, choices or {}, guess)

    def compare(self, name: str, actual: Any, *, within: float = 0.0) -> None:
        """Hold a result against the prediction; `within` is a share of the result."""
        self.predictions.compare(name, actual, within)

    def show(self) -> None:
        """Show all that is recorded: a bar and tables."""
        practice_show(*_progress_pages(self))

    def certificate(self, name: str) -> None:
        """Show a summary with the contracts passed, under this name, and what it proves."""
        practice_show(*_progress_certificate(self, checked_certificate_name(name)))


def _check_progress_arguments(module: str, exercises: Mapping[str, tuple[str, str]]) -> None:
    if not (isinstance(module, str) and re.fullmatch(r"[a-z0-9_]+", module)):
        raise ValueError(f"module names a file: use a-z, 0-9 and _; got {module!r}")
    if not exercises:
        raise ValueError("exercises is empty; give name -> (level, title)")
    for name, (level, title) in exercises.items():
        if level not in PROGRESS_LEVELS or not title.strip():
            raise ValueError(
                f"{name!r} needs one of the levels {list(PROGRESS_LEVELS)} and a title; "
                f"got {level!r}, {title!r}"
            )


def _check_and_record(
    progress: Progress, name: str, contract: Callable[..., Any], *candidate: Any
) -> Any:
    """What is recorded is what came out last: a passed exercise that breaks again is broken.

    Nothing is raised, so that the course goes on below an open exercise.
    """
    if name not in progress.exercises:
        raise ValueError(f"the exercises are {list(progress.exercises)}; got {name!r}")
    try:
        report = _reported(contract, *candidate)
    except ContractViolation as violation:
        broken = {"state": "broken", "contract": violation.contract, "clause": violation.clause}
        broken["mistakes"] = list(violation.mistakes)
        progress.file.change("exercises", name, broken)
        progress.passed.discard(name)
        return violation
    entry = _progress_entry(report)
    progress.file.change("exercises", name, entry)
    if entry["state"] == "passed":
        progress.passed.add(name)
    else:
        progress.passed.discard(name)
    return report


def _reported(contract: Callable[..., Any], *candidate: Any) -> ContractReport:
    """What a contract reports; for one of plain asserts, or after an error, what to say."""
    name = getattr(contract, "__name__", "contract")
    try:
        report = contract(*candidate)
    except ContractViolation:
        raise
    except NotImplementedError:
        return ContractReport(name, attempted=False)
    except Exception as error:
        *_, frame = traceback.extract_tb(error.__traceback__)
        said = str(error) if type(error) is AssertionError else f"{type(error).__name__}: {error}"
        where = practice_words("where", function=frame.name, line=frame.line or frame.lineno)
        return ContractReport(name, headline=f"✗ {name}: {said}", notes=(where,))
    if isinstance(report, ContractReport):
        return report
    figures = report if isinstance(report, Mapping) else {}
    notes = tuple(f"{figure} = {value:.3g}" for figure, value in figures.items())
    headline = practice_words("holds", contract=name)
    return ContractReport(name, figures=figures, notes=notes, headline=headline)


def _progress_entry(report: ContractReport) -> dict[str, Any]:
    """A stub is open, and so is a report that shows a ○ itself; one that shows a ✗ is broken."""
    if report.headline.startswith("✗"):
        clause = report.headline.partition(": ")[2]
        return {"state": "broken", "contract": report.contract, "clause": clause, "mistakes": []}
    clauses = [clause.name for clause in report.clauses]
    done = report.attempted and not report.headline.startswith("○")
    state = {"state": "passed", "clauses": clauses} if done else {"state": "open"}
    return {**state, "contract": report.contract}


def _predict(
    predictions: Predictions, name: str, question: str, choices: Mapping[str, str], guess: Any
) -> None:
    if guess is None:
        predictions.ask(name, question, choices)
        return
    predictions.meet(name, question, choices)
    practice_say(predictions.record(name, guess))


def _exercise_state(entry: Mapping[str, Any]) -> str:
    state = entry.get("state", "open")
    if state == "broken":
        likes = ", ".join(entry.get("mistakes", []))
        told = practice_words("broken", clause=entry.get("clause", ""))
        return told + (practice_words("like", names=likes) if likes else "")
    return practice_words(state, count=len(entry.get("clauses", [])))


def _quiz_rows(progress: Progress, entries: Mapping[str, Any]) -> list[tuple[str, str]]:
    """One row a question: those asked so far, then those of earlier sessions."""
    names = [*progress.questions, *sorted(entries.keys() - progress.questions.keys())]
    rows = []
    for name in names:
        entry = entries.get(name)
        state = "nothing" if entry is None else "right" if entry["right"] else "wrong"
        if name in progress.questions:
            question, _ = progress.questions[name]
        else:
            (question,) = practice_recalled(entry.get("said", {}), (name,))
        rows.append((question, practice_words(state)))
    return rows


def _progress_pages(progress: Progress) -> tuple[str, str]:
    """All that is recorded, as a page and as text."""
    state = progress.file.read()
    entries = [state["exercises"].get(name, {}) for name in progress.exercises]
    done, count = sum(e.get("state") == "passed" for e in entries), len(entries)
    exercises = [
        (title, practice_level(level), _exercise_state(entry))
        for (level, title), entry in zip(progress.exercises.values(), entries, strict=True)
    ]
    quiz = _quiz_rows(progress, state["quiz"])
    right = sum(entry["right"] for entry in state["quiz"].values())
    counted = practice_words("count", done=done, count=count)
    tables = [
        (practice_words("exercises"), ("exercise", "level", "state"), exercises),
        (practice_words("predictions"), ("question", "predicted", "outcome"),
         progress.predictions.rows()),
        (practice_words("answered", right=right, count=len(quiz)), ("question", "answer"), quiz),
    ]  # fmt: skip
    kept = progress.file.trouble or practice_words("kept", file=progress.file.path.name)
    parts = [practice_bar(counted, done, count)]
    lines = [f"{counted}  {'■' * done}{'□' * (count - done)}"]
    for title, head, rows in tables:
        parts.append(practice_table(title, [practice_words(word) for word in head], rows))
        lines += practice_lines(title, rows)
    return practice_page(*parts, practice_paragraph(kept)), "\n".join([*lines, kept])


def _progress_certificate(progress: Progress, name: str) -> tuple[str, str]:
    entries = progress.file.read()["exercises"]
    facts = certificate_facts(name, progress.module, progress.exercises, entries)
    return certificate_pages(facts, progress.exercises)
