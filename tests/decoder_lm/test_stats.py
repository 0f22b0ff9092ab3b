"""Tokens counted against passes over the weights."""

import numpy as np
import pytest

from course_lib.decoder_lm.stats import DecodeStats


def test_before_anything_was_done_nothing_is_divided():
    stats = DecodeStats()
    assert stats == DecodeStats(0, 0, 0, 0)
    assert stats.tokens_per_weight_read == 0.0


def test_a_prefill_reads_the_weights_once_for_a_whole_prompt():
    stats = DecodeStats()
    stats.record_prefill(100)
    assert stats == DecodeStats(
        prefill_tokens=100, decode_tokens=0, cache_positions=100, weight_reads=1
    )
    assert stats.tokens_per_weight_read == 100.0


def test_a_decoding_step_reads_them_for_one_token():
    stats = DecodeStats()
    stats.record_decode()
    stats.record_decode(steps=3)
    assert stats == DecodeStats(
        prefill_tokens=0, decode_tokens=4, cache_positions=4, weight_reads=4
    )
    assert stats.tokens_per_weight_read == 1.0


def test_a_batch_shares_the_read():
    stats = DecodeStats()
    stats.record_decode(steps=5, batch=8)
    assert stats == DecodeStats(0, 40, 40, 5)
    assert stats.tokens_per_weight_read == 8.0


def test_prefill_and_decode_are_counted_apart_and_add_up():
    stats = DecodeStats()
    stats.record_prefill(12)
    stats.record_decode(4)
    stats.record_prefill(3)
    assert stats == DecodeStats(15, 4, 19, 3)
    assert stats.tokens_per_weight_read == pytest.approx(19 / 3)


@pytest.mark.parametrize(
    ("method", "arguments", "name"),
    [
        ("record_prefill", {}, "tokens"),
        ("record_decode", {}, "steps"),
        ("record_decode", {"steps": 2}, "batch"),
    ],
)
def test_only_what_was_done_is_recorded(method, arguments, name):
    stats = DecodeStats()
    for bad in (0, -1):
        with pytest.raises(ValueError, match=f"{name} must be at least 1, got {bad}"):
            getattr(stats, method)(**{**arguments, name: bad})
    for bad in (1.0, True, "2", None):
        with pytest.raises(TypeError, match=f"{name} must be an integer, got {bad!r}"):
            getattr(stats, method)(**{**arguments, name: bad})
    assert stats == DecodeStats()
    getattr(stats, method)(**{**arguments, name: np.int64(2)})
