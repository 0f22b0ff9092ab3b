"""Temperature, top-k, top-p and the greedy trace."""

import math
import random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.sampling import (
    greedy_trace,
    nucleus_size,
    sampling_scenario,
    tempered_softmax,
    token_distribution,
)

quick = settings(max_examples=60, deadline=None, derandomize=True)
logit_lists = st.lists(st.floats(-30, 30), min_size=1, max_size=8)
LN2 = math.log(2)


def survivors(probs):
    return [token for token, prob in enumerate(probs) if prob > 0]


@quick
@given(logit_lists, st.floats(0.2, 5))
def test_without_filters_it_is_the_softmax_at_that_temperature(logits, temperature):
    expected = (torch.tensor(logits, dtype=torch.float64) / temperature).softmax(dim=0).tolist()
    assert token_distribution(logits, temperature) == pytest.approx(expected, abs=1e-12)


@quick
@given(logit_lists, st.data())
def test_filters_leave_a_distribution_over_the_likeliest(logits, data):
    top_k = data.draw(st.none() | st.integers(1, len(logits)))
    top_p = data.draw(st.none() | st.floats(0.01, 1))
    probs = token_distribution(logits, 1.5, top_k, top_p)
    kept = survivors(probs)
    assert math.fsum(probs) == pytest.approx(1.0, abs=1e-12)
    assert len(kept) <= (top_k or len(logits))
    order = sorted(range(len(logits)), key=lambda token: (-logits[token], token))
    assert sorted(order[: len(kept)]) == kept


@quick
@given(logit_lists, st.data())
def test_the_nucleus_is_the_smallest_that_reaches_top_p(logits, data):
    top_p = data.draw(st.floats(0.05, 0.95))
    full = token_distribution(logits)
    kept = survivors(token_distribution(logits, top_p=top_p))
    mass = math.fsum(full[token] for token in kept)
    assert mass >= top_p - 1e-12
    assert mass - min(full[token] for token in kept) < top_p + 1e-12


def test_higher_temperatures_flatten_and_lower_ones_sharpen():
    cold, warm, hot = (token_distribution([3, 2, 1, 0], t) for t in (0.5, 1.0, 2.0))
    assert cold[0] > warm[0] > hot[0]
    assert hot[0] / hot[1] == pytest.approx(math.exp(0.5))
    assert cold[0] / cold[1] == pytest.approx(math.exp(2.0))


def test_temperature_comes_before_top_p():
    # at T = 0.5 the first token holds 0.867 of the mass, at T = 1 only 0.665
    assert survivors(token_distribution([3, 2, 1], 0.5, top_p=0.8)) == [0]
    assert survivors(token_distribution([3, 2, 1], 1.0, top_p=0.8)) == [0, 1]


def test_top_p_looks_at_what_top_k_left_renormalised():
    logits = [0.0, 0.0, 0.0, 0.0, 0.0]  # 0.2 each; of three survivors 1/3 each
    assert token_distribution(logits, top_k=3, top_p=0.6) == [0.5, 0.5, 0.0, 0.0, 0.0]
    assert survivors(token_distribution(logits, top_p=0.6)) == [0, 1, 2]


def test_the_token_that_reaches_the_threshold_is_kept_and_the_next_is_not():
    halves = [-LN2, -2 * LN2, -3 * LN2, -3 * LN2]  # 1/2, 1/4, 1/8, 1/8: exact in binary
    assert survivors(token_distribution(halves, top_p=0.5)) == [0]
    assert survivors(token_distribution(halves, top_p=0.75)) == [0, 1]
    assert survivors(token_distribution(halves, top_p=0.7500001)) == [0, 1, 2]
    assert survivors(token_distribution(halves, top_p=1e-9)) == [0]


def test_top_p_one_filters_nothing_however_small():
    probs = token_distribution([50.0, 0.0, -200.0], top_p=1)
    assert probs == token_distribution([50.0, 0.0, -200.0])
    assert probs[2] > 0
    assert token_distribution([50.0, 0.0, -200.0], top_p=0.999)[1:] == [0.0, 0.0]


