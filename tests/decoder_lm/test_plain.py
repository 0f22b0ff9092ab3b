"""The plain decoder: against the pinned numbers, torch in float64, and what must hold for any."""

import ast
import copy
import itertools
import json
import math
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.decoder_lm import plain
from course_lib.decoder_lm.plain import (
    block,
    causal_attention,
    exact_log_likelihood,
    forward,
    gelu,
    generate,
    layer_norm,
    linear,
    log_probability,
    perplexity,
    pick_token,
    softmax,
    training_loss,
)
from course_lib.reference import read_reference, reference_json, reference_sha256

PINNED = read_reference(reference_json("module_04"), reference_sha256("module_04"))
TINY = (PINNED["parameters"], PINNED["shape"]["d_head"], PINNED["shape"]["n_layers"])
TEXT = PINNED["text"]["token_ids"]
pinned = {"rel": 0, "abs": 1e-12}  # the file has 12 decimals
quick = settings(max_examples=40, deadline=None, derandomize=True)
numbers = st.floats(-30, 30)


def random_model(seed, n_layers=2, n_heads=2, d_head=2, d_ff=5, context=6, vocab=5):
    """A dict of random parameters, and the arguments that follow it."""
    rng = random.Random(seed)
    width = n_heads * d_head

    def vector(size, mean=0.0):
        return [rng.gauss(mean, 0.6) for _ in range(size)]

    def matrix(rows, columns):
        return [vector(columns) for _ in range(rows)]

    def one_block():
        attention = {
            f"{kind}{name}": matrix(width, width) if kind == "w" else vector(width)
            for name in "qkvo"
            for kind in "wb"
        }
        norms = {f"ln{n}_{part}": vector(width, part == "gain") for n in "12" for part in PARTS}
        wide = {"w1": matrix(width, d_ff), "b1": vector(d_ff)}
        return attention | norms | wide | {"w2": matrix(d_ff, width), "b2": vector(width)}

    params = {
        "token_embedding": matrix(vocab, width),
        "position_embedding": matrix(context, width),
        "blocks": [one_block() for _ in range(n_layers)],
        "final_gain": vector(width, 1.0),
        "final_bias": vector(width),
        "unembedding": matrix(width, vocab),
        "unembedding_bias": vector(vocab),
    }
    return params, d_head, n_layers


PARTS = ("gain", "bias")


def biased_model(bias, context=6):
    """A model that gives every token the same logits, whatever it has read."""
    params, d_head, n_layers = random_model(0, context=context, vocab=len(bias))
    params["unembedding"] = [[0.0] * len(bias) for _ in params["unembedding"]]
    return {**params, "unembedding_bias": bias}, d_head, n_layers


# --- torch's own functions, as a second opinion ---


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def close(ours, theirs, tolerance=1e-10):
    assert tensor(ours).shape == theirs.shape
    torch.testing.assert_close(tensor(ours), theirs, rtol=tolerance, atol=tolerance)


def torch_attention(q, k, v, d_head):
    heads = (x.unflatten(-1, (-1, d_head)).transpose(0, 1) for x in (q, k, v))  # [H, T, d_head]
    mixed = F.scaled_dot_product_attention(*heads, is_causal=True)
    return mixed.transpose(0, 1).flatten(1)


def torch_block(x, p, d_head):
    p = {name: tensor(values) for name, values in p.items()}
    normed = F.layer_norm(x, x.shape[-1:], p["ln1_gain"], p["ln1_bias"], 1e-5)
    q, k, v = (torch.addmm(p[f"b{name}"], normed, p[f"w{name}"]) for name in "qkv")
    x = x + torch_attention(q, k, v, d_head) @ p["wo"] + p["bo"]
    normed = F.layer_norm(x, x.shape[-1:], p["ln2_gain"], p["ln2_bias"], 1e-5)
    return x + F.gelu(normed @ p["w1"] + p["b1"], approximate="tanh") @ p["w2"] + p["b2"]


def torch_forward(token_ids, params, d_head):
    words = F.embedding(torch.tensor(token_ids), tensor(params["token_embedding"]))
    x = words + tensor(params["position_embedding"])[: len(token_ids)]
    for p in params["blocks"]:
        x = torch_block(x, p, d_head)
    x = F.layer_norm(
        x, x.shape[-1:], tensor(params["final_gain"]), tensor(params["final_bias"]), 1e-5
    )
    return x @ tensor(params["unembedding"]) + tensor(params["unembedding_bias"])


