"""The sampler's contract: what is special in judging chance."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.contracts import ContractViolation, check_sampler_contract
from course_lib.contracts.sampling import _sampling_case
from course_lib.contracts.sampling._sampler_case import SamplerCase
from course_lib.contracts.sampling._sampler_chance import (
    ScriptedGenerator,
    SeededGenerator,
    sampler_agreements,
    sampler_surprise,
)

from .trial import verdict
from .variants_sampler import RIGHT, vectorised


def violation(sample):
    with pytest.raises(ContractViolation) as caught:
        check_sampler_contract(sample)
    return caught.value


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
        assert 10 ** -sampler_surprise(count, draws, prob) >= min(1.0, tail) * (1 - 1e-9)


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
    assert sampler_agreements(np.array([0, 0, 1, 1, 2, 3]), 1) == (2, 3)
    assert sampler_agreements(np.array([0, 1, 2, 0, 1, 3]), 3) == (2, 3)


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        ("mistake", "one_more_kept", "where only [0, 1] may come"),
        ("mistake", "temperature_ignored", "chance strays so far less than once in 10^"),
        ("mistake", "past_the_end", "is no token"),
        ("mistake", "rows_share_out_the_unit", "independent ones would about"),
        ("mistake", "generator_copied", "it has not moved on"),
        ("mistake", "reseeded_in_every_call", "gave the same ids"),
        ("wrong", "numpy seeded", "moved a global generator"),
        ("wrong", "a column", "one id for each row is shape"),
        ("wrong", "floats", "they must be integers"),
    ],
)
def test_the_facts_are_told_in_words(kind, name, words):
    assert words in verdict("sampler", kind, name).violation.diagnosis


@pytest.mark.parametrize(
    "name",
    [
        *("floats", "one id", "truth values", "ids from one", "rows shuffled", "rows sorted"),
        *("a seed for each block", "half precision", "as bytes"),
    ],
)
def test_an_unknown_bug_gets_no_name(name):
    assert verdict("sampler", "wrong", name).violation.mistakes == ()


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


def test_an_error_of_the_candidate_is_chained():
    def sample(logits, temperature, top_k, top_p, rng):
        return vectorised(logits, 1 / (1 / temperature), top_k, top_p, rng)

    caught = violation(sample)
    assert isinstance(caught.__cause__, ZeroDivisionError)
    assert caught.measured == "ZeroDivisionError"


def test_something_that_is_no_function_is_an_error_at_the_door():
    with pytest.raises(TypeError, match="sample must be a function, got ndarray"):
        check_sampler_contract(np.zeros(3))


def test_references_that_disagree_stop_the_contract(monkeypatch):
    wrong = lambda case: [0.0] * len(case.logits)  # noqa: E731
    monkeypatch.setattr(_sampling_case, "sampling_by_library", wrong)
    with pytest.raises(RuntimeError, match="two references for sampling disagree"):
        check_sampler_contract(vectorised)


def test_a_case_repeats_its_rows_in_turn():
    case = SamplerCase(((1.0, 0.0), (0.0, 2.0)), 2)
    assert case.logits().tolist() == [[1, 0], [0, 2], [1, 0], [0, 2]]
    assert case.greedy() == [0, 1]