def test_exactly_k_survive_a_tie_and_the_lower_ids_do():
    assert survivors(token_distribution([1, 3, 3, 3, 2], top_k=2)) == [1, 2]
    assert survivors(token_distribution([0.0] * 5, top_k=3)) == [0, 1, 2]
    assert token_distribution([2, 2, 2], top_p=0.5) == [0.5, 0.5, 0.0]


def test_top_k_one_is_greedy_and_top_k_v_is_no_filter():
    assert token_distribution([0.1, 5.0, -2.0], top_k=1) == [0.0, 1.0, 0.0]
    assert token_distribution([0, -5], top_k=1) == [1.0, 0.0]
    assert token_distribution([3, 1, 2], top_k=3) == token_distribution([3, 1, 2])


@pytest.mark.parametrize(
    ("logits", "temperature", "expected"),
    [
        ([1e4, 1e4 - 1, -1e4], 1.0, [1 / (1 + math.exp(-1)), 1 / (1 + math.exp(1)), 0.0]),
        ([1e308, -1e308], 1.0, [1.0, 0.0]),
        ([1e-300, 0.0], 5e-324, [1.0, 0.0]),
        ([1e300, 0.0], 1e-10, [1.0, 0.0]),
        ([1e308, 0.0], 1e308, [1 / (1 + math.exp(-1)), 1 / (1 + math.exp(1))]),
    ],
)
def test_extreme_logits_and_temperatures_stay_numbers(logits, temperature, expected):
    assert token_distribution(logits, temperature) == pytest.approx(expected, rel=1e-9)


def test_numpy_vectors_and_integers_are_fine_and_nothing_is_changed():
    logits = [3, 2, 1, 0]
    expected = token_distribution([3.0, 2.0, 1.0, 0.0], 2.0, 3, 0.9)
    assert token_distribution(logits, 2, 3, 0.9) == expected
    assert token_distribution(np.array(logits, dtype=np.uint8), 2, np.int64(3), 0.9) == expected
    assert logits == [3, 2, 1, 0]
    assert all(type(prob) is float for prob in expected)


@pytest.mark.parametrize(
    "logits", [[], [math.nan, 1.0], [math.inf], [-math.inf, 0], [True], "12", None], ids=repr
)
def test_bad_logits_are_value_errors(logits):
    with pytest.raises(ValueError, match="logits"):
        token_distribution(logits)


@pytest.mark.parametrize("temperature", [0, 0.0, -1, math.nan, math.inf, True, "1", None], ids=repr)
def test_bad_temperatures_are_value_errors(temperature):
    with pytest.raises(ValueError, match="temperature must be a finite number above 0"):
        token_distribution([1.0, 2.0], temperature)


@pytest.mark.parametrize("top_k", [0, -1, 3, True, False, 1.0, "1", math.nan], ids=repr)
def test_bad_top_k_is_a_value_error(top_k):
    with pytest.raises(ValueError, match=r"top_k must be an integer in \[1, 2\] or None"):
        token_distribution([1.0, 2.0], top_k=top_k)


@pytest.mark.parametrize("top_p", [0, 0.0, -0.1, 1.0001, math.nan, math.inf, True, "1"], ids=repr)
def test_bad_top_p_is_a_value_error(top_p):
    with pytest.raises(ValueError, match=r"top_p must be a number in \(0, 1\] or None"):
        token_distribution([1.0, 2.0], top_p=top_p)


def test_the_parts_speak_for_themselves():
    assert tempered_softmax([0.0, 0.0], 3.0) == [0.5, 0.5]
    assert nucleus_size([0.5, 0.25, 0.25], 0.75) == 2
    assert nucleus_size([0.5, 0.25, 0.25], 0.76) == 3
    assert nucleus_size([1.0, 0.0], 1.0) == 2
    assert nucleus_size([0.3, 0.3, 0.3], 0.95) == 3  # a sum that rounding keeps below top_p


