"""What a decoder costs: the formulas, held to counts of the products that really happen."""

import random
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.decoder_lm import plain
from course_lib.decoder_lm.shape import (
    ModelShape,
    as_arrays,
    as_lists,
    parameter_shapes,
    random_parameters,
)
from course_lib.decoder_lm.simple import SimpleDecoder
from course_lib.flops import (
    CountedArray,
    CountedFloat,
    FlopCount,
    PassBytes,
    ProductTally,
    cache_break_even,
    counted_arrays,
    counted_lists,
    decode_step_flops,
    decoder_parameters,
    forward_flops,
    generation_flops,
    pass_bytes,
)

quick = settings(max_examples=12, deadline=None, derandomize=True)
GPT2 = ModelShape(12, 768, 12, 1024, 50257)


@st.composite
def small_cases(draw):
    heads = draw(st.integers(1, 3))
    d_model = heads * draw(st.integers(1, 3))
    sizes = draw(st.integers(1, 3)), d_model, heads, 9, draw(st.integers(2, 6))
    return ModelShape(*sizes), draw(st.integers(1, 7)), draw(st.integers(1, 4))


def counting_decoder(params, shape):
    tally = ProductTally()
    decoder = SimpleDecoder(params, shape)
    decoder.params = counted_arrays(decoder.params, tally)
    return decoder, tally


# --- formula and count agree, exactly ---


@quick
@given(small_cases(), st.integers(1, 4))
def test_naive_generation_multiplies_as_often_as_the_formula_says(case, new_tokens):
    shape, d_ff, prompt_tokens = case
    tally = ProductTally()
    params = counted_lists(as_lists(random_parameters(shape, d_ff, seed=0)), tally)
    prompt = [token % shape.vocab_size for token in range(prompt_tokens)]
    rng = random.Random(0)
    plain.generate(prompt, params, shape.d_head, shape.n_layers, new_tokens, 1.0, rng)
    wanted = generation_flops(shape, d_ff, prompt_tokens, new_tokens, cached=False)
    assert tally.flops() == wanted


@quick
@given(small_cases(), st.integers(1, 4))
def test_cached_generation_multiplies_as_often_as_the_formula_says(case, new_tokens):
    shape, d_ff, prompt_tokens = case
    decoder, tally = counting_decoder(random_parameters(shape, d_ff, seed=0), shape)
    # One token at a time nothing is masked, and the last token generated is not read.
    for position in range(prompt_tokens + new_tokens - 1):
        decoder.extend([position % shape.vocab_size])
    wanted = generation_flops(shape, d_ff, prompt_tokens, new_tokens, cached=True)
    assert tally.flops() == wanted


@quick
@given(small_cases())
def test_one_pass_multiplies_as_often_as_the_formula_says(case):
    shape, d_ff, tokens = case
    tally = ProductTally()
    params = counted_lists(as_lists(random_parameters(shape, d_ff, seed=1)), tally)
    plain.forward([0] * tokens, params, shape.d_head, shape.n_layers)
    assert tally.flops() == forward_flops(shape, d_ff, tokens)


@quick
@given(small_cases())
def test_a_masked_product_of_matrices_multiplies_the_hidden_pairs_too(case):
    shape, d_ff, tokens = case
    decoder, tally = counting_decoder(random_parameters(shape, d_ff, seed=0), shape)
    decoder.full_logits([0] * tokens)
    counted, allowed = tally.flops(), forward_flops(shape, d_ff, tokens)
    assert counted.attention * (tokens + 1) == allowed.attention * 2 * tokens  # T² : T(T + 1)/2
    assert counted.linear == allowed.linear
    assert counted.unembedding == allowed.unembedding


@quick
@given(small_cases(), st.integers(1, 3))
def test_a_decode_step_is_what_one_more_token_adds_to_a_pass(case, batch):
    shape, d_ff, tokens = case
    step = decode_step_flops(shape, d_ff, 1, tokens + 1)
    longer = forward_flops(shape, d_ff, tokens + 1)
    assert forward_flops(shape, d_ff, tokens) + step == longer
    rows = decode_step_flops(shape, d_ff, batch, tokens + 1)
    assert rows.total == batch * step.total


def test_one_layer_counted_by_hand():
    shape = ModelShape(n_layers=1, d_model=2, n_heads=1, context_length=8, vocab_size=5)
    # Three tokens: 4·2·2 + 2·2·3 = 28 products each in the layers, 6 pairs of 2 + 2, 2·5 each.
    wanted = FlopCount(linear=2 * 84, attention=2 * 24, unembedding=2 * 30)
    assert forward_flops(shape, 3, 3) == wanted
    assert wanted.total == 276