def random_vectors(seed, rows, columns, size=1.0):
    rng = random.Random(seed)
    return [[rng.gauss(0, size) for _ in range(columns)] for _ in range(rows)]


@st.composite
def models_and_texts(draw):
    sizes = {
        "n_layers": draw(st.integers(1, 3)),
        "n_heads": draw(st.integers(1, 3)),
        "d_head": draw(st.integers(1, 4)),
        "d_ff": draw(st.integers(1, 7)),
        "context": draw(st.integers(1, 6)),
        "vocab": draw(st.integers(1, 6)),
    }
    model = random_model(draw(st.integers(0, 999)), **sizes)
    token = st.integers(0, sizes["vocab"] - 1)
    return model, draw(st.lists(token, min_size=1, max_size=sizes["context"]))


# --- the pinned numbers ---


def test_the_logits_of_the_pinned_text_are_the_pinned_ones():
    logits = forward(TEXT, *TINY)
    for row, wanted in zip(logits, PINNED["text"]["logits"], strict=True):
        assert row == pytest.approx(wanted, **pinned)


def test_likelihood_loss_and_perplexity_are_the_pinned_ones():
    text = PINNED["text"]
    assert exact_log_likelihood(TEXT, *TINY) == pytest.approx(text["log_likelihood"], **pinned)
    assert training_loss(TEXT, *TINY) == pytest.approx(text["mean_loss"], **pinned)
    assert perplexity(TEXT, *TINY) == pytest.approx(text["perplexity"], **pinned)
    terms = [log_probability(*pair) for pair in zip(text["logits"], TEXT[1:], strict=False)]
    assert terms == pytest.approx(text["log_probabilities"], **pinned)


def test_the_greedy_continuation_is_the_pinned_one():
    greedy = PINNED["greedy"]
    assert (
        generate(greedy["prompt"], *TINY, greedy["max_new_tokens"], 0.0, None)
        == (greedy["token_ids"])
    )


@pytest.mark.parametrize("setting", PINNED["sampling"]["settings"])
def test_softmax_gives_the_pinned_distributions(setting):
    row = PINNED["sampling"]["logits"]
    scores = [
        row[token] / setting["temperature"] if token in setting["kept"] else -math.inf
        for token in range(len(row))
    ]
    assert softmax(scores) == pytest.approx(setting["probs"], **pinned)


def test_gelu_is_the_tanh_form_and_not_the_exact_one():
    facts = PINNED["gelu"]
    assert [gelu(x) for x in facts["x"]] == pytest.approx(facts["tanh"], **pinned)
    step = (facts["grid"]["stop"] - facts["grid"]["start"]) / facts["grid"]["steps"]
    grid = tensor([n * step for n in range(facts["grid"]["steps"] + 1)])
    difference = (F.gelu(grid) - tensor([gelu(x) for x in grid.tolist()])).abs()
    assert difference.max().item() == pytest.approx(facts["max_difference"], **pinned)
    assert grid[difference.argmax()].item() == facts["max_difference_at"]


# --- part by part, and whole, against torch ---


@quick
@given(st.lists(numbers, min_size=1, max_size=9))
def test_softmax_is_torchs(scores):
    close(softmax(scores), tensor(scores).softmax(-1), 1e-13)


@quick
@given(st.floats(-50, 50))
def test_gelu_is_torchs(value):
    close(gelu(value), F.gelu(tensor(value), approximate="tanh"), 1e-13)


def test_gelu_of_huge_numbers_does_not_overflow():
    assert (gelu(1e200), gelu(-1e200)) == (1e200, 0.0)
    assert (gelu(1e308), gelu(-1e308)) == (1e308, 0.0)


@quick
@given(st.integers(0, 999), st.integers(1, 5), st.integers(1, 6), st.integers(1, 6))
def test_linear_is_a_matrix_product_and_a_bias(seed, tokens, d_in, d_out):
    x, weight = random_vectors(seed, tokens, d_in), random_vectors(seed + 1, d_in, d_out)
    (bias,) = random_vectors(seed + 2, 1, d_out)
    close(linear(x, weight, bias), tensor(x) @ tensor(weight) + tensor(bias), 1e-12)
    assert linear([], weight, bias) == []


