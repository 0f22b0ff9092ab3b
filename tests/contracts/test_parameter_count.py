"""The parameter count's contract accepts what is right and refuses what is wrong."""

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from course_lib.contracts import check_parameter_count_contract
from course_lib.contracts.count import parameter_count
from course_lib.contracts.count.modules import PARTS, ModuleCall
from course_lib.contracts.count.parameter_count import count_by_library, count_by_walking
from course_lib.tiny_lm import TinyLM

from .trial import verdict, violation_of
from .variants_parameter_count import count_by_loop, count_trainable

violation = partial(violation_of, check_parameter_count_contract)


def test_the_figures_and_the_note_say_what_was_left_open():
    report = check_parameter_count_contract(count_by_loop)
    assert dict(report) == {
        "tied_count": 7 * 4 + 20,
        "large_count": 65_537 * 65_536,
        "frozen_counted": 1.0,
    }
    assert "are counted; counting them or not is up to you" in report.notes[0]
    trainable = check_parameter_count_contract(count_trainable)
    assert trainable["frozen_counted"] == 0.0
    assert "are left out; counting them or not is up to you" in trainable.notes[0]


def test_the_right_counts_by_hand():
    by_hand = {
        "linear": 20,
        "no_bias": 28,
        "embedding": 33,
        "conv": 33,
        "attention": 4 * 36 + 4 * 6,
        "scalar": 4,
        "tied": 48,
        "untied": 56,
        "module_twice": 24,
        "two_names": 10,
        "deep_share": 7,
        "equals": 18,
        "views": 12,
        "buffers": 3,
        "empty": 1,
        "nothing": 0,
        "large": 65_537 * 65_536,
    }
    for part, count in by_hand.items():
        module = ModuleCall((part,)).module()
        assert count_by_walking(module) == count_by_library(module) == count


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(sorted(PARTS)), min_size=1), st.integers(0, 4))
def test_the_two_references_agree_on_any_module(parts, more):
    module = ModuleCall(tuple(parts), more).module()
    assert count_by_walking(module) == count_by_library(module)


def test_references_that_disagree_stop_the_contract(monkeypatch):
    monkeypatch.setattr(parameter_count, "count_by_walking", lambda module: 1)
    with pytest.raises(RuntimeError, match="references for the parameter count disagree"):
        check_parameter_count_contract(count_by_loop)


def test_the_failing_module_is_cut_down_and_readable():
    caught = violation(lambda m: count_by_loop(m) + (len(list(m.modules())) > 20))
    assert len(list(caught.failing_input["module"].children())) < 16
    tied = verdict("parameter_count", "mistake", "shared_counted_twice")
    assert "head.weight is embedding.weight" in tied.message
    assert tied.violation.mismatches[0] == ("count", (), 76, 48)
    assert "76 counted where 48 are right: +28" in tied.violation.diagnosis


def test_a_model_of_the_course_counts_the_same_by_both_references():
    model = TinyLM(vocab_size=7, d_model=4, n_heads=2, d_ff=8)
    assert count_by_walking(model) == count_by_library(model)


def test_two_mistakes_at_once_are_named_together():
    def count(module):
        tensors = [p for _, p in module.named_parameters(remove_duplicate=False)]
        return sum(sum(p.shape) for p in tensors)

    assert set(violation(count).mistakes) == {"shared_counted_twice", "shape_summed"}


def test_an_unknown_bug_gets_facts_and_no_name():
    caught = violation(lambda module: count_by_loop(module) * 3 + 5)
    assert caught.mistakes == ()
    assert "counted where" in caught.diagnosis


def test_a_recursion_that_counts_shared_ones_twice_is_named():
    caught = verdict("parameter_count", "wrong", "recursion without memory").violation
    assert caught.mistakes == ("shared_counted_twice",)


@pytest.mark.parametrize("name", ["gradients zeroed", "switched to train"])
def test_the_changed_part_of_the_module_is_told(name):
    assert "counting changed the module: " in (
        verdict("parameter_count", "wrong", name).violation.diagnosis
    )


def test_nothing_large_is_allocated():
    module = ModuleCall(("large", "large_tied")).module()
    assert all(parameter.is_meta for parameter in module.parameters())
    assert isinstance(module, nn.Sequential)
    assert torch.get_default_dtype() == torch.float32
