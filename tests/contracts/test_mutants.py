"""No mutant of right code survives a contract, but for those that are proven to be right."""

import pytest

from .score import surviving
from .trial import trials

MUTATED = [
    (contract, function.__name__)
    for contract, trial in trials().items()
    for function in trial.MUTATED
]


@pytest.mark.parametrize(("contract", "function"), MUTATED)
def test_the_surviving_mutants_are_those_known_to_be_right(contract, function):
    made, alive = surviving(contract, function)
    proven = trials()[contract].EQUIVALENT
    assert made >= 10
    assert alive == {label for label in proven if label.startswith(f"{function}:")}
