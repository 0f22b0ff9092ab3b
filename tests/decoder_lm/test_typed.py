"""The typed decoder: right against torch, the same through every chunking, loud when it fails."""

import copy
import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.contracts.generation.generation import check_generation_contract
from course_lib.contracts.likelihood.log_likelihood import check_log_likelihood_contract
from course_lib.decoder_lm import typed, typed_model
from course_lib.decoder_lm.shape import as_lists, random_parameters
from course_lib.decoder_lm.typed import (
    CacheExhausted,
    CausalityViolation,
    ContextOverflow,
    DecodeStats,
    ModelShape,
    SamplingConfig,
    ShapeMismatch,
    TokenScore,
    TypedDecoder,
    assert_causal,
    assert_causal_by_perturbation,
    fit_context,
)
from course_lib.decoder_lm.typed_model import attend_with_past

quick = settings(max_examples=40, deadline=None, derandomize=True)
SHAPE = ModelShape(n_layers=2, d_model=12, n_heads=3, context_length=10, vocab_size=17)
PARAMS = random_parameters(SHAPE, d_ff=20, seed=7)
GREEDY = SamplingConfig(temperature=0)
TEXT = [3, 16, 0, 5, 5, 9, 12, 1, 7, 2]


def decoder():
    return TypedDecoder(PARAMS, SHAPE)


