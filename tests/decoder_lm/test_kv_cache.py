"""The slabs of the fast stage: views of the whole history, one advance a step, misuse refused."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from course_lib.decoder_lm.errors import CacheExhausted, ShapeMismatch
from course_lib.decoder_lm.fast import KvCache, cached_attention
from course_lib.decoder_lm.kv_cache import cache_rows

LAYERS, BATCH, HEADS, CONTEXT, WIDTH = 3, 2, 4, 6, 5


def empty_cache():
    return KvCache(LAYERS, BATCH, HEADS, CONTEXT, WIDTH)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def new_positions(width, seed=0, batch=BATCH):
    return numbers(2, batch, HEADS, width, WIDTH, seed=seed)  # keys and values


def step(cache, width, seed=0):
    """Append the same to every layer; what the last layer's views were."""
    for layer in range(LAYERS):
        views = cache.append(layer, *new_positions(width, seed + layer))
    cache.advance(width)
    return views


def test_append_returns_views_of_the_whole_history():
    cache = empty_cache()
    step(cache, 2, seed=10)
    keys, values = step(cache, 1, seed=20)
    want = np.concatenate([new_positions(2, 12), new_positions(1, 22)], axis=3)
    np.testing.assert_array_equal([keys, values], want)
    assert keys.shape == (BATCH, HEADS, 3, WIDTH)
    assert np.shares_memory(keys, cache.keys)
    assert np.shares_memory(values, cache.values)
    assert not np.shares_memory(keys, cache.values)


def test_every_layer_keeps_its_own():
    cache = empty_cache()
    step(cache, 2)
    for layer in range(LAYERS):
        keys, values = cache.append(layer, *new_positions(1, seed=7))
        np.testing.assert_array_equal(keys[:, :, :2], new_positions(2, seed=layer)[0])
        np.testing.assert_array_equal(values[:, :, :2], new_positions(2, seed=layer)[1])


def test_the_length_moves_once_a_step():
    cache = empty_cache()
    for layer in range(LAYERS):
        cache.append(layer, *new_positions(2))
        assert cache.length == 0
    cache.advance(2)
    assert cache.length == 2
    assert cache.lengths.tolist() == [2, 2]


def test_it_is_allocated_once_in_single_precision():
    cache = empty_cache()
    slab = LAYERS * BATCH * HEADS * CONTEXT * WIDTH * 4
    assert cache.bytes() == 2 * slab
    assert cache.keys.dtype == cache.values.dtype == np.float32
    assert cache.keys.flags.c_contiguous
    assert cache.keys.shape == (LAYERS, BATCH, HEADS, CONTEXT, WIDTH)
    before = cache.keys.ctypes.data, cache.values.ctypes.data
    step(cache, CONTEXT)
    assert (cache.keys.ctypes.data, cache.values.ctypes.data) == before
    assert cache.bytes() == 2 * slab


def test_exactly_the_context_fits_and_one_more_does_not():
    cache = empty_cache()
    step(cache, CONTEXT - 1)
    step(cache, 1, seed=5)
    assert cache.length == CONTEXT
    with pytest.raises(CacheExhausted, match="holds 6 of 6 positions, 1 more do not fit; reset"):
        cache.append(0, *new_positions(1))
    assert cache.length == CONTEXT
    np.testing.assert_array_equal(cache.keys[0, :, :, -1], new_positions(1, seed=5)[0][:, :, 0])


def test_a_chunk_that_is_too_wide_leaves_room_for_one_that_fits():
    cache = empty_cache()
    step(cache, 4)
    with pytest.raises(CacheExhausted, match="holds 4 of 6 positions, 3 more"):
        cache.append(0, *new_positions(3))
    keys, _ = step(cache, 2, seed=3)
    np.testing.assert_array_equal(keys[:, :, 4:], new_positions(2, seed=5)[0])