@quick
@given(st.integers(0, 999), st.integers(1, 5), st.integers(1, 6), st.sampled_from([1, 1e-3, 1e3]))
def test_layer_norm_is_torchs_also_where_epsilon_decides(seed, tokens, width, size):
    x = random_vectors(seed, tokens, width, size)
    gain, bias = random_vectors(seed + 1, 2, width)
    expected = F.layer_norm(tensor(x), (width,), tensor(gain), tensor(bias), eps=1e-5)
    close(layer_norm(x, gain, bias), expected)
    other = F.layer_norm(tensor(x), (width,), tensor(gain), tensor(bias), eps=0.1)
    close(layer_norm(x, gain, bias, 0.1), other)


@quick
@given(st.integers(0, 999), st.integers(1, 7), st.integers(1, 4), st.integers(1, 4))
def test_attention_is_torchs_with_any_number_of_heads(seed, tokens, n_heads, d_head):
    q, k, v = (random_vectors(seed + n, tokens, n_heads * d_head, 2.0) for n in range(3))
    expected = torch_attention(tensor(q), tensor(k), tensor(v), d_head)
    close(causal_attention(q, k, v, d_head), expected, 1e-12)


@quick
@given(models_and_texts())
def test_a_block_is_torchs(model_and_text):
    (params, d_head, _), token_ids = model_and_text
    x = [params["token_embedding"][token] for token in token_ids]
    close(
        block(x, params["blocks"][0], d_head), torch_block(tensor(x), params["blocks"][0], d_head)
    )


@quick
@given(models_and_texts())
def test_the_logits_are_those_of_torch(model_and_text):
    (params, d_head, n_layers), token_ids = model_and_text
    close(forward(token_ids, params, d_head, n_layers), torch_forward(token_ids, params, d_head))


@quick
@given(models_and_texts().filter(lambda pair: len(pair[1]) > 1))
def test_loss_and_likelihood_are_torchs_cross_entropy(model_and_text):
    model, token_ids = model_and_text
    logits, targets = torch_forward(token_ids, *model[:2])[:-1], torch.tensor(token_ids[1:])
    chosen = logits.log_softmax(-1)[torch.arange(len(targets)), targets]
    assert exact_log_likelihood(token_ids, *model) == pytest.approx(chosen.sum().item(), abs=1e-9)
    loss = F.cross_entropy(logits, targets).item()
    assert training_loss(token_ids, *model) == pytest.approx(loss, abs=1e-10)
    assert perplexity(token_ids, *model) == pytest.approx(math.exp(loss), rel=1e-9)


# --- what must hold for any model ---


def test_a_later_token_changes_no_earlier_logit_and_every_earlier_one_changes_the_last():
    model = random_model(7)
    before = forward([0, 1, 2, 3, 4, 0], *model)
    for place in range(6):
        token_ids = [0, 1, 2, 3, 4, 0]
        token_ids[place] = (token_ids[place] + 2) % 5
        after = forward(token_ids, *model)
        assert after[:place] == before[:place]  # to the last bit: those loops never came there
        assert max(abs(a - b) for a, b in zip(after[-1], before[-1], strict=True)) > 1e-3


def test_a_shorter_text_has_the_same_logits_to_the_last_bit():
    model = random_model(8)
    whole = forward([4, 3, 2, 1, 0, 1], *model)
    for length in range(1, 7):
        assert forward([4, 3, 2, 1, 0, 1][:length], *model) == whole[:length]


@pytest.mark.parametrize("first", range(3))
def test_the_chances_of_all_texts_that_begin_alike_sum_to_one(first):
    model = random_model(9, vocab=3, context=4)
    texts = [[first, *rest] for rest in itertools.product(range(3), repeat=3)]
    chances = [math.exp(exact_log_likelihood(text, *model)) for text in texts]
    assert len(set(chances)) == 27
    assert math.fsum(chances) == pytest.approx(1.0, abs=1e-12)


def test_a_likelihood_is_the_sum_over_its_prefixes():
    model = random_model(10)
    text = [1, 4, 2, 2, 0, 3]
    steps = [
        log_probability(forward(text[:place], *model)[-1], text[place]) for place in range(1, 6)
    ]
    assert exact_log_likelihood(text, *model) == pytest.approx(math.fsum(steps), abs=1e-12)


