"""The next-token loss's contract: shift, padding, weights, extremes - and nothing else."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers.loss.loss_utils import ForCausalLMLoss

from course_lib.contracts import check_nll_contract
from course_lib.contracts.engine.candidate import Breach
from course_lib.contracts.engine.read import number
from course_lib.contracts.likelihood.texts import (
    certain,
    drawn,
    masked,
    nats_by_library,
    nats_by_loops,
    surprised,
    text_call,
)

from .likelihoods import RIGHT_LOSSES, everything, nll_by_gather, nll_by_ignoring
from .trial import verdict, violation_of

violation = partial(violation_of, check_nll_contract)


def test_the_figures_are_the_largest_errors():
    figures = dict(check_nll_contract(nll_by_ignoring))
    assert figures["values_max_error"] < 1e-12
    assert figures["half_precision_max_error"] < 0.02
    assert all(name.endswith("_max_error") for name in figures)


@pytest.mark.parametrize("name", ["not_shifted", "padding_counted", "mean_of_rows", "sum_not_mean"])
def test_the_failing_input_is_small_and_shows_the_fault_again(name):
    caught = verdict("nll", "mistake", name).violation
    logits = caught.failing_input["logits"]
    assert logits.numel() <= 24
    want = float(nll_by_gather(*caught.failing_input.values()))
    (mismatch,) = caught.mismatches
    assert mismatch.expected == pytest.approx(want)
    assert mismatch.got != pytest.approx(want, rel=1e-4)


def test_an_unknown_bug_gets_facts_and_no_name():
    def next_token_nll(logits, token_ids, valid=None):
        return nll_by_gather(logits * 1.03, token_ids, valid)

    caught = violation(next_token_nll)
    assert caught.mistakes == ()
    assert "behaves exactly" not in caught.diagnosis
    assert "the right answer is" in caught.diagnosis


def test_two_mistakes_at_once_are_both_named():
    def next_token_nll(logits, token_ids, valid=None):
        nats = torch.nn.functional.cross_entropy(logits.mT, token_ids, reduction="none")
        return nats[everything(token_ids, valid)].sum().item()

    assert set(violation(next_token_nll).mistakes) == {"not_shifted", "sum_not_mean"}


def test_the_two_references_agree_with_a_hand_computation():
    logits = torch.tensor([[[math.log(3), 0.0], [0.0, 0.0], [9.0, 9.0]]], dtype=torch.float64)
    case = text_call(logits, torch.tensor([[1, 0, 1]]))
    want = [math.log(4 / 3), math.log(2)]
    assert nats_by_library(case).tolist() == pytest.approx(want)
    assert nats_by_loops(case).tolist() == pytest.approx(want)


@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(1, 4),
    length=st.integers(2, 7),
    vocab_size=st.integers(1, 6),
    data=st.data(),
)
@settings(max_examples=60, deadline=None)
def test_all_right_losses_agree_with_both_references(seed, rows, length, vocab_size, data):
    lengths = tuple(data.draw(st.integers(2, length)) for _ in range(rows))
    case = drawn(seed, rows, length, vocab_size, lengths)
    want = float(nats_by_library(case).mean())
    assert float(nats_by_loops(case).mean()) == pytest.approx(want, abs=1e-12)
    for loss in RIGHT_LOSSES.values():
        assert float(case.fresh().to(loss)) == pytest.approx(want, abs=1e-5)


def test_the_hand_made_inputs_are_what_they_claim():
    assert nats_by_library(certain(9, 3, 5, 6)).max() < 1e-30
    assert nats_by_library(surprised(1, 3, (500.0,))).tolist() == [500 + math.log(2)] * 2
    anywhere = nats_by_library(masked(4, ".xx.", "x.xx"))
    assert anywhere.min() == anywhere.max()


@pytest.mark.parametrize(
    ("value", "right"),
    [
        (1.5, 1.5),
        (2, 2.0),
        (torch.tensor(1.5), 1.5),
        (torch.tensor(1.5, requires_grad=True), 1.5),
        (torch.tensor([1.5]).numpy()[0], 1.5),
        (torch.tensor(1.5).numpy(), 1.5),
        (torch.tensor([1.5]), None),
        (True, None),
        ("1.5", None),
        (None, None),
        ([1.5], None),
        (1.5 + 0j, None),
    ],
)
def test_a_number_is_a_float_or_what_has_no_axes(value, right):
    if right is None:
        with pytest.raises(Breach) as caught:
            number(value, None)
        assert caught.value.clause == "result_form"
    else:
        assert number(value, None).item() == right


def test_the_loss_of_transformers_is_accepted():
    loss = ForCausalLMLoss

    def next_token_nll(logits, token_ids, valid=None):
        labels = token_ids.masked_fill(~everything(token_ids, valid), -100)
        return loss(logits, labels, vocab_size=logits.shape[-1])

    assert check_nll_contract(next_token_nll).attempted


def test_the_loss_of_transformers_with_labels_shifted_by_the_caller_is_named():
    loss = ForCausalLMLoss

    def next_token_nll(logits, token_ids, valid=None):
        labels = token_ids.masked_fill(~everything(token_ids, valid), -100)
        labels = torch.nn.functional.pad(labels, (0, 1), value=-100)[:, 1:]
        return loss(logits, labels, vocab_size=logits.shape[-1])

    assert violation(next_token_nll).mistakes == ("shifted_twice",)