@pytest.mark.parametrize(
    ("done", "layer", "message"),
    [
        (0, 1, "layer 0 is next, but layer 1 came"),
        (0, -1, "layer 0 is next, but layer -1 came"),
        (1, 0, "layer 1 is next, but layer 0 came"),
        (1, 2, "layer 1 is next, but layer 2 came"),
        (3, 3, r"advance\(\) is next, but layer 3 came"),
        (3, 0, r"advance\(\) is next, but layer 0 came"),
    ],
)
def test_layers_come_in_their_order(done, layer, message):
    cache = empty_cache()
    for ready in range(done):
        cache.append(ready, *new_positions(1, seed=ready))
    with pytest.raises(RuntimeError, match=f"layers out of step: {message}"):
        cache.append(layer, *new_positions(1, seed=9))
    for rest in range(done, LAYERS):
        cache.append(rest, *new_positions(1, seed=rest))
    cache.advance(1)  # the step goes on where it was
    for layer in range(LAYERS):
        np.testing.assert_array_equal(
            cache.keys[layer, :, :, 0], new_positions(1, seed=layer)[0][:, :, 0]
        )


def test_advance_needs_all_layers_and_their_width():
    cache = empty_cache()
    with pytest.raises(RuntimeError, match=r"advance\(1\) after 0 of 3 layers"):
        cache.advance(1)
    cache.append(0, *new_positions(2))
    cache.append(1, *new_positions(2))
    with pytest.raises(RuntimeError, match=r"advance\(2\) after 2 of 3 layers were appended"):
        cache.advance(2)
    cache.append(2, *new_positions(2))
    with pytest.raises(RuntimeError, match=r"advance\(1\) after 2 positions were appended"):
        cache.advance(1)
    cache.advance(2)
    assert cache.length == 2
    with pytest.raises(RuntimeError, match=r"advance\(2\) after 0 of 3"):
        cache.advance(2)
    assert cache.length == 2


def test_the_layers_of_a_step_have_one_width():
    cache = empty_cache()
    cache.append(0, *new_positions(2))
    with pytest.raises(ShapeMismatch, match="layer 0 got 2 new positions, layer 1 gets 1"):
        cache.append(1, *new_positions(1))


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((BATCH + 1, HEADS, 1, WIDTH), r"\[batch=2, n_heads=4, width, d_head=5\], got \[3, 4, 1,"),
        ((BATCH, 1, 1, WIDTH), r"got \[2, 1, 1, 5\]"),  # would be broadcast over the heads
        ((BATCH, HEADS, 1, 1), r"got \[2, 4, 1, 1\]"),
        ((BATCH, HEADS, 0, WIDTH), r"got \[2, 4, 0, 5\]"),
        ((BATCH, HEADS, WIDTH), r"got \[2, 4, 5\]"),
    ],
)
def test_positions_of_another_shape_are_refused(shape, message):
    with pytest.raises(ShapeMismatch, match=message):
        empty_cache().append(0, np.zeros(shape), np.zeros(shape))


def test_keys_and_values_come_in_pairs():
    keys, values = new_positions(2)
    with pytest.raises(ShapeMismatch, match=r"keys are \[2, 4, 2, 5\], but values are \[2, 4, 1,"):
        empty_cache().append(0, keys, values[:, :, :1])


@pytest.mark.parametrize(
    ("sizes", "error", "message"),
    [
        ((0, 1, 1, 1, 1), ShapeMismatch, "n_layers must be at least 1, got 0"),
        ((1, 1, 1, -3, 1), ShapeMismatch, "context_length must be at least 1, got -3"),
        ((1, 2.0, 1, 1, 1), TypeError, "batch must be an integer, got 2.0"),
        ((1, 1, 1, 1, True), TypeError, "d_head must be an integer, got True"),
    ],
)
def test_sizes_are_checked(sizes, error, message):
    with pytest.raises(error, match=message):
        KvCache(*sizes)


def test_reset_forgets_the_text_and_an_open_step():
    cache = empty_cache()
    step(cache, 3)
    cache.append(0, *new_positions(2))
    cache.reset()
    assert cache.length == 0
    keys, _ = step(cache, 1, seed=40)
    np.testing.assert_array_equal(keys, new_positions(1, seed=42)[0])


