"""The variance of q·k grows with d_k; that of the scaled score does not."""

import numpy as np
import pytest
import torch

from course_lib.scaling import score_variance


def test_64_terms_have_a_variance_near_64_and_scaled_near_1():
    unscaled, scaled = score_variance(64, 50_000, seed=18)
    assert unscaled == pytest.approx(64.0, rel=0.08)
    assert scaled == pytest.approx(1.0, rel=0.08)


@pytest.mark.parametrize("d_k", [1, 3, 10, 300])
def test_the_variance_is_d_k_and_scaling_divides_it_by_d_k(d_k):
    unscaled, scaled = score_variance(d_k, 20_000, seed=1)
    assert unscaled == pytest.approx(d_k, rel=0.08)
    assert scaled == pytest.approx(unscaled / d_k, rel=1e-12)


def test_the_seed_decides_and_the_global_generator_is_left_alone():
    state = torch.get_rng_state()
    first = score_variance(5, 100, seed=7)
    assert score_variance(5, 100, seed=7) == first
    assert score_variance(np.int64(5), 100, seed=7) == first
    assert score_variance(5, 100, seed=8) != first
    assert torch.equal(torch.get_rng_state(), state)


def test_two_samples_are_the_fewest():
    unscaled, scaled = score_variance(1, 2, seed=0)
    assert unscaled > 0
    assert scaled > 0
    with pytest.raises(ValueError, match="samples must be at least 2, got 1"):
        score_variance(1, 1, seed=0)


@pytest.mark.parametrize("name", ["d_k", "samples", "seed"])
@pytest.mark.parametrize("value", [True, 4.0, None])
def test_what_is_not_an_integer_is_a_type_error(name, value):
    with pytest.raises(TypeError, match=f"{name} must be an integer"):
        score_variance(**{"d_k": 4, "samples": 4, "seed": 4, name: value})


@pytest.mark.parametrize(
    ("name", "value"), [("d_k", 0), ("d_k", -1), ("seed", -1), ("seed", 2**63)]
)
def test_an_integer_out_of_range_is_a_value_error(name, value):
    with pytest.raises(ValueError, match=f"{name} must be .*{value}"):
        score_variance(**{"d_k": 4, "samples": 4, "seed": 4, name: value})