@pytest.mark.parametrize("gap", [30.0, 500.0, 800.0, 1e4, 1e6])
@pytest.mark.parametrize("level", [0.0, 1e4, -1e4])
def test_nothing_is_clamped_however_unlikely(gap, level):
    model = biased_model([level, level - gap, level - 2 * gap])
    assert exact_log_likelihood([0, 1], *model) == pytest.approx(-gap, rel=1e-12)
    assert exact_log_likelihood([0, 1, 2, 1], *model) == pytest.approx(-4 * gap, rel=1e-12)
    assert training_loss([0, 1, 2], *model) == pytest.approx(1.5 * gap, rel=1e-12)


def test_a_forbidden_token_has_likelihood_minus_infinity_and_the_others_their_own():
    model = biased_model([0.0, -math.inf, 0.0])
    assert exact_log_likelihood([0, 2, 0], *model) == pytest.approx(-2 * math.log(2))
    assert exact_log_likelihood([0, 1, 0], *model) == -math.inf
    assert perplexity([0, 1, 0], *model) == math.inf


def test_an_even_model_has_the_perplexity_of_its_vocabulary():
    model = biased_model([3.0] * 4)
    assert exact_log_likelihood([0, 3, 1], *model) == pytest.approx(-2 * math.log(4))
    assert perplexity([0, 3, 1], *model) == pytest.approx(4)


def test_a_perplexity_that_no_float_can_hold_is_infinite_and_its_loss_is_not():
    model = biased_model([0.0, -709.0, -710.0])
    assert perplexity([0, 1], *model) == pytest.approx(math.exp(709.0))
    assert perplexity([0, 2], *model) == math.inf
    assert training_loss([0, 2], *model) == 710.0


def test_one_token_has_no_term_to_sum_and_no_loss():
    assert exact_log_likelihood([2], *random_model(1)) == 0.0
    for mean in (training_loss, perplexity):
        for token_ids in ([2], []):
            with pytest.raises(ValueError, match=r"a loss needs two tokens or more, got \[2?\]"):
                mean(token_ids, *random_model(1))


def test_nothing_that_was_passed_in_is_changed():
    model, prompt = random_model(11), [1, 2, 3]
    kept = copy.deepcopy(model)
    generate(prompt, *model, 3, 1.0, random.Random(0))
    perplexity(prompt, *model)
    assert (model, prompt) == (kept, [1, 2, 3])
    q, k, v = (random_vectors(n, 3, 4) for n in range(3))
    kept = copy.deepcopy((q, k, v))
    causal_attention(q, k, v, 2)
    layer_norm(q, k[0], v[0])
    assert (q, k, v) == kept


def test_tuples_and_numpy_integers_are_token_ids_too():
    model = random_model(12)
    expected = forward([1, 4, 0], *model)
    assert forward((1, 4, 0), *model) == expected
    assert forward(np.array([1, 4, 0]), *model) == expected


# --- softmax and what a score may be ---


def test_softmax_of_extreme_scores():
    assert softmax([1e4, -1e4, 1e4]) == [0.5, 0.0, 0.5]
    assert softmax([-math.inf, 0.0]) == [0.0, 1.0]
    assert softmax([1e308, -1e308]) == [1.0, 0.0]
    assert softmax([-5.0]) == [1.0]


@pytest.mark.parametrize(
    "scores", [[], [math.nan, 0.0], [0.0, math.nan], [math.inf, 0.0], [-math.inf, -math.inf]]
)
def test_scores_that_have_no_softmax_are_refused(scores):
    with pytest.raises(ValueError, match="scores must be numbers below inf, one of them above"):
        softmax(scores)
    for use in (lambda z: log_probability(z, 0), lambda z: pick_token(z, 0.0, None)):
        with pytest.raises(ValueError, match="logits must be numbers below inf"):
            use(scores)


# --- one draw ---


class Always:
    """A generator of chance that is none."""

    def __init__(self, value):
        self.value, self.calls = value, 0

    def random(self):
        self.calls += 1
        return self.value


LAST = 1 - 2**-53  # the largest number that random() can return


def test_a_draw_lands_where_the_cumulative_sum_passes_it():
    logits = [0.0, math.log(2), 0.0]  # 1/4, 1/2, 1/4
    for threshold, token in [(0.0, 0), (0.24, 0), (0.26, 1), (0.74, 1), (0.76, 2), (LAST, 2)]:
        assert pick_token(logits, 1.0, Always(threshold)) == token
    assert pick_token([0.0, 0.0], 1.0, Always(0.5)) == 1  # half-open, as random() itself is


