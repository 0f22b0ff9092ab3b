"""The fast stage: its logits are those of a float64 computation in torch, however they come."""

import copy
import gc
import signal
import subprocess
import sys
import threading
import time
import tracemalloc

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.contracts import (
    check_batching_contract,
    check_cache_contract,
    check_generation_contract,
)
from course_lib.decoder_lm import block_product, fast_model, fast_pass, packed
from course_lib.decoder_lm.blas_threads import blas_threads, single_threaded_products
from course_lib.decoder_lm.errors import CacheExhausted, ContextOverflow, ShapeMismatch
from course_lib.decoder_lm.fast import (
    FastDecoder,
    KvCache,
    arithmetic_intensity,
    fused_qkv_decode,
    prefill,
)
from course_lib.decoder_lm.helper_thread import Crew
from course_lib.decoder_lm.packed import pack_parameters
from course_lib.decoder_lm.shape import ModelShape, map_parameters, random_parameters

TOLERANCE = 1e-4  # logits of order 1, in float32
SMALL = ModelShape(n_layers=2, d_model=12, n_heads=3, context_length=10, vocab_size=11)
WIDE = ModelShape(n_layers=1, d_model=72, n_heads=2, context_length=150, vocab_size=135)
SHAPES = {"small": (SMALL, 14), "wider than a block of columns": (WIDE, 70)}


def parameters(name="small", seed=3):
    shape, d_ff = SHAPES[name]
    return random_parameters(shape, d_ff, seed)


def decoder(name="small", threads=1, seed=3):
    return FastDecoder(parameters(name, seed), SHAPES[name][0], threads)


def by_torch(params, shape, ids):
    """Logits [T, V] in float64, with torch's own norm, attention and GELU."""
    p = map_parameters(lambda value: torch.tensor(np.array(value, dtype=np.float64)), params)
    width, norm = (shape.d_model,), F.layer_norm
    x = p["token_embedding"][list(ids)] + p["position_embedding"][: len(ids)]
    for b in p["blocks"]:
        h = norm(x, width, b["ln1_gain"], b["ln1_bias"], 1e-5)
        heads = [
            (h @ b[f"w{letter}"] + b[f"b{letter}"])
            .view(len(ids), shape.n_heads, -1)
            .transpose(0, 1)
            for letter in "qkv"
        ]
        mixed = F.scaled_dot_product_attention(*heads, is_causal=True).transpose(0, 1).flatten(1)
        x = x + mixed @ b["wo"] + b["bo"]
        h = norm(x, width, b["ln2_gain"], b["ln2_bias"], 1e-5)
        x = x + F.gelu(h @ b["w1"] + b["b1"], approximate="tanh") @ b["w2"] + b["b2"]
    x = norm(x, width, p["final_gain"], p["final_bias"], 1e-5)
    return (x @ p["unembedding"] + p["unembedding_bias"]).numpy()


def text(length, shape=SMALL, seed=0):
    return np.random.default_rng(seed).integers(0, shape.vocab_size, length).tolist()


def agree(got, want):
    np.testing.assert_allclose(got, want, atol=TOLERANCE, rtol=0)


def greedy_by_torch(params, shape, prompt, count):
    ids = list(prompt)
    for _ in range(count):
        ids.append(int(by_torch(params, shape, ids)[-1].argmax()))
    return ids[len(prompt) :]


# ---------------------------------------------------------------- the numbers


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", SHAPES)
def test_the_full_pass_is_torchs(name, threads):
    shape, model = SHAPES[name][0], decoder(name, threads)
    for length in (1, 2, 9, shape.context_length):
        ids = text(length, shape)
        logits = model.full_logits(ids)
        assert logits.dtype == np.float32
        assert logits.shape == (length, shape.vocab_size)
        agree(logits, by_torch(parameters(name), shape, ids))
    pair = [text(5, shape, 1), text(5, shape, 2)]
    for row, ids in zip(model.full_logits(pair), pair, strict=True):
        agree(row, by_torch(parameters(name), shape, ids))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_any_model_any_batch_in_any_chunks_with_any_number_of_threads(data):
    n_heads, d_head = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 5))
    sizes = [data.draw(st.integers(low, high)) for low, high in ((1, 2), (1, 9), (1, 80))]
    shape = ModelShape(sizes[0], n_heads * d_head, n_heads, sizes[1], sizes[2])
    params = random_parameters(shape, data.draw(st.integers(1, 9)), data.draw(st.integers(0, 99)))
    model = FastDecoder(params, shape, data.draw(st.integers(1, n_heads)))
    lengths = data.draw(st.lists(st.integers(1, shape.context_length), min_size=1, max_size=4))
    texts = [text(length, shape, seed) for seed, length in enumerate(lengths)]
    got = model.prefill(texts)
    seed = 50
    while True:
        assert model.lengths.tolist() == [len(ids) for ids in texts]
        agree(got, [by_torch(params, shape, ids)[-1] for ids in texts])
        room = shape.context_length - max(map(len, texts))
        if room == 0:
            break
        width, seed = data.draw(st.integers(1, room)), seed + 1
        chunk = np.reshape(text(len(texts) * width, shape, seed), (len(texts), width))
        if width == 1 and data.draw(st.booleans()):
            got = model.decode_step(chunk[:, 0])
        else:
            rows = model.extend(chunk)
            got = rows[:, -1]
        for row, new in zip(texts, chunk.tolist(), strict=True):
            row += new
        if width > 1:
            for ids, each in zip(texts, rows, strict=True):
                agree(each, by_torch(params, shape, ids)[-width:])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("d_model", [64, 96, 128, 256, 260])
