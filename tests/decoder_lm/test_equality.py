"""The equality theorem: full pass = prefill + decode = any chunking, on logits, for every stage.

The definition is the plain stage, in loops; the others are held to its numbers, not to their own.
"""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.decoder_lm import plain
from course_lib.decoder_lm.errors import CacheExhausted, ContextOverflow
from course_lib.decoder_lm.shape import ModelShape, random_parameters
from course_lib.decoder_lm.typed import SamplingConfig

from .stages import CACHED, NOT_CACHED, STAGES, small_shape, stage_of, tolerance

TEXT = [3, 1, 4, 1, 5, 9, 2, 6, 10, 0]
OTHER = [7, 7, 0, 10, 2]
CUTS = {
    "one by one": [1] * 10,
    "in one": [10],
    "4, 2, 1": [4, 2, 1, 3],
    "3, 2, 4": [3, 2, 4, 1],
    "prefill and decode": [6, 1, 1, 1, 1],
    "a step before the chunks": [1, 5, 4],
    "the last alone": [9, 1],
}
SEEDS = [0, 1, 3, 4, 5, 6, 8, 9, 10, 12]  # of models whose continuation wanders
few = settings(max_examples=20, deadline=None, derandomize=True)


@st.composite
def shapes(draw):
    """Sizes of a model that a loop can run; a width of 4 or more, or single precision suffers."""
    n_heads, d_head = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    d_head = max(d_head, math.ceil(4 / n_heads))
    sizes = {"n_layers": draw(st.integers(1, 3)), "d_model": n_heads * d_head, "n_heads": n_heads}
    return ModelShape(
        **sizes, context_length=draw(st.integers(1, 9)), vocab_size=draw(st.integers(2, 9))
    )


@st.composite
def texts(draw, shape, least=1):
    ids = st.integers(0, shape.vocab_size - 1)
    return draw(st.lists(ids, min_size=least, max_size=shape.context_length))


@st.composite
def cuts(draw, length):
    """Any way of cutting a text of this length."""
    widths = []
    while sum(widths) < length:
        widths.append(draw(st.integers(1, length - sum(widths))))
    return widths


def definition(shape, ids, seed=3, d_ff=14):
    return stage_of("plain", shape, seed, d_ff).full(ids)


def off(stage, got, want):
    """How many times the tolerance two logits lie apart."""
    assert np.isfinite(got).all()
    assert got.shape == want.shape
    return np.abs(got - want).max() / tolerance(stage) / max(1.0, np.abs(want).max())


def test_every_stage_with_a_cache_is_in_the_theorem():
    assert CACHED.keys() | NOT_CACHED == STAGES.keys()
    assert {name for name in STAGES if hasattr(STAGES[name], "extend")} == CACHED.keys()


@pytest.mark.parametrize("name", STAGES)
@few
@given(st.data())
def test_the_full_pass_is_the_definition(name, data):
    shape = data.draw(shapes())
    ids, seed, d_ff = (
        data.draw(texts(shape)),
        data.draw(st.integers(0, 99)),
        data.draw(st.integers(1, 9)),
    )
    stage = stage_of(name, shape, seed, d_ff)
    assert off(stage, stage.full(ids), definition(shape, ids, seed, d_ff)) <= 1


def test_a_thread_may_have_no_column_of_the_mlp_to_compute():
    stage = stage_of("fast, two threads", d_ff=1)
    assert off(stage, stage.full(TEXT), definition(stage.shape, TEXT, d_ff=1)) <= 1
    assert off(stage, stage.cached(TEXT, [4, 1, 5]), definition(stage.shape, TEXT, d_ff=1)) <= 1


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("name", CACHED)
def test_prefill_and_decode_are_the_definition_however_the_text_is_cut(name, cut):
    stage = stage_of(name)
    assert off(stage, stage.cached(TEXT, cut), definition(stage.shape, TEXT)) <= 1


@pytest.mark.parametrize("name", CACHED)
@few
@given(st.data())
def test_any_chunking_of_any_text_in_any_model_is_the_definition(name, data):
    shape = data.draw(shapes())
    ids, seed = data.draw(texts(shape)), data.draw(st.integers(0, 99))
    stage = stage_of(name, shape, seed)
    got = stage.cached(ids, data.draw(cuts(len(ids))))
    assert off(stage, got, definition(shape, ids, seed)) <= 1


@pytest.mark.parametrize("name", CACHED)
@few
@given(st.data())
def test_prompts_in_a_row_through_one_cache_know_nothing_of_each_other(name, data):
    """A, B, A and, in the same cache, B again: each is the definition."""
    shape = data.draw(shapes())
    stage = stage_of(name, shape)
    one, other = data.draw(texts(shape)), data.draw(texts(shape))
    for ids in (one, other, one, other):
        got = stage.cached(ids, data.draw(cuts(len(ids))))
        assert off(stage, got, definition(shape, ids)) <= 1


