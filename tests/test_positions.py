"""The sinusoidal table, against `math` and against its own promises."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.positions import sinusoidal_encoding

quick = settings(max_examples=25, deadline=None, derandomize=True)


def table_by_loops(length, d_model, base):
    """Write the table cell by cell: column c has the frequency of its pair, c // 2."""
    return [
        [
            (math.cos if column % 2 else math.sin)(position / base ** (2 * (column // 2) / d_model))
            for column in range(d_model)
        ]
        for position in range(length)
    ]


@quick
@given(st.integers(1, 40), st.integers(1, 8), st.sampled_from([10_000.0, 2, 1.5, 500_000]))
def test_every_cell_is_the_formula(length, pairs, base):
    table = sinusoidal_encoding(length, 2 * pairs, base=base)
    expected = torch.tensor(table_by_loops(length, 2 * pairs, base), dtype=torch.float64)
    assert table.shape == (length, 2 * pairs)
    assert (table - expected).abs().max() <= 1e-12


def test_the_reference_table_is_reproduced():
    row_1 = [0.8414709848078965, 0.5403023058681398, 0.009999833334166664, 0.9999500004166653]
    table = sinusoidal_encoding(5, 4)
    assert table[1].tolist() == pytest.approx(row_1, abs=1e-12)
    assert table[4, 2].item() == pytest.approx(math.sin(0.04), abs=1e-12)


def test_position_zero_is_zero_one_zero_one():
    assert sinusoidal_encoding(3, 6)[0].tolist() == [0.0, 1.0, 0.0, 1.0, 0.0, 1.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_are_distinct_far_beyond_600_positions(dtype):
    table = sinusoidal_encoding(20_000, 8, dtype=dtype)
    assert len(torch.unique(table, dim=0)) == 20_000


def test_a_sine_and_its_cosine_lie_on_the_unit_circle():
    pairs = sinusoidal_encoding(50, 10).unflatten(1, (5, 2))
    assert torch.allclose(pairs.square().sum(dim=-1), torch.ones(50, 5, dtype=torch.float64))


def test_the_product_of_two_rows_depends_on_their_distance_only():
    table = sinusoidal_encoding(60, 16)
    products = table @ table.T
    for distance in (1, 7, 30):
        diagonal = products.diagonal(distance)
        assert (diagonal - diagonal[0]).abs().max() < 1e-12


def test_float32_is_the_rounded_float64_table_even_far_out():
    wide = sinusoidal_encoding(5000, 8)
    narrow = sinusoidal_encoding(5000, 8, dtype=torch.float32)
    assert wide.dtype == torch.float64
    assert narrow.dtype == torch.float32
    assert torch.equal(narrow, wide.float())


def test_the_table_is_made_on_the_wanted_device():
    assert sinusoidal_encoding(2, 4, device="meta").device.type == "meta"
    assert sinusoidal_encoding(2, 4, device=torch.device("cpu")).device.type == "cpu"


def test_numpy_integers_are_sizes_too():
    assert sinusoidal_encoding(np.int64(3), np.int32(4)).shape == (3, 4)


@pytest.mark.parametrize("name", ["length", "d_model"])
@pytest.mark.parametrize("value", [True, 4.0, "4", None])
def test_a_size_that_is_not_an_integer_is_a_type_error(name, value):
    sizes = {"length": 4, "d_model": 4, name: value}
    with pytest.raises(TypeError, match=f"{name} must be an integer"):
        sinusoidal_encoding(**sizes)


@pytest.mark.parametrize("name", ["length", "d_model"])
@pytest.mark.parametrize("value", [0, -2])
def test_a_size_below_one_is_a_value_error(name, value):
    sizes = {"length": 4, "d_model": 4, name: value}
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got {value}"):
        sinusoidal_encoding(**sizes)


def test_an_odd_width_is_refused():
    with pytest.raises(ValueError, match="d_model must be even, .* got 5"):
        sinusoidal_encoding(3, 5)


@pytest.mark.parametrize("base", [1, 1.0, 0, -5.0, 0.5])
def test_a_base_not_above_one_is_a_value_error(base):
    with pytest.raises(ValueError, match="base must be greater than 1"):
        sinusoidal_encoding(3, 4, base=base)


@pytest.mark.parametrize("base", [math.inf, math.nan])
def test_a_base_that_is_not_finite_is_a_value_error(base):
    with pytest.raises(ValueError, match="base must be finite"):
        sinusoidal_encoding(3, 4, base=base)


@pytest.mark.parametrize("base", [True, "10000", None])
def test_a_base_that_is_no_number_is_a_type_error(base):
    with pytest.raises(TypeError, match="base must be a number"):
        sinusoidal_encoding(3, 4, base=base)


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.long, torch.complex64, None, "f"]
)
def test_other_dtypes_are_type_errors(dtype):
    with pytest.raises(TypeError, match="dtype must be torch.float32 or torch.float64, got"):
        sinusoidal_encoding(3, 4, dtype=dtype)