def test_each_matrix_has_room_however_wide_its_own_blocks_are(d_model, threads):
    """Up to 256 rows a matrix is cut into wider blocks: wo and w2 may differ."""
    shape = ModelShape(1, d_model, n_heads=2, context_length=4, vocab_size=70)
    params = random_parameters(shape, 4 * d_model, seed=2)
    model = FastDecoder(params, shape, threads)
    agree(model.full_logits([3, 1, 2]), by_torch(params, shape, [3, 1, 2]))
    agree(model.prefill([[3, 1], [2]])[1], by_torch(params, shape, [2])[-1])


@pytest.mark.parametrize("threads", [1, 2])
def test_more_queries_than_a_tile_holds_after_a_past(threads):
    model = decoder("wider than a block of columns", threads)
    ids = text(150, WIDE)
    model.prefill([ids[:7], ids[:3]])
    rows = model.extend([ids[7:143], ids[3:139]])
    want = by_torch(parameters("wider than a block of columns"), WIDE, ids)
    agree(rows[0], want[7:143])
    agree(rows[1], want[3:139])


def test_one_decoder_answers_a_prompt_alike_whatever_came_between():
    """A, B, A: also right up to the context, and in a batch of another size."""
    model, a, b = decoder(), text(4), text(SMALL.context_length, seed=1)
    first = model.prefill([a])
    model.prefill([b])
    again = model.prefill([a])
    np.testing.assert_array_equal(first, again)
    model.prefill([b, b, a])
    np.testing.assert_array_equal(model.prefill([a]), first)
    agree(model.decode_step([5])[0], by_torch(parameters(), SMALL, [*a, 5])[-1])


def test_each_row_of_a_batch_says_what_it_says_alone():
    texts = [text(length, seed=length) for length in (3, 9, 1, 9, 4)]
    together = decoder()
    rows = [together.prefill(texts), together.decode_step([1, 2, 3, 4, 5]).copy()]
    alone = decoder()
    for place, ids in enumerate(texts):
        agree(rows[0][place], alone.prefill([ids])[0])
        agree(rows[1][place], alone.decode_step([place + 1])[0])


def test_rows_at_rest_stay_where_they_are():
    params, model = parameters(), decoder(threads=2)
    texts = [text(length, seed=length) for length in (2, 10, 3, 4, 2)]
    model.prefill(texts)
    for active in ([1, 0, 1, 1, 1], [1, 0, 0, 1, 1], [1, 0, 1, 0, 0], [0, 0, 0, 0, 1]):
        active = np.array(active, bool)
        new = text(5, seed=int(active.sum()))
        logits = model.decode_step(new, active=active)
        for row in np.flatnonzero(active):
            texts[row].append(new[row])
            agree(logits[row], by_torch(params, SMALL, texts[row])[-1])
        assert model.lengths.tolist() == [len(ids) for ids in texts]
    texts = [ids[:2] for ids in texts]
    model.prefill(texts)
    agree(model.decode_step([1] * 5), [by_torch(params, SMALL, [*ids, 1])[-1] for ids in texts])


def test_the_logits_of_a_step_are_written_over_by_the_next_and_others_are_not():
    model = decoder()
    first = model.prefill([text(3)])
    kept = first.copy()
    step = model.decode_step([1])
    step_kept = step.copy()
    chunk = model.extend([[2, 3]])
    chunk_kept = chunk.copy()
    later = model.decode_step([4])
    assert np.shares_memory(step, later)
    assert not np.array_equal(step, step_kept)
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_array_equal(chunk, chunk_kept)
    assert not np.shares_memory(model.prefill([text(3)]), later)


def test_the_parameters_are_copied_and_left_as_they_are():
    params = parameters()
    before = map_parameters(np.copy, params)
    model = FastDecoder(params, SMALL)
    want = model.full_logits(text(5))
    model.prefill([text(5)])
    map_parameters(lambda value: value.fill(7.0), params)
    np.testing.assert_array_equal(model.full_logits(text(5)), want)
    agree(want, by_torch(before, SMALL, text(5)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, list])
def test_parameters_of_any_kind_of_float_and_any_memory_order_are_taken(dtype):
    single = map_parameters(lambda value: value.astype(np.float16).astype(np.float64), parameters())
    kinds = {list: lambda value: value.tolist()}
    given_ = map_parameters(kinds.get(dtype, lambda value: value.astype(dtype)), single)
    if dtype is np.float32:
        given_ = map_parameters(np.asfortranarray, given_)
    agree(FastDecoder(given_, SMALL).full_logits(text(5)), by_torch(single, SMALL, text(5)))


