"""The key-value cache: whole positions or nothing, and views that cannot be spoilt."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.decoder_lm.errors import CacheExhausted, ShapeMismatch
from course_lib.decoder_lm.shape import ModelShape
from course_lib.decoder_lm.typed_cache import KeyValueCache

quick = settings(max_examples=50, deadline=None, derandomize=True)
SHAPE = ModelShape(n_layers=2, d_model=6, n_heads=3, context_length=5, vocab_size=7)
ONE, RUN = (2, 3, 2), (2, 3, 4, 2)


def numbered(shape, start=0.0):
    return start + np.arange(np.prod(shape), dtype=np.float64).reshape(shape)


def filled(width):
    cache = KeyValueCache(SHAPE)
    if width:
        run = numbered((2, 3, width, 2))
        cache.append(run, -run)
    return cache


def test_a_new_cache_remembers_nothing_and_says_where_it_would():
    cache = KeyValueCache(SHAPE)
    assert cache.length == 0
    assert cache.keys().shape == cache.values().shape == (2, 3, 0, 2)


@quick
@given(st.lists(st.integers(0, 3), max_size=6), st.integers(0, 99))
def test_any_sequence_of_appends_is_the_concatenation_of_what_fitted(widths, seed):
    """Width 0 stands for a single position given without its axis."""
    rng, cache = np.random.default_rng(seed), KeyValueCache(SHAPE)
    keys, values = np.zeros((2, 3, 0, 2)), np.zeros((2, 3, 0, 2))
    for width in widths:
        k, v = rng.normal(size=(2, 2, 3, max(width, 1), 2))
        given_k, given_v = (k, v) if width else (k[:, :, 0], v[:, :, 0])
        if keys.shape[2] + max(width, 1) > 5:
            with pytest.raises(CacheExhausted):
                cache.append(given_k, given_v)
        else:
            cache.append(given_k, given_v)
            keys, values = np.concatenate((keys, k), 2), np.concatenate((values, v), 2)
        assert cache.length == keys.shape[2]
        np.testing.assert_array_equal(cache.keys(), keys)
        np.testing.assert_array_equal(cache.values(), values)


def test_keys_and_values_are_kept_apart():
    cache = filled(2)
    np.testing.assert_array_equal(cache.keys(), numbered((2, 3, 2, 2)))
    np.testing.assert_array_equal(cache.values(), -numbered((2, 3, 2, 2)))


@pytest.mark.parametrize(("held", "width"), [(5, 1), (4, 2), (0, 6), (2, 4)])
def test_a_full_cache_raises_with_numbers_and_nothing_changes(held, width):
    cache = filled(held)
    before = cache.keys().copy(), cache.values().copy()
    run = numbered((2, 3, width, 2))
    with pytest.raises(
        CacheExhausted, match=rf"holds {held} of 5 positions, {width} more do not fit; reset\(\)"
    ):
        cache.append(run, run)
    assert cache.length == held
    np.testing.assert_array_equal(cache.keys(), before[0])
    np.testing.assert_array_equal(cache.values(), before[1])


def test_exactly_the_context_fits():
    cache = filled(4)
    cache.append(numbered(ONE), numbered(ONE))
    assert cache.length == 5


@pytest.mark.parametrize(
    "shape",
    [
        (3, 2),
        (1, 3, 2),
        (3, 3, 2),
        (2, 2, 2),
        (2, 3, 3),
        (2, 3, 0, 2),
        (2, 3, 4, 3),
        (1, 3, 4, 2),
        (2, 1, 4, 2),
        (2, 3, 1, 4, 2),
        (),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["keys", "values"])
def test_a_position_without_all_its_layers_and_heads_is_refused(name, shape):
    cache = filled(1)
    given = {"keys": np.zeros(ONE), "values": np.zeros(ONE), name: np.zeros(shape)}
    with pytest.raises(
        ShapeMismatch, match=rf"{name} must have shape \[n_layers=2, n_heads=3, d_head=2\].*got \["
    ):
        cache.append(**given)
    assert cache.length == 1


@pytest.mark.parametrize(("keys", "values"), [(RUN, ONE), (ONE, RUN), ((2, 3, 3, 2), RUN)])
def test_keys_without_as_many_values_are_refused(keys, values):
    cache = filled(1)
    with pytest.raises(ShapeMismatch, match=r"keys bring \d positions but values \d"):
        cache.append(np.zeros(keys), np.zeros(values))
    assert cache.length == 1


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["keys", "values"])
def test_what_is_not_finite_is_refused_before_anything_is_written(name, bad):
    cache = filled(1)
    spoilt = numbered(RUN)
    spoilt[1, 2, 3, 1] = bad
    given = {"keys": numbered(RUN), "values": numbered(RUN), name: spoilt}
    with pytest.raises(ValueError, match=f"1 of 48 numbers in {name} are NaN or infinite; nothing"):
        cache.append(**given)
    assert cache.length == 1
    cache.append(numbered(RUN), numbered(RUN))
    assert cache.length == 5


def test_views_can_only_be_read():
    cache = filled(2)
    for view in (cache.keys(), cache.values()):
        with pytest.raises(ValueError, match="read-only"):
            view[0, 0, 0, 0] = 1.0
    cache.append(numbered(ONE), numbered(ONE))  # the cache itself still can


def test_an_old_view_shows_what_it_showed_after_appends_and_after_a_reset():
    cache = filled(2)
    old, kept = cache.keys(), cache.keys().copy()
    cache.append(numbered(ONE, 100), numbered(ONE, 200))
    np.testing.assert_array_equal(old, kept)
    cache.reset()
    cache.append(numbered(RUN, 300), numbered(RUN, 400))
    np.testing.assert_array_equal(old, kept)


def test_views_cost_no_copy():
    cache = filled(3)
    assert np.shares_memory(cache.keys(), cache.keys())
    assert not np.shares_memory(cache.keys(), cache.values())


def test_what_was_given_may_be_overwritten_afterwards():
    cache, run = KeyValueCache(SHAPE), numbered(RUN)
    cache.append(run, run)
    run[:] = 0
    np.testing.assert_array_equal(cache.keys(), numbered(RUN))


def test_after_a_reset_the_whole_context_is_free_and_the_old_text_is_gone():
    cache = filled(5)
    cache.reset()
    assert cache.length == 0
    assert cache.keys().shape == (2, 3, 0, 2)
    cache.append(numbered(ONE, 7), numbered(ONE, 8))
    np.testing.assert_array_equal(cache.keys()[:, :, 0], numbered(ONE, 7))
    cache.append(numbered(RUN), numbered(RUN))
    assert cache.length == 5


def test_a_place_that_was_never_written_is_not_a_number():
    cache = filled(2)
    assert np.isnan(cache.keys().base[..., 2:, :]).all()
    cache.reset()
    assert np.isnan(cache.keys().base).all()


def test_two_caches_share_nothing():
    one, other = filled(2), KeyValueCache(SHAPE)
    assert other.length == 0
    assert not np.shares_memory(one.keys().base, other.keys().base)


def test_lists_and_narrow_floats_are_fine_and_kept_in_float64():
    cache = KeyValueCache(SHAPE)
    cache.append(numbered(ONE).tolist(), numbered(ONE).astype(np.float32))
    np.testing.assert_array_equal(cache.keys(), cache.values())
    assert cache.keys().dtype == np.float64


def test_the_length_cannot_be_set_from_outside():
    with pytest.raises(AttributeError):
        filled(2).length = 0
