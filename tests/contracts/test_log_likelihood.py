"""The log-likelihood's contract: a sum, exact, with nothing kept from falling."""

import math
from functools import partial

import pytest

from course_lib.contracts import check_log_likelihood_contract

from .trial import verdict, violation_of
from .variants_log_likelihood import sum_by_chain, sum_by_gather

violation = partial(violation_of, check_log_likelihood_contract)


def test_a_right_sum_is_exact_in_every_figure():
    figures = dict(check_log_likelihood_contract(sum_by_chain))
    assert figures["long_text_max_error"] < 1e-12
    assert figures["nothing_clamped_max_error"] < 1e-12


def test_the_failing_input_is_small_and_shows_the_fault_again():
    caught = verdict("log_likelihood", "mistake", "last_token_lost").violation
    assert caught.failing_input["token_ids"].shape[0] <= 3
    want = sum_by_gather(**caught.failing_input)
    assert caught.mismatches[0].expected == pytest.approx(want)


def test_a_floor_of_any_depth_is_named_as_a_floor():
    for floor in (1e-9, 1e-30, 1e-300):

        def exact_log_likelihood(logits, token_ids, floor=floor):
            probs = logits[:-1].double().softmax(-1).gather(1, token_ids[1:, None])
            return float(probs.clamp(min=floor).log().sum())

        assert violation(exact_log_likelihood).mistakes == ("probability_floor",)


def test_an_unknown_bug_gets_no_name():
    caught = violation(lambda *call: sum_by_gather(*call) * 1.001)
    assert caught.mistakes == ()
    assert "behaves exactly" not in caught.diagnosis


def test_an_error_of_the_candidate_is_chained():
    def exact_log_likelihood(logits, token_ids):
        return math.log(math.exp(sum_by_gather(logits, token_ids)))

    caught = violation(exact_log_likelihood)
    assert isinstance(caught.__cause__, ValueError)
    assert caught.clause == "nothing_clamped"
