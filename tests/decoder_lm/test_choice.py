"""The choice of a token: what it is drawn from, what may never come, and its own probability."""

import dataclasses
import math
import random
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.contracts.sampling.sampler import check_sampler_contract
from course_lib.decoder_lm.choice import (
    SamplingConfig,
    TokenScore,
    sample_token,
    sampling_probs,
    stable_log_softmax,
)
from course_lib.sampling import token_distribution

quick = settings(max_examples=80, deadline=None, derandomize=True)
logit_lists = st.lists(st.floats(-30, 30), min_size=1, max_size=8)
coarse_lists = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=8)  # many ties
configs = st.builds(
    SamplingConfig,
    temperature=st.floats(0.2, 4),
    top_p=st.floats(0.01, 1) | st.just(1.0),
    top_k=st.integers(0, 9),
)
LN2 = math.log(2)
ALMOST_ONE = math.nextafter(1.0, 0.0)


def drawing(*numbers):
    """A generator whose draws are written down here."""
    left = list(numbers)
    return SimpleNamespace(random=lambda: left.pop(0))


def kept(probs):
    return [token for token, prob in enumerate(probs) if prob > 0]


def module_three(logits, config):
    """Module 3's distribution for the same settings; 0 and "all" are None and V there."""
    top_k = min(config.top_k, len(logits)) or None
    return token_distribution(logits, config.temperature, top_k, config.top_p)


def test_the_defaults_are_the_models_own_distribution():
    config = SamplingConfig()
    assert dataclasses.astuple(config) == (1.0, 1.0, 0, None)
    assert not config.deterministic
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.temperature = 0.5


def test_only_temperature_zero_is_deterministic():
    assert SamplingConfig(temperature=0).deterministic
    assert SamplingConfig(temperature=0.0, top_p=0.5, top_k=2).deterministic
    assert not SamplingConfig(temperature=5e-324).deterministic
    assert not SamplingConfig(seed=3).deterministic
    assert SamplingConfig(temperature=0).deterministic is True


@pytest.mark.parametrize(
    "settings_given",
    [
        {"temperature": 0},
        {"temperature": np.float32(0.5)},
        {"top_p": 1},
        {"top_p": 5e-324},
        {"top_k": np.int64(4)},
        {"seed": 0},
        {"seed": 2**70},
    ],
    ids=str,
)
def test_settings_at_the_edges_are_fine(settings_given):
    SamplingConfig(**settings_given)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("temperature", [-0.1, -1, math.nan, math.inf, True, "1", None, 1j], "0 is greedy"),
        ("top_p", [0, 0.0, -0.5, 1.0000001, 2, math.nan, math.inf, True, "1", None], "1 is off"),
        ("top_k", [-1, 1.0, 2.5, True, False, "3", None, math.nan], "0 is off"),
        ("seed", [-1, 1.0, True, "3", math.nan], ">= 0 or None"),
    ],
)
def test_invalid_settings_are_value_errors_that_show_the_value(name, values, message):
    for value in values:
        with pytest.raises(ValueError, match=f"{name} must be .*{message}.*, got ") as caught:
            SamplingConfig(**{name: value})
        assert str(caught.value).endswith(f"got {value!r}")


@quick
@given(logit_lists, configs)
def test_what_is_drawn_from_is_module_threes_distribution(logits, config):
    probs = sampling_probs(np.array(logits), config)
    expected = module_three(logits, config)
    if kept(probs) != kept(expected):  # allowed only where the mass meets top_p to the last bits
        full = module_three(logits, dataclasses.replace(config, top_p=1.0))
        mass = np.cumsum(sorted(full, reverse=True))
        assert np.abs(mass - config.top_p).min() < 1e-12
    else:
        np.testing.assert_allclose(probs, expected, rtol=1e-12, atol=1e-300)


@quick
@given(coarse_lists, configs, st.floats(0, 1, exclude_max=True))
def test_a_token_is_always_drawn_and_always_one_that_was_kept(logits, config, draw):
    expected = kept(module_three(logits, config))
    for number in (draw, 0.0, ALMOST_ONE):
        token = sample_token(logits, config, drawing(number))
        assert type(token) is int
        assert token in expected


@quick
@given(logit_lists, st.floats(0, 1, exclude_max=True), st.floats(0.3, 3))
def test_a_draw_falls_where_the_distribution_by_id_says(logits, draw, temperature):
    """So that the same draws give the same text as any sampler that walks through the ids."""
    probs = (torch.tensor(logits, dtype=torch.float64) / temperature).softmax(0)
    token = sample_token(logits, SamplingConfig(temperature), drawing(draw))
    ends = probs.cumsum(0)
    assert ends[token] >= draw - 1e-12
    assert token == 0 or ends[token - 1] <= draw + 1e-12