def test_counting_changes_no_number():
    shape = ModelShape(2, 6, 2, 8, 7)
    params = random_parameters(shape, 5, seed=3)
    lists = as_lists(params)
    counted = counted_lists(lists, ProductTally())
    ids = [1, 2, 3]
    assert plain.forward(ids, counted, 3, 2) == plain.forward(ids, lists, 3, 2)
    decoder, _ = counting_decoder(params, shape)
    assert np.array_equal(decoder.full_logits(ids), SimpleDecoder(params, shape).full_logits(ids))
    assert type(lists["blocks"][0]["wq"][0][0]) is float
    assert type(params["unembedding"]) is np.ndarray


# --- what counts ---


def test_matrix_entries_count_queries_meet_keys_and_anything_meets_values():
    tally = ProductTally()
    number = {role: CountedFloat(3.0, role, tally) for role in ("wo", "unembedding", *"qkv")}
    assert 2.0 * number["wo"] == number["wo"] * 2.0 == 6.0
    assert number["unembedding"] * 2.0 == 6.0
    assert number["q"] * number["k"] == number["k"] * number["q"] == 9.0
    assert 0.5 * number["v"] == 1.5
    assert tally.products == {"linear": 2, "attention": 3, "unembedding": 1}
    scaled = number["q"] * 0.5  # a query, scaled: no product of the convention, still a query
    assert scaled * number["k"] == 4.5
    assert tally.products["attention"] == 4


def test_a_sum_with_a_bias_of_queries_is_a_query():
    tally = ProductTally()
    bias = CountedFloat(1.0, "q", tally)
    for query in (2.0 + bias, bias + 2.0, sum([bias, 2.0])):
        assert (query, query.role) == (3.0, "q")
    assert tally.flops() == FlopCount(0, 0, 0)


def test_parts_and_turns_of_a_matrix_are_still_that_matrix():
    tally = ProductTally()
    params = counted_arrays({"w1": np.ones((3, 4)), "unembedding": np.ones((3, 5))}, tally)
    hidden = np.ones((2, 3))
    assert (hidden @ params["w1"][:, :2]).shape == (2, 2)  # 12
    assert (params["w1"].T @ hidden.T).shape == (4, 2)  # 24
    assert (np.transpose(params["w1"]) @ hidden[0]).shape == (4,)  # 12
    assert hidden[0] @ params["w1"][:, 0] == 3  # 3
    hidden @ params["unembedding"]
    assert tally.products == {"linear": 51, "attention": 0, "unembedding": 30}


def test_what_follows_from_a_counted_array_counts():
    tally = ProductTally()
    weights = counted_arrays({"wq": np.ones((3, 4))}, tally)["wq"]
    q = np.ones((2, 3)) @ weights
    keys = np.concatenate([np.zeros((1, 4)), q])
    scores = np.where(np.tri(2, 3, 1, dtype=bool), np.maximum(q, 0) @ keys.T, -1.0)
    scores -= scores.max(-1, keepdims=True)
    assert type(scores @ keys) is CountedArray
    scores.dot(np.asarray(keys))
    assert tally.products == {"linear": 24, "attention": 3 * 24, "unembedding": 0}
    np.matmul(q, keys.T, out=np.empty((2, 3)))
    assert tally.products["attention"] == 4 * 24


@pytest.mark.parametrize(
    "multiply",
    [np.dot, np.inner, np.outer, np.vdot, lambda a, b: np.einsum("i,i", a, b)]
    + [getattr(np, name) for name in ("vecdot",) if hasattr(np, name)],
)
def test_a_product_that_would_not_be_counted_is_refused(multiply):
    row = counted_arrays({"wq": np.ones(3)}, ProductTally())["wq"]
    with pytest.raises(TypeError, match="is not counted; write the product with @"):
        multiply(row, np.ones(3))


# --- parameters and bytes ---


@quick
@given(small_cases())
def test_parameters_are_the_sizes_of_the_dict_added_up(case):
    shape, d_ff, _ = case
    params = random_parameters(shape, d_ff, seed=0)
    arrays = [value for name, value in params.items() if name != "blocks"]
    arrays += [value for block in params["blocks"] for value in block.values()]
    untied = decoder_parameters(shape, d_ff, tied=False)
    assert untied == sum(array.size for array in arrays)
    own = params["unembedding"].size + params["unembedding_bias"].size
    assert decoder_parameters(shape, d_ff, tied=True) == untied - own


