"""A contract as a declaration: clauses, each a sentence, a judge and the calls it is asked on."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from course_lib.contracts.engine.candidate import (
    Breach,
    is_forward_only,
    is_stub,
    quiet_globals,
)
from course_lib.contracts.engine.diagnosis import Diagnosis
from course_lib.contracts.engine.judge import Judge
from course_lib.contracts.engine.subject import Subject, Terms
from course_lib.report import ClauseResult, ContractReport, ContractViolation
from course_lib.text import both, localized, say

_ALL = "all | все"
_NO_RETURN = "is a `return` missing? | не забыт ли `return`?"
Figures = Mapping[str, str | tuple[str, ...]] | Callable[[Subject, dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class Clause:
    """One demand: its name, "English | русский", how it is judged, on which calls, what is allowed.

    Where `allowed` is None nothing is measured, and the calls that passed are counted. `calls` may
    be a generator; what they are must have `arguments()` and `smaller()`. A clause that does not
    apply to the candidate (`when`) is not asked, and the report says so.
    """

    name: str
    meaning: str | tuple[str, ...]
    judge: Judge
    calls: Iterable[Any]
    allowed: float | None = None
    when: Callable[[Subject, "Clause"], bool] = lambda subject, clause: True


def tracked(subject: Subject, clause: Clause) -> bool:
    """A clause about gradients is for what autograd can follow; its calls are a list."""
    given = next(iter(clause.calls)).fresh()
    return not is_forward_only(subject.candidate, *given.positional, **given.keywords)


@dataclass(frozen=True)
class Contract:
    """Everything that is asked of a function, and how a wrong one is explained.

    `name` as in check_<name>_contract. `clauses` gives them anew for each subject, in the order in
    which they are asked: the ones that tell most about a mistake first. `explain` names the
    mistakes of a subject that was refused. `figures` are those of the report: from each name the
    clauses whose largest error it is, or a function of the subject and of all that was measured;
    without it every clause gives its <name>_max_error. `notes` are lines to read below the report.
    `observe` looks at the candidate before anything is asked; NotImplementedError means a stub.
    """

    name: str
    terms: Terms
    clauses: Callable[[Subject], Iterable[Clause]]
    explain: Callable[[Subject], Diagnosis]
    figures: Figures | None = None
    notes: Callable[[Subject], Iterable[str]] = lambda subject: ()
    observe: Callable[[Any, Mapping[str, Any]], Any] | None = None

    def check(self, candidate: Any, **options: Any) -> ContractReport:
        """Hold a candidate to every clause; a report, or a ContractViolation."""
        if not callable(candidate):
            came = type(candidate).__name__
            raise TypeError(f"{self.terms.asked} must be a function, got {came}")
        with quiet_globals():
            try:
                subject, clauses = self.prepare(candidate, **options)
            except NotImplementedError:
                return ContractReport(f"check_{self.name}_contract", attempted=False)
            asked = [clause for clause in clauses if clause.when(subject, clause)]
            rows: list[ClauseResult] = []
            try:
                for clause in asked:
                    rows.append(hold(subject, clause))
            except ContractViolation as violation:
                violation.held = {"held": len(rows), "count": len(asked)}
                raise
            figures = self._figures(subject, {row.name: row.measured for row in rows})
            notes = tuple(self.notes(subject))
        left = tuple(clause.name for clause in clauses if clause not in asked)
        return ContractReport(subject.contract, tuple(rows), figures, unchecked=left, notes=notes)

    def prepare(self, candidate: Any, **options: Any) -> tuple[Subject, list[Clause]]:
        """The subject and its clauses; NotImplementedError if the candidate is a stub."""
        seen = self.observe(candidate, options) if self.observe else None
        meanings: dict[str, dict[str, str]] = {}
        subject = Subject(
            f"check_{self.name}_contract",
            *(candidate, meanings, self.explain, self.terms),
            options=options,
            seen=seen,
        )
        clauses = list(self.clauses(subject))
        meanings |= {clause.name: both(clause.meaning) for clause in clauses}
        if self.observe is None and is_stub(
            lambda: next(iter(clauses[0].calls)).fresh().to(candidate)
        ):
            raise NotImplementedError
        return subject, clauses

    def _figures(self, subject: Subject, measured: dict[str, Any]) -> dict[str, Any]:
        if callable(self.figures):
            return self.figures(subject, measured)
        errors = {name: error for name, error in measured.items() if isinstance(error, float)}
        if self.figures is None:
            return {f"{name}_max_error": error for name, error in errors.items()}
        figures = {}
        for figure, names in self.figures.items():
            of = (names,) if isinstance(names, str) else names
            figures[figure] = max(errors.get(name, math.nan) for name in of)
        return figures


def hold(subject: Subject, clause: Clause) -> ClauseResult:
    """Judge a subject by one clause: the largest error, or the violation."""
    worst, count, allowed = 0.0, 0, clause.allowed or 0.0

    def judge(call: Any) -> float:
        with torch.enable_grad():  # which the candidate may have switched off in an earlier call
            return clause.judge(subject, call, allowed) or 0.0  # nothing was measured

    for call in clause.calls:
        try:
            worst, count = max(worst, judge(call)), count + 1
        except Breach as breach:
            small, last = cut_down(judge, call, breach)
            broken = last.clause or clause.name
            bound = (clause.allowed or "") if last.allowed is None else last.allowed
            failed = _row(subject, broken, last.measured, bound)
            named = named_by(subject)
            asked = say(_NO_RETURN) if str(last.measured).startswith("None") else ""
            diagnosis = "; ".join(text for text in (last.told(), asked, named.text) if text)
            raise ContractViolation(
                subject.contract, failed, small.arguments(), last.mismatches, diagnosis, named.names
            ) from last.__cause__
    if clause.allowed is None:
        return _row(subject, clause.name, f"{count}/{count}", say(_ALL))
    return _row(subject, clause.name, worst, allowed)


def _row(subject: Subject, name: str, *figures: float | str) -> ClauseResult:
    return ClauseResult(name, localized(subject.meanings[name]), *figures)


def named_by(subject: Subject) -> Diagnosis:
    """Which catalogued mistakes the candidate equals."""
    return subject.explain(subject)


def cut_down(judge: Callable[[Any], float], case: Any, breach: Breach) -> tuple[Any, Breach]:
    """Shrink a failing case for as long as it still fails in the same way.

    A failure that proves something must prove something still: what is said is about what is shown.
    """
    tries, telling = 200, bool(breach.told())
    progress = True
    while progress and tries > 0:
        progress = False
        for smaller in case.smaller():
            tries -= 1
            try:
                judge(smaller)
            except Breach as again:
                alike = (again.kind, again.clause) == (breach.kind, breach.clause)
                if alike and (again.told() or not telling):
                    case, breach, progress = smaller, again, True
                    break
            if tries <= 0:
                break
    return case, breach