def test_one_draw_is_asked_and_greedy_asks_none():
    config = SamplingConfig()
    generator = drawing(0.1, 0.2)
    sample_token([1.0, 2.0], config, generator)
    assert generator.random() == 0.2
    assert sample_token([1.0, 2.0], SamplingConfig(temperature=0), rng=None) == 1


def test_greedy_takes_the_lowest_of_equal_ids_whatever_the_filters():
    for config in (SamplingConfig(0.0), SamplingConfig(0, top_p=0.01, top_k=1, seed=4)):
        assert sample_token([1.0, 3.0, 3.0, 2.0], config, None) == 1
        assert sample_token([-5.0] * 4, config, None) == 0


def test_the_order_is_temperature_then_top_k_then_top_p_of_what_is_left():
    cold = SamplingConfig(0.5, top_p=0.8)  # the first token holds 0.867 of the mass, not 0.665
    assert kept(sampling_probs(np.array([3.0, 2.0, 1.0]), cold)) == [0]
    warm = SamplingConfig(1.0, top_p=0.8)
    assert kept(sampling_probs(np.array([3.0, 2.0, 1.0]), warm)) == [0, 1]
    both = SamplingConfig(top_k=3, top_p=0.6)  # thirds, not fifths: two reach 0.6, not three
    assert sampling_probs(np.zeros(5), both).tolist() == [0.5, 0.5, 0, 0, 0]


def test_exactly_k_survive_a_tie_and_a_large_k_keeps_all():
    logits = np.array([1.0, 3.0, 3.0, 3.0, 2.0])
    assert kept(sampling_probs(logits, SamplingConfig(top_k=2))) == [1, 2]
    assert kept(sampling_probs(logits, SamplingConfig(top_k=4))) == [1, 2, 3, 4]
    for top_k in (0, 5, 6, 10**9):
        assert kept(sampling_probs(logits, SamplingConfig(top_k=top_k))) == [0, 1, 2, 3, 4]


def test_the_token_that_reaches_the_threshold_is_kept_and_the_next_is_not():
    halves = np.array([-3 * LN2, -LN2, -3 * LN2, -2 * LN2])  # 1/8, 1/2, 1/8, 1/4
    for top_p, expected in [(1e-9, [1]), (0.5, [1]), (0.50001, [1, 3]), (0.75, [1, 3])]:
        assert kept(sampling_probs(halves, SamplingConfig(top_p=top_p))) == expected, top_p
    assert kept(sampling_probs(halves, SamplingConfig(top_p=0.7500001))) == [0, 1, 3]
    assert sampling_probs(halves, SamplingConfig(top_p=0.75)).tolist() == pytest.approx(
        [0, 2 / 3, 0, 1 / 3]
    )


def test_top_p_one_filters_nothing_however_small():
    assert sampling_probs(np.array([50.0, 0.0, -200.0]), SamplingConfig(top_p=1))[2] > 0


def test_draws_at_both_ends_of_the_range_skip_what_was_removed():
    logits = [0.0, 1.0, 1.0, 1.0, 0.0]
    config = SamplingConfig(top_k=3)
    assert sample_token(logits, config, drawing(0.0)) == 1
    assert sample_token(logits, config, drawing(ALMOST_ONE)) == 3
    assert sample_token(logits, config, drawing(1.0)) == 3  # a generator that rounds up to 1


def test_a_probability_that_underflows_to_zero_is_never_drawn():
    for logits, only in [([0.0, -2000.0], 0), ([-2000.0, 0.0], 1), ([-2000.0, 0.0, -2000.0], 1)]:
        for number in (0.0, 0.5, ALMOST_ONE, 1.0):
            assert sample_token(logits, SamplingConfig(), drawing(number)) == only


@pytest.mark.parametrize("count", [3, 7, 10, 49, 2999])
def test_rounding_of_the_cumulative_sum_never_loses_or_invents_a_token(count):
    logits = [-9.0, *([0.0] * count), -9.0]
    config = SamplingConfig(top_k=count)
    assert sample_token(logits, config, drawing(0.0)) == 1
    assert 1 <= sample_token(logits, config, drawing(ALMOST_ONE)) <= count
    assert sample_token(logits, config, drawing(1.0)) == count