def test_gpt2_small_has_124_million_parameters():
    assert decoder_parameters(GPT2, 3072, tied=True) == 124_439_808


@pytest.mark.parametrize("tokens", [1, 5])
def test_a_pass_reads_all_weights_but_the_embedding_tables_and_the_whole_cache(tokens):
    shape = ModelShape(2, 6, 3, 11, 7)
    sizes = parameter_shapes(shape, 10)
    read = sum(prod(size) for block in sizes["blocks"] for size in block.values())
    read += sum(
        prod(sizes[name])
        for name in ("final_gain", "final_bias", "unembedding", "unembedding_bias")
    )
    cache = shape.cache_bytes(batch=3, bytes_per_value=2) * tokens // shape.context_length
    assert pass_bytes(shape, 10, 3, tokens, 2) == PassBytes(weights=2 * read, cache=cache)
    assert pass_bytes(shape, 10, 3, tokens).total == 4 * read + 2 * cache


def test_the_cache_of_gpt2_small_is_as_large_as_the_model_after_6751_tokens():
    tokens = cache_break_even(GPT2, 3072, tied=True)
    one_token = GPT2.cache_bytes(batch=1, bytes_per_value=2) / GPT2.context_length
    assert tokens * one_token == pytest.approx(2 * 124_439_808)
    assert tokens == pytest.approx(6751.29, abs=0.01)
    rule = 6 * 768 + 50257 / (2 * 12)
    assert rule == pytest.approx(6702.04, abs=0.01)
    positions, small_parts = 1024 / (2 * 12), 13 / 2 + 1 / 12  # biases and norms; the last norm
    assert tokens - rule == pytest.approx(positions + small_parts)


# --- which term dominates when ---


def test_attention_overtakes_the_linear_layers_of_one_pass_at_twelve_times_the_width():
    shape = ModelShape(2, 64, 4, 16, 256)
    before, after = (forward_flops(shape, 256, tokens) for tokens in (12 * 64 - 1, 12 * 64))
    assert before.linear == before.attention  # T + 1 = 4 d + 2 d_ff = 12 d
    assert after.dominant == "attention"
    assert forward_flops(shape, 256, 64).dominant == "linear"
    wide_vocabulary = ModelShape(1, 8, 1, 16, 5000)
    assert forward_flops(wide_vocabulary, 32, 4).dominant == "unembedding"


def test_the_cubic_term_of_gpt2_small_equals_all_others_near_twenty_thousand_tokens():
    shares = {}
    for tokens in (20_000, 20_300):
        count = generation_flops(GPT2, 3072, 1, tokens, cached=False)
        shares[tokens] = count.attention / count.total
    assert shares[20_000] < 0.5 < shares[20_300]


# --- what is refused ---


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: forward_flops(GPT2, 3072, 0), ValueError, "tokens must be at least 1, got 0"),
        (lambda: forward_flops(GPT2, 3072, 1.5), TypeError, "tokens must be a whole number"),
        (lambda: forward_flops(GPT2, True, 1), TypeError, r"d_ff must be .*True \(bool\)"),
        (
            lambda: generation_flops(GPT2, 3072, 0, 1, cached=True),
            ValueError,
            "prompt_tokens must be at least 1",
        ),
        (
            lambda: generation_flops(GPT2, 3072, 1, 0, cached=False),
            ValueError,
            "new_tokens must be at least 1",
        ),
        (lambda: decode_step_flops(GPT2, 3072, 0, 1), ValueError, "batch must be at least 1"),
        (lambda: decode_step_flops(GPT2, 3072, 1, 0), ValueError, "length must be at least 1"),
        (lambda: pass_bytes(GPT2, 3072, 1, 1, 0), ValueError, "bytes_per_value must be at least"),
        (lambda: decoder_parameters(GPT2, 0, tied=True), ValueError, "d_ff must be at least 1"),
    ],
)
def test_sizes_that_nothing_can_have_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_arrays_are_wrapped_without_a_copy():
    params = as_arrays(random_parameters(ModelShape(1, 2, 1, 3, 4), 2, seed=0), np.float32)
    counted = counted_arrays(params, ProductTally())
    assert np.shares_memory(counted["blocks"][0]["wv"], params["blocks"][0]["wv"])
    assert counted["unembedding"].dtype == np.float32