def test_the_scenario_has_its_five_entries_with_known_numbers():
    e = math.e
    scenario = sampling_scenario()
    assert list(scenario) == ["logits", "temperature_1", "temperature_2", "top_k_2", "top_p_09"]
    assert scenario["logits"] == [3, 2, 1, 0]
    total = e**3 + e**2 + e + 1
    assert scenario["temperature_1"] == pytest.approx(
        [e**3 / total, e**2 / total, e / total, 1 / total]
    )
    assert scenario["temperature_2"][0] == pytest.approx(e**1.5 / (e**1.5 + e + e**0.5 + 1))
    assert scenario["top_k_2"] == pytest.approx([e / (e + 1), 1 / (e + 1), 0, 0])
    kept = e**2 + e + 1
    assert scenario["top_p_09"] == pytest.approx([e**2 / kept, e / kept, 1 / kept, 0])
    assert scenario["top_p_09"][3] == 0.0


def test_twenty_thousand_draws_reproduce_the_top_p_distribution():
    probs = sampling_scenario()["top_p_09"]
    draws = random.Random(18).choices(range(4), weights=probs, k=20_000)
    for token, prob in enumerate(probs):
        assert draws.count(token) / 20_000 == pytest.approx(prob, abs=0.015)
    assert 3 not in draws


EOS_LATER = [[0, 5, 1], [4, 0, 1], [0, 1, 9]]


@pytest.mark.parametrize(
    ("max_new_tokens", "expected"),
    [
        (1, ([1], "length_limit")),
        (2, ([1, 0], "length_limit")),
        (3, ([1, 0, 2], "eos")),  # EOS is the last allowed token
        (9, ([1, 0, 2], "eos")),
    ],
)
def test_the_trace_follows_the_likeliest_and_says_why_it_stopped(max_new_tokens, expected):
    assert greedy_trace(EOS_LATER, 2, max_new_tokens) == expected


def test_the_trace_stops_at_the_first_eos():
    assert greedy_trace([[9, 0], [0, 9], [9, 0]], 0, 3) == ([0], "eos")


def test_a_tie_goes_to_the_lower_id():
    assert greedy_trace([[1, 3, 3]], 0, 1) == ([1], "length_limit")


def test_running_out_of_rows_first_is_a_value_error():
    with pytest.raises(ValueError, match="ran out after 3 rows, before eos_id=0 came or max_new"):
        greedy_trace([[0, 1], [0, 1], [0, 1]], 0, 4)
    with pytest.raises(ValueError, match="ran out after 0 rows"):
        greedy_trace([], 0, 1)


@pytest.mark.parametrize(
    ("rows", "eos_id", "max_new_tokens", "error", "message"),
    [
        ([[1.0, 2.0]], True, 1, TypeError, "eos_id must be an integer"),
        ([[1.0, 2.0]], 1.0, 1, TypeError, "eos_id must be an integer"),
        ([[1.0, 2.0]], -1, 1, ValueError, "eos_id must be at least 0"),
        ([[1.0, 2.0]], 2, 1, ValueError, "eos_id=2 is outside the vocabulary"),
        ([[1.0, 2.0]], 0, True, TypeError, "max_new_tokens must be an integer"),
        ([[1.0, 2.0]], 0, 1.0, TypeError, "max_new_tokens must be an integer"),
        ([[1.0, 2.0]], 0, 0, ValueError, "max_new_tokens must be at least 1"),
        ([[1.0, 2.0]], 0, -1, ValueError, "max_new_tokens must be at least 1"),
        ([[1.0], [math.nan]], 0, 1, ValueError, r"prepared_logits\[1\]\[0\] must be a finite"),
        ([[]], 0, 1, ValueError, r"prepared_logits\[0\] must be a non-empty list"),
        (iter([[1.0]]), 0, 1, TypeError, "prepared_logits must be a list of rows"),
        (7, 0, 1, TypeError, "prepared_logits must be a list of rows"),
    ],
)
def test_bad_traces_are_refused(rows, eos_id, max_new_tokens, error, message):
    with pytest.raises(error, match=message):
        greedy_trace(rows, eos_id, max_new_tokens)


def test_numpy_integers_end_a_trace_too():
    assert greedy_trace([[0, 1]], np.int64(1), np.int64(5)) == ([1], "eos")