def test_tied_weights_may_be_a_view():
    params = parameters()
    params["unembedding"] = params["token_embedding"].T
    agree(FastDecoder(params, SMALL).full_logits(text(5)), by_torch(params, SMALL, text(5)))


# ---------------------------------------------------------------- contracts


def test_the_contract_of_the_cache():
    model = decoder()

    def cached(ids, chunks):
        cuts = np.cumsum(chunks)[:-1]
        first, *rest = np.split(np.array(ids), cuts)
        model.prefill([first[:1].tolist()])  # a chunk of one, so that all rows can be seen
        rows = [model.full_logits(first[:1])]
        if len(first) > 1:
            rows.append(model.extend(first[None, 1:])[0])
        for chunk in rest:
            wide = len(chunk) > 1
            rows.append(model.extend(chunk[None])[0] if wide else model.decode_step(chunk).copy())
        return np.concatenate(rows)

    report = check_cache_contract(
        model.full_logits, cached, vocab_size=SMALL.vocab_size, context_length=10
    )
    assert report.attempted


def test_the_contract_of_batching():
    model, other = decoder(), decoder(threads=3)
    report = check_batching_contract(
        lambda prompt: model.prefill([prompt])[0],
        other.prefill,
        vocab_size=SMALL.vocab_size,
        context_length=SMALL.context_length,
    )
    assert report.attempted


class ScriptedDecoder(FastDecoder):
    """The real generation, over the contract's own model in the place of the weights."""

    def __init__(self, model):
        shape = ModelShape(1, 1, 1, model.max_length, 512)
        super().__init__(random_parameters(shape, 1, 0), shape)
        self.scripted = model

    def prefill(self, prompts):
        self.ids = list(prompts[0])
        return self.scripted(torch.tensor(self.ids))[-1:].numpy()

    def decode_step(self, token_ids):
        self.ids.append(int(token_ids[0]))
        return self.scripted(torch.tensor(self.ids))[-1:].numpy()


def test_the_contract_of_generation():
    def generate(model, prompt, max_new_tokens, eos_id=None):
        before = model.training
        model.eval()
        try:
            made = ScriptedDecoder(model).generate([prompt], max_new_tokens, eos_id=eos_id)
            list(made)
        finally:
            model.train(before)
        return made.tokens[0], made.reasons[0]

    assert check_generation_contract(generate).attempted


# ---------------------------------------------------------------- generation


@pytest.mark.parametrize("threads", [1, 3])
def test_greedy_rows_are_torchs_each_to_its_own_end(threads):
    prompts = [text(length, seed=length) for length in (9, 2, 5)]
    made = decoder(threads=threads).generate(prompts, 6)
    steps = list(made)
    want = [
        greedy_by_torch(parameters(), SMALL, prompt, n)
        for prompt, n in zip(prompts, (1, 6, 5), strict=True)
    ]
    assert made.tokens == want
    assert made.reasons == ["context", "length_limit", "context"]
    columns = [[step[row] for step in steps] for row in range(3)]
    assert columns == [row + [None] * (6 - len(row)) for row in want]


def test_of_several_reasons_eos_comes_first_then_the_limit():
    prompt = text(7)
    want = greedy_by_torch(parameters(), SMALL, prompt, 3)
    place = want.index(want[2])
    for count, eos, reason in (
        (3, want[2], "eos"),
        (3, None, "length_limit"),
        (4, None, "context"),
    ):
        made = decoder().generate([prompt], count, eos_id=eos)
        list(made)
        assert made.reasons == [reason]
        assert made.tokens == [want[: place + 1] if eos is not None else want]


def test_tokens_stream_one_step_at_a_time():
    model = decoder()
    made = model.generate([text(3), text(2)], 5)
    assert model.stats.prefill_tokens == 0  # nothing is computed before it is asked for
    assert made.reasons == [None, None]
    first = next(made)
    assert made.tokens == [[token] for token in first]
    assert (model.stats.prefill_tokens, model.stats.decode_tokens) == (5, 0)
    second = next(made)
    assert made.tokens == [list(pair) for pair in zip(first, second, strict=True)]
    assert model.stats.decode_tokens == 2
    assert iter(made) is made
    assert len(list(made)) == 3
    with pytest.raises(StopIteration):
        next(made)
    assert model.stats.decode_tokens == 8  # the last token of a row is never read


def test_nothing_to_generate_computes_nothing():
    model = decoder()
    made = model.generate([text(3), text(10)], 0)
    assert list(made) == []
    assert made.reasons == ["length_limit", "length_limit"]
    full = model.generate([text(10)], 3)
    assert list(full) == []
    assert full.reasons == ["context"]
    assert model.stats.weight_reads == 0


