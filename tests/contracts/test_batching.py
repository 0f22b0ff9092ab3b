"""The contract of batching: what wrong rows are equal to names the mistake, on any weights."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.contracts import check_batching_contract
from course_lib.contracts.batching.judges import BatchCase
from course_lib.contracts.batching.mistakes import BATCHING_MISTAKES
from course_lib.contracts.batching.observer import BatchObserver
from course_lib.contracts.batching.relations import batching_probes, explain_batching
from course_lib.contracts.batching.tiny_batch import TinyBatch

from .trial import verdict, violation_of
from .variants_batching import (
    CHECK,
    LEFT_BUGS,
    RIGHT_BUGS,
    TorchBatch,
    bag_of_tokens,
    one_after_another,
    rows_off,
)

violation = partial(violation_of, CHECK)


def observed(made):
    return BatchObserver(
        made.last_logits_one, made.last_logits_batch, made.vocab_size, made.context_length
    )


@pytest.mark.parametrize(
    ("vocab_size", "context_length", "n_layers", "seed"),
    [(13, 12, 1, 3), (40, 30, 3, 5), (17, 12, 2, 9)],
)
@pytest.mark.parametrize("mistake", BATCHING_MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_named_on_other_weights_and_sizes(
    mistake, vocab_size, context_length, n_layers, seed
):
    steps = mistake.make().steps
    made = TinyBatch(vocab_size, context_length, n_layers, seed, **steps)
    assert mistake.name in explain_batching(observed(made)).names


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("n_layers", [1, 2, 3])
@pytest.mark.parametrize(
    ("bug", "side"),
    [(bug, "left") for bug in LEFT_BUGS] + [(bug, "right") for bug in RIGHT_BUGS],
)
def test_a_mistake_is_named_in_another_framework_with_heads_and_norms(bug, side, n_layers, dtype):
    made = TorchBatch(side=side, bug=bug, n_layers=n_layers, dtype=dtype, seed=n_layers)
    assert bug in violation(made.batch()).mistakes


@pytest.mark.parametrize("make", [one_after_another, lambda: TorchBatch(vocab_size=40).batch()])
def test_right_models_stand_in_the_same_relations(make):
    tiny, other = observed(TinyBatch()), observed(make())
    for probe in batching_probes():
        assert probe.look(tiny) == probe.look(other)
    assert explain_batching(other).names == ()


@pytest.mark.parametrize(
    "where",
    [
        lambda n, prompts: len(prompts[n]) % 2 == 0,
        lambda n, prompts: n == 1,
        lambda n, prompts: sum(prompts[n]) > 12,
    ],
)
def test_an_unknown_fault_gets_facts_and_no_name(where):
    caught = violation(rows_off(where).make())
    assert caught.mistakes == ()
    assert "rows that differ from the prompt alone" in caught.diagnosis


def test_the_failing_batch_is_cut_down_and_shows_the_fault_again():
    caught = verdict("batching", "mistake", "padding_attended").violation
    prompts = caught.failing_input["prompts"]
    assert sorted(map(len, prompts)) == [1, 2]
    made = next(m for m in BATCHING_MISTAKES if m.name == "padding_attended").make()
    alone = np.stack([made.last_logits_one(prompt) for prompt in prompts])
    assert not np.allclose(made.last_logits_batch(prompts), alone)


def test_the_figures_say_what_was_measured():
    report = CHECK(TinyBatch())
    assert 0 <= report["exactly_full_error"] <= report["max_error"] < 1e-12


def test_an_error_of_the_candidate_is_chained():
    caught = verdict("batching", "wrong", "only of one length").violation
    assert isinstance(caught.__cause__, ValueError)
    assert "expected sequence" in caught.diagnosis


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((3, len, 5, 5), TypeError, "last_logits_one must be a function, got int"),
        ((len, "x", 5, 5), TypeError, "last_logits_batch must be a function, got str"),
        ((len, len, True, 5), TypeError, "vocab_size must be an integer"),
        ((len, len, 5, 0), ValueError, "context_length must be at least 1, got 0"),
    ],
)
def test_bad_arguments_are_errors_at_the_door(arguments, error, message):
    *functions, vocab_size, context_length = arguments
    with pytest.raises(error, match=message):
        check_batching_contract(*functions, vocab_size=vocab_size, context_length=context_length)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_smaller_batches_stay_well_formed(lengths, data):
    case = BatchCase(tuple(tuple(range(n)) for n in lengths))
    size = sum(lengths)
    while smaller := list(case.smaller()):
        case = data.draw(st.sampled_from(smaller))
        assert all(case.prompts)
        assert sum(map(len, case.prompts)) < size
        size = sum(map(len, case.prompts))
    assert len(case.prompts) == 1


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 9), st.integers(1, 14), st.integers(1, 3), st.integers(0, 99))
def test_right_models_of_any_size_and_weights_are_accepted(vocab_size, context, n_layers, seed):
    assert CHECK(TinyBatch(vocab_size, context, n_layers, seed)).attempted
    assert CHECK(bag_of_tokens(vocab_size, context)).attempted
