"""The causality contract: what leaks is seen, whatever the weights, and nothing else is."""

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from course_lib.contracts import check_causality_contract
from course_lib.contracts.causality.patterns import named_pattern
from course_lib.contracts.causality.texts import (
    CausalityCase,
    CausalityTexts,
    logit_spread,
    logits_apart,
)
from course_lib.tiny_lm import TinyLM

from .language_models import LM, NormOverItems, NormOverTime, TorchLM, V, causal, open_
from .trial import verdict, violation_of
from .variants_causality import LENGTH, added, bag_of_the_past, filled, future_added, when

violation = partial(violation_of, check_causality_contract, vocab_size=V, length=LENGTH)


def one_ahead(ids):
    return torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril(1)


def far_ahead(ids):
    """Every place reads itself, the past, and the one token that comes three later."""
    return causal(ids) | torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).triu(3).tril(3)


def open_prefix(ids):
    """The first five tokens read one another."""
    rule = causal(ids).clone()
    rule[..., :5, :5] = True
    return rule


@pytest.mark.parametrize("rule", [far_ahead, open_prefix])
def test_a_leak_that_no_mistake_makes_gets_no_name(rule):
    caught = violation(LM(11, rules=[[rule] * 2]))
    assert caught.clause == "later_token"
    assert not caught.mistakes


HIDING_NOTHING = {"mask_missing", "summary_over_time"}
NEXT_TOKEN = {"one_ahead", "symmetric_convolution", "next_token_added"}


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda seed, n: LM(seed, rules=[[open_] * 2] * n), HIDING_NOTHING),
        (lambda seed, n: LM(seed, rules=[[causal, open_]] * n), HIDING_NOTHING),
        (lambda seed, n: LM(seed, layers=n, weigh=added), HIDING_NOTHING),
        (lambda seed, n: LM(seed, layers=n, norm=NormOverTime()), HIDING_NOTHING),
        (lambda seed, n: TorchLM(seed, layers=n, mask=False), HIDING_NOTHING),
        (lambda seed, n: LM(seed, rules=[[one_ahead] * 2] * n), NEXT_TOKEN),
        (
            lambda seed, n: LM(seed, rules=[[lambda ids: causal(ids).mT] * 2] * n),
            {"mask_transposed", "mask_inverted", "read_backwards"},
        ),
        (
            lambda seed, n: LM(seed, rules=[[when(lambda ids: ids.shape[1] > 6)] * 2] * n),
            {"mask_table_too_small"},
        ),
        (
            lambda seed, n: LM(seed, layers=n, finish=lambda x, ids: x.roll(-1, 1)),
            {"logits_shifted"},
        ),
        (lambda seed, n: LM(seed, layers=n, dropout=0.2).train(), {"dropout_active"}),
    ],
)
def test_the_names_do_not_depend_on_the_weights(make, names, layers):
    for seed in (11, 12):
        assert set(violation(make(seed, layers)).mistakes) == names


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_random_causal_models_are_accepted(layers):
    for seed in (21, 22):
        for model in (LM(seed, layers=layers), TorchLM(seed, layers=layers)):
            report = check_causality_contract(model, vocab_size=V, length=LENGTH)
            assert report["leak"] == 0.0
            assert report["past_effect"] > 0.0


@pytest.mark.parametrize(("vocab_size", "length"), [(2, 2), (2, 5), (3, 2), (40, 33)])
def test_other_vocabularies_and_lengths(vocab_size, length):
    model = TinyLM(vocab_size=vocab_size, d_model=8, n_heads=2, d_ff=8, max_length=length)
    sizes = {"vocab_size": vocab_size, "length": length}
    assert check_causality_contract(model, **sizes).attempted

    def peeping(token_ids):
        return model(token_ids) + model(token_ids).mean(1, keepdim=True)

    assert violation(peeping, **sizes).clause == "later_token"


def test_the_figures_tell_what_is_not_demanded():
    blind = check_causality_contract(lambda ids: torch.eye(V)[ids], vocab_size=V, length=LENGTH)
    assert blind["past_effect"] == 0.0
    assert "(0: the past is not read)" in blind.notes[0]
    moving = verdict("causality", "right", "positions from the end").report
    assert moving["cut_effect"] > 0.1
    assert moving["leak"] == 0.0