def test_a_sum_that_rounding_leaves_below_one_loses_no_token():
    assert sum([0.1] * 10) <= LAST < 1  # the case: ten equal tokens, the largest draw
    assert pick_token([2.0] * 10, 1.0, Always(LAST)) == 9
    assert pick_token([2.0] * 10 + [-1e5], 1.0, Always(LAST)) == 9  # and never one of chance 0
    assert pick_token([2.0] * 10 + [-math.inf], 1.0, Always(1.0)) == 9


def test_a_draw_of_exactly_zero_takes_no_token_of_chance_zero():
    assert pick_token([-1e5, 0.0, 0.0], 1.0, Always(0.0)) == 1
    assert pick_token([-math.inf, -math.inf, 3.0], 1.0, Always(0.0)) == 2


@quick
@given(
    st.lists(numbers, min_size=1, max_size=8),
    st.floats(0.05, 20),
    st.floats(0, 1, exclude_max=True),
)
def test_a_draw_inverts_the_cumulative_distribution(logits, temperature, threshold):
    rng = Always(threshold)
    token = pick_token(logits, temperature, rng)
    probs = (tensor(logits) / temperature).softmax(-1)
    assert probs[:token].sum() <= threshold + 1e-12
    assert probs[: token + 1].sum() >= threshold - 1e-12
    assert rng.calls == 1


@pytest.mark.parametrize("temperature", [5e-324, 1e-310, 1e-30, 1e-3])
@pytest.mark.parametrize("threshold", [0.0, 0.5, LAST])
def test_a_tiny_temperature_is_greedy_and_overflows_nothing(temperature, threshold):
    assert pick_token([1.0, 3.0, -1e300], temperature, Always(threshold)) == 1
    assert pick_token([1e300, -1e300, 0.0], temperature, Always(threshold)) == 0


def test_a_huge_temperature_is_even():
    thresholds = (0.1, 0.3, 0.6, 0.9)
    assert [pick_token([9.0, 0.0, 5.0, 1.0], 1e308, Always(u)) for u in thresholds] == [0, 1, 2, 3]


@pytest.mark.parametrize("rng", [random.Random(5), np.random.default_rng(5)], ids=["random", "np"])
def test_many_draws_have_the_frequencies_of_the_distribution(rng):
    logits, temperature = [0.5, -0.5, 1.0, 0.0], 0.7
    drawn = [pick_token(logits, temperature, rng) for _ in range(10_000)]
    for token, prob in enumerate((tensor(logits) / temperature).softmax(-1).tolist()):
        assert drawn.count(token) / 10_000 == pytest.approx(prob, abs=0.02)


def test_greedy_takes_the_lowest_of_equal_tokens_and_asks_nothing_of_chance():
    for zero in (0, 0.0, -0.0):
        assert pick_token([1.0, 3.0, 3.0, 3.0], zero, None) == 1
    assert pick_token([2.0, 2.0], 0, Always(0.9)) == 0


# --- a generation ---


def test_greedy_generation_follows_torchs_likeliest_token():
    params, d_head, n_layers = random_model(13, context=8)
    token_ids = generate([2, 0], params, d_head, n_layers, 7, 0, None)
    assert token_ids[:2] == [2, 0]
    for length in range(2, 9):
        row = torch_forward(token_ids[:length], params, d_head)[-1]
        assert token_ids[length] == row.argmax().item()


@quick
@given(
    st.integers(0, 5),
    st.sampled_from([0.0, 1e-300, 0.5, 1.0, 50.0]),
    st.sampled_from([0.0, 0.3, LAST]),
)
def test_every_step_appends_exactly_one_token_of_the_vocabulary(count, temperature, threshold):
    model = random_model(14, n_layers=1, d_head=1, d_ff=2)
    rng = Always(threshold)
    token_ids = generate([1, 2], *model, count, temperature, rng)
    assert len(token_ids) == 2 + count
    assert token_ids[:2] == [1, 2]
    assert set(token_ids) <= set(range(5))
    assert rng.calls == (count if temperature else 0)