@pytest.mark.parametrize("first", [TEXT, TEXT[:2]], ids=["long first", "short first"])
@pytest.mark.parametrize("name", CACHED)
def test_the_order_of_two_prompts_does_not_matter(name, first):
    stage = stage_of(name)
    for ids in (first, OTHER, first, OTHER):
        for cut in ([len(ids)], [1] * len(ids), [1, len(ids) - 1]):
            assert off(stage, stage.cached(ids, cut), definition(stage.shape, ids)) <= 1


@pytest.mark.parametrize("name", CACHED)
def test_a_prompt_that_is_left_half_read_leaves_nothing_behind(name):
    stage = stage_of(name)
    stage.begin()
    stage.extend(OTHER[:3])
    assert off(stage, stage.cached(TEXT, [4, 6]), definition(stage.shape, TEXT)) <= 1


@pytest.mark.parametrize("name", CACHED)
def test_the_cache_may_be_left_aside_in_the_middle_of_a_text(name):
    """Cache on, off and on again: a full pass neither reads it nor writes to it."""
    stage, want = stage_of(name), definition(small_shape(), TEXT)
    stage.begin()
    got = [stage.extend(TEXT[:4]).copy()]
    assert off(stage, stage.full(OTHER), definition(stage.shape, OTHER)) <= 1
    got.append(stage.extend(TEXT[4:5]).copy())
    assert off(stage, stage.full(TEXT), want) <= 1
    got.append(stage.extend(TEXT[5:]).copy())
    assert off(stage, np.concatenate(got), want) <= 1


@pytest.mark.parametrize("name", STAGES)
def test_a_text_fills_the_context_to_the_last_place_and_no_further(name):
    stage = stage_of(name)
    assert off(stage, stage.full(TEXT), definition(stage.shape, TEXT)) <= 1
    with pytest.raises(ValueError, match="context|positions"):
        stage.full([*TEXT, 1])


@pytest.mark.parametrize("cut", [[10, 1], [11], [4, 7], [1] * 11, [9, 2]], ids=str)
@pytest.mark.parametrize("name", CACHED)
def test_beyond_the_context_a_chunk_is_refused_and_the_text_stays_as_it_was(name, cut):
    """What fits may still be read: the refused chunk has left no trace."""
    stage, long = stage_of(name), [*TEXT, 1]
    stage.begin()
    read, got = 0, []
    for width in cut[:-1]:
        got.append(stage.extend(long[read : read + width]).copy())
        read += width
    with pytest.raises((ContextOverflow, CacheExhausted), match="context"):
        stage.extend(long[read:])
    if read < 10:
        got.append(stage.extend(TEXT[read:]).copy())
    assert off(stage, np.concatenate(got), definition(stage.shape, TEXT)) <= 1


@pytest.mark.parametrize("name", STAGES)
@few
@given(st.data())
def test_the_log_likelihood_of_a_text_is_one_number(name, data):
    shape = data.draw(shapes().filter(lambda shape: shape.context_length > 1))
    ids, seed = data.draw(texts(shape, least=2)), data.draw(st.integers(0, 99))
    stage = stage_of(name, shape, seed)
    params = random_parameters(shape, 14, seed)
    want = plain.exact_log_likelihood(ids, params, shape.d_head, shape.n_layers)
    assert stage.log_likelihood(ids) == pytest.approx(want, abs=len(ids) * tolerance(stage))


@pytest.mark.parametrize("name", STAGES)
def test_a_text_by_chunks_has_the_log_likelihood_of_the_text(name):
    """The chain rule, executed: the sum of what each step says of the next token."""
    if name in NOT_CACHED:
        rows = np.concatenate([stage_of(name).full(TEXT[:n])[-1:] for n in range(1, 10)])
    else:
        rows = stage_of(name).cached(TEXT[:9], [2, 1, 3, 3])
    told = torch.log_softmax(torch.tensor(rows.astype(np.float64)), dim=-1)[range(9), TEXT[1:]]
    want = stage_of("plain").log_likelihood(TEXT)
    assert float(told.sum()) == pytest.approx(want, abs=9 * tolerance(stage_of(name)))


def greedy_path(shape, prompt, count, seed):
    """The likeliest tokens by the definition, and by how much the best beats the second."""
    text, margins = list(prompt), []
    for _ in range(count):
        second, best = np.sort(definition(shape, text, seed)[-1])[-2:]
        margins.append(best - second)
        text.append(int(definition(shape, text, seed)[-1].argmax()))
    return text[len(prompt) :], min(margins)


