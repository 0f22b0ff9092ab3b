"""The readable decoder: the formula against torch, and each step of its cache against a hand."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from course_lib.contracts import check_cache_contract
from course_lib.decoder_lm.errors import ContextOverflow, ShapeMismatch
from course_lib.decoder_lm.shape import ModelShape, as_arrays, as_lists, random_parameters
from course_lib.decoder_lm.simple import (
    SimpleDecoder,
    SimpleModel,
    greedy_tokens,
    greedy_tokens_anew,
)

SHAPE = ModelShape(n_layers=2, d_model=12, n_heads=3, context_length=9, vocab_size=11)
PARAMS = random_parameters(SHAPE, d_ff=20, seed=7)
TEXT = [3, 1, 4, 1, 5, 9, 2, 6, 10]


@pytest.fixture
def decoder():
    return SimpleDecoder(PARAMS, SHAPE)


def in_torch(params, token_ids, n_heads):
    """The whole pass by torch's own functions, without any class of the course."""
    p = {name: torch.tensor(array) for name, array in params.items() if name != "blocks"}
    ids, d_model = torch.tensor(token_ids), len(params["final_gain"])
    x = p["token_embedding"][ids] + p["position_embedding"][: len(ids)]
    for arrays in params["blocks"]:
        b = {name: torch.tensor(array) for name, array in arrays.items()}
        h = F.layer_norm(x, (d_model,), b["ln1_gain"], b["ln1_bias"], 1e-5)
        q, k, v = (
            F.linear(h, b[f"w{name}"].T, b[f"b{name}"]).unflatten(-1, (n_heads, -1)).transpose(0, 1)
            for name in "qkv"
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(0, 1).flatten(1)
        x = x + F.linear(mixed, b["wo"].T, b["bo"])
        h = F.layer_norm(x, (d_model,), b["ln2_gain"], b["ln2_bias"], 1e-5)
        inner = F.gelu(F.linear(h, b["w1"].T, b["b1"]), approximate="tanh")
        x = x + F.linear(inner, b["w2"].T, b["b2"])
    h = F.layer_norm(x, (d_model,), p["final_gain"], p["final_bias"], 1e-5)
    return F.linear(h, p["unembedding"].T, p["unembedding_bias"]).numpy()


@pytest.mark.parametrize("n_heads", [1, 3, 12])
@pytest.mark.parametrize("length", [1, 2, 9])
def test_the_full_pass_is_that_of_torch(n_heads, length):
    shape = ModelShape(2, 12, n_heads, 9, 11)
    got = SimpleModel(PARAMS, shape).full_logits(TEXT[:length])
    assert got.shape == (length, 11)
    np.testing.assert_allclose(got, in_torch(PARAMS, TEXT[:length], n_heads), atol=1e-12)


def scaled(factor, *names):
    """The parameters with some of them multiplied."""
    params = {name: value * factor if name in names else value for name, value in PARAMS.items()}
    params["blocks"] = [
        {name: value * factor if name in names else value for name, value in block.items()}
        for block in PARAMS["blocks"]
    ]
    return params


def test_scores_in_the_thousands_do_not_overflow():
    params = scaled(1e3, "wq", "bq")
    decoder, want = SimpleDecoder(params, SHAPE), in_torch(params, TEXT, 3)
    np.testing.assert_allclose(decoder.full_logits(TEXT), want, atol=1e-9)
    np.testing.assert_allclose(decoder.cached_logits(TEXT, [4, 1, 4]), want, atol=1e-9)


def test_rows_that_hardly_vary_are_normed_with_the_epsilon_of_the_model():
    params = scaled(1e-3, "token_embedding", "position_embedding", "wo", "bo", "w2", "b2")
    got = SimpleModel(params, SHAPE).full_logits(TEXT)
    np.testing.assert_allclose(got, in_torch(params, TEXT, 3), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.longdouble])
def test_the_logits_have_the_dtype_of_the_parameters(dtype):
    decoder = SimpleDecoder(as_arrays(PARAMS, dtype), SHAPE)
    assert decoder.full_logits(TEXT).dtype == dtype
    assert decoder.cached_logits(TEXT, [4, 1, 4]).dtype == dtype
    assert decoder.keys[1].dtype == decoder.values[0].dtype == dtype
    error = np.abs(decoder.full_logits(TEXT) - in_torch(PARAMS, TEXT, 3)).max()
    assert error < {np.float32: 1e-5}.get(dtype, 1e-13)


def test_parameters_may_be_lists_of_floats():
    got = SimpleDecoder(as_lists(PARAMS), SHAPE).full_logits(TEXT)
    np.testing.assert_allclose(got, in_torch(PARAMS, TEXT, 3), atol=1e-12)


@pytest.mark.parametrize("chunks", [[9], [1] * 9, [4, 2, 1, 2], [3, 2, 4], [8, 1], [1, 8]])
def test_however_the_text_is_cut_the_logits_are_those_of_torch(decoder, chunks):
    np.testing.assert_allclose(
        decoder.cached_logits(TEXT, chunks), in_torch(PARAMS, TEXT, 3), atol=1e-12
    )


def test_the_contract_of_the_cache_holds(decoder):
    sizes = {"vocab_size": SHAPE.vocab_size, "context_length": SHAPE.context_length}
    assert check_cache_contract(decoder.full_logits, decoder.cached_logits, **sizes).attempted


def test_new_tokens_stand_behind_the_old_ones(decoder):
    assert decoder.positions(2).tolist() == [0, 1]
    decoder.extend(TEXT[:3])
    assert decoder.positions(2).tolist() == [3, 4]


