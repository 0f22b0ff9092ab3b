"""The roofline: two numbers of a machine, and what they allow."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.decoder_lm.shape import ModelShape
from course_lib.flops import decode_step_flops, pass_bytes
from course_lib.roofline import Roofline, balance_batch

quick = settings(max_examples=50, deadline=None, derandomize=True)
amounts = st.floats(0.01, 1000)
EXAMPLE = Roofline(bandwidth=34, peak=240)
GPT2 = ModelShape(12, 768, 12, 1024, 50257)


def test_the_example_machine_balances_at_7_operations_a_byte():
    assert EXAMPLE.balance == pytest.approx(7.06, abs=0.01)
    assert EXAMPLE.attainable(1) == 34
    assert EXAMPLE.attainable(7) == 238
    assert EXAMPLE.attainable(8) == EXAMPLE.attainable(1000) == 240


@quick
@given(amounts, amounts, amounts)
def test_the_roof_rises_to_the_balance_and_is_flat_from_there(bandwidth, peak, intensity):
    machine = Roofline(bandwidth, peak)
    assert machine.attainable(machine.balance) == pytest.approx(peak)
    wanted = peak if intensity >= machine.balance else intensity * bandwidth
    assert machine.attainable(intensity) == pytest.approx(wanted)


@quick
@given(amounts, amounts, amounts, amounts)
def test_least_seconds_and_attainable_rate_are_one_statement(bandwidth, peak, flops, moved):
    machine = Roofline(bandwidth, peak)
    rate = flops / machine.least_seconds(flops, moved) / 1e9
    assert rate == pytest.approx(machine.attainable(flops / moved))


def test_seconds_by_hand():
    assert EXAMPLE.least_seconds(flops=24e9, moved_bytes=3.4e9) == pytest.approx(0.1)
    assert EXAMPLE.least_seconds(flops=24e9, moved_bytes=34e9) == pytest.approx(1.0)
    assert EXAMPLE.least_seconds(flops=480e9, moved_bytes=34e9) == pytest.approx(2.0)


# --- the batch at which decode stops being bound by memory ---


def test_without_a_cache_float32_weights_need_a_batch_of_14():
    # Two operations a weight of four bytes: B · 2 / 4 = 240 / 34.
    assert balance_batch(EXAMPLE, 2e8, 4e8) == pytest.approx(14.12, abs=0.01)
    assert balance_batch(EXAMPLE, 2e8, 2e8) == pytest.approx(14.12 / 2, abs=0.01)


@quick
@given(amounts, amounts, amounts, amounts, amounts)
def test_at_the_balance_batch_arithmetic_takes_as_long_as_reading(
    bandwidth, peak, flops, weights, cache
):
    machine = Roofline(bandwidth, peak)
    batch = balance_batch(machine, flops, weights, cache)
    if math.isinf(batch):
        assert flops / cache <= machine.balance * (1 + 1e-12)
        return
    assert batch * flops / peak == pytest.approx((weights + batch * cache) / bandwidth, rel=1e-6)
    assert batch >= balance_batch(machine, flops, weights)


@pytest.mark.parametrize(("length", "batch"), [(1, 15), (256, 29), (480, 234)])
def test_the_longer_the_texts_the_larger_the_batch_that_gpt2_small_needs(length, batch):
    def intensity(rows):
        flops = decode_step_flops(GPT2, 3072, rows, length).total
        return flops / pass_bytes(GPT2, 3072, rows, length).total

    searched = next(rows for rows in range(1, 1000) if intensity(rows) >= EXAMPLE.balance)
    row = decode_step_flops(GPT2, 3072, 1, length).total
    moved = pass_bytes(GPT2, 3072, 1, length)
    least = balance_batch(EXAMPLE, row, moved.weights, moved.cache)
    assert math.ceil(least) == searched == batch


@pytest.mark.parametrize("length", [512, 1024])
def test_with_long_texts_no_batch_suffices(length):
    row = decode_step_flops(GPT2, 3072, 1, length).total
    moved = pass_bytes(GPT2, 3072, 1, length)
    assert balance_batch(EXAMPLE, row, moved.weights, moved.cache) == math.inf
    assert balance_batch(EXAMPLE, row, moved.weights) < 20  # the one-line formula hides it


# --- what is refused ---


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Roofline(0, 1), ValueError, "bandwidth must be above 0 and finite, got 0"),
        (lambda: Roofline(1, math.inf), ValueError, "peak must be above 0 and finite, got inf"),
        (lambda: Roofline(1, math.nan), ValueError, "peak must be above 0"),
        (lambda: Roofline("34", 1), TypeError, "bandwidth must be a number, got str"),
        (lambda: Roofline(True, 1), TypeError, "bandwidth must be a number, got bool"),
        (lambda: EXAMPLE.attainable(-1), ValueError, "intensity must be above 0"),
        (lambda: EXAMPLE.least_seconds(0, 1), ValueError, "flops must be above 0"),
        (lambda: EXAMPLE.least_seconds(1, 0), ValueError, "moved_bytes must be above 0"),
        (lambda: balance_batch(EXAMPLE, 0, 1), ValueError, "row_flops must be above 0"),
        (lambda: balance_batch(EXAMPLE, 1, 0), ValueError, "weight_bytes must be above 0"),
        (lambda: balance_batch(EXAMPLE, 1, 1, -1), ValueError, "row_cache_bytes must be above 0"),
    ],
)
def test_amounts_that_nothing_can_have_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
