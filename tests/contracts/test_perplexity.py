"""The perplexity's contract: exp of one mean, whatever the batch."""

import math
from functools import partial

import pytest
import torch

from course_lib.contracts import check_perplexity_contract
from course_lib.contracts.likelihood.perplexity import misses_in_logs
from course_lib.contracts.likelihood.texts import even

from .likelihoods import nll_by_gather
from .trial import verdict, violation_of
from .variants_perplexity import perplexity_by_sums

violation = partial(violation_of, check_perplexity_contract)


def test_errors_are_measured_in_nats():
    def misses(got, want):
        got, want = (torch.tensor(value, dtype=torch.float64) for value in (got, want))
        return misses_in_logs(got, want, even(1, 3, 2, 0.0)).item()

    assert misses(math.e, 1.0) == pytest.approx(1.0)
    assert misses(math.exp(301), math.exp(300)) == pytest.approx(1 / 300)
    assert misses(-1.0, 2.0) == math.inf
    assert misses(2.0, -1.0) == math.inf
    assert misses(0.0, 0.0) == 0.0


def test_the_mean_of_perplexities_is_told_from_the_perplexity_of_means():
    for name in ("mean_of_token_perplexities", "mean_of_row_perplexities", "mean_of_rows"):
        assert verdict("perplexity", "mistake", name).violation.mistakes == (name,)


def test_the_failing_input_is_small_and_shows_the_fault_again():
    caught = verdict("perplexity", "mistake", "mean_of_row_perplexities").violation
    assert caught.failing_input["logits"].numel() <= 16
    want = perplexity_by_sums(*caught.failing_input.values())
    assert caught.mismatches[0].expected == pytest.approx(want)
    assert caught.mismatches[0].got > want


def test_a_perplexity_below_zero_or_of_zero_is_infinitely_wrong_but_no_traceback():
    for value in (0.0, -3.0):
        assert violation(lambda *call, value=value: value).clause == "certain_model"


def test_an_unknown_bug_gets_no_name():
    caught = violation(lambda *call: math.exp(1.1 * nll_by_gather(*call)))
    assert caught.mistakes == ()
    assert "behaves exactly" not in caught.diagnosis


def test_overflow_in_the_candidate_is_chained():
    def perplexity(logits, token_ids, valid=None):
        return math.exp(4 * nll_by_gather(logits, token_ids, valid)) ** 0.25

    assert isinstance(violation(perplexity).__cause__, OverflowError)