def test_sampling_is_decided_by_the_generator_and_the_options():
    prompts = [text(2), text(4, seed=1)]

    def sampled(seed, **options):
        rng = np.random.default_rng(seed)
        made = decoder().generate(prompts, 6, temperature=1.5, rng=rng, **options)
        list(made)
        return made.tokens

    assert sampled(1) == sampled(1)
    assert sampled(1) != sampled(2)
    made = decoder().generate(prompts, 6)
    list(made)
    assert sampled(1, top_k=1) == made.tokens
    assert sampled(1, top_p=1e-9) == made.tokens


def test_rows_draw_in_turn_from_the_distribution_after_their_own_text():
    """One draw a running row and step: the second step's draws are the third and the fourth."""
    params, prompts = parameters(), [text(2), text(4, seed=1)]
    draws = np.random.default_rng(5).random(4)
    made = decoder().generate(prompts, 2, temperature=0.8, rng=np.random.default_rng(5))
    steps = list(made)
    for step, row in ((0, 0), (0, 1), (1, 0), (1, 1)):
        ids = prompts[row] + made.tokens[row][:step]
        probs = torch.softmax(torch.tensor(by_torch(params, SMALL, ids)[-1]) / 0.8, 0).numpy()
        assert steps[step][row] == np.searchsorted(np.cumsum(probs), draws[2 * step + row])


def test_a_generation_does_not_go_on_in_another_ones_batch():
    model = decoder()
    first, second = (model.generate([text(2, seed=seed)], 4) for seed in (1, 2))
    next(first)
    next(second)
    with pytest.raises(RuntimeError, match="has started another batch since"):
        next(first)
    assert len(list(second)) == 3
    third = model.generate([text(2)], 4)
    next(third)
    model.reset()
    with pytest.raises(RuntimeError, match="has started another batch since"):
        next(third)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_new_tokens": -1}, ValueError, "max_new_tokens must be at least 0, got -1"),
        ({"max_new_tokens": 2.0}, TypeError, "max_new_tokens must be an integer, got 2.0"),
        ({"max_new_tokens": True}, TypeError, "max_new_tokens must be an integer"),
        ({"max_new_tokens": None}, TypeError, "max_new_tokens must be an integer"),
        ({"eos_id": -1}, ValueError, "eos_id must be at least 0, got -1"),
        ({"eos_id": 1.0}, TypeError, "eos_id must be an integer"),
        ({"temperature": -1.0}, ValueError, "temperature must be"),
        ({"temperature": 1.0}, ValueError, "temperature=1.0 needs chance: pass rng=np.random"),
        ({"top_p": 0.0}, ValueError, "top_p must be"),
        ({"top_k": 0}, ValueError, "top_k must be"),
        ({"prompts": []}, ValueError, "prompts is empty"),
        ({"prompts": 3}, TypeError, "prompts must be a list of lists, got int"),
        ({"prompts": [[1], []]}, ValueError, r"prompts\[1\] is empty"),
        ({"prompts": [[1], [11]]}, ValueError, r"prompts\[1\]\[0\]=11 is outside the vocabulary"),
        ({"prompts": [[1.0]]}, TypeError, r"prompts\[0\]\[0\] must be an integer"),
        ({"prompts": [1, 2]}, TypeError, r"prompts\[0\] must be a list of token ids"),
        ({"prompts": [[1] * 11]}, ContextOverflow, "11 tokens do not fit in context_length=10"),
    ],
)
def test_wrong_requests_are_refused_before_anything_is_computed(options, error, message):
    model = decoder()
    arguments = {"prompts": [[1, 2]], "max_new_tokens": 3} | options
    with pytest.raises(error, match=message):
        model.generate(**arguments)
    assert model.batch_number == 0


# ---------------------------------------------------------------- what goes wrong