def torch_logits(ids, params, n_heads):
    """The same model from torch's own parts, in float64."""
    p = {
        name: torch.tensor(value, dtype=torch.float64)
        for name, value in params.items()
        if name != "blocks"
    }
    width, d_model = len(ids), p["token_embedding"].shape[1]
    x = p["token_embedding"][list(ids)] + p["position_embedding"][:width]
    for arrays in params["blocks"]:
        b = {name: torch.tensor(value, dtype=torch.float64) for name, value in arrays.items()}
        y = F.layer_norm(x, (d_model,), b["ln1_gain"], b["ln1_bias"], 1e-5)
        q, k, v = (
            F.linear(y, b["w" + part].T, b["b" + part]).view(width, n_heads, -1).transpose(0, 1)
            for part in "qkv"
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + F.linear(mixed.transpose(0, 1).reshape(width, d_model), b["wo"].T, b["bo"])
        y = F.layer_norm(x, (d_model,), b["ln2_gain"], b["ln2_bias"], 1e-5)
        hidden = F.gelu(F.linear(y, b["w1"].T, b["b1"]), approximate="tanh")
        x = x + F.linear(hidden, b["w2"].T, b["b2"])
    x = F.layer_norm(x, (d_model,), p["final_gain"], p["final_bias"], 1e-5)
    return (x @ p["unembedding"] + p["unembedding_bias"]).numpy()


def random_texts(vocab_size=17, max_size=10):
    return st.lists(st.integers(0, vocab_size - 1), min_size=1, max_size=max_size)


@st.composite
def cut_texts(draw):
    """A text and widths that sum to its length."""
    ids = draw(random_texts())
    ends = draw(st.sets(st.integers(1, len(ids)))) | {len(ids)}
    starts = [0, *sorted(ends)[:-1]]
    return ids, [ids[a:b] for a, b in zip(starts, sorted(ends), strict=True)]


@pytest.mark.parametrize("sizes", [(1, 2, 1, 3, 5), (3, 8, 4, 6, 11), (2, 12, 3, 10, 17)], ids=str)
def test_the_logits_are_torchs(sizes):
    shape = ModelShape(*sizes)
    params = random_parameters(shape, d_ff=shape.d_model + 5, seed=sum(sizes))
    rng = np.random.default_rng(1)
    for length in range(1, shape.context_length + 1):
        ids = rng.integers(shape.vocab_size, size=length).tolist()
        expected = torch_logits(ids, params, shape.n_heads)
        for given_params in (params, as_lists(params)):
            logits = TypedDecoder(given_params, shape).full_logits(ids)
            np.testing.assert_allclose(logits, expected, atol=1e-11, rtol=0)
            assert logits.dtype == np.float64


@quick
@given(random_texts())
def test_every_entry_of_the_parameters_has_its_part_in_the_logits(ids):
    """A decoder that ignored one would differ from torch, which reads them all."""
    np.testing.assert_allclose(
        decoder().full_logits(ids), torch_logits(ids, PARAMS, 3), atol=1e-11, rtol=0
    )


@quick
@given(cut_texts())
def test_any_chunking_gives_the_logits_of_the_full_pass(cut):
    ids, chunks = cut
    model = decoder()
    full = model.full_logits(ids)
    rows = [model.prefill(chunks[0]), *(model.extend(chunk) for chunk in chunks[1:])]
    np.testing.assert_allclose(np.concatenate(rows), full, atol=1e-10, rtol=0)
    assert model.cache.length == len(ids)


@quick
@given(random_texts(), random_texts())
def test_two_prompts_in_a_row_through_one_cache_do_not_meet(a, b):
    model = decoder()
    for ids in (a, b, a):
        first = model.prefill(ids[:1])
        rows = [first[0], *(model.decode(token) for token in ids[1:])]
        np.testing.assert_allclose(np.stack(rows), model.full_logits(ids), atol=1e-10, rtol=0)


@pytest.mark.parametrize("widths", [[10], [1] * 10, [4, 2, 1, 3], [3, 2, 4, 1], [9, 1]], ids=str)
def test_the_equality_holds_up_to_exactly_the_context(widths):
    model = decoder()
    ends = list(itertools.accumulate(widths))
    rows = [model.extend(TEXT[end - width : end]) for width, end in zip(widths, ends, strict=True)]
    np.testing.assert_allclose(
        np.concatenate(rows), torch_logits(TEXT, PARAMS, 3), atol=1e-10, rtol=0
    )


def test_decode_gives_one_row_and_extend_a_row_for_each_token():
    model = decoder()
    assert model.extend(TEXT[:3]).shape == (3, 17)
    assert model.decode(TEXT[3]).shape == (17,)
    assert model.full_logits(TEXT[:1]).shape == (1, 17)


def test_reading_without_the_cache_leaves_the_cache_alone():
    model = decoder()
    model.prefill(TEXT[:4])
    model.full_logits(TEXT)
    model.score(TEXT)
    model.attention_weights(TEXT)
    assert model.cache.length == 4
    np.testing.assert_allclose(
        model.decode(TEXT[4]), model.full_logits(TEXT[:5])[-1], atol=1e-10, rtol=0
    )


def test_attention_to_the_past_is_that_of_torch_with_an_offset_mask():
    rng = np.random.default_rng(4)
    q, (k, v) = rng.normal(size=(3, 2, 4)), rng.normal(size=(2, 3, 5, 4))
    mixed, weights = attend_with_past(q, k, v)
    allowed = torch.tensor([[True, True, True, True, False], [True] * 5])
    expected = F.scaled_dot_product_attention(*map(torch.tensor, (q, k, v)), attn_mask=allowed)
    np.testing.assert_allclose(mixed, expected, atol=1e-13)
    np.testing.assert_allclose(weights @ v, mixed, atol=1e-13)
    assert (weights[:, 0, 4] == 0).all()
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-13)


def test_the_weights_are_causal_and_so_is_the_output():
    model = decoder()
    weights = model.attention_weights(TEXT)
    assert weights.shape == (2, 3, 10, 10)
    assert_causal(weights)
    assert_causal_by_perturbation(model, TEXT, 17)
    assert_causal_by_perturbation(model.full_logits, TEXT, 17)


def test_a_lost_mask_is_caught_by_both_guards(monkeypatch):
    def lost(rows, columns, *_, dtype):
        return np.ones((rows, columns), dtype)

    model = decoder()
    monkeypatch.setattr(np, "tri", lost)
    weights = model.attention_weights(TEXT)
    with pytest.raises(CausalityViolation, match="changing the token at position 1 from 16 to 0"):
        assert_causal_by_perturbation(model, TEXT, 17)
    monkeypatch.undo()
    with pytest.raises(CausalityViolation, match="^270 attention weights"):  # 2 * 3 * 45
        assert_causal(weights)


