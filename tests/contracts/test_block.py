"""The contract of a pre-norm block accepts what is right and refuses what is wrong."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.contracts import check_block_contract
from course_lib.contracts.block import layers

from .trial import verdict, violation_of
from .variants_block import block_by_branches, block_in_numpy, block_plain

violation = partial(violation_of, check_block_contract)


def test_the_figures_tell_how_exact_a_block_is():
    report = check_block_contract(block_by_branches)
    assert report["stream_max_error"] == 0
    assert report["output_max_error"] < 1e-12
    assert report["gradient_max_error"] < 1e-12
    assert 0 < report["float32_max_error"] < 3e-5
    assert report.unchecked == ()


def test_outside_torch_gradients_are_not_asked_for_and_the_report_says_so():
    report = check_block_contract(block_in_numpy)
    assert report.unchecked == ("gradients",)
    assert math.isnan(report["gradient_max_error"])


def test_the_failing_input_is_cut_down_to_plain_sublayers():
    caught = verdict("block", "mistake", "parallel").violation
    assert caught.failing_input["x"].tolist() == [[1.0]]
    assert {str(caught.failing_input[name]) for name in layers.NAMES} == {"v -> v"}
    assert caught.mismatches[0] == ("result", (0, 0), 3.0, 4.0)


def test_the_failing_input_shows_the_fault_again():
    caught = verdict("block", "mistake", "attend_called_twice").violation
    arguments = dict(caught.failing_input)
    assert all(isinstance(arguments[name], layers.Watcher) for name in layers.NAMES)

    def block(x, norm1, attend, norm2, feed):
        attend(norm1(x))
        return block_plain(x, norm1, attend, norm2, feed)

    result = block(**arguments).flatten()[0].item()
    assert result == pytest.approx(caught.mismatches[0].got)


def test_two_mistakes_at_once_are_named_both():
    def block(x, norm1, attend, norm2, feed):
        x = attend(norm1(x))
        return x + norm2(feed(x))

    assert violation(block).mistakes == ("first_residual_missing", "norm2_after_feed")


kinds = st.lists(
    st.sampled_from(["zero", "same", "linear", "bend", "norm", "past"]), min_size=4, max_size=4
)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(kinds, st.integers(1, 3), st.integers(1, 4), st.integers(1, 4))
def test_the_references_agree_on_any_sublayers(kinds, batch, length, d):
    call = layers.drawn(1, batch, length, d, kinds=" ".join(kinds))
    assert torch.allclose(layers.by_loops(call), layers.inputs(call)[-1], atol=1e-9)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 4))
def test_the_gradients_agree_on_any_size(batch, length, d):
    slopes = layers.gradients(layers.drawn(2, batch, length, d)).values()
    assert all(torch.isfinite(slope).all() for slope in slopes)


def test_gradients_that_disagree_stop_the_contract(monkeypatch):
    monkeypatch.setattr(layers, "_outer", lambda left, right: right.T @ left)
    with pytest.raises(RuntimeError, match="two references for a block's gradients disagree"):
        layers.gradients(layers.drawn(4, 2, 3))
