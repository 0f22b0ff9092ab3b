"""No mutant of right code survives a contract, but for those that are proven to be right."""

import contextlib

import pytest

from course_lib.contracts import ContractViolation, _candidate
from course_lib.contracts._diagnosis import Diagnosis

from .mutants import TookTooLong, mutants, time_limit
from .trial import trials

MUTATED = [
    (contract, function.__name__)
    for contract, trial in trials().items()
    for function in trial.MUTATED
]


def survives(check, mutant):
    try:
        with time_limit(10), contextlib.redirect_stdout(None):
            return check(mutant).attempted
    except (ContractViolation, TookTooLong):
        return False


@pytest.mark.parametrize(("contract", "function"), MUTATED)
def test_the_surviving_mutants_are_those_known_to_be_right(contract, function, monkeypatch):
    monkeypatch.setattr(_candidate, "cut_down", lambda judge, case, breach: (case, breach))
    trial = trials()[contract]
    monkeypatch.setattr(_candidate, "named_by", lambda subject: Diagnosis())
    right = next(f for f in trial.MUTATED if f.__name__ == function)
    adapt = getattr(trial, "ADAPT", lambda mutant: mutant)
    made = dict(mutants(right))
    alive = {label for label, mutant in made.items() if survives(trial.CHECK, adapt(mutant))}
    expected = {label for label in trial.EQUIVALENT if label.startswith(f"{function}:")}
    assert len(made) >= 10
    assert alive == expected