def test_past_the_context_nothing_changes():
    params, model, texts = parameters(), decoder(), [text(8), text(9, seed=1)]
    model.prefill(texts)
    stats = vars(model.stats).copy()
    with pytest.raises(ContextOverflow, match=r"rows \[1\] hold \[9\] tokens; 2 more do not fit"):
        model.extend([[1, 2], [3, 4]])
    model.decode_step([1, 2])
    with pytest.raises(ContextOverflow, match=r"rows \[1\] hold \[10\] tokens; 1 more"):
        model.decode_step([1, 2])
    assert model.lengths.tolist() == [9, 10]
    logits = model.decode_step([3, 0], active=[True, False])
    agree(logits[0], by_torch(params, SMALL, [*texts[0], 1, 3])[-1])
    assert model.lengths.tolist() == [10, 10]
    with pytest.raises(ContextOverflow, match="11 tokens do not fit"):
        model.prefill([[1] * 11])
    with pytest.raises(ContextOverflow, match="11 more do not fit in context_length=10"):
        model.full_logits([1] * 11)
    assert model.lengths.tolist() == [10, 10]
    assert model.stats.decode_tokens - stats["decode_tokens"] == 3


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: m.decode_step([1, 2, 3]), ShapeMismatch, r"shape \[2\] .*, got \[3\]"),
        (lambda m: m.decode_step([[1], [2]]), ShapeMismatch, r"shape \[2\] .*, got \[2, 1\]"),
        (lambda m: m.decode_step([1, 11]), ValueError, r"in \[0, 11\), got 1 to 11"),
        (lambda m: m.decode_step([-1, 1]), ValueError, r"in \[0, 11\), got -1 to 1"),
        (lambda m: m.decode_step([1.0, 2.0]), ShapeMismatch, "must be integers"),
        (lambda m: m.decode_step([1, 2], active=[True]), ValueError, "active must be 2 booleans"),
        (lambda m: m.decode_step([1, 2], active=[0, 1]), ValueError, "active must be 2 booleans"),
        (lambda m: m.decode_step([1, 2], active=[False] * 2), ValueError, "at least one True"),
        (lambda m: m.extend([1, 2]), ShapeMismatch, r"shape \[2, -1\] .*, got \[2\]"),
        (lambda m: m.extend([[1, 2]]), ShapeMismatch, r"got \[1, 2\]"),
        (lambda m: m.extend([[], []]), ShapeMismatch, "at least one"),
        (lambda m: m.full_logits([]), ShapeMismatch, "at least one"),
        (lambda m: m.full_logits(3), ShapeMismatch, r"shape \[-1\] or \[-1, -1\]"),
        (lambda m: m.full_logits([[11]]), ValueError, "got 11 to 11"),
        (lambda m: m.prefill([]), ValueError, "prompts is empty"),
        (lambda m: m.prefill([[1], [-1]]), ValueError, "outside the vocabulary"),
    ],
)
def test_wrong_tokens_are_refused_and_the_batch_goes_on(call, error, message):
    model = decoder()
    model.prefill([[1, 2], [3]])
    with pytest.raises(error, match=message):
        call(model)
    agree(model.decode_step([4, 5])[1], by_torch(parameters(), SMALL, [3, 5])[-1])


def test_without_a_prompt_there_is_nothing_to_continue():
    model = decoder()
    for call in (lambda: model.decode_step([1]), lambda: model.extend([[1]])):
        with pytest.raises(RuntimeError, match=r"prefill\(prompts\) starts one"):
            call()
    assert model.lengths.tolist() == []
    model.prefill([[1]])
    model.reset()
    with pytest.raises(RuntimeError, match="no batch to continue"):
        model.decode_step([1])


def test_parameters_and_shape_must_agree():
    params = parameters()
    params["blocks"][1]["w1"] = params["blocks"][1]["w1"].T
    with pytest.raises(ShapeMismatch, match=r"blocks\[1\]\['w1'\] must have shape \[12, 14\]"):
        FastDecoder(params, SMALL)
    for threads in (0, 4, 1.5):
        with pytest.raises(ValueError, match=r"threads must be in \[1, n_heads=3\]"):
            FastDecoder(parameters(), SMALL, threads)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError])