def test_a_text_is_scored_with_the_models_own_log_probabilities():
    scores = decoder().score(TEXT)
    expected = torch.tensor(torch_logits(TEXT, PARAMS, 3)).log_softmax(-1)
    assert [score.token for score in scores] == TEXT[1:]
    for place, score in enumerate(scores):
        assert type(score.token) is int
        assert type(score.log_probability) is float
        wanted = float(expected[place, TEXT[place + 1]])
        assert score.log_probability == pytest.approx(wanted, abs=1e-11)


def test_a_single_token_has_no_score_and_probabilities_sum_to_one():
    model = decoder()
    assert model.score([3]) == []
    total = sum(math.exp(model.score([3, token])[0].log_probability) for token in range(17))
    assert total == pytest.approx(1, abs=1e-12)


def test_the_sum_of_scores_is_held_to_the_log_likelihood_contract():
    class Prepared(TypedDecoder):
        def __init__(self, logits):
            self.logits = logits

        def full_logits(self, token_ids):
            return self.logits

    def exact_log_likelihood(logits, token_ids):
        scores = Prepared(logits.numpy()).score(token_ids.tolist())
        return math.fsum(score.log_probability for score in scores)

    report = check_log_likelihood_contract(exact_log_likelihood)
    assert report.attempted
    assert len(report.clauses) == 8


def by_recomputing(prompt, count):
    """Greedy tokens and log-probabilities by torch, the whole text anew for each."""
    ids, found = list(prompt), []
    for _ in range(count):
        log_probs = torch.tensor(torch_logits(ids, PARAMS, 3)[-1]).log_softmax(0)
        ids.append(int(log_probs.argmax()))
        found.append((ids[-1], float(log_probs[ids[-1]])))
    return found


@pytest.mark.parametrize("prompt", [[3], [1, 2, 3], TEXT[:7]], ids=str)
def test_greedy_generation_is_that_of_a_model_without_a_cache(prompt):
    new, reason = decoder().generate(prompt, 3, GREEDY)
    expected = by_recomputing(prompt, 3)
    assert reason == "length_limit"
    assert [score.token for score in new] == [token for token, _ in expected]
    assert [score.log_probability for score in new] == pytest.approx(
        [log_prob for _, log_prob in expected], abs=1e-10
    )


@quick
@given(
    random_texts(max_size=6),
    st.floats(0, 3),
    st.floats(0.05, 1),
    st.integers(0, 5),
    st.integers(0, 9),
)
def test_a_generated_token_has_the_score_that_scoring_the_text_gives(prompt, heat, top_p, k, seed):
    """Under the model: temperature 1 and no filter, whatever the token was drawn with."""
    model = decoder()
    new, _ = model.generate(prompt, 4, SamplingConfig(heat, top_p, k, seed))
    scores = model.score([*prompt, *(score.token for score in new)])[len(prompt) - 1 :]
    assert [score.token for score in new] == [score.token for score in scores]
    assert [score.log_probability for score in new] == pytest.approx(
        [score.log_probability for score in scores], abs=1e-10
    )


def test_a_seed_gives_one_text_and_no_seed_gives_many():
    model = decoder()
    texts = [model.generate([3], 9, SamplingConfig(2.0, seed=5))[0] for _ in range(3)]
    assert texts[0] == texts[1] == texts[2]
    assert len({tuple(s.token for s in model.generate([3], 9)[0]) for _ in range(6)}) > 1
    other = model.generate([3], 9, SamplingConfig(2.0, seed=6))[0]
    assert other != texts[0]


