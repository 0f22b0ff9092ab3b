"""The generation's contract: its scripted models, its references, and what it says."""

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.contracts import check_generation_contract
from course_lib.contracts.generation import judges
from course_lib.contracts.generation.mistakes import mistaken_generation
from course_lib.contracts.generation.model import (
    GenerationCase,
    generation_by_model,
    generation_by_rule,
)

from .trial import verdict, violation_of
from .variants_generation import RIGHT, fixed_number, only_tensors, plain_loop

violation = partial(violation_of, check_generation_contract)


@st.composite
def generation_cases(draw):
    vocab_size = draw(st.integers(2, 7))
    tokens = st.integers(0, vocab_size - 1)
    prompt = tuple(draw(st.lists(tokens, min_size=1, max_size=5)))
    script = tuple(draw(st.lists(tokens, min_size=1, max_size=6)))
    return GenerationCase(
        prompt,
        draw(st.integers(0, 6)),
        draw(st.none() | tokens),
        draw(st.integers(len(prompt), 9)),
        vocab_size,
        draw(st.sampled_from(["sum", "place", "script"])),
        script,
        draw(st.booleans()),
    )


@settings(deadline=None)
@given(generation_cases())
def test_the_two_references_agree_with_each_other_and_with_every_right_variant(case):
    want = generation_by_rule(case)
    assert generation_by_model(case) == want
    for name, generate in RIGHT.items():
        prompt = torch.tensor(case.prompt) if generate is only_tensors else list(case.prompt)
        new_ids, reason = generate(case.model(), prompt, case.max_new_tokens, case.eos_id)
        assert ([int(token) for token in new_ids], reason) == want, name


@settings(deadline=None)
@given(generation_cases())
def test_the_models_logits_have_no_ties_and_depend_on_the_mode(case):
    model = case.model()
    trained = model.train()(torch.tensor(case.prompt))
    logits = model.eval()(torch.tensor(case.prompt))
    assert logits.shape == (len(case.prompt), case.vocab_size)
    assert all(len(set(row)) == case.vocab_size for row in logits.tolist())
    assert logits[-1].argmax() == case.next_token(case.prompt)
    assert trained[-1].argmax() != logits[-1].argmax()


def test_by_hand():
    case = GenerationCase((1, 2), 3, None, 9, rule="script", script=(0, 0, 5, 4, 3))
    assert generation_by_rule(case) == ([5, 4, 3], "length_limit")
    case = GenerationCase((1, 2), 3, 4, 9, rule="script", script=(0, 0, 5, 4, 3))
    assert generation_by_rule(case) == ([5, 4], "eos")
    case = GenerationCase((1, 2), 3, None, 2)
    assert generation_by_rule(case) == ([], "context")
    for reference in (generation_by_rule, generation_by_model):
        with pytest.raises(ValueError, match="longer than the context"):
            reference(GenerationCase((1, 2), 3, None, 1))


def test_references_that_disagree_stop_the_contract(monkeypatch):
    monkeypatch.setattr(judges, "generation_by_model", lambda case: ([], "eos"))
    with pytest.raises(RuntimeError, match="two references for the generation disagree"):
        check_generation_contract(plain_loop)


def test_the_model_refuses_what_is_no_row_of_ids():
    model = GenerationCase((1,), 1).model()
    for wrong in (torch.tensor([[1]]), torch.tensor([1.0]), [1]):
        with pytest.raises(TypeError, match=r"token ids \[T\] of dtype long"):
            model(wrong)
    with pytest.raises(IndexError, match="no tokens"):
        model(torch.tensor([], dtype=torch.long))


def test_two_mistakes_at_once_are_both_named():
    caught = violation(
        mistaken_generation(
            enter=lambda model: None, ends=lambda ids, start, eos_id, asked, size: False
        )
    )
    assert set(caught.mistakes) == {"no_eval", "never_stops_at_eos"}


def test_the_failing_call_is_small_and_shows_the_fault_again():
    for name in ("never_stops_at_eos", "only_the_prompt_fed", "context_one_too_long"):
        caught = verdict("generation", "mistake", name).violation
        shown = caught.failing_input
        assert len(shown["prompt"]) <= 2
        assert shown["max_new_tokens"] <= 2
        assert "next token" in str(shown["model"])
        fresh = {**shown, "model": shown["model"].case.model()}
        assert plain_loop(**shown) == fixed_number(**fresh)


def test_the_figures_count_the_calls_of_the_model():
    assert dict(check_generation_contract(plain_loop)) == {
        "calls_for_1_token": 1,
        "calls_for_5_tokens": 5,
    }


def test_smaller_calls_stay_legal():
    case = GenerationCase((3, 1, 4), 4, None, 9)
    for _ in range(30):
        smaller = list(case.smaller())
        if not smaller:
            break
        case = smaller[-1]
        assert case.max_length >= 1
        assert len(case.prompt) >= 1
        assert case.max_new_tokens >= 0
    assert case.max_new_tokens == 0
