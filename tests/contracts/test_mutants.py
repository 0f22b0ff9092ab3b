"""No mutant of right code survives a contract, but for those that are proven to be right."""

import gc
import time

import pytest

from .mutants import TookTooLong, time_limit
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


def endless():
    while True:
        pass


class Busy:
    """Its destructor works for a while, and nothing raised in there gets out."""

    def __del__(self):
        end = time.process_time() + 0.2
        while time.process_time() < end:
            pass


def busy_in_a_destructor():
    Busy()
    endless()


def busy_in_a_callback_of_the_collector():
    gc.callbacks.append(lambda phase, info: Busy.__del__(None))
    try:
        gc.collect()
    finally:
        gc.callbacks.pop()
    endless()


@pytest.mark.parametrize(
    "mutant", [endless, busy_in_a_destructor, busy_in_a_callback_of_the_collector]
)
def test_an_endless_mutant_is_ended_and_a_bell_nobody_can_hear_rings_again(mutant):
    with pytest.raises(TookTooLong), time_limit(0.05):
        mutant()
    gc.collect()  # pytest would tell what was raised where nothing passes
