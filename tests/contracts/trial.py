"""Every contract on trial: what it must accept, what it must refuse, and what it said.

A contract's variants stand in a file variants_<contract>.py, which this module finds:

    CHECK      the contract, as a function of one candidate
    CATALOGUE  the tuple of its Mistakes
    CLAUSES    the names of its clauses, in the order of the report
    RIGHT      {name: candidate}: differently written, to be accepted
    WRONG      {name: (candidate, clause)}: beyond the catalogue, to be refused by that clause
    MISTAKES   {name: clause}: the clause that must refuse each catalogued mistake
    MUTATED    functions written plainly, to be mutated; EQUIVALENT {mutant: why it is right}
    STUB       a call that raises NotImplementedError

A candidate with a memory is wrapped as Fresh(make), so that each check gets one without any.
"""

import functools
import importlib
import pkgutil
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple
from unittest import mock

from course_lib import text
from course_lib.contracts import ContractReport, ContractViolation
from course_lib.contracts.engine import clause as _clause
from course_lib.contracts.engine.diagnosis import Diagnosis

HERE = __package__


class Fresh:
    """A candidate with a memory, made anew for every check."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def named_by(**clauses: str) -> dict[str, str]:
    """{mistake: clause} from the mistakes that each clause must refuse, between spaces."""
    return {name: clause for clause, names in clauses.items() for name in names.split()}


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


@functools.cache
def verdict(contract: str, kind: str, name: str, language: str = "en") -> Verdict:
    """Hold one variant to its contract, once for all who ask.

    What it is diagnosed as is found once; another language only says it again.
    """
    before, text.LANGUAGE = text.LANGUAGE, language
    found = DIAGNOSES.get((contract, kind, name))
    named_by = _clause.named_by

    def remembered(subject: Any) -> Diagnosis:
        return DIAGNOSES.setdefault((contract, kind, name), found or named_by(subject))

    try:
        with mock.patch.object(_clause, "named_by", remembered):
            report = trials()[contract].CHECK(_find(contract, kind, name))
        return Verdict(report, None, str(report))
    except ContractViolation as violation:
        return Verdict(None, violation.with_traceback(None), str(violation))
    finally:
        text.LANGUAGE = before


DIAGNOSES: dict[tuple[str, str, str], Diagnosis] = {}