def test_a_step_that_was_cut_short_ends_the_batch_and_nothing_else(monkeypatch, threads, failure):
    model, calls = decoder(threads=threads), []
    model.prefill([[1, 2], [3]])
    whole = fast_pass.scaled_gelu_in_place

    def cut_short(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise failure("in the middle")
        whole(*arguments)

    monkeypatch.setattr(fast_pass, "scaled_gelu_in_place", cut_short)
    with pytest.raises(failure, match="in the middle"):
        model.decode_step([4, 5])
    with pytest.raises(RuntimeError, match="no batch to continue .a step that failed"):
        model.decode_step([4, 5])
    model.prefill([[1, 2], [3]])
    logits = model.decode_step([4, 5])
    agree(logits, [by_torch(parameters(), SMALL, ids)[-1] for ids in ([1, 2, 4], [3, 5])])


@pytest.mark.parametrize("threads", [1, 2])
def test_interrupts_anywhere_never_change_a_later_text(monkeypatch, threads):
    """Real signals, hundreds of them, at any line of a step: what comes after is right."""
    model, prompt = decoder("wider than a block of columns", threads), [1, 2, 3]
    want = greedy_by_torch(parameters("wider than a block of columns"), WIDE, prompt, 3)

    def interrupt(*_):
        raise KeyboardInterrupt

    def tell_all_but_interrupts(found):  # one in a callback of the collector gets nowhere
        if found.exc_type is not KeyboardInterrupt:
            told(found)

    told = sys.unraisablehook
    monkeypatch.setattr(sys, "unraisablehook", tell_all_but_interrupts)
    seconds = []
    for _ in range(20):
        start = time.perf_counter()
        list(model.generate([prompt], 3))
        seconds.append(time.perf_counter() - start)
    rng, cut = np.random.default_rng(0), 0
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(3000):  # a busy machine may let many texts end before their signal
            if cut == 200:
                break
            try:
                signal.setitimer(signal.ITIMER_REAL, max(1e-6, rng.uniform(0, min(seconds))))
                list(model.generate([prompt], 3))
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                cut += 1
            text_now = model.generate([prompt], 3)
            list(text_now)
            assert text_now.tokens[0] == want
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert cut == 200


def test_a_generation_that_was_cut_short_does_not_go_on():
    class Broken:
        def random(self):
            raise OSError("no chance left")

    run = decoder().generate([[1, 2]], 4, temperature=1.0, rng=Broken())
    with pytest.raises(OSError, match="no chance left"):
        next(run)
    with pytest.raises(RuntimeError, match="start the generation anew"):
        next(run)


def test_a_decoder_is_not_copied():
    with pytest.raises(TypeError, match="make another from the parameters"):
        copy.deepcopy(decoder())


def test_parameters_that_are_not_finite_are_refused():
    params = parameters()
    params["blocks"][1]["w1"][0, 0] = np.nan
    with pytest.raises(ValueError, match="holds NaN or an infinite number"):
        FastDecoder(params, SMALL)


# ---------------------------------------------------------------- what it costs


def test_stats_count_prefill_and_decoding_apart():
    model = decoder()
    model.prefill([text(3), text(5)])
    model.extend([[1, 2], [3, 4]])
    model.decode_step([1, 2])
    model.decode_step([1, 2], active=[True, False])
    assert vars(model.stats) == {
        "prefill_tokens": 12,
        "decode_tokens": 3,
        "cache_positions": 15,
        "weight_reads": 4,
    }
    assert model.stats.tokens_per_weight_read == 15 / 4


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("prompts", [[3], [3, 3, 3], [2, 5, 3]])
def test_the_hot_loop_allocates_nothing_that_stays(threads, prompts):
    """Memory is flat over the steps; in passing, NumPy's loops buffer at most 8192 numbers each."""
    shape = ModelShape(2, 64, 4, 400, 20_000)
    model = FastDecoder(random_parameters(shape, 256, 0), shape, threads)
    model.prefill([text(length, shape) for length in prompts])
    ids = np.zeros(len(prompts), np.int64)
    for _ in range(3):
        model.decode_step(ids)
    held, peaks = np.zeros(60, np.int64), np.zeros(60, np.int64)  # no lists: they would grow
    tracemalloc.start()
    try:
        for step in range(60):
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            model.decode_step(ids)
            held[step], peaks[step] = tracemalloc.get_traced_memory()
            peaks[step] -= before
    finally:
        tracemalloc.stop()
    assert held[10:].max() - held[9] < 1000  # bytes, over fifty steps
    assert peaks.max() < 75_000  # a row of logits is 80,000 bytes: no step makes a new one


def test_nothing_is_in_double_precision():
    model = decoder()
    model.prefill([text(3), text(2)])
    model.decode_step([1, 2])
    laid_out, batch = model.model, model.batch
    desk = batch.step.desks[0]
    arrays = [*vars(laid_out).values(), *vars(laid_out.parts[0]).values(), *vars(desk).values()]
    arrays += [*vars(laid_out.parts[0].layers[0]).values(), *vars(batch.step).values()]
    arrays += [*vars(batch.unembedding).values(), *vars(batch.caches[0]).values()]
    kinds = {each.dtype for each in arrays if isinstance(each, np.ndarray)}
    assert kinds == {np.dtype(np.float32), np.dtype(np.int64)}  # integers: positions and lengths


def test_the_library_is_read_without_torch():
    code = "import sys; import course_lib.decoder_lm.fast; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---------------------------------------------------------------- parts


@pytest.mark.parametrize("pays", [False, True])
@pytest.mark.parametrize("count", [1, 15, 16, 17, 32, 50])
@pytest.mark.parametrize("sizes", [(5, 1), (5, 256), (5, 257), (300, 64), (300, 130)])
@pytest.mark.parametrize("whole", [False, True])
def test_a_product_in_blocks_and_groups_is_the_product(monkeypatch, pays, count, sizes, whole):
    monkeypatch.setattr(block_product, "small_products_pay", lambda: pays)
    rng = np.random.default_rng(0)
    x, matrix = rng.normal(size=(count, sizes[0])).astype(np.float32), rng.normal(size=sizes)
    blocks = block_product.matrix_blocks(matrix, whole=whole)
    assert np.array_equal(block_product.in_one_piece(blocks, sizes[1]), matrix.astype(np.float32))
    assert blocks.flags.c_contiguous
    assert blocks.dtype == np.float32
    assert blocks.ctypes.data % 64 == 0
    out = block_product.room_for(count, blocks)
    product = block_product.BlockProduct(x, out, blocks.shape[3])
    product.write(blocks)
    np.testing.assert_allclose(out[:, : sizes[1]], x @ matrix, atol=3e-4)
    assert not out[:, sizes[1] :].any()
    assert len(blocks) == 1 or not whole
    grouped = pays and count in (17, 50) and blocks.shape[3] <= 256
    assert len(product.pairs) == (2 if grouped else 1)


@pytest.mark.parametrize("threads", [1, 2])
def test_one_text_and_several_find_the_weights_laid_out_for_them(threads):
    """In one piece for one text, in blocks for several, and the numbers are the same."""
    model, ids = decoder("wider than a block of columns", threads), text(6, WIDE)
    want = by_torch(parameters("wider than a block of columns"), WIDE, ids)
    for rows, whole in ((1, True), (2, False), (1, True), (3, False)):
        logits = model.prefill([ids[:5]] * rows)
        assert model.model.whole == whole
        agree(logits, np.repeat(want[4:5], rows, axis=0))
        agree(model.decode_step(ids[5:] * rows), np.repeat(want[5:], rows, axis=0))
        agree(model.full_logits(ids), want)


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_there_and_back_the_layout_is_the_same(parts):
    shape = ModelShape(2, 300, 3, 8, 130)
    params = random_parameters(shape, 70, 0)
    for whole in (False, True):
        made = pack_parameters(params, shape, parts, whole=whole)
        again = packed.packed_again(packed.packed_again(made, whole=not whole), whole=whole)
        other = packed.packed_again(
            pack_parameters(params, shape, parts, whole=not whole), whole=whole
        )
        for old, new, third in zip(made.parts, again.parts, other.parts, strict=True):
            assert np.array_equal(old.unembedding, new.unembedding)
            np.testing.assert_allclose(old.unembedding, third.unembedding, atol=1e-6)
            for one, two in zip(old.layers, new.layers, strict=True):
                assert all(map(np.array_equal, vars(one).values(), vars(two).values()))


def test_a_deep_matrix_takes_fewer_rows_at_once(monkeypatch):
    monkeypatch.setattr(block_product, "small_products_pay", lambda: True)
    assert block_product.row_group(769, 64) == 16
    assert block_product.row_group(1537, 64) == 8
    assert block_product.row_group(3073, 64) == 4
    assert block_product.row_group(10**7, 64) == 1
    assert block_product.row_group(769, 2304) > 10**6  # in one piece: BLAS cuts it itself
    monkeypatch.setattr(block_product, "small_products_pay", lambda: False)
    assert block_product.row_group(10**7, 64) > 10**6


def test_gelu_is_torchs_but_for_the_factors_that_the_matrices_carry():
    z = np.linspace(-6, 6, 241)
    scale = (0.044715 * np.sqrt(2 / np.pi)) ** (1 / 3)
    x = (scale * z).astype(np.float32)
    fast_pass.scaled_gelu_in_place(x, np.empty_like(x))
    want = F.gelu(torch.tensor(z), approximate="tanh").numpy()
    np.testing.assert_allclose(x * (0.5 / scale), want, atol=2e-6)
    np.testing.assert_allclose(packed.GELU_SLOPE, np.sqrt(2 / np.pi) / scale, rtol=1e-12)
    np.testing.assert_allclose(packed._GELU_SCALE, scale, rtol=1e-12)


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_the_parts_of_a_model_share_it_without_rest_or_overlap(parts):
    shape = ModelShape(1, 72, 3, 8, 900)
    laid_out = pack_parameters(random_parameters(shape, 100, 0), shape, parts)
    assert sum(part.n_heads for part in laid_out.parts) == 3
    assert sum(part.d_ff for part in laid_out.parts) == 100
    starts = [part.first_token for part in laid_out.parts]
    sizes = [256 * len(part.unembedding) for part in laid_out.parts]
    assert starts == [sum(sizes[:n]) for n in range(parts)]
    assert sum(sizes) == 1024  # 900 tokens in whole blocks


def test_what_enters_the_stream_has_mean_zero():
    params = parameters()
    laid_out = pack_parameters(params, SMALL)
    for each in (laid_out.token_embedding, laid_out.position_embedding):
        assert np.abs(each.mean(axis=1)).max() < 1e-7
    want = params["token_embedding"] - params["token_embedding"].mean(axis=1, keepdims=True)
    np.testing.assert_allclose(laid_out.token_embedding, want, atol=1e-6)


def test_a_crew_works_in_as_many_threads_as_parts_and_ends_with_its_owner():
    crew, seen = Crew(3), {}

    def work(part, offset):
        seen[part + offset] = threading.get_ident()

    crew.run(work, 10)
    assert sorted(seen) == [10, 11, 12]
    assert len(set(seen.values())) == 3
    assert seen[10] == threading.get_ident()
    threads = crew._threads
    crew.run(work, 20)
    assert [seen[20 + n] for n in range(3)] == [seen[10 + n] for n in range(3)]
    del crew
    gc.collect()
    for thread in threads:
        thread.join(timeout=20)
        assert not thread.is_alive()


@pytest.mark.parametrize("failing", [0, 1])
def test_a_crew_hands_a_failure_on_when_all_have_ended(failing):
    crew, ended = Crew(2), []

    def work(part):
        if part == failing:
            raise ValueError(f"part {part}")
        ended.append(part)

    for _ in range(2):
        with pytest.raises(ValueError, match=f"part {failing}"):
            crew.run(work)
    assert ended == [1 - failing] * 2


def test_one_part_needs_no_thread():
    before = threading.active_count()
    Crew(1).run(lambda part: None)
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("d_model", "n_heads", "available", "used"),
    [(300, 4, 2, 2), (300, 4, 1, 1), (300, 3, 64, 3), (300, 6, 64, 4), (64, 4, 8, 1)],
)
def test_a_wide_model_takes_the_threads_there_are(monkeypatch, d_model, n_heads, available, used):
    monkeypatch.setattr(fast_model, "blas_threads", lambda: available)
    shape = ModelShape(1, d_model, n_heads, 4, 5)
    assert FastDecoder(random_parameters(shape, 4, 0), shape).crew.parts == used


