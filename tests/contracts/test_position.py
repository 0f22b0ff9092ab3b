"""The contract of sinusoidal positions accepts what is right and refuses what is wrong."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.contracts import check_position_contract
from course_lib.contracts.position import tables

from .trial import verdict, violation_of
from .variants_position import positions_by_slices, positions_by_stack

violation = partial(violation_of, check_position_contract)


def test_the_figures_tell_how_exact_a_table_is():
    report = check_position_contract(positions_by_stack)
    assert max(report["table_max_error"], report["base_max_error"]) < 1e-12
    assert report["far_max_error"] < 1e-11
    assert report["smallest_distance"] == pytest.approx(0.6453, abs=1e-4)
    narrow = check_position_contract(positions_by_slices)
    assert 1e-7 < narrow["far_max_error"] < 1e-3


def test_the_failing_call_is_cut_down():
    caught = verdict("position", "mistake", "base_ignored").violation
    assert caught.failing_input == {"length": 2, "d_model": 4, "base": 100}
    assert caught.mismatches[0].index == (1, 2)
    assert caught.mismatches[0].expected == pytest.approx(math.sin(0.1))
    cut = verdict("position", "mistake", "positions_in_bfloat16").violation
    assert cut.failing_input == {"length": 258, "d_model": 2}


def test_two_mistakes_at_once_are_named_both():
    def encoding(length, d_model, *, base=10_000.0):
        table = positions_by_stack(length, d_model, base=1000.0)
        return torch.cat((table[:, 0::2], table[:, 1::2]), dim=1)

    assert violation(encoding).mistakes == ("base_always_1000", "sines_then_cosines")


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.integers(1, 50), st.integers(1, 20), st.floats(1.5, 1e6))
def test_the_two_references_agree_on_any_call(length, pairs, base):
    call = tables.make(length, 2 * pairs, base)
    plain = [tables.by_loops(call, position) for position in range(length)]
    off = tables.by_library(call) - torch.tensor(plain, dtype=torch.float64)
    assert off.abs().max() < 1e-10


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.integers(1, 20_000), st.integers(1, 40), st.floats(1.5, 1e6))
def test_float32_is_always_within_the_tolerance(length, pairs, base):
    call = tables.make(length, 2 * pairs, base)
    off = positions_by_slices(length, 2 * pairs, base=base).double() - tables.by_library(call)
    assert (off.abs() <= tables.tolerance(call)).all()


def test_loops_that_disagree_with_the_library_stop_the_contract(monkeypatch):
    loops = tables.by_loops
    monkeypatch.setattr(tables, "by_loops", lambda call, row: [-n for n in loops(call, row)])
    with pytest.raises(RuntimeError, match="two references for positions disagree"):
        check_position_contract(positions_by_stack)
