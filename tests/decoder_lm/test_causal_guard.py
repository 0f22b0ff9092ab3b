"""The two guards against reading the future, and what only one of them can see."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.decoder_lm.causal_guard import assert_causal, assert_causal_by_perturbation
from course_lib.decoder_lm.errors import CausalityViolation, ShapeMismatch
from course_lib.decoder_lm.shape import ModelShape, random_parameters
from course_lib.decoder_lm.typed import TypedDecoder

quick = settings(max_examples=60, deadline=None, derandomize=True)
VOCAB = 7
TABLE = np.random.default_rng(5).normal(size=(VOCAB, VOCAB))


def causal_weights(queries, keys):
    """Even weights over what each of the last `queries` positions may read, by loops."""
    weights = np.zeros((queries, keys))
    for query in range(queries):
        seen = keys - queries + query + 1
        weights[query, :seen] = 1 / seen
    return weights


@pytest.mark.parametrize("sizes", [(1, 1), (4, 4), (1, 6), (3, 5), (5, 6)], ids=str)
def test_weights_on_the_past_and_oneself_pass(sizes):
    weights = causal_weights(*sizes)
    assert_causal(weights)
    assert_causal(weights.tolist())
    assert_causal(np.broadcast_to(weights, (2, 3, *sizes)))
    assert_causal(torch.tensor(weights, dtype=torch.float32))


@quick
@given(st.integers(2, 6), st.integers(0, 4), st.data(), st.sampled_from([1.0, 1e-12, -0.1]))
def test_a_single_weight_on_the_future_is_found_and_placed(queries, past, data, leak):
    weights = np.stack([causal_weights(queries, queries + past)] * 2)
    query = data.draw(st.integers(0, queries - 2))
    key = data.draw(st.integers(query + past + 1, queries + past - 1))
    head = data.draw(st.integers(0, 1))
    weights[head, query, key] = leak
    with pytest.raises(CausalityViolation) as caught:
        assert_causal(weights)
    message = str(caught.value)
    start = "1 attention weights reach into the future; the largest is"
    assert message.startswith(f"{start} {abs(leak):.3g}, from ")
    assert f"from position {query + past} to position {key} (index [{head}, {query}, {key}])" in (
        message
    )


def test_every_future_weight_is_counted_and_the_largest_shown():
    weights = np.full((3, 3), 1 / 3)
    weights[0, 2] = 0.9
    with pytest.raises(CausalityViolation, match="^3 attention .* is 0.9, from position 0 "):
        assert_causal(weights)


def test_a_mask_aligned_to_the_top_left_is_no_violation_but_one_a_place_too_wide_is():
    """Top left closes too much while reading a chunk: that is for the equality test to find."""
    top_left = np.tril(np.ones((2, 5)))
    assert_causal(top_left)
    with pytest.raises(CausalityViolation, match="^1 attention"):
        assert_causal(np.tri(2, 5, 4))


@pytest.mark.parametrize(
    "weights", [3.0, [1.0, 0.0], np.ones((3, 2)), np.zeros((0, 0)), np.zeros((2, 0, 3))], ids=str
)
def test_weights_of_no_queries_and_keys_are_a_shape_mismatch(weights):
    with pytest.raises(ShapeMismatch, match=r"\[\.\.\., T_q, T_k\] with T_k >= T_q >= 1, got \["):
        assert_causal(weights)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", [(0, 0), (0, 1)])
def test_weights_that_are_no_numbers_prove_nothing(bad, place):
    weights = causal_weights(2, 2)
    weights[place] = bad
    with pytest.raises(ValueError, match="1 attention weights are NaN or infinite"):
        assert_causal(weights)


def causal_model(ids):
    """Row t: the sum of what tokens 0..t say."""
    return np.cumsum(TABLE[list(ids)], axis=0)


def peeking_model(ids):
    """Row t: what tokens t and t + 1 say."""
    rows = TABLE[list(ids)]
    return rows + np.roll(rows, -1, axis=0) * (np.arange(len(ids)) < len(ids) - 1)[:, None]


def faintly(ids):
    return causal_model(ids) + 1e-6 * TABLE[list(ids)].mean(axis=0)


def first_reads_last(ids):
    rows = causal_model(ids)
    rows[0] += TABLE[ids[-1]]
    return rows


def counts_tokens(ids):
    """No later token matters, only how many there are."""
    return causal_model(ids) / len(ids)


def counts_from_the_end(ids):
    return causal_model(ids) + np.arange(len(ids), 0, -1)[:, None]


def parity(ids):
    """Only whether a later token is odd matters; its neighbour is."""
    later = np.cumsum(np.array(ids[::-1]) % 2)[::-1]
    return causal_model(ids) + later[:, None]


TEXTS = [[3, 1, 4, 1, 5], [0, 0], [6, 5, 4, 3, 2, 1, 0, 6]]


@pytest.mark.parametrize("ids", TEXTS, ids=str)
def test_a_causal_model_passes_with_every_kind_of_logits(ids):
    assert_causal_by_perturbation(causal_model, ids, VOCAB)
    assert_causal_by_perturbation(lambda text: causal_model(text).tolist(), ids, VOCAB)
    assert_causal_by_perturbation(lambda text: causal_model(text).astype("f4"), ids, VOCAB)
    assert_causal_by_perturbation(lambda text: torch.tensor(causal_model(text)), ids, VOCAB)
    assert_causal_by_perturbation(lambda text: [[token, 1] for token in text], ids, VOCAB)
    assert_causal_by_perturbation(causal_model, np.array(ids), VOCAB)


@pytest.mark.parametrize("ids", TEXTS, ids=str)
@pytest.mark.parametrize(
    "model",
    [peeking_model, faintly, first_reads_last, counts_tokens, counts_from_the_end, parity],
)
def test_a_model_that_reads_its_future_is_caught(model, ids):
    with pytest.raises(CausalityViolation, match="the output reads its own future"):
        assert_causal_by_perturbation(model, ids, VOCAB)


def test_a_vocabulary_of_two_is_enough():
    assert_causal_by_perturbation(causal_model, [0, 1, 1], 2)
    with pytest.raises(CausalityViolation):
        assert_causal_by_perturbation(peeking_model, [0, 1, 1], 2)


def test_the_message_says_what_was_changed_what_moved_and_what_to_look_for():
    with pytest.raises(
        CausalityViolation,
        match=r"changing the token at position 1 from 1 to 2 moved the logits at position 0 by .*"
        r"rounding explains .*mask",
    ) as caught:
        assert_causal_by_perturbation(peeking_model, [3, 1, 4], VOCAB)
    moved = np.abs(TABLE[2] - TABLE[1]).max()
    assert f"by {moved:.3g} (" in str(caught.value)
    with pytest.raises(CausalityViolation, match="cutting the text before position 1 moved the lo"):
        assert_causal_by_perturbation(counts_tokens, [3, 1, 4], VOCAB)


def test_weights_that_look_causal_do_not_hide_an_output_that_is_not():
    """The reported weights are masked; the mixture was made with others."""
    shape = ModelShape(2, 8, 2, 9, VOCAB)
    params = random_parameters(shape, 16, seed=1)

    class Liar(TypedDecoder):
        def full_logits(self, token_ids):
            logits = super().full_logits(token_ids)
            future = np.cumsum(self.params["token_embedding"][token_ids][::-1], axis=0)[::-1]
            return logits + 1e-3 * future @ self.params["unembedding"]

    ids = [1, 5, 2, 6, 3]
    for decoder in (TypedDecoder(params, shape), Liar(params, shape)):
        assert_causal(decoder.attention_weights(ids))
    assert_causal_by_perturbation(TypedDecoder(params, shape), ids, VOCAB)
    with pytest.raises(CausalityViolation, match="moved the logits at position"):
        assert_causal_by_perturbation(Liar(params, shape), ids, VOCAB)


def test_rounding_is_no_violation():
    """Sums in another order differ in the last bits when the text is cut."""

    def rounded(ids):
        noise = np.random.default_rng(len(ids)).normal(size=(len(ids), VOCAB))
        return (100 * causal_model(ids)).astype("f4") * (1 + 1e-7 * noise).astype("f4")

    assert_causal_by_perturbation(rounded, [3, 1, 4, 1, 5], VOCAB)


@pytest.mark.parametrize(
    ("model", "ids", "vocab_size", "error", "message"),
    [
        (causal_model, [3], 7, ValueError, "1 tokens have no future to change; give at least 2"),
        (causal_model, [], 7, ValueError, "0 tokens have no future"),
        (causal_model, [0, 0], 1, ValueError, "vocab_size=1 leaves no other token"),
        (lambda ids: TABLE, [1, 2], 7, ShapeMismatch, r"logits \[2, V\], got \[7, 7\]"),
        (lambda ids: TABLE[0], [1, 2], 7, ShapeMismatch, r"logits \[2, V\], got \[7\]"),
        (
            lambda ids: causal_model(ids) * math.nan,
            [1, 2],
            7,
            ValueError,
            "NaN or infinite: nothing is proved",
        ),
        (lambda ids: causal_model(ids).astype("f2"), [1, 2], 7, TypeError, "float16: too coarse"),
        (lambda ids: causal_model(ids) > 0, [1, 2], 7, TypeError, "the logits are bool"),
    ],
)
def test_what_cannot_be_tested_is_never_passed(model, ids, vocab_size, error, message):
    with pytest.raises(error, match=message):
        assert_causal_by_perturbation(model, ids, vocab_size)