def test_extreme_logits_and_temperatures_are_quiet():
    for logits, config, expected in [
        ([1e308, -1e308], SamplingConfig(), [1.0, 0.0]),
        ([1e-300, 0.0], SamplingConfig(5e-324), [1.0, 0.0]),
        ([1e300, 0.0], SamplingConfig(1e-10), [1.0, 0.0]),
        ([1e308, 0.0], SamplingConfig(1e308), [1 / (1 + math.exp(-1)), 1 / (1 + math.e)]),
    ]:
        assert sampling_probs(np.array(logits), config) == pytest.approx(expected, rel=1e-12)


def test_any_generator_with_random_will_do():
    for rng in (random.Random(3), np.random.default_rng(3)):
        drawn = {sample_token([0.0, 0.0, 0.0], SamplingConfig(), rng) for _ in range(60)}
        assert drawn == {0, 1, 2}


def test_nothing_is_changed():
    logits = np.array([3.0, 1.0, 2.0])
    logits.flags.writeable = False
    sample_token(logits, SamplingConfig(0.5, 0.9, 2), drawing(0.3))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("temperature", [0, 1.0])
def test_logits_that_are_not_finite_are_refused_with_their_place(bad, temperature):
    with pytest.raises(
        ValueError, match=f"1 of 3 logits are not finite; the first is {bad} at token 1.*overflow"
    ):
        sample_token([0.0, bad, 1.0], SamplingConfig(temperature), drawing(0.5))


@pytest.mark.parametrize("logits", [[], [[1.0, 2.0]], 3.0, np.zeros((1, 2, 3))], ids=str)
def test_logits_that_are_no_row_are_refused(logits):
    with pytest.raises(ValueError, match=r"logits must have shape \[V\], got \["):
        sample_token(logits, SamplingConfig(), drawing(0.5))


def test_the_sampler_contract_holds_row_by_row():
    def sample(logits, temperature, top_k, top_p, rng):
        config = SamplingConfig(temperature, 1.0 if top_p is None else top_p, top_k or 0)
        return np.array([sample_token(row, config, rng) for row in logits])

    report = check_sampler_contract(sample)
    assert report.attempted
    assert len(report.clauses) == 15


@quick
@given(st.lists(st.floats(-700, 700), min_size=1, max_size=9))
def test_log_softmax_is_torchs(logits):
    expected = torch.tensor(logits, dtype=torch.float64).log_softmax(0).tolist()
    assert stable_log_softmax(logits) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_log_softmax_works_on_the_last_axis_of_any_array():
    logits = np.random.default_rng(2).normal(size=(2, 3, 4)).astype(np.float32)
    expected = torch.tensor(logits).double().log_softmax(-1).numpy()
    np.testing.assert_allclose(stable_log_softmax(logits), expected, rtol=1e-13)
    assert stable_log_softmax(logits).dtype == np.float64


def test_nothing_is_clamped_and_nothing_overflows():
    assert stable_log_softmax([0.0, -500.0, -5000.0]).tolist() == [0.0, -500.0, -5000.0]
    assert stable_log_softmax([1e5, 1e5]).tolist() == pytest.approx([-LN2, -LN2], rel=1e-9)
    assert stable_log_softmax([-1e5, -1e5 - 3]).tolist() == pytest.approx(
        [-math.log1p(math.exp(-3)), -3 - math.log1p(math.exp(-3))], rel=1e-9
    )
    assert stable_log_softmax([1e308, -1e308]).tolist() == [0.0, -math.inf]
    assert stable_log_softmax([sys.float_info.max] * 4).tolist() == [-2 * LN2] * 4
    assert stable_log_softmax([3.0]).tolist() == [0.0]


def test_a_closed_entry_has_probability_zero():
    assert stable_log_softmax([-math.inf, 0.0, 0.0]).tolist() == [-math.inf, -LN2, -LN2]


@pytest.mark.parametrize(
    "logits",
    [[math.nan, 0.0], [0.0, math.inf], [-math.inf] * 2, [[0.0, 1.0], [math.nan, 1.0]]],
    ids=str,
)
def test_a_row_that_has_no_softmax_is_refused(logits):
    with pytest.raises(ValueError, match=r"a row of logits holds NaN or \+inf, or -inf only"):
        stable_log_softmax(logits)


@pytest.mark.parametrize("logits", [[], 1.0, np.zeros((2, 0))], ids=str)
def test_no_logits_have_no_softmax(logits):
    with pytest.raises(ValueError, match=r"logits must have shape \[\.\.\., V\]"):
        stable_log_softmax(logits)


def test_a_score_is_a_pair_that_stays():
    score = TokenScore(3, -0.5)
    assert (score.token, score.log_probability) == (3, -0.5)
    assert score == TokenScore(token=3, log_probability=-0.5)
    token, log_probability = score
    assert (token, log_probability) == (3, -0.5)
    with pytest.raises(AttributeError):
        score.token = 4
