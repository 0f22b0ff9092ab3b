"""The cost of one prediction, in nats."""

import math

import mpmath
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.likelihood import token_nll

logit_lists = st.lists(st.floats(-50, 50), min_size=1, max_size=8)


def test_the_reference_logits_cost_what_the_reference_says():
    assert token_nll([1.2, 0.3, -0.4, 2.0], 3) == pytest.approx(0.5439104980979277, abs=1e-12)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(logit_lists, st.data())
def test_fifty_digits_agree(logits, data):
    target = data.draw(st.integers(0, len(logits) - 1))
    with mpmath.workdps(50):
        total = mpmath.fsum(mpmath.exp(z) for z in logits)
        exact = float(-mpmath.log(mpmath.exp(logits[target]) / total))
    assert token_nll(logits, target) == pytest.approx(exact, rel=1e-12, abs=1e-14)


def test_torch_agrees():
    logits = [0.5, -1.25, 3.0]
    tensor = torch.tensor([logits], dtype=torch.float64)
    for target in range(3):
        expected = F.cross_entropy(tensor, torch.tensor([target])).item()
        assert token_nll(logits, target) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("vocab_size", [1, 2, 6, 1000])
def test_a_model_that_knows_nothing_pays_log_v(vocab_size):
    assert token_nll([7.5] * vocab_size, 0) == pytest.approx(math.log(vocab_size), abs=1e-12)


def test_certainty_is_free_when_right_and_exact_when_wrong():
    assert token_nll([60.0, 0.0], 0) == 0.0
    assert token_nll([0.0, 500.0], 0) == 500.0
    assert token_nll([-1e4, 1e4], 0) == 2e4
    assert token_nll([1e308, -1e308], 0) == 0.0


def test_the_arguments_are_left_alone_and_may_come_from_numpy():
    logits = [1, 2.5, 0]
    value = token_nll(logits, 1)
    assert logits == [1, 2.5, 0]
    assert token_nll(np.array(logits, dtype=np.float64), np.int64(1)) == value
    assert token_nll(tuple(logits), 1) == value
    assert type(value) is float


@pytest.mark.parametrize(
    "logits", [[], [math.nan], [1.0, math.inf], [True], torch.ones(2), 3.0], ids=repr
)
def test_logits_that_are_not_finite_numbers_are_value_errors(logits):
    with pytest.raises(ValueError, match="logits"):
        token_nll(logits, 0)


@pytest.mark.parametrize("target", [2, -1])
def test_a_target_outside_the_vocabulary_is_a_value_error(target):
    with pytest.raises(ValueError, match="target"):
        token_nll([1.0, 2.0], target)


@pytest.mark.parametrize("target", [True, 1.0, None])
def test_a_target_that_is_no_integer_is_a_type_error(target):
    with pytest.raises(TypeError, match="target must be an integer"):
        token_nll([1.0, 2.0], target)