def test_a_chunk_may_read_all_of_the_past_and_itself_up_to_the_diagonal(decoder):
    assert decoder.allowed(2).astype(int).tolist() == [[1, 0], [1, 1]]
    decoder.extend(TEXT[:3])
    assert decoder.allowed(2).astype(int).tolist() == [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]
    assert decoder.allowed(1).dtype == bool


def test_what_is_remembered_is_what_came_layer_by_layer(decoder):
    k = np.arange(24.0).reshape(3, 2, 4)
    keys, values = decoder.remember(1, k, -k)
    assert keys.tolist() == k.tolist()
    assert values.tolist() == (-k).tolist()
    keys, values = decoder.remember(1, 100 + k[:, :1], 200 + k[:, :1])
    assert keys[:, :2].tolist() == k.tolist()
    assert keys[:, 2].tolist() == (100 + k[:, 0]).tolist()
    assert values[:, 2].tolist() == (200 + k[:, 0]).tolist()
    assert decoder.keys[0].shape == decoder.values[0].shape == (3, 0, 4)


def test_the_full_pass_leaves_the_cache_alone(decoder):
    decoder.extend(TEXT[:4])
    decoder.full_logits([7, 7, 7])
    assert decoder.length == 4
    np.testing.assert_allclose(decoder.extend(TEXT[4:]), in_torch(PARAMS, TEXT, 3)[4:], atol=1e-12)


def test_begin_forgets_everything(decoder):
    first = decoder.extend(TEXT)
    decoder.begin()
    assert decoder.length == 0
    assert [past.shape for past in (*decoder.keys, *decoder.values)] == [(3, 0, 4)] * 4
    assert (decoder.extend(TEXT) == first).all()


def test_too_long_a_text_is_refused_before_anything_changes(decoder):
    decoder.extend(TEXT[:7])
    message = "7 tokens read and 3 new ones do not fit in context_length=9; shorten the text or"
    with pytest.raises(ContextOverflow, match=message):
        decoder.extend([1, 2, 3])
    with pytest.raises(ContextOverflow, match="0 tokens read and 10 new ones do not fit"):
        decoder.cached_logits([*TEXT, 1], [9, 1])
    with pytest.raises(ContextOverflow, match="0 tokens read and 10 new ones do not fit"):
        decoder.full_logits([*TEXT, 1])
    assert decoder.length == 7
    np.testing.assert_allclose(decoder.extend(TEXT[7:]), in_torch(PARAMS, TEXT, 3)[7:], atol=1e-12)


@pytest.mark.parametrize(
    ("token_ids", "message"),
    [
        ([], "token_ids must be a list of integers, not empty, got []"),
        (np.zeros(0, int), "token_ids must be a list of integers, not empty, got array([], dtype"),
        ([1.0], "token_ids must be a list of integers, not empty, got [1.0]"),
        ([True], "token_ids must be a list of integers, not empty, got [True]"),
        ([[1, 2]], "token_ids must be a list of integers, not empty, got [[1, 2]]"),
        ([0, -1], "token ids must be in [0, 11), got -1 to 0"),
        ([3, 11], "token ids must be in [0, 11), got 3 to 11"),
    ],
)
def test_tokens_that_the_model_does_not_have_are_refused(decoder, token_ids, message):
    for call in (decoder.full_logits, decoder.extend, lambda ids: decoder.cached_logits(ids, [1])):
        with pytest.raises(ValueError, match=re.escape(message)):
            call(token_ids)
    assert decoder.length == 0


@pytest.mark.parametrize("chunks", [[3, 2], [2, 1], [4, 0], [5, -1], []])
def test_chunks_must_be_widths_that_sum_to_the_text(decoder, chunks):
    message = f"chunks must be widths of at least 1 that sum to 4, got {chunks}"
    decoder.extend([5])
    with pytest.raises(ValueError, match=re.escape(message)):
        decoder.cached_logits(TEXT[:4], chunks)
    assert decoder.length == 1


def test_parameters_of_another_shape_are_refused():
    with pytest.raises(ShapeMismatch, match="params has 2 blocks, but the shape says n_layers=3"):
        SimpleDecoder(PARAMS, ModelShape(3, 12, 3, 9, 11))


def test_greedy_tokens_with_and_without_a_cache_are_those_of_torch(decoder):
    text = TEXT[:3]
    while len(text) < 9:
        text.append(int(in_torch(PARAMS, text, 3)[-1].argmax()))
    assert len(set(text[3:])) > 1
    assert greedy_tokens(decoder, TEXT[:3], 6) == text[3:]
    assert greedy_tokens_anew(decoder, TEXT[:3], 6) == text[3:]
    assert greedy_tokens(decoder, TEXT[:3], 0) == []
    assert greedy_tokens_anew(decoder, TEXT[:3], 0) == []
    assert greedy_tokens(decoder, TEXT[:3], 6) == text[3:]


def test_the_last_greedy_token_need_not_be_read(decoder):
    """Nine positions hold eight tokens and the ninth, which predicts a tenth."""
    assert len(greedy_tokens(decoder, TEXT[:8], 2)) == 2
    assert greedy_tokens(decoder, TEXT[:8], 2) == greedy_tokens_anew(decoder, TEXT[:8], 2)
    for greedy in (greedy_tokens, greedy_tokens_anew):
        with pytest.raises(ContextOverflow):
            greedy(decoder, TEXT[:8], 3)


def test_the_prompt_is_left_as_it_was(decoder):
    prompt = TEXT[:3]
    greedy_tokens(decoder, prompt, 3)
    greedy_tokens_anew(decoder, prompt, 3)
    assert prompt == TEXT[:3]


def test_it_runs_without_torch():
    code = "import sys, course_lib.decoder_lm.simple; sys.exit('torch' in sys.modules)"
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
