"""The roofline with a batch: intensity, rate, time and what binds, from the two times by hand."""

import re

import pytest

from .samples import alts, call, displayed, frames, output

BATCHES, LENGTHS = (1, 4, 16), (10, 1000)
STATES = {f"{i},{j}": (b, n) for i, b in enumerate(BATCHES) for j, n in enumerate(LENGTHS)}


def by_hand(batch, length):
    """2 GFLOP a token at 1000 GFLOP/s; 1 GB, and 1 MB a position, at 100 GB/s."""
    arithmetic = 2 * batch / 1000
    memory = (1 + batch * length / 1000) / 100
    return memory, arithmetic


@pytest.mark.parametrize("state", STATES)
def test_the_words_say_what_binds_and_how_fast_it_can_be(state):
    batch, length = STATES[state]
    memory, arithmetic = by_hand(batch, length)
    longer = max(memory, arithmetic)
    rate = 2 * batch / longer
    written = f"{rate:.0f}" if rate >= 100 else f"{rate:.1f}"
    bound = "memory" if memory > arithmetic else "arithmetic"
    assert alts("roofline_batch")[state] == (
        f"Batch {batch}, length {length}: intensity {2 * batch / (memory * 100):.2f}, "
        f"rate {written} of 1000, {batch / longer:.0f} tokens in a second, bound by {bound}."
    )


def test_both_bounds_occur_and_the_picture_gives_both_times():
    told = alts("roofline_batch")
    assert {words.rsplit(" ", 1)[1] for words in told.values()} == {"memory.", "arithmetic."}
    for state, frame in frames("roofline_batch").items():
        for time in by_hand(*STATES[state]):
            assert f">{1000 * time:.3g}</text>" in frame["svg"]
        assert f">bound by {frame['alt'].split('bound by ')[1][:-1]}:" in frame["svg"]


def test_the_chosen_batch_is_named_in_bold_among_the_others():
    for state, frame in frames("roofline_batch").items():
        bold = re.findall(r'style="[^"]*700[^"]*"[^>]*>(\d+)</text>', frame["svg"])
        assert str(STATES[state][0]) in bold


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"bandwidth": 0}, ValueError, "bandwidth and peak"),
        ({"work": lambda b, n: (1.0, 0.0)}, ValueError, "FLOP and bytes of work"),
        ({"work": lambda b, n: (1.0, float("inf"))}, ValueError, "must be finite"),
        ({"batches": tuple(range(1, 14))}, ValueError, "26 pictures are too many"),
    ],
)
def test_what_has_no_place_on_a_log_axis_is_refused(changes, error, message):
    with displayed(), pytest.raises(error, match=message):
        call("roofline_batch", "en", **changes)


def test_the_start_is_the_first_of_each():
    data, _ = output("roofline_batch", "en", batches=(16, 1, 4), lengths=(1000, 10))
    assert data["text/plain"].startswith("Batch 16, length 1000:")


def test_live_a_slider_moves_the_batch(live_view):
    (batch, length), picture = live_view("roofline_batch")
    assert list(batch.options) == ["1", "4", "16"]
    batch.value, length.value = "4", "1000"
    assert "Batch 4, length 1000:" in picture.value
