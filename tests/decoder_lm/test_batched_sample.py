"""The batched sampler: against Module 3's distribution, at the ends of a draw, and by contract."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.contracts import check_sampler_contract
from course_lib.decoder_lm.batched import largest, nucleus_of
from course_lib.decoder_lm.errors import ShapeMismatch
from course_lib.decoder_lm.fast import batched_sample
from course_lib.sampling import token_distribution

quick = settings(max_examples=80, deadline=None, derandomize=True)
BELOW_ONE = math.nextafter(1.0, 0.0)


class Script:
    """A generator whose draws are given."""

    def __init__(self, draws):
        self.draws = iter(draws)

    def random(self):
        return next(self.draws)


def test_the_contract():
    def sample(logits, temperature, top_k, top_p, rng):
        return batched_sample(logits, temperature, top_p, rng, top_k=top_k)

    assert check_sampler_contract(sample).attempted


def measured_distribution(logits, temperature, top_k, top_p, draws=4000):
    """How much of [0, 1) leads to each token: the draws are an even grid, ends included."""
    grid = [0.0, *((n + 0.5) / draws for n in range(draws)), BELOW_ONE]
    rows = np.repeat(np.array([logits]), len(grid), axis=0)
    ids = batched_sample(rows, temperature, top_p, Script(grid), top_k=top_k)
    return np.bincount(ids, minlength=len(logits)) / len(grid)


@quick
@given(
    st.lists(st.integers(-8, 8).map(lambda n: n / 2), min_size=1, max_size=9),
    st.sampled_from([0.5, 1.0, 3.0]),
    st.none() | st.integers(1, 9),
    st.none() | st.sampled_from([0.07, 0.33, 0.61, 0.97, 1.0]),
)
def test_it_draws_from_the_distribution_of_module_3(logits, temperature, top_k, top_p):
    inside = top_k if top_k is None or top_k <= len(logits) else None  # there k is at most V
    want = np.array(token_distribution(logits, temperature, inside, top_p))
    got = measured_distribution(logits, temperature, top_k, top_p, draws=600)
    assert got[want == 0].sum() == 0  # a removed token never comes
    np.testing.assert_allclose(got, want, atol=0.01)


@quick
@given(
    st.lists(st.sampled_from([-2000.0, -60.0, -1.0, 0.0, 0.0, 2.0]), min_size=1, max_size=12),
    st.none() | st.integers(1, 12),
    st.sampled_from([None, 1e-9, 0.5, 0.999]),
    st.sampled_from([0.0, 5e-324, BELOW_ONE]),
)
def test_a_draw_at_the_very_end_gives_a_kept_token(logits, top_k, top_p, draw):
    inside = top_k if top_k is None or top_k <= len(logits) else None
    (token,) = batched_sample(np.array([logits]), 1.0, top_p, Script([draw]), top_k=top_k)
    assert token_distribution(logits, 1.0, inside, top_p)[token] > 0


def test_a_token_whose_mass_has_vanished_never_comes():
    for logits in ([-2000.0, 0.0, 0.0, -2000.0], [0.0, -2000.0], [-2000.0, 0.0]):
        for draw in (0.0, BELOW_ONE, 1.0):  # 1.0: from a generator that rounds
            (token,) = batched_sample(np.array([logits]), 1.0, None, Script([draw]))
            assert logits[token] == 0


def test_temperature_comes_before_truncation():
    """At temperature 4 the first token holds 0.36 of the mass, at 1 it holds 0.64."""
    logits = np.array([[3.0, 2.0, 1.0, 0.0]])
    seen = {int(batched_sample(logits, 4.0, 0.5, Script([u]))[0]) for u in (0.01, 0.99)}
    assert seen == {0, 1}
    seen = {int(batched_sample(logits, 1.0, 0.5, Script([u]))[0]) for u in (0.01, 0.99)}
    assert seen == {0}


def test_top_p_looks_at_what_top_k_left_renormalised():
    """Probabilities 0.4, 0.3, 0.2, 0.1: of the first two, the first alone holds 4/7 > 0.55."""
    logits = np.log([[0.4, 0.3, 0.2, 0.1]])
    assert set(batched_sample(logits.repeat(9, 0), 1.0, 0.55, Script([0.999] * 9), top_k=2)) == {0}
    assert batched_sample(logits, 1.0, 0.55, Script([0.999]))[0] == 1  # without top_k: two


def test_the_token_that_reaches_top_p_is_kept():
    logits = np.log([[0.5, 0.25, 0.125, 0.125]])
    assert batched_sample(logits, 1.0, 0.75, Script([BELOW_ONE]))[0] == 1
    assert batched_sample(logits, 1.0, 0.76, Script([BELOW_ONE]))[0] == 2
    assert batched_sample(logits, 1.0, 0.5, Script([BELOW_ONE]))[0] == 0


def test_greedy_takes_the_first_of_the_largest_and_asks_no_generator():
    logits = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0], [0.0, -1.0, 5.0]])
    assert batched_sample(logits, 0, None, None).tolist() == [1, 0, 2]
    assert batched_sample(logits, 0.0, 0.5, None, top_k=1).tolist() == [1, 0, 2]


def test_each_row_is_drawn_in_turn_and_the_logits_are_left_alone():
    logits = np.zeros((3, 4), np.float32)
    ids = batched_sample(logits, 0.5, None, Script([0.1, 0.9, 0.6]))
    assert ids.tolist() == [0, 3, 2]
    assert ids.shape == (3,)
    assert ids.dtype.kind == "i"
    assert not logits.any()


def flat_row(size=5000):
    return np.random.default_rng(3).normal(size=size)


@pytest.mark.parametrize("top_p", [0.05, 0.6, 0.99, 0.9999])
def test_a_large_vocabulary_keeps_the_nucleus_of_a_full_sort(top_p):
    probs = np.exp(flat_row())
    probs /= probs.sum()
    order = sorted(range(len(probs)), key=lambda token: (-probs[token], token))
    mass = list(itertools.accumulate(map(Fraction, probs[order])))
    wanted = next(n for n, total in enumerate(mass, 1) if total >= Fraction(top_p))
    found = nucleus_of(probs, probs, top_p)
    assert found.tolist() == sorted(order[:wanted])
    assert (wanted > 256) == (top_p > 0.05)  # the candidates had to grow, but for the first


def test_equal_tokens_at_the_edge_of_the_candidates_are_the_lower_ids():
    probs = np.full(1000, 1 / 1000)
    probs[::2] += 1e-4
    probs /= probs.sum()
    assert nucleus_of(probs, probs, 0.001).tolist() == [0]
    found = nucleus_of(probs, probs, 0.3).tolist()
    assert found == list(range(0, 2 * len(found), 2))
    assert 256 < len(found) < 300


def test_tokens_are_ranked_by_logits_where_probabilities_cannot_tell_them_apart():
    logits = np.array([[1.0, 1.0 + 2**-52]])
    assert batched_sample(logits, 1e3, 0.1, Script([0.5]))[0] == 1
    assert batched_sample(logits, 1e3, None, Script([0.1]), top_k=1)[0] == 1


@quick
@given(st.lists(st.integers(0, 4), min_size=1, max_size=30), st.data())
def test_the_largest_are_those_of_a_stable_sort(values, data):
    count = data.draw(st.integers(1, len(values)))
    order = sorted(range(len(values)), key=lambda place: (-values[place], place))[:count]
    assert largest(np.array(values, float), count).tolist() == sorted(order)


def test_a_tiny_temperature_is_almost_greedy_without_a_warning():
    logits = np.array([[1.0, 2.0, 1e308, -1e308]])
    assert batched_sample(logits, 5e-324, 0.9, Script([BELOW_ONE]), top_k=3)[0] == 2


@pytest.mark.parametrize(
    ("logits", "options", "error", "message"),
    [
        ([1.0, 2.0], {}, ShapeMismatch, r"logits must have shape \[B, V\], got \[2\]"),
        (np.zeros((0, 3)), {}, ShapeMismatch, r"got \[0, 3\]"),
        ([[math.nan, 1.0]], {}, ValueError, "NaN or an infinite number"),
        ([[-math.inf, 1.0]], {}, ValueError, "NaN or an infinite number"),
        ([[0.0]], {"temperature": -0.1}, ValueError, "temperature must be .* got -0.1"),
        ([[0.0]], {"temperature": math.nan}, ValueError, "temperature must be"),
        ([[0.0]], {"temperature": True}, ValueError, "temperature must be"),
        ([[0.0]], {"top_p": 0.0}, ValueError, r"top_p must be in \(0, 1\] or None, got 0.0"),
        ([[0.0]], {"top_p": 1.1}, ValueError, "top_p must be in"),
        ([[0.0]], {"top_k": 0}, ValueError, "top_k must be an integer of at least 1 or None"),
        ([[0.0]], {"top_k": 1.0}, ValueError, "top_k must be"),
        ([[0.0]], {"top_k": True}, ValueError, "top_k must be"),
    ],
)
def test_wrong_arguments_are_refused_even_when_greedy(logits, options, error, message):
    for base in (0.0, 1.0):
        arguments = {"temperature": base, "top_p": None, "rng": Script([0.5] * 9)} | options
        with pytest.raises(error, match=message):
            batched_sample(np.array(logits), **arguments)