def test_a_seed_repeats_a_text_and_each_token_reads_all_before_it():
    model = random_model(15, context=8)
    text = generate([3], *model, 7, 1.0, random.Random(18))
    assert text == generate([3], *model, 7, 1.0, random.Random(18))
    rng = random.Random(18)
    for place in range(1, 8):
        assert pick_token(forward(text[:place], *model)[-1], 1.0, rng) == text[place]


def test_a_text_may_outgrow_the_positions_by_the_one_token_that_is_never_read():
    model = random_model(16, context=4)
    assert len(generate([0, 1], *model, 3, 0, None)) == 5
    assert len(generate([0, 1, 2, 3], *model, 1, 0, None)) == 5
    for prompt, count, room in (([0, 1], 4, 3), ([0, 1, 2, 3], 2, 1)):
        with pytest.raises(ValueError, match=rf"count={count} is outside \[0, {room}\]"):
            generate(prompt, *model, count, 0, None)


def test_a_refused_generation_draws_nothing():
    rng = Always(0.5)
    with pytest.raises(ValueError, match="count=9 is outside"):
        generate([0, 1], *random_model(16, context=4), 9, 1.0, rng)
    assert rng.calls == 0


# --- what is refused at the door ---


@pytest.mark.parametrize(
    ("token_ids", "error", "message"),
    [
        ([], ValueError, "token_ids is empty"),
        ([0, 5], ValueError, r"token_ids\[1\]=5 is outside \[0, 5\)"),
        ([-1], ValueError, r"token_ids\[0\]=-1 is outside"),
        ([True], TypeError, r"token_ids\[0\] must be an integer, got True \(bool\)"),
        ([0, 1.0], TypeError, r"token_ids\[1\] must be an integer, got 1.0 \(float\)"),
        (["1"], TypeError, "must be an integer"),
        ([None], TypeError, "must be an integer"),
        ([0] * 7, ValueError, "7 tokens are more than the model's 6 positions"),
    ],
)
def test_a_text_that_the_model_cannot_read_is_refused(token_ids, error, message):
    model = random_model(2)
    for read in (forward, exact_log_likelihood):
        with pytest.raises(error, match=message):
            read(token_ids, *model)
    with pytest.raises(error, match=message):
        generate(token_ids, *model, 0, 0.0, None)
    if len(token_ids) > 1:
        with pytest.raises(error, match=message):
            perplexity(token_ids, *model)


def test_the_last_token_is_checked_although_it_is_only_predicted():
    with pytest.raises(ValueError, match=r"token_ids\[2\]=5 is outside"):
        training_loss([0, 1, 5], *random_model(2))


@pytest.mark.parametrize(
    ("d_head", "n_layers", "error", "message"),
    [
        (3, 2, ValueError, "d_model=4 is not divisible by d_head=3"),
        (8, 2, ValueError, "d_model=4 is not divisible by d_head=8"),
        (0, 2, ValueError, "by d_head=0"),
        (-2, 2, ValueError, "by d_head=-2"),
        (2.0, 2, TypeError, "d_head must be an integer, got 2.0"),
        (True, 2, TypeError, "d_head must be an integer, got True"),
        (2, 1, ValueError, "n_layers=1, but params has 2 blocks"),
        (2, 3, ValueError, "n_layers=3, but params has 2 blocks"),
        (2, True, TypeError, "n_layers must be an integer"),
        (2, 2.0, TypeError, "n_layers must be an integer"),
    ],
)
def test_sizes_that_are_not_the_models_are_refused(d_head, n_layers, error, message):
    params = random_model(3)[0]
    with pytest.raises(error, match=message):
        forward([0], params, d_head, n_layers)
    with pytest.raises(error, match=message):
        generate([0], params, d_head, n_layers, 0, 0.0, None)


@pytest.mark.parametrize(
    "temperature", [-1, -1e-9, math.nan, math.inf, -math.inf, True, "1", None], ids=repr
)
def test_a_temperature_that_is_no_number_from_zero_up_is_refused(temperature):
    with pytest.raises(ValueError, match="temperature must be a finite number from 0 up, got"):
        generate([0], *random_model(4), 1, temperature, random.Random(0))
    with pytest.raises(ValueError, match="temperature must be"):
        pick_token([0.0, 1.0], temperature, random.Random(0))


