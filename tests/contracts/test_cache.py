"""The cache's contract: relations name a mistake whatever the weights are."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.contracts import check_cache_contract
from course_lib.contracts.cache.logits import logit_array
from course_lib.contracts.cache.mistakes import CACHE_MISTAKES
from course_lib.contracts.cache.observer import CacheObserver
from course_lib.contracts.cache.relations import cache_probes, explain_cache
from course_lib.contracts.cache.texts import CacheCase, cache_cuts, cut_at_powers
from course_lib.contracts.cache.tiny_decoder import TinyDecoder

from .cached_models import TORCH_BUGS, Pair, TorchLM, recurrent_pair
from .trial import verdict, violation_of
from .variants_cache import CHECK, changed, row_changed

SIZES = [  # vocabulary, context, layers, seed
    (7, 12, 1, 3),
    (40, 20, 3, 5),
    (5, 16, 2, 9),
]
NEEDS_LAYERS = {"one_cache_for_all_layers"}


violation = partial(violation_of, CHECK)


def observed(model):
    return CacheObserver(
        model.full_logits, model.cached_logits, model.vocab_size, model.context_length
    )


@pytest.mark.parametrize(("vocab_size", "context_length", "n_layers", "seed"), SIZES)
@pytest.mark.parametrize("mistake", CACHE_MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_named_on_other_weights_and_sizes(
    mistake, vocab_size, context_length, n_layers, seed
):
    if n_layers == 1 and mistake.name in NEEDS_LAYERS:
        assert mistake.name not in explain_cache(observed(TinyDecoder(n_layers=1))).names
        return
    steps = mistake.make().steps
    model = TinyDecoder(vocab_size, context_length, n_layers, seed, **steps)
    assert mistake.name in explain_cache(observed(model)).names


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize(("n_layers", "rope"), [(1, False), (2, False), (3, False)])
@pytest.mark.parametrize("bug", TORCH_BUGS)
def test_a_mistake_is_named_in_another_framework_with_heads_and_norms(bug, n_layers, rope, dtype):
    if n_layers == 1 and bug in NEEDS_LAYERS:
        assert CHECK(TorchLM(bug=bug, n_layers=1).pair()).attempted
        return
    model = TorchLM(bug=bug, n_layers=n_layers, rope=rope, dtype=dtype, seed=n_layers)
    assert bug in violation(model.pair()).mistakes


@pytest.mark.parametrize("bug", ["mask_top_left", "cache_not_reset", "pointer_one_short"])
def test_a_mistake_is_named_with_rotary_positions_too(bug):
    assert bug in violation(TorchLM(bug=bug, rope=True).pair()).mistakes


@pytest.mark.parametrize("make", [recurrent_pair, lambda: TorchLM().pair()])
def test_right_models_stand_in_the_same_relations(make):
    tiny, other = observed(TinyDecoder()), observed(make())
    for probe in cache_probes()[:-2]:
        assert probe.look(tiny) == probe.look(other)
    assert explain_cache(other).names == ()


@pytest.mark.parametrize(
    "where",
    [
        lambda t, ids, chunks: t == len(ids) - 1 and len(chunks) == 2,
        lambda t, ids, chunks: len(chunks) > 2 and t == 3,
        lambda t, ids, chunks: t % 2 and len(chunks) > 1,
    ],
)
def test_an_unknown_fault_gets_facts_and_no_name(where):
    caught = violation(changed(cached=row_changed(where)).make())
    assert caught.mistakes == ()
    assert "rows that differ from the full pass" in caught.diagnosis


def test_the_failing_text_is_cut_down():
    caught = verdict("cache", "mistake", "positions_restart").violation
    assert caught.failing_input == {"ids": caught.failing_input["ids"], "chunks": [1, 1]}
    assert caught.mismatches[0].index[0] == 1


def test_the_failing_text_shows_the_fault_again():
    model = TinyDecoder(**next(m for m in CACHE_MISTAKES if m.name == "mask_top_left").make().steps)
    shown = violation(model).failing_input
    rows = model.cached_logits(**shown)
    assert not np.allclose(rows, model.full_logits(shown["ids"]))


def test_the_figures_say_what_was_reached():
    report = CHECK(TinyDecoder())
    assert 0 <= report["max_error"] < 1e-12
    assert report["exactly_full_error"] <= report["max_error"]
    assert report["tokens_that_matter"] == 1.0
    constant = Pair(lambda ids: limited(ids), lambda ids, chunks: limited(ids))
    assert CHECK(constant)["tokens_that_matter"] == 0.0


def limited(ids):
    if len(ids) > 12:
        raise OverflowError("too long")
    return np.zeros((len(ids), 11))


def test_an_error_of_the_candidate_is_chained():
    caught = verdict("cache", "wrong", "crash on single tokens").violation
    assert isinstance(caught.__cause__, IndexError)
    assert "out of bounds" in caught.diagnosis


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("full", len, 5, 5), TypeError, "full_logits must be a function, got str"),
        ((len, None, 5, 5), TypeError, "cached_logits must be a function, got NoneType"),
        ((len, len, 0, 5), ValueError, "vocab_size must be at least 1, got 0"),
        ((len, len, 5, 2.0), TypeError, "context_length must be an integer"),
    ],
)
def test_bad_arguments_are_errors_at_the_door(arguments, error, message):
    *functions, vocab_size, context_length = arguments
    with pytest.raises(error, match=message):
        check_cache_contract(*functions, vocab_size=vocab_size, context_length=context_length)


@pytest.mark.parametrize(
    ("numbers", "kind"),
    [
        (torch.tensor([0.1, 0.7], dtype=torch.bfloat16), "bfloat16"),
        (torch.tensor([0.1, 0.7], dtype=torch.bfloat16).float(), "bfloat16"),
        (np.array([0.1, 0.7], dtype=np.float16).tolist(), "float16"),
        (np.array([0.1, 0.7], dtype=np.float32).astype(float), "float32"),
        ([0.1, 0.7], "float64"),
        (torch.tensor([0.1, 0.7], dtype=torch.float64, requires_grad=True), "float64"),
        ([[1, 2], [3, 4]], "float64"),
        ([torch.tensor([0.1, 1e300], dtype=torch.float64)], "float64"),
    ],
)
def test_the_precision_is_read_from_the_numbers(numbers, kind):
    assert logit_array(numbers).kind == kind


@pytest.mark.parametrize(
    "value", ["text", None, {"a": 1}, [[1, 2], [3]], torch.tensor([1j]), [True]]
)
def test_what_holds_no_numbers_is_no_array(value):
    with pytest.raises((TypeError, ValueError)):
        logit_array(value)


@given(st.integers(2, 40))
def test_every_cut_uses_up_the_text(length):
    for cut in (*cache_cuts(length), cut_at_powers(length)):
        assert sum(cut) == length
        assert min(cut) >= 1


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.data())
def test_smaller_texts_stay_well_formed_and_shrink(chunks, data):
    case = CacheCase(tuple(range(sum(chunks))), tuple(chunks), vocab_size=30)
    size = len(case.ids) + len(case.chunks)
    while smaller := list(case.smaller()):
        case = data.draw(st.sampled_from(smaller))
        assert sum(case.chunks) == len(case.ids) >= 1
        assert len(case.ids) + len(case.chunks) < size
        size = len(case.ids) + len(case.chunks)


@settings(max_examples=8, deadline=None)
@given(st.integers(2, 9), st.integers(1, 14), st.integers(1, 3), st.integers(0, 99))
def test_right_models_of_any_size_and_weights_are_accepted(vocab_size, context, n_layers, seed):
    assert CHECK(TinyDecoder(vocab_size, context, n_layers, seed)).attempted
