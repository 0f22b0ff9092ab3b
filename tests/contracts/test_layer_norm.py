"""The contract of layer norm accepts what is right and refuses what is wrong."""

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from course_lib.contracts import check_layer_norm_contract
from course_lib.contracts.norm import norms
from course_lib.contracts.norm.norms import by_library, by_loops, drawn, right_gradients

from .trial import verdict, violation_of
from .variants_layer_norm import norm_by_library as librarys
from .variants_layer_norm import norm_in_numpy

violation = partial(violation_of, check_layer_norm_contract)


def test_the_figures_tell_how_exact_a_layer_norm_is():
    report = check_layer_norm_contract(librarys)
    assert report["output_max_error"] < 1e-12
    assert report["gradient_max_error"] < 1e-10
    assert report["token_leak"] == 0
    assert report["large_mean_max_error"] < 1e-8
    assert 0 < report["float32_max_error"] < 1e-5
    assert report.unchecked == ()


def test_outside_torch_gradients_are_not_asked_for_and_the_report_says_so():
    report = check_layer_norm_contract(norm_in_numpy)
    assert report.unchecked == ("gradients",)
    assert "gradients" not in [clause.name for clause in report.clauses]
    assert math.isnan(report["gradient_max_error"])


def test_the_failing_input_is_cut_down_to_a_few_numbers():
    for name in ("variance_over_n_minus_1", "eps_fixed", "bias_before_gain", "one_plus_gain"):
        caught = verdict("layer_norm", "mistake", name).violation
        assert caught.failing_input["x"].numel() <= 2, name
    leak = verdict("layer_norm", "mistake", "statistics_over_time").violation
    assert leak.failing_input["x"].numel() <= 4


def test_two_mistakes_at_once_are_named_both():
    def norm(x, gain, bias, eps=1e-6):
        return gain * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps) + bias

    assert violation(norm).mistakes == ("unbiased_std_plus_eps", "default_eps_1e_6")

    def another(x, gain, bias, eps=1e-5):
        centred = x - x.mean(1, keepdim=True) if x.dim() > 2 else x - x.mean(-1, keepdim=True)
        axis = 1 if x.dim() > 2 else -1
        return centred / (centred.square().mean(axis, keepdim=True) + eps).sqrt() * gain - bias

    assert violation(another).mistakes == ("statistics_over_time", "bias_subtracted")


def test_a_module_behind_an_adapter_is_accepted():
    def norm(x, gain, bias, eps=1e-5):
        module = nn.LayerNorm(x.shape[-1], eps=eps, dtype=x.dtype)
        return torch.func.functional_call(module, {"weight": gain, "bias": bias}, (x,))

    assert check_layer_norm_contract(norm).attempted


shapes = st.lists(st.integers(1, 5), min_size=1, max_size=4)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(shapes, st.floats(1e-9, 10), st.integers(-5, 5), st.floats(-100, 100))
def test_the_references_agree_on_any_call(shape, eps, power, offset):
    case = drawn(1, *shape, eps=eps, size=10.0**power, offset=offset)
    want = by_library(case)
    assert ((by_loops(case) - want).abs() <= 1e-8 * want.abs().clamp(min=1)).all()


@settings(max_examples=25, deadline=None, derandomize=True)
@given(shapes, st.floats(1e-4, 10))
def test_the_gradients_agree_on_any_call(shape, eps):
    slopes = right_gradients(drawn(2, *shape, eps=eps)).values()
    assert all(torch.isfinite(slope).all() for slope in slopes)


def test_gradients_that_disagree_stop_the_contract(monkeypatch):
    class Detached:
        @staticmethod
        def layer_norm(x, shape, gain, bias, eps):
            return F.layer_norm(x, shape, gain, bias, eps) + 0 * x + x - x.detach()

    case = drawn(3, 2, 4)
    monkeypatch.setattr(norms, "F", Detached)
    with pytest.raises(RuntimeError, match="two references for the gradients disagree"):
        right_gradients(case)


def test_a_scale_that_only_far_numbers_get_is_not_taken_for_rounding():
    assert verdict("layer_norm", "wrong", "scaled far from 0").violation.mistakes == ()