def test_the_threads_of_matrix_products_are_given_back():
    before = blas_threads()
    with single_threaded_products():
        assert blas_threads() == 1
    assert blas_threads() == before
    with pytest.raises(ValueError, match="inside"), single_threaded_products():
        raise ValueError("inside")
    assert blas_threads() == before
    assert before >= 1


@pytest.mark.parametrize("ready", [False, True])
def test_prefill_reads_whole_prompts_into_a_cache(ready):
    params, cache = parameters(), KvCache(2, 2, 3, 10, 4)
    weights = pack_parameters(params, SMALL) if ready else params
    texts = [text(5, seed=1), text(5, seed=2)]
    agree(prefill(texts, weights, cache), [by_torch(params, SMALL, ids)[-1] for ids in texts])
    assert cache.lengths.tolist() == [5, 5]
    more = [text(3, seed=3), text(3, seed=4)]
    texts = [ids + new for ids, new in zip(texts, more, strict=True)]
    agree(prefill(more, weights, cache), [by_torch(params, SMALL, ids)[-1] for ids in texts])
    with pytest.raises(ContextOverflow, match="hold .8, 8. tokens; 3 more"):
        prefill(more, weights, cache)
    assert cache.length == 8


def test_prefill_refuses_a_cache_of_another_model():
    params = parameters()
    with pytest.raises(ShapeMismatch, match="d_model=12, but the cache has 2 heads of 4"):
        prefill([[1]], params, KvCache(2, 1, 2, 10, 4))
    with pytest.raises(ShapeMismatch, match="the cache is for 3 layers, 3 heads of 4; the weights"):
        prefill([[1]], params, KvCache(3, 1, 3, 10, 4))
    with pytest.raises(ShapeMismatch, match="in 2 parts"):
        prefill([[1]], pack_parameters(params, SMALL, 2), KvCache(2, 1, 3, 10, 4))
    with pytest.raises(TypeError, match="cache must be a KvCache, got dict"):
        prefill([[1]], params, {})
    with pytest.raises(ShapeMismatch, match=r"shape \[1, -1\]"):
        prefill([[1], [2]], params, KvCache(2, 1, 3, 10, 4))
    short = KvCache(2, 1, 3, 5, 4)  # the model has ten positions, this cache five
    with pytest.raises(CacheExhausted, match="holds 0 of 5 positions, 6 more do not fit"):
        prefill([[1] * 6], params, short)
    agree(prefill([[1] * 5], params, short)[0], by_torch(params, SMALL, [1] * 5)[-1])