@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize("seed", SEEDS)
def test_greedy_continuations_are_the_same_text(name, seed):
    """Where no two logits are so near each other that rounding decides."""
    shape, prompt = small_shape(vocab_size=20), TEXT[: 1 + seed % 4]
    want, margin = greedy_path(shape, prompt, 10 - len(prompt), seed)
    assert margin > 1e-3
    assert len(set(want)) >= 4
    assert stage_of(name, shape, seed).greedy(prompt, len(want)) == want


# ---------------------------------------------------------------- rows of a batch

RAGGED = ["fast", "fast, two threads"]
EVEN = ["twin", "twin, float32"]


@pytest.mark.parametrize("name", RAGGED)
@few
@given(st.data())
def test_rows_of_any_lengths_are_what_each_would_be_alone(name, data):
    """Read in a prefill, a chunk and single steps, in which full rows rest."""
    shape = data.draw(shapes())
    stage = stage_of(name, shape)
    rows = data.draw(st.lists(texts(shape), min_size=1, max_size=4))
    wanted = [definition(shape, row) for row in rows]
    read = [data.draw(st.integers(1, len(row))) for row in rows]
    got = stage.model.prefill([row[:n] for row, n in zip(rows, read, strict=True)])
    assert off(stage, got, np.stack([w[n - 1] for w, n in zip(wanted, read, strict=True)])) <= 1
    width = data.draw(st.integers(0, min(len(row) - n for row, n in zip(rows, read, strict=True))))
    if width > 0:
        chunk = [row[n : n + width] for row, n in zip(rows, read, strict=True)]
        want = np.stack([w[n : n + width] for w, n in zip(wanted, read, strict=True)])
        assert off(stage, stage.model.extend(chunk), want) <= 1
        read = [n + width for n in read]
    while any(n < len(row) for row, n in zip(rows, read, strict=True)):
        active = np.array([n < len(row) for row, n in zip(rows, read, strict=True)])
        ids = [row[n] if goes else 0 for row, n, goes in zip(rows, read, active, strict=True)]
        got = stage.model.decode_step(ids, active=active)
        want = np.stack([w[min(n, len(w) - 1)] for w, n in zip(wanted, read, strict=True)])
        assert off(stage, got[active], want[active]) <= 1
        read = [n + bool(goes) for n, goes in zip(read, active, strict=True)]
    assert stage.model.lengths.tolist() == [len(row) for row in rows]


@pytest.mark.parametrize("name", RAGGED)
def test_a_batch_leaves_nothing_behind_for_the_next(name):
    """Long rows, short ones, others in number, and long ones again."""
    stage = stage_of(name)
    long, short = [TEXT, TEXT[::-1]], [TEXT[:1], OTHER[:2]]
    for rows in (long, short, long, [OTHER], [*short, TEXT], long):
        want = np.stack([definition(stage.shape, row)[-1] for row in rows])
        assert off(stage, stage.model.prefill(rows), want) <= 1


@pytest.mark.parametrize("name", RAGGED)
@pytest.mark.parametrize("eos_id", [None, 7, 18])
def test_rows_end_where_and_why_each_would_alone(name, eos_id):
    """Held to the typed stage, text by text: tokens and reasons."""
    shape, seed = small_shape(vocab_size=20), 6
    prompts = [TEXT[:4], TEXT, [11], OTHER, [11], TEXT[2:9]]
    generation = stage_of(name, shape, seed).model.generate(prompts, 6, eos_id=eos_id)
    steps = list(generation)
    typed, greedy = stage_of("typed", shape, seed).model, SamplingConfig(temperature=0)
    wanted = [typed.generate(prompt, 6, greedy, eos_id) for prompt in prompts]
    assert generation.tokens == [[score.token for score in scores] for scores, _ in wanted]
    assert generation.reasons == [reason for _, reason in wanted]
    for row, tokens in enumerate(generation.tokens):
        assert [step[row] for step in steps] == tokens + [None] * (len(steps) - len(tokens))


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("name", EVEN)
def test_rows_of_one_length_are_what_each_would_be_alone(name, cut):
    stage, rows = stage_of(name), torch.tensor([TEXT, TEXT[::-1], [7] * 10])
    cache, starts = stage.model.start(), np.cumsum([0, *cut[:-1]])
    pieces = [rows[:, n : n + width] for n, width in zip(starts, cut, strict=True)]
    got = torch.cat([stage.model.extend(piece, cache) for piece in pieces], dim=1).numpy()
    want = np.stack([definition(stage.shape, row) for row in rows.tolist()])
    assert off(stage, got, want) <= 1
    with torch.no_grad():
        assert off(stage, stage.model(rows).numpy(), want) <= 1