def test_the_default_draws_from_the_models_own_distribution():
    model = decoder()
    drawn = np.zeros(17)
    for seed in range(1500):
        drawn[model.generate([3], 1, SamplingConfig(seed=seed))[0][0].token] += 1 / 1500
    expected = torch.tensor(torch_logits([3], PARAMS, 3)[-1]).softmax(0).numpy()
    assert np.abs(drawn - expected).max() < 0.05
    assert SamplingConfig() == SamplingConfig(1.0, 1.0, 0, None)


def test_the_reasons_to_stop():
    model = decoder()
    tokens = [score.token for score in model.generate(TEXT[:3], 99, GREEDY)[0]]
    assert len(tokens) == 7  # prompt and new tokens fill the context
    assert model.generate(TEXT[:3], 99, GREEDY)[1] == "context"
    assert model.generate(TEXT, 5, GREEDY) == ([], "context")
    assert model.generate(TEXT[:3], 0, GREEDY) == ([], "length_limit")
    assert model.generate(TEXT, 0, GREEDY) == ([], "length_limit")
    assert model.generate(TEXT[:3], 7, GREEDY)[1] == "length_limit"  # before "context"
    last = tokens.index(tokens[6])
    ended, reason = model.generate(TEXT[:3], 7, GREEDY, eos_id=tokens[6])
    assert reason == "eos"  # before both
    assert [score.token for score in ended] == tokens[: last + 1]


def test_an_eos_in_the_prompt_ends_nothing():
    free, _ = decoder().generate(TEXT[:3], 4, GREEDY)
    for eos_id in TEXT[:3]:
        if eos_id not in [score.token for score in free]:
            assert decoder().generate(TEXT[:3], 4, GREEDY, eos_id) == (free, "length_limit")


def test_the_real_loop_is_held_to_the_generation_contract():
    class Scripted(TypedDecoder):
        """The contract's model behind prefill and decode; the loop is the decoder's own."""

        def __init__(self, model):
            self.shape = ModelShape(1, 1, 1, model.max_length, 1000)
            self.model = model

        def prefill(self, token_ids):
            self.ids = list(token_ids)
            return self.model(torch.tensor(self.ids)).numpy()

        def decode(self, token_id):
            self.ids.append(token_id)
            return self.model(torch.tensor(self.ids)).numpy()[-1]

    def generate(model, prompt, max_new_tokens, eos_id=None):
        was_training = model.training
        model.eval()
        try:
            with torch.no_grad():
                new, reason = Scripted(model).generate(prompt, max_new_tokens, GREEDY, eos_id)
        finally:
            model.train(was_training)
        return [score.token for score in new], reason

    report = check_generation_contract(generate)
    assert report.attempted
    assert len(report.clauses) == 11
    assert report.figures == {"calls_for_1_token": 1, "calls_for_5_tokens": 5}


def test_each_position_is_computed_once_and_the_last_token_not_at_all():
    model = decoder()
    model.generate(TEXT[:4], 5, GREEDY)
    assert model.stats == DecodeStats(
        prefill_tokens=4, decode_tokens=4, cache_positions=8, weight_reads=5
    )
    assert model.cache.length == 8
    model.generate(TEXT[:2], 1, GREEDY)
    assert model.stats == DecodeStats(6, 4, 10, 6)


def test_pieces_of_given_text_count_as_prefill_and_refusals_count_not_at_all():
    model = decoder()
    model.prefill(TEXT[:3])
    model.extend(TEXT[3:5])
    model.decode(TEXT[5])
    for refused in (
        lambda: model.extend(TEXT),
        lambda: model.decode(99),
        lambda: model.prefill([]),
    ):
        with pytest.raises(ValueError, match="."):
            refused()
    assert model.stats == DecodeStats(5, 1, 6, 3)
    model.reset()
    assert model.cache.length == 0
    assert model.stats.tokens_per_weight_read == 2.0


def test_arguments_are_left_as_they_were():
    model, prompt = decoder(), TEXT[:4]
    model.generate(prompt, 3, GREEDY)
    model.prefill(prompt)
    assert prompt == TEXT[:4]
    new, _ = model.generate(tuple(prompt), np.int64(2), GREEDY, eos_id=np.int64(16))
    assert [type(score) for score in new] == [TokenScore] * len(new)
    np.testing.assert_array_equal(model.full_logits(np.array(prompt)), model.full_logits(prompt))


