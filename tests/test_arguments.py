"""Checks at the door: what passes, what is refused, and in which words."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from course_lib.arguments import (
    check_bool,
    check_bool_tensor,
    check_finite,
    check_finite_number,
    check_finite_vector,
    check_float_tensor,
    check_heads,
    check_module,
    check_rank,
    check_same_device,
    check_stream,
    check_tensor,
    check_token_ids,
)
from course_lib.integers import check_int_at_least, check_positive_int

NOT_INTEGERS = [True, False, 3.0, np.float64(3), np.bool_(True), "3", None, torch.tensor(3)]


@pytest.mark.parametrize("value", [3, 10**30, np.int64(3), np.uint8(3)])
def test_integers_of_python_and_numpy_are_integers(value):
    check_positive_int("n", value)
    check_int_at_least("n", value, 3)


@pytest.mark.parametrize("value", NOT_INTEGERS, ids=repr)
def test_what_is_not_an_integer_is_a_type_error_that_names_it(value):
    with pytest.raises(TypeError, match=r"n_layers must be an integer, got .*\("):
        check_positive_int("n_layers", value)
    with pytest.raises(TypeError, match="n_layers must be an integer"):
        check_int_at_least("n_layers", value, 0)


@pytest.mark.parametrize(
    ("value", "minimum"), [(0, 1), (-1, 0), (-3, 1), (np.int64(-1), 0), (1, 2)]
)
def test_an_integer_below_its_minimum_is_a_value_error_with_both_numbers(value, minimum):
    with pytest.raises(ValueError, match=f"n must be at least {minimum}, got {value}"):
        check_int_at_least("n", value, minimum)


def test_a_minimum_is_itself_allowed():
    check_int_at_least("n", 0, 0)
    check_positive_int("n", 1)
    with pytest.raises(ValueError, match="at least 1, got 0"):
        check_positive_int("n", 0)


def test_only_true_and_false_are_bools():
    check_bool("causal", True)
    check_bool("causal", False)
    for value in (1, 0, None, "yes", np.bool_(True)):
        with pytest.raises(TypeError, match="causal must be True or False, got"):
            check_bool("causal", value)


def test_only_modules_are_modules():
    check_module("model", torch.nn.Linear(1, 1))
    for value in (len, None, torch.nn.Linear):
        with pytest.raises(TypeError, match=r"model must be a torch.nn.Module, got \w+"):
            check_module("model", value)


@pytest.mark.parametrize("value", [0, -2, 0.5, np.float32(1.5), np.int64(2), Fraction(1, 3), 1e308])
def test_finite_numbers_pass(value):
    check_finite_number("base", value)


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, np.float32("nan"), 10**400], ids=str
)
def test_numbers_no_float_can_hold_are_value_errors(value):
    with pytest.raises(ValueError, match="base must be finite"):
        check_finite_number("base", value)


@pytest.mark.parametrize("value", [True, "1", None, 1j, torch.tensor(1.0)], ids=repr)
def test_what_is_not_a_real_number_is_a_type_error(value):
    with pytest.raises(TypeError, match="base must be a number"):
        check_finite_number("base", value)


@pytest.mark.parametrize(
    "values", [[0.5], (1, 2.0), np.array([1.0, 2.0]), [np.float32(3)]], ids=repr
)
def test_lists_of_finite_numbers_pass(values):
    check_finite_vector("logits", values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "non-empty list"),
        (3.0, "non-empty list"),
        pytest.param(iter([1.0]), "non-empty list", id="iterator"),
        (torch.ones(2), r"call .tolist\(\)"),
        ([1.0, math.nan], r"logits\[1\] must be a finite number, got nan"),
        ([-math.inf], r"logits\[0\] must be a finite number"),
        ([0.0, True], r"logits\[1\] must be a finite number, got True"),
        (["1"], r"logits\[0\]"),
        ("12", r"logits\[0\]"),
        ([[1.0]], r"logits\[0\]"),
        (np.ones((2, 2)), r"logits\[0\]"),
    ],
    ids=repr,
)
def test_other_vectors_are_value_errors(values, message):
    with pytest.raises(ValueError, match=message):
        check_finite_vector("logits", values)


def test_tensors_of_the_wrong_kind_are_refused():
    with pytest.raises(TypeError, match=r"q must be a torch.Tensor, got list"):
        check_tensor("q", [1.0])
    with pytest.raises(ValueError, match=r"q has an empty axis: shape \[2, 0\]"):
        check_tensor("q", torch.ones(2, 0))
    for dtype in (torch.int64, torch.bool, torch.complex64):
        with pytest.raises(TypeError, match=f"q must hold floating-point numbers, got {dtype}"):
            check_float_tensor("q", torch.ones(2, dtype=dtype))
    for dtype in (torch.float32, torch.uint8, torch.int64):
        with pytest.raises(TypeError, match=r"allowed must be a bool tensor \(True = may read\)"):
            check_bool_tensor("allowed", torch.ones(2, dtype=dtype), "True = may read")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_float_tensors_pass(dtype):
    check_float_tensor("q", torch.ones(2, dtype=dtype))
    check_finite("q", torch.ones(2, dtype=dtype))


def test_a_value_that_is_not_finite_is_shown_with_its_place():
    x = torch.zeros(2, 3)
    x[1, 2] = math.nan
    x[1, 1] = -math.inf
    with pytest.raises(
        ValueError, match=r"x must be finite, but 2 of its 6 .* is -inf at \[1, 1\]"
    ):
        check_finite("x", x)


def test_two_devices_are_a_value_error_with_both():
    with pytest.raises(ValueError, match="k is on meta but q is on cpu"):
        check_same_device("k", torch.ones(1, device="meta"), "q", torch.ones(1))
    check_same_device("k", torch.ones(1), "q", torch.ones(1))


def test_a_rank_is_told_by_its_axes():
    check_rank("ids", torch.ones(2, 3), "[B, T]")
    with pytest.raises(ValueError, match=r"ids must have shape \[B, T\], got \[2\]"):
        check_rank("ids", torch.ones(2), "[B, T]")


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (torch.ones(2, 4), ValueError, r"shape \[B, T, d_model\], got \[2, 4\]"),
        (torch.ones(2, 3, 5), ValueError, "width 5 but the layer has d_model=4"),
        (
            torch.ones(2, 3, 4, dtype=torch.float64),
            TypeError,
            "x is torch.float64 but up.weight is",
        ),
        (torch.ones(2, 3, 4, dtype=torch.long), TypeError, "floating-point"),
        (torch.ones(2, 3, 4, device="meta"), ValueError, "x is on meta"),
        (torch.ones(2, 0, 4), ValueError, "empty axis"),
        (torch.full((2, 3, 4), math.inf), ValueError, "must be finite"),
        (None, TypeError, "torch.Tensor"),
    ],
)
def test_a_stream_that_does_not_fit_its_layer_is_refused(x, error, message):
    weight = torch.ones(8, 4)  # [d_out, d_model]
    check_stream("x", torch.ones(2, 3, 4), "up.weight", weight)
    with pytest.raises(error, match=message):
        check_stream("x", x, "up.weight", weight)


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (torch.tensor([[0, 6]]), ValueError, "holds id 6, outside the vocabulary of 6 ids"),
        (torch.tensor([[0, -1]]), ValueError, "holds id -1, outside"),
        (torch.tensor([0, 1]), ValueError, r"shape \[B, T\]"),
        (torch.tensor([[0, 1]], dtype=torch.int32), TypeError, "torch.long ids, got torch.int32"),
        (torch.tensor([[0.0]]), TypeError, "torch.long"),
        (torch.tensor([[True]]), TypeError, "torch.long"),
        (torch.ones(1, 0, dtype=torch.long), ValueError, "empty axis"),
        ([[0, 1]], TypeError, "torch.Tensor"),
    ],
)
def test_ids_that_are_no_ids_are_refused(ids, error, message):
    check_token_ids("token_ids", torch.tensor([[0, 5]]), "[B, T]", 6)
    with pytest.raises(error, match=message):
        check_token_ids("token_ids", ids, "[B, T]", 6)


def test_a_width_must_split_evenly_into_heads():
    check_heads(12, 3)
    with pytest.raises(ValueError, match="d_model=30 is not divisible by n_heads=8"):
        check_heads(30, 8)
    with pytest.raises(ValueError, match="n_heads must be at least 1, got 0"):
        check_heads(4, 0)
    with pytest.raises(TypeError, match="d_model must be an integer"):
        check_heads(4.0, 2)