@pytest.mark.parametrize("part", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_small_leak_is_seen_in_either_precision(part, dtype):
    assert violation(lambda ids: future_added(part)(ids).to(dtype)).clause == "later_token"


def test_a_finite_fill_that_lets_a_little_through_is_seen():
    model = LM(5, rules=[[causal] * 2] * 2, weigh=filled(-10.0))
    caught = violation(model)
    assert caught.clause == "later_token"
    assert 1e-5 < caught.measured < 1e-2


def test_a_module_is_left_as_it_was():
    model = LM(7, norm=NormOverItems()).train()
    mode = [part.training for part in model.modules()]
    before = {name: value.clone() for name, value in model.state_dict().items()}
    violation(model)
    after = model.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())
    assert mode == [part.training for part in model.modules()]
    assert all(parameter.grad is None for parameter in model.parameters())


def test_the_failing_texts_are_cut_down_to_the_shortest():
    caught = verdict("causality", "mistake", "mask_missing").violation
    before, after = caught.failing_input["token_ids"], caught.failing_input["changed_token_ids"]
    assert before.shape == after.shape == (1, 2)
    assert before[0, 0] == after[0, 0]
    assert before[0, 1] != after[0, 1]
    assert caught.mismatches[0].index[:2] == (0, 0)
    late = verdict("causality", "mistake", "mask_table_too_small").violation
    assert late.failing_input["token_ids"].shape == (1, 5)


@pytest.mark.parametrize(
    ("model", "sizes", "error", "words"),
    [
        ("lm", {}, TypeError, "model must be a function or a module, got str"),
        (bag_of_the_past, {"length": 1}, ValueError, "length must be at least 2, got 1"),
        (bag_of_the_past, {"vocab_size": 1}, ValueError, "vocab_size must be at least 2, got 1"),
        (bag_of_the_past, {"length": 2.0}, TypeError, "length must be an integer"),
    ],
)
def test_errors_at_the_door(model, sizes, error, words):
    with pytest.raises(error, match=words):
        check_causality_contract(model, **{"vocab_size": V, "length": LENGTH, **sizes})


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 60), st.integers(2, 70), st.integers(0, 3))
def test_a_changed_text_differs_exactly_where_it_should(vocab_size, length, seed):
    texts = CausalityTexts(vocab_size, length, seed=seed)
    text = texts.text(length)
    place = texts.places(length)[-1]
    for changed in (
        texts.changed_at(text, place, texts.other(text[place])),
        texts.changed_from(text, place),
    ):
        case = CausalityCase((text,), (changed,))
        assert case.kept() == [place]
        assert all(0 <= token < vocab_size for token in changed)
        for smaller in case.smaller():
            assert len(smaller.before) == len(smaller.after) >= 1
            assert len(smaller.before[0]) == len(smaller.after[0]) >= 1
    assert texts.lengths()[-1] == length
    assert 0 not in CausalityTexts(vocab_size, length, least=1).text()


def test_the_spread_is_not_blown_up_by_one_forbidden_token():
    logits = torch.randn(3, 5, 9, generator=torch.Generator().manual_seed(1))
    forbidden = logits.clone()
    forbidden[..., 2] = -1e9
    assert 0.5 < logit_spread(logits) / logit_spread(forbidden) < 2
    assert logit_spread(torch.zeros(1, 2, 3)) == 1.0


def test_rounding_is_no_leak_and_a_thousandth_is():
    logits = torch.linspace(-3, 3, 60).reshape(1, 5, 12)
    assert logits_apart(logits, logits * (1 + 1e-7)).max() == 0
    assert logits_apart(logits, logits + 1e-3).min() > 1e-4


@pytest.mark.parametrize(
    ("pairs", "word"),
    [
        ([(0, 1), (1, 2), (2, 3), (3, 4)], "near"),
        ([(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (2, 4), (3, 4)], "near"),
        ([(0, 4), (1, 4), (2, 4), (3, 4)], "end"),
        ([(0, 4)], "end"),
        ([(0, 1), (2, 3)], "chunks"),
        ([(0, 1), (0, 2), (1, 2), (3, 4)], "chunks"),
        ([(i, j) for i in range(5) for j in range(i + 1, 5)], "all"),
        ([(0, 2)], "[(0, 2)]"),
    ],
)
def test_patterns_have_words(pairs, word):
    assert named_pattern(pairs, 5) == word


def test_ids_go_where_the_module_is():
    class Meta(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.empty(1, device="meta"))

        def forward(self, token_ids):
            raise RuntimeError(str(token_ids.device))

    assert "meta" in violation(Meta()).diagnosis