@pytest.mark.parametrize("name", ["full_logits", "score", "attention_weights", "prefill", "extend"])
@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        ([], ValueError, "token_ids is empty; give at least one token"),
        ([1, 17], ValueError, r"token_ids\[1\]=17 is outside the vocabulary of 17 ids \(0 to 16\)"),
        ([-1], ValueError, r"token_ids\[0\]=-1 is outside"),
        ([1.0], TypeError, r"token_ids\[0\] must be an integer, got 1.0 \(float\)"),
        ([0, True], TypeError, r"token_ids\[1\] must be an integer, got True"),
        (["a"], TypeError, r"token_ids\[0\] must be an integer, got 'a'"),
        ([[1, 2]], TypeError, r"token_ids\[0\] must be an integer"),
        (7, TypeError, "token_ids must be a list of token ids, got int"),
        pytest.param(iter([1]), TypeError, "token_ids must be a list of token ids", id="iterator"),
        ({1, 2}, TypeError, "token_ids must be a list of token ids, got set"),
        ([1] * 11, ContextOverflow, "11 tokens do not fit in context_length=10; .* by 1, or"),
    ],
    ids=str,
)
def test_ids_that_are_no_text_of_this_model_are_refused_and_change_nothing(
    name, ids, error, message
):
    model = decoder()
    model.prefill(TEXT[:2])
    with pytest.raises(error, match=message):
        getattr(model, name)(ids)
    assert model.cache.length == 2
    np.testing.assert_allclose(
        model.decode(TEXT[2]), model.full_logits(TEXT[:3])[-1], atol=1e-10, rtol=0
    )


@pytest.mark.parametrize(
    ("prompt", "error", "message"),
    [
        ([], ValueError, "prompt is empty"),
        ([1, 99], ValueError, r"prompt\[1\]=99 is outside the vocabulary"),
        ([None], TypeError, r"prompt\[0\] must be an integer"),
        ([1] * 11, ContextOverflow, "11 tokens do not fit .*fit_context"),
    ],
    ids=str,
)
def test_a_bad_prompt_is_refused_whatever_is_asked_of_it(prompt, error, message):
    for count in (0, 3):
        with pytest.raises(error, match=message):
            decoder().generate(prompt, count)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"max_new_tokens": -1}, ValueError, "max_new_tokens must be at least 0, got -1"),
        ({"max_new_tokens": 2.0}, TypeError, "max_new_tokens must be an integer, got 2.0"),
        ({"max_new_tokens": True}, TypeError, "max_new_tokens must be an integer, got True"),
        ({"config": {"temperature": 1}}, TypeError, "config must be a SamplingConfig, got dict"),
        ({"eos_id": 17}, ValueError, "eos_id=17 is outside the vocabulary"),
        ({"eos_id": "end"}, TypeError, "eos_id must be an integer, got 'end'"),
    ],
)
def test_bad_wishes_are_refused_before_the_cache_is_touched(arguments, error, message):
    model = decoder()
    model.prefill(TEXT[:5])
    with pytest.raises(error, match=message):
        model.generate(**{"prompt": [1], "max_new_tokens": 2, **arguments})
    assert model.cache.length == 5


def test_a_chunk_past_the_context_overflows_before_anything_changes():
    model = decoder()
    model.prefill(TEXT[:7])
    with pytest.raises(
        ContextOverflow, match="7 positions are read and 4 more were given, .* is 10; .*at most 3"
    ):
        model.extend([1, 2, 3, 4])
    assert model.cache.length == 7
    model.extend([1, 2, 3])
    with pytest.raises(CacheExhausted, match="all 10 positions of the context are used"):
        model.decode(1)
    assert model.cache.length == 10
    assert model.generate(TEXT[:2], 1, GREEDY)[1] == "length_limit"  # usable as before


