"""The sampler's contract: what is special in judging chance."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.contracts import check_sampler_contract
from course_lib.contracts.sampling.chance import (
    ScriptedGenerator,
    SeededGenerator,
    agreements,
    surprises,
)
from course_lib.contracts.sampling.sampler import SAMPLER
from course_lib.contracts.sampling.sampler_calls import Draws, rows_by_library, rows_by_loops

from .trial import verdict, violation_of
from .variants_sampler import RIGHT, vectorised

violation = partial(violation_of, check_sampler_contract)


def test_the_figures_are_the_surprises_of_the_counts():
    report = verdict("sampler", "right", "vectorised").report
    assert {"softmax_surprise", "top_p_surprise", "independent_rows_surprise"} <= set(report)
    assert max(report.values()) < 6


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_one_is_far_from_being_refused_by_chance(name):
    assert max(verdict("sampler", "right", name).report.values()) < 6


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.integers(1, 60), st.floats(0.01, 0.99))
def test_the_bound_is_never_below_the_binomial_tail(draws, prob):
    """Chernoff's bound must not call anything rarer than it is."""
    weights = np.ones(1)
    for _ in range(draws):
        weights = np.convolve(weights, [1 - prob, prob])
    for count in range(draws + 1):
        tail = weights[count:].sum() if count >= draws * prob else weights[: count + 1].sum()
        assert 10 ** -surprises(count, draws, prob) >= min(1.0, tail) * (1 - 1e-9)


@pytest.mark.parametrize(("ones", "drawn"), [(False, 0.0), (True, 1 - 2**-53)])
def test_a_scripted_generator_gives_the_end_of_the_range_once(ones, drawn):
    numbers = ScriptedGenerator(3, 2, ones).random(50).tolist()
    assert numbers[2] == drawn
    assert numbers.count(drawn) == 1
    assert 0.3 < np.mean(numbers) < 0.7


def test_a_seeded_generator_is_the_usual_one_and_tells_its_seed():
    assert SeededGenerator(4).random() == np.random.default_rng(4).random()
    assert str(SeededGenerator(4)) == "np.random.default_rng(4)"


def test_agreements_are_counted_in_disjoint_pairs():
    assert agreements(np.array([0, 0, 1, 1, 2, 3]), 1) == (2, 3)
    assert agreements(np.array([0, 1, 2, 0, 1, 3]), 3) == (2, 3)


def test_a_mistake_written_by_another_hand_has_the_same_name():
    caught = verdict("sampler", "wrong", "torch's global generator").violation
    assert caught.mistakes == ("global_generator",)
    caught = verdict("sampler", "wrong", "one choice for equal rows").violation
    assert caught.mistakes == ("one_number_for_all_rows",)

    def shared(logits, temperature, top_k, top_p, rng):
        one = np.random.default_rng(int(rng.integers(2**60)))
        return np.array(
            [
                vectorised(row[None], temperature, top_k, top_p, np.random.default_rng(seed))[0]
                for seed in [int(one.integers(2**60))]
                for row in logits
            ]
        )

    assert violation(shared).mistakes == ("one_number_for_all_rows",)


def test_the_failing_call_shows_the_fault_again():
    caught = verdict("sampler", "mistake", "one_more_kept").violation
    assert caught.failing_input["logits"].shape[1] == 3
    assert caught.failing_input["top_k"] == 2
    assert caught.mismatches[0].got == 2


def test_the_references_remove_the_same_tokens_however_improbable_the_others_are():
    _, clauses = SAMPLER.prepare(vectorised)
    calls = [call for clause in clauses for call in clause.calls]
    assert len(calls) > 60
    for call in calls:
        assert torch.equal(rows_by_loops(call) > 0, rows_by_library(call) > 0), str(call)


def test_a_call_repeats_its_rows_in_turn():
    call = Draws(((1.0, 0.0), (0.0, 2.0)), 2, 0.0)
    assert call.logits().tolist() == [[1, 0], [0, 2], [1, 0], [0, 2]]
    assert rows_by_loops(call).tolist() == [[1, 0], [0, 1]]