def test_one_product_makes_query_key_and_value():
    rng = np.random.default_rng(0)
    hidden, weights = rng.normal(size=(3, 6)), [rng.normal(size=(6, 6)) for _ in range(3)]
    made = fused_qkv_decode(hidden, np.concatenate(weights, axis=1), 2)
    for each, weight in zip(made, weights, strict=True):
        assert each.shape == (3, 2, 1, 3)
        np.testing.assert_allclose(each[:, 1, 0], hidden @ weight[:, 3:], atol=1e-12)
        np.testing.assert_allclose(each[:, 0, 0], hidden @ weight[:, :3], atol=1e-12)
    with_time = fused_qkv_decode(hidden[:, None], np.concatenate(weights, axis=1), 2)
    assert all(map(np.array_equal, with_time, made))  # [B, 1, d_model] is one new token too
    with pytest.raises(ShapeMismatch, match=r"qkv_weight \[d_model, 3 d_model\], got \[3, 6\] and"):
        fused_qkv_decode(hidden, weights[0], 2)
    with pytest.raises(ShapeMismatch, match="d_model=6 is not divisible by n_heads=4"):
        fused_qkv_decode(hidden, np.concatenate(weights, axis=1), 4)


def test_the_intensity_is_flops_over_bytes_of_weights():
    assert arithmetic_intensity(124_000_000, 1) == 1.0
    assert arithmetic_intensity(124_000_000, 8, 4) == 4.0
    assert arithmetic_intensity(7, 64, 0.5) == 256.0
    for arguments in ((0, 1), (5, 0), (5.0, 1), (5, True)):
        with pytest.raises(ValueError, match="must be an integer of at least 1"):
            arithmetic_intensity(*arguments)
    with pytest.raises(ValueError, match="bytes_per_parameter must be above 0, got 0"):
        arithmetic_intensity(5, 1, 0)
