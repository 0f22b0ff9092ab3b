"""Slopes on log-log axes: exact on power laws, and honest about everything else."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.decoder_lm.shape import ModelShape
from course_lib.flops import generation_flops
from course_lib.growth import Slope, fit_slope, local_slopes

quick = settings(max_examples=50, deadline=None, derandomize=True)
SMALL = ModelShape(2, 64, 4, 32_768, 256)


def generation(lengths, *, cached):
    return [generation_flops(SMALL, 256, 1, n, cached=cached).total for n in lengths]


@quick
@given(st.floats(-3, 3), st.floats(0.01, 100), st.integers(3, 8))
def test_a_power_law_gives_its_exponent_and_no_error(exponent, factor, points):
    lengths = [2.0**power for power in range(points)]
    values = [factor * n**exponent for n in lengths]
    found = fit_slope(lengths, values)
    assert found.slope == pytest.approx(exponent, abs=1e-12)
    assert found.standard_error == pytest.approx(0, abs=1e-12)
    assert local_slopes(lengths, values) == pytest.approx([exponent] * (points - 1), abs=1e-12)


def test_slope_and_error_as_another_library_fits_them():
    lengths = [10, 20, 30, 70, 100]
    values = [3.0, 7.0, 8.5, 25.0, 31.0]
    x, y = np.log(lengths), np.log(values)
    (slope, _), covariance = np.polyfit(x, y, 1, cov=True)
    found = fit_slope(lengths, values)
    assert found.slope == pytest.approx(slope)
    assert found.standard_error == pytest.approx(math.sqrt(covariance[0, 0]))


def test_an_error_computed_by_hand():
    # log2: x = 0 1 2, y = 0 1 0; slope 0, residuals -1/3 2/3 -1/3, error √(6/9 / 1 / 2).
    found = fit_slope([1, 2, 4], [1, 2, 1])
    assert found.slope == pytest.approx(0, abs=1e-15)
    assert found.standard_error == pytest.approx(math.sqrt(1 / 3))
    assert local_slopes([1, 2, 4], [1, 2, 1]) == pytest.approx([1, -1])


@quick
@given(st.floats(0.001, 1000), st.floats(0.001, 1000))
def test_the_units_do_not_matter(length_unit, value_unit):
    lengths, values = [1, 2, 5, 9], [1.0, 3.0, 4.0, 20.0]
    scaled = [length_unit * n for n in lengths], [value_unit * v for v in values]
    assert fit_slope(*scaled).slope == pytest.approx(fit_slope(lengths, values).slope)


def test_a_slope_prints_with_its_error():
    assert str(Slope(2.0851, 0.0249)) == "2.09 ± 0.02"


# --- what the course says about generation ---


def test_short_texts_show_slopes_of_2_and_1_and_not_of_3_and_2():
    lengths = [32, 64, 128, 256, 512]
    naive, cached = (generation(lengths, cached=cached) for cached in (False, True))
    assert round(fit_slope(lengths, naive).slope, 2) == 2.09
    assert round(fit_slope(lengths, cached).slope, 2) == 1.15
    for costs in (naive, cached):  # and they keep growing: no power law
        assert local_slopes(lengths, costs) == sorted(local_slopes(lengths, costs))


def test_long_texts_come_near_3_and_2():
    lengths = [16_000, 16_400]
    (naive,) = local_slopes(lengths, generation(lengths, cached=False))
    (cached,) = local_slopes(lengths, generation(lengths, cached=True))
    assert (round(naive, 2), round(cached, 2)) == (2.92, 1.95)


# --- what is refused ---


@pytest.mark.parametrize(
    ("lengths", "values", "message"),
    [
        ([1, 2], [1, 2], "2 points are too few; pass at least 3"),
        ([1, 2, 3], [1, 2], r"two lists of one length; got shapes \(3,\) and \(2,\)"),
        ([[1, 2, 3]], [[1, 2, 3]], r"got shapes \(1, 3\)"),
        ([0, 1, 2], [1, 2, 3], r"lengths\[0\] is 0; only finite numbers above 0"),
        ([1, 2, 3], [1, -2, 3], r"values\[1\] is -2"),
        ([1, 2, 3], [1, 2, math.nan], r"values\[2\] is nan"),
        ([1, 2, math.inf], [1, 2, 3], r"lengths\[2\] is inf"),
        ([1, 1, 2], [1, 2, 3], r"must grow from each to the next; got \[1.0, 1.0, 2.0\]"),
    ],
)
def test_points_that_have_no_slope_are_refused(lengths, values, message):
    with pytest.raises(ValueError, match=message):
        fit_slope(lengths, values)


def test_one_point_has_no_local_slope():
    with pytest.raises(ValueError, match="1 points are too few; pass at least 2"):
        local_slopes([1], [1])