@pytest.mark.parametrize(
    ("count", "error", "message"),
    [
        (-1, ValueError, r"count=-1 is outside \[0, 6\]"),
        (7, ValueError, r"count=7 is outside \[0, 6\]"),
        (True, TypeError, "count must be an integer, got True"),
        (1.0, TypeError, "count must be an integer, got 1.0"),
        (None, TypeError, "count must be an integer"),
    ],
)
def test_a_count_that_cannot_be_made_is_refused(count, error, message):
    with pytest.raises(error, match=message):
        generate([0], *random_model(4), count, 0.0, None)


@pytest.mark.parametrize("rng", [None, 7, lambda: 0.5])
def test_a_draw_needs_a_generator(rng):
    with pytest.raises(TypeError, match=r"rng must have a method random\(\)"):
        generate([0], *random_model(4), 1, 1.0, rng)


V22, V23 = [[0.0, 1.0]] * 2, [[0.0, 1.0, 2.0]] * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], [], [], 1), r"must have one size \[T\]\[width\], got \[0, 0, 0\] vectors of \[\]"),
        ((V22, V22[:1], V22, 1), r"got \[2, 1, 2\] vectors"),
        ((V22, V22, [*V22, V22[0]], 1), r"got \[2, 2, 3\] vectors"),
        ((V22, V23, V22, 1), r"vectors of \[2, 3\] numbers"),
        ((V22, V22, V23, 1), r"vectors of \[2, 3\] numbers"),
        ((V23, V23, V23, 2), "d_model=3 is not divisible by d_head=2"),
    ],
)
def test_attention_refuses_sizes_that_do_not_fit(arguments, message):
    with pytest.raises(ValueError, match=message):
        causal_attention(*arguments)


@pytest.mark.parametrize(
    ("arguments", "got"),
    [
        ((V23, V22, [0.0, 0.0]), r"\[T\]\[3\], \[2\]\[2\] and \[2\]"),
        ((V22, V22, [0.0]), r"\[T\]\[2\], \[2\]\[2\] and \[1\]"),
        ((V22, [[1.0], [1.0, 2.0]], [0.0]), r"\[T\]\[2\], \[2\]\[1, 2\] and \[1\]"),
    ],
)
def test_linear_refuses_sizes_that_do_not_fit(arguments, got):
    with pytest.raises(ValueError, match=rf"wanted vectors \[T\]\[d_in\], .*; got {got}"):
        linear(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((V22, [1.0], [0.0, 0.0]), r"vectors, gain and bias must have one width, got \[1, 2\]"),
        ((V22, [1.0, 1.0], [0.0]), "must have one width"),
        ((V23, [1.0, 1.0], [0.0, 0.0]), r"got \[2, 3\]"),
        ((V22, [1.0, 1.0], [0.0, 0.0], -1e-5), "epsilon must be 0 or a small positive number"),
        ((V22, [1.0, 1.0], [0.0, 0.0], math.nan), "epsilon must be .*, got nan"),
        ((V22, [1.0, 1.0], [0.0, 0.0], math.inf), "epsilon must be .*, got inf"),
    ],
)
def test_layer_norm_refuses_sizes_that_do_not_fit(arguments, message):
    with pytest.raises(ValueError, match=message):
        layer_norm(*arguments)


def test_layer_norm_with_epsilon_zero_is_the_bare_normalisation():
    third = read_reference(reference_json("module_03"), reference_sha256("module_03"))["layer_norm"]
    (row,) = layer_norm([third["input"]], [1.0] * 4, [0.0] * 4, 0)
    assert row == pytest.approx(third["normalized"], abs=1e-15)


# --- the oracle stands alone ---


def test_plain_imports_nothing_but_the_standard_library():
    tree = ast.parse(Path(plain.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [getattr(node, "module", None) or node.names[0].name for node in imports]
    assert names == ["math", "numbers", "typing"]


def test_plain_runs_in_a_python_that_has_nothing_else(tmp_path):
    (tmp_path / "model.json").write_text(json.dumps([TEXT, *TINY]), encoding="utf-8")
    program = (
        "import json, runpy, sys\n"
        "plain = runpy.run_path(sys.argv[1])\n"
        "print(repr(plain['perplexity'](*json.load(open(sys.argv[2])))))\n"
    )
    command = [sys.executable, "-I", "-S", "-c", program, plain.__file__]
    done = subprocess.run(
        [*command, str(tmp_path / "model.json")], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) == pytest.approx(PINNED["text"]["perplexity"], **pinned)