@pytest.mark.parametrize("step", ["decode", "extend"])
def test_a_step_that_fails_in_the_middle_leaves_the_decoder_usable(monkeypatch, step):
    model = decoder()
    model.prefill(TEXT[:4])
    before, stats = model.cache.keys().copy(), copy.copy(model.stats)
    calls = itertools.count()
    attend = typed_model.attend_with_past

    def fails_in_the_second_layer(*arrays):
        if next(calls) == 1:
            raise MemoryError("no room")
        return attend(*arrays)

    monkeypatch.setattr(typed_model, "attend_with_past", fails_in_the_second_layer)
    with pytest.raises(MemoryError, match="no room"):
        model.decode(TEXT[4]) if step == "decode" else model.extend(TEXT[4:6])
    monkeypatch.undo()
    np.testing.assert_array_equal(model.cache.keys(), before)
    assert model.stats == stats
    np.testing.assert_allclose(
        model.decode(TEXT[4]), torch_logits(TEXT[:5], PARAMS, 3)[-1], atol=1e-10, rtol=0
    )


def test_a_generation_that_fails_half_way_does_not_spoil_the_next_one(monkeypatch):
    model = decoder()
    expected = model.generate(TEXT[:3], 5, GREEDY)
    calls = itertools.count()

    def fails(*arguments):
        if next(calls) == 2:
            raise RuntimeError("interrupted")
        return sample(*arguments)

    sample = typed.sample_token
    monkeypatch.setattr(typed, "sample_token", fails)
    with pytest.raises(RuntimeError, match="interrupted"):
        model.generate(TEXT[:3], 5, GREEDY)
    monkeypatch.undo()
    assert model.generate(TEXT[:3], 5, GREEDY) == expected


def test_parameters_that_do_not_fit_or_are_no_numbers_are_refused():
    params = copy.deepcopy(PARAMS)
    params["blocks"][1]["wq"] = params["blocks"][1]["wq"][:, :6]
    with pytest.raises(ShapeMismatch, match=r"blocks\[1\]\['wq'\] must have shape \[12, 12\]"):
        TypedDecoder(params, SHAPE)
    params = copy.deepcopy(PARAMS)
    params["unembedding_bias"][3] = math.nan
    with pytest.raises(ValueError, match=r"parameter of shape \[17\] holds 1 numbers that are NaN"):
        TypedDecoder(params, SHAPE)


def test_weights_that_change_outside_do_not_change_under_the_cache():
    params = copy.deepcopy(PARAMS)
    model = TypedDecoder(params, SHAPE)
    before = model.full_logits(TEXT)
    params["blocks"][0]["wk"][:] = 0
    np.testing.assert_array_equal(model.full_logits(TEXT), before)
    with pytest.raises(ValueError, match="read-only"):
        model.params["token_embedding"][0, 0] = 1.0


def test_a_text_is_never_shortened_without_leave():
    assert fit_context(TEXT, SHAPE) == TEXT
    assert fit_context(tuple(TEXT[:2]), SHAPE) == TEXT[:2]
    assert fit_context([], SHAPE) == []
    long = [99, *TEXT, 98]
    with pytest.raises(
        ContextOverflow, match=r"12 tokens do not fit in context_length=10; .* by 2, .*truncation="
    ):
        fit_context(long, SHAPE)
    assert fit_context(long, SHAPE, allow_truncation=True) == [*TEXT[1:], 98]
    assert fit_context(TEXT, SHAPE, allow_truncation=True) == TEXT
    assert long == [99, *TEXT, 98]
    copied = fit_context(TEXT, SHAPE)
    assert copied is not TEXT


def test_every_promised_name_can_be_imported_from_the_stage():
    assert all(hasattr(typed, name) for name in typed.__all__)
    assert {"KeyValueCache", "DecodeStats", "sample_token", "stable_log_softmax"} <= set(
        typed.__all__
    )


def test_the_stage_needs_no_torch():
    code = "import sys, course_lib.decoder_lm.typed; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "False"
