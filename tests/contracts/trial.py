"""Every contract on trial: what it must accept, what it must refuse, and what it said.

A contract's variants stand in a file variants_<contract>.py, which this module finds:

    CHECK      the contract, as a function of one candidate
    CATALOGUE  the tuple of its Mistakes
    CLAUSES    the names of its clauses, in the order of the report
    RIGHT      {name: candidate}: differently written, to be accepted
    WRONG      {name: (candidate, clause)}: beyond the catalogue, to be refused by that clause
    MISTAKES   {name: clause}: the clause that must refuse each catalogued mistake
    SAYS       {name: words}: what the diagnosis of a wrong one or of a mistake must say
    UNNAMED    the wrong ones that are like no catalogued mistake, so that none may be named
    MUTATED    functions written plainly, to be mutated; EQUIVALENT {mutant: why it is right}
    STUB       where a candidate is no function: one that raises NotImplementedError

A candidate with a memory is wrapped as Fresh(make), so that each check gets one without any.
"""

import contextlib
import dataclasses
import functools
import importlib
import itertools
import pkgutil
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple
from unittest import mock

import pytest

from course_lib import text
from course_lib.contracts import ContractReport, ContractViolation
from course_lib.contracts.engine import clause as _clause
from course_lib.contracts.engine.diagnosis import Diagnosis
from course_lib.report import ClauseResult

HERE = __package__


class Fresh:
    """A candidate with a memory, made anew for every check."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def named_by(**clauses: str) -> dict[str, str]:
    """{mistake: clause} from the mistakes that each clause must refuse, between spaces."""
    return {name: clause for clause, names in clauses.items() for name in names.split()}


def stub(*args: Any, **options: Any) -> Any:
    raise NotImplementedError


def failing(right: Callable[..., Any]) -> Callable[..., Any]:
    """A right function that raises from its fourth call on."""
    calls = itertools.count(1)

    def fails(*args: Any, **options: Any) -> Any:
        if next(calls) > 3:
            raise ZeroDivisionError("after three calls")
        return right(*args, **options)

    return fails


def violation_of(check: Callable[..., Any], candidate: Any, **options: Any) -> ContractViolation:
    with pytest.raises(ContractViolation) as caught:
        check(candidate, **options)
    return caught.value


def candidate(entry: Any) -> Any:
    return entry.make() if isinstance(entry, Fresh) else entry


@functools.cache
def trials() -> dict[str, ModuleType]:
    """The variants files by the name of their contract, e.g. "causal_mask"."""
    package = importlib.import_module(HERE)
    names = [found.name for found in pkgutil.iter_modules(package.__path__)]
    return {
        name.removeprefix("variants_"): importlib.import_module(f"{HERE}.{name}")
        for name in sorted(names)
        if name.startswith("variants_")
    }


def entries(kind: str) -> list[tuple[str, str]]:
    """All (contract, name) of one kind: "right", "wrong" or "mistake"."""
    tables = {"right": "RIGHT", "wrong": "WRONG", "mistake": "MISTAKES"}
    return [
        (contract, name)
        for contract, trial in trials().items()
        for name in getattr(trial, tables[kind])
    ]


def clause_of(contract: str, kind: str, name: str) -> str:
    trial = trials()[contract]
    return trial.MISTAKES[name] if kind == "mistake" else trial.WRONG[name][1]


def _find(contract: str, kind: str, name: str) -> Any:
    trial = trials()[contract]
    if kind == "mistake":
        return next(mistake for mistake in trial.CATALOGUE if mistake.name == name).make()
    return candidate(trial.RIGHT[name] if kind == "right" else trial.WRONG[name][0])


class Verdict(NamedTuple):
    """What a contract said: a report, or a violation with its message in one language."""

    report: ContractReport | None
    violation: ContractViolation | None
    message: str

    @property
    def accepted(self) -> bool:
        return self.violation is None and self.report.attempted


class Found(NamedTuple):
    """What a refusal took long to find: the clause, the smallest call that breaks it, the names."""

    clause: str
    case: Any
    named: Diagnosis


FOUND: dict[tuple[str, str, str], Found] = {}


@functools.cache
def verdict(contract: str, kind: str, name: str, language: str = "en") -> Verdict:
    """Hold one variant to its contract, once for all who ask.

    In another language only the call that failed is made again: what it says is what is new. One
    that fails by its memory of other calls is held to all of them again.
    """
    key = contract, kind, name
    with mock.patch.object(text, "LANGUAGE", language):
        if key in FOUND:
            with contextlib.suppress(_HeldThisTime):
                return _judged(*key, FOUND[key])
        return _judged(*key)


class _HeldThisTime(Exception):
    """The call that failed is right when it is made alone."""


def _judged(contract: str, kind: str, name: str, found: Found | None = None) -> Verdict:
    hold, cut_down, named_by = _clause.hold, _clause.cut_down, _clause.named_by
    asked = small = None

    def held(subject: Any, clause: Any) -> ClauseResult:
        nonlocal asked
        asked = clause.name
        if not found:
            return hold(subject, clause)
        if asked == found.clause:
            hold(subject, dataclasses.replace(clause, calls=[found.case]))
            raise _HeldThisTime
        return ClauseResult(asked, "", 0.0, 0.0)

    def cut(judge: Any, case: Any, breach: Any) -> tuple[Any, Any]:
        nonlocal small
        small, last = (case, breach) if found else cut_down(judge, case, breach)
        return small, last

    def named(subject: Any) -> Diagnosis:
        names = found.named if found else named_by(subject)
        FOUND[contract, kind, name] = Found(asked, small, names)
        return names

    try:
        with mock.patch.multiple(_clause, hold=held, cut_down=cut, named_by=named):
            report = trials()[contract].CHECK(_find(contract, kind, name))
        return Verdict(report, None, str(report))
    except ContractViolation as violation:
        return Verdict(None, violation.with_traceback(None), str(violation))