def test_some_rows_fill_their_own_places_and_no_others():
    cache = KvCache(1, 3, HEADS, CONTEXT, WIDTH)
    rows = cache_rows(cache, 1, 2)
    rows.append(0, *new_positions(2, seed=1, batch=1))
    rows.advance(2)
    assert cache.lengths.tolist() == [0, 2, 0]
    assert cache.length == 2
    assert not cache.keys[:, [0, 2]].any()
    new = new_positions(1, seed=2, batch=3)  # now each row at its own place
    keys, values = cache.append(0, *new)
    cache.advance(1)
    assert cache.lengths.tolist() == [1, 3, 1]
    for row, end in enumerate([1, 3, 1]):
        np.testing.assert_array_equal(keys[row, :, end - 1], new[0, row, :, 0])
        np.testing.assert_array_equal(values[row, :, end - 1], new[1, row, :, 0])
    np.testing.assert_array_equal(keys[1, :, :2], new_positions(2, seed=1, batch=1)[0, 0])
    assert cache.step.ends == ()


def test_rows_of_different_lengths_are_full_when_the_longest_is():
    cache = KvCache(1, 2, HEADS, 2, WIDTH)
    row = cache_rows(cache, 0, 1)
    row.append(0, *new_positions(2, batch=1))
    row.advance(2)
    with pytest.raises(CacheExhausted, match="holds 2 of 2"):
        cache.append(0, *new_positions(1))
    assert cache.lengths.tolist() == [2, 0]


# ---------------------------------------------------------------- attention over the cache


def by_torch(query, keys, values):
    """Float64, with torch's own mask of the offset: key j for query i if j <= i + T_k - T_q."""
    q, k, v = (torch.tensor(np.float64(each)) for each in (query, keys, values))
    widths = q.shape[2], k.shape[2]
    allowed = torch.ones(widths, dtype=torch.bool).tril(widths[1] - widths[0])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed).numpy()


@pytest.mark.parametrize(
    ("width", "length"),
    [(1, 1), (1, 9), (2, 2), (3, 7), (7, 7), (64, 64), (65, 65), (65, 70), (130, 200)],
)
def test_the_newest_queries_read_all_but_their_future(width, length):
    query = 3 * numbers(2, 3, width, 8)
    keys, values = numbers(2, 3, length, 8, seed=1), numbers(2, 3, length, 8, seed=2)
    kept = [each.copy() for each in (query, keys, values)]
    mixed = cached_attention(query, keys, values)
    assert mixed.dtype == np.float32
    np.testing.assert_allclose(mixed, by_torch(query, keys, values), atol=2e-6)
    for each, before in zip((query, keys, values), kept, strict=True):
        np.testing.assert_array_equal(each, before)


def test_scores_in_the_thousands_stay_finite():
    query, keys = 60 * numbers(1, 2, 3, 8), 60 * numbers(1, 2, 5, 8, seed=1)
    values = numbers(1, 2, 5, 8, seed=2)
    np.testing.assert_allclose(
        cached_attention(query, keys, values), by_torch(query, keys, values), atol=1e-3
    )


def test_one_query_needs_no_mask_as_each_of_several_shows():
    query, keys, values = (numbers(1, 2, 6, 4, seed=seed) for seed in range(3))
    together = cached_attention(query, keys, values)
    for place in range(6):
        alone = cached_attention(
            query[:, :, place : place + 1], keys[:, :, : place + 1], values[:, :, : place + 1]
        )
        np.testing.assert_allclose(alone[:, :, 0], together[:, :, place], atol=1e-6)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((1, 2, 1), (1, 2, 3, 4), (1, 2, 3, 4)), r"query must have shape \[B, H, T, d_head\]"),
        (((1, 2, 1, 4), (1, 2, 3, 4), (1, 2, 4, 4)), "keys and values in all"),
        (((1, 2, 1, 4), (1, 1, 3, 4), (1, 1, 3, 4)), "B, H and d_head must agree"),
        (((1, 2, 1, 5), (1, 2, 3, 4), (1, 2, 3, 4)), "B, H and d_head must agree"),
        (((1, 2, 4, 4), (1, 2, 3, 4), (1, 2, 3, 4)), "4 queries over 3 keys: .* append their"),
        (((1, 2, 0, 4), (1, 2, 3, 4), (1, 2, 3, 4)), "0 queries over 3 keys"),
    ],
)
def test_queries_keys_and_values_must_fit_together(shapes, message):
    with pytest.raises(ShapeMismatch, match=message):
        cached_attention(*(np.ones(shape, np.float32) for shape in shapes))
