"""Caches, right and wrong, beyond the catalogue."""

import numpy as np
import torch

from course_lib.contracts import check_cache_contract
from course_lib.contracts.cache.mistakes import CACHE_MISTAKES
from course_lib.contracts.cache.tiny_decoder import TinyDecoder

from .cached_models import (
    Pair,
    TorchLM,
    bigram_pair,
    loops_pair,
    recomputing_pair,
    recurrent_pair,
    refuse_more,
)
from .trial import Fresh, named_by

CATALOGUE = CACHE_MISTAKES
CLAUSES = [
    *("repeatable", "result_form", "prefixes", "full_causal", "one_chunk", "single_tokens"),
    "chunkings",
    *("exactly_full", "beyond_full", "independent_results", "arguments_unchanged"),
]


def CHECK(pair):
    return check_cache_contract(
        pair.full_logits,
        pair.cached_logits,
        vocab_size=pair.vocab_size,
        context_length=pair.context_length,
    )


def not_written(*_):
    raise NotImplementedError


STUB = Pair(not_written, not_written)


def functions_of(model):
    return model.full_logits, model.cached_logits


def changed(full=None, cached=None, *, make=TinyDecoder):
    """A right pair with one result changed: full(rows, ids), cached(rows, ids, chunks)."""

    def build():
        model = make()

        def full_logits(ids):
            rows = model.full_logits(ids)
            return full(rows, ids) if full else rows

        def cached_logits(ids, chunks):
            rows = model.cached_logits(ids, chunks)
            return cached(rows, ids, chunks) if cached else rows

        return Pair(full_logits, cached_logits, model.vocab_size, model.context_length)

    return Fresh(build)


def torch_pair(**options):
    return Fresh(lambda: TorchLM(**options).pair())


def row_changed(where):
    """Rows for which where(t, ids, chunks) is true are a little off."""

    def change(rows, ids, chunks):
        off = [where(t, ids, chunks) for t in range(len(ids))]
        return rows + 0.01 * np.array(off, dtype=float)[:, None]

    return change


def starts(chunks):
    return set(np.cumsum([0, *chunks[:-1]]).tolist())


def random_noise():
    rng = np.random.default_rng(0)
    return changed(
        cached=lambda rows, ids, chunks: rows + rng.normal(size=rows.shape) * 1e-3
    ).make()


def remembers_by_length():
    seen = {}
    model = TinyDecoder()

    def cached(ids, chunks):
        return seen.setdefault((len(ids), tuple(chunks)), model.cached_logits(ids, chunks)).copy()

    return Pair(model.full_logits, cached)


def half_advanced():
    """A text that is too long is refused, but what was written before the refusal stays."""
    model, left = TinyDecoder(), [0]

    def cached(ids, chunks):
        if len(ids) > 12:
            left[0] = 1
        rows = model.cached_logits(ids, chunks)
        return rows + left[0]

    return Pair(model.full_logits, cached)


def shared_full():
    model, buffer = TinyDecoder(), np.zeros((12, 11))

    def full(ids):
        refuse_more(ids, 12)
        buffer[: len(ids)] = model.full_logits(ids)
        return buffer[: len(ids)]

    return Pair(full, model.cached_logits)


def kept_results():
    """Results are stored and handed out again, not copied."""
    model, kept = TinyDecoder(), {}

    def cached(ids, chunks):
        key = (tuple(ids), tuple(chunks))
        if key not in kept:
            kept[key] = model.cached_logits(ids, chunks)
        return kept[key]

    return Pair(model.full_logits, cached)


def full_eats_ids():
    model = TinyDecoder()

    def full(ids):
        rows = model.full_logits(ids)
        ids.append(0)
        return rows

    return Pair(full, model.cached_logits)


def crashes_on_singles(rows, ids, chunks):
    if 1 in chunks[1:]:
        raise IndexError("index 3 is out of bounds")
    return rows


def padding_zero(rows, ids, chunks):
    """Token 0 is taken for padding: its rows are zeroed."""
    return rows * (np.array(ids) != 0)[:, None]


def first_for_each_cut():
    """The answer is kept by the widths alone."""
    model, kept = TinyDecoder(), {}

    def cached_logits(ids, chunks):
        return kept.setdefault(tuple(chunks), model.cached_logits(ids, chunks))

    return Pair(model.full_logits, cached_logits)


def prefix_by_first_token():
    """What the last text made known is used again if only the first token is the same."""
    model, last = TinyDecoder(), {}

    def cached_logits(ids, chunks):
        rows = model.cached_logits(ids, chunks)
        if last and last["ids"][0] == ids[0]:
            known = min(len(ids), len(last["ids"]))
            rows = np.concatenate([last["rows"][:known], rows[known:]])
        last.update(ids=list(ids), rows=rows.copy())
        return rows

    return Pair(model.full_logits, cached_logits)


RIGHT = {
    "tiny decoder": Fresh(TinyDecoder),
    "tiny, one layer, other weights": Fresh(lambda: TinyDecoder(5, 8, 1, 4)),
    "torch, slab, float64": torch_pair(),
    "torch, float32": torch_pair(dtype=torch.float32, context_length=33, vocab_size=50),
    "torch, bfloat16": torch_pair(dtype=torch.bfloat16),
    "torch, rotary positions": torch_pair(rope=True, n_layers=3),
    "torch, sliding window": torch_pair(window=3),
    "torch, tiny weights": torch_pair(dtype=torch.float32, seed=8, n_layers=1),
    "plain loops": Fresh(loops_pair),
    "recurrent": Fresh(recurrent_pair),
    "bigram": Fresh(bigram_pair),
    "everything recomputed": Fresh(lambda: recomputing_pair(TorchLM())),
    "context of one": Fresh(lambda: TinyDecoder(4, 1)),
    "vocabulary of one": Fresh(lambda: TinyDecoder(1, 9)),
    "long context": Fresh(lambda: TinyDecoder(300, 70)),
    "rows as a tuple of arrays": changed(
        full=lambda rows, ids: tuple(rows), cached=lambda rows, ids, chunks: list(rows)
    ),
    "float32 against float64": changed(cached=lambda rows, *_: rows.astype(np.float32)),
    "half in the end": changed(cached=lambda rows, *_: rows.astype(np.float16)),
    "whole numbers": changed(
        full=lambda rows, ids: rows.round().astype(int),
        cached=lambda rows, *_: rows.round().astype(int),
    ),
}
WRONG = {
    "single text alone": (
        changed(cached=row_changed(lambda t, ids, chunks: len(ids) == 1)),
        "one_chunk",
    ),
    "prefill, then single tokens": (
        changed(
            cached=row_changed(
                lambda t, ids, chunks: len(chunks) > 2 and chunks[0] > 1 == max(chunks[1:])
            )
        ),
        "chunkings",
    ),
    "rows of a later chunk reversed": (
        changed(
            cached=lambda rows, ids, chunks: np.concatenate(
                [rows[: chunks[0]], rows[chunks[0] :][::-1]]
            )
        ),
        "single_tokens",
    ),
    "first answer for each cut": (Fresh(first_for_each_cut), "one_chunk"),
    "prefix by its first token": (Fresh(prefix_by_first_token), "prefixes"),
    "noise": (Fresh(random_noise), "repeatable"),
    "remembered by length": (Fresh(remembers_by_length), "one_chunk"),
    "batch axis": (changed(cached=lambda rows, *_: rows[None]), "result_form"),
    "last row only": (changed(cached=lambda rows, ids, chunks: rows[-chunks[-1] :]), "result_form"),
    "vocabulary first": (changed(full=lambda rows, ids: rows.T), "result_form"),
    "text for a result": (changed(full=lambda rows, ids: str(rows)), "result_form"),
    "NaN in the first row": (
        changed(cached=lambda rows, *_: np.where(np.arange(len(rows))[:, None], rows, np.nan)),
        "result_form",
    ),
    "minus infinity": (
        changed(full=lambda rows, ids: np.where(rows < 0, -np.inf, rows)),
        "result_form",
    ),
    "probabilities": (changed(cached=lambda rows, *_: np.exp(rows)), "one_chunk"),
    "softmax or not": (
        changed(cached=lambda rows, *_: rows - rows.max(-1, keepdims=True)),
        "one_chunk",
    ),
    "first row of each chunk": (
        changed(cached=row_changed(lambda t, ids, chunks: t in starts(chunks) - {0})),
        "single_tokens",
    ),
    "rows of the second chunk": (
        changed(
            cached=row_changed(
                lambda t, ids, chunks: len(chunks) > 1 and 0 <= t - chunks[0] < chunks[1]
            )
        ),
        "single_tokens",
    ),
    "single token after a wide chunk": (
        changed(cached=row_changed(lambda t, ids, chunks: chunks[0] > 1 == chunks[-1])),
        "chunkings",
    ),
    "only the last place of the context": (
        changed(cached=row_changed(lambda t, ids, chunks: t == 11)),
        "exactly_full",
    ),
    "wide last chunk at the end": (
        changed(cached=row_changed(lambda t, ids, chunks: t == 11 and chunks[-1] > 1)),
        "exactly_full",
    ),
    "a token repeated": (
        changed(cached=row_changed(lambda t, ids, chunks: len(ids) > 2 and len(set(ids)) == 1)),
        "one_chunk",
    ),
    "token 0 for padding": (changed(cached=padding_zero), "one_chunk"),
    "full looks ahead": (
        changed(full=lambda rows, ids: rows + 0.01 * (ids[-1] == 3)),
        "full_causal",
    ),
    "both look ahead": (
        changed(
            full=lambda rows, ids: rows + 0.01 * ids[-1],
            cached=lambda rows, ids, chunks: rows + 0.01 * ids[-1],
        ),
        "full_causal",
    ),
    "full is off": (changed(full=lambda rows, ids: rows * 1.001), "one_chunk"),
    "crash on single tokens": (changed(cached=crashes_on_singles), "single_tokens"),
    "half advanced": (Fresh(half_advanced), "beyond_full"),
    "context one too short": (
        Fresh(lambda: Pair(*functions_of(TinyDecoder(11, 11)), 11, 12)),
        "exactly_full",
    ),
    "context one too long": (
        Fresh(lambda: Pair(*functions_of(TinyDecoder(11, 13)), 11, 12)),
        "beyond_full",
    ),
    "full in one buffer": (Fresh(shared_full), "independent_results"),
    "results kept": (Fresh(kept_results), "independent_results"),
    "full eats ids": (Fresh(full_eats_ids), "arguments_unchanged"),
    "torch: positions restart": (torch_pair(bug="positions_restart"), "single_tokens"),
    "torch: no mask": (torch_pair(bug="no_mask_with_cache"), "one_chunk"),
    "torch, float32: stale": (
        torch_pair(bug="stale_slots_read", dtype=torch.float32),
        "repeatable",
    ),
}
MISTAKES = named_by(
    repeatable="cache_not_reset old_keys_kept stale_slots_read",
    prefixes="prefix_not_compared",
    full_causal="full_pass_without_mask",
    one_chunk=(
        "no_mask_with_cache one_ahead_with_cache positions_run_out one_position_for_the_chunk "
        "cached_positions_shifted cached_pass_by_another_formula whole_buffer_read "
        "one_token_reads_the_buffer cached_pass_with_a_window"
    ),
    single_tokens=(
        "mask_top_left positions_restart later_positions_shifted later_chunks_without_positions "
        "later_chunks_by_another_formula another_formula_from_some_length_on trimmed_too_early "
        "last_slot_overwritten pointer_one_short growth_destroys_layout growth_loses_the_past "
        "keys_and_values_swapped one_cache_for_all_layers cache_keeps_something_else "
        "single_tokens_not_kept past_not_read each_chunk_starts_anew"
    ),
    chunkings=(
        "mask_top_left_if_wide no_mask_in_later_chunks one_ahead_in_later_chunks "
        "positions_count_calls"
    ),
    beyond_full=(
        "no_limit oldest_dropped_when_full front_cut_when_too_long end_cut_when_too_long "
        "full_pass_without_limit"
    ),
    independent_results="results_share_memory",
    arguments_unchanged="ids_used_up chunks_used_up",
)


# ---------------------------------------------------------------- plain ones, to be mutated

VOCAB, CONTEXT = 6, 9
TOKENS = np.random.default_rng(1).normal(size=(VOCAB, 4))
PLACES = np.random.default_rng(2).normal(size=(CONTEXT, 4))
W_Q, W_K, W_V = np.random.default_rng(3).normal(size=(3, 4, 4))


def softmax(scores):
    parts = np.exp(scores - scores.max(-1, keepdims=True))
    return parts / parts.sum(-1, keepdims=True)


def plain_full(ids):
    refuse_more(ids, CONTEXT)
    x = TOKENS[ids] + PLACES[np.arange(len(ids)) % CONTEXT]
    scores = (x @ W_Q) @ (x @ W_K).T
    scores = np.where(np.tri(len(ids)) > 0, scores, -np.inf)
    return (x + softmax(scores) @ (x @ W_V)) @ TOKENS.T


def cached_by_lists(ids, chunks):
    refuse_more(ids, CONTEXT)
    keys, values, rows, start = [], [], [], 0
    for width in chunks:
        places = np.arange(start, start + width) % CONTEXT
        x = TOKENS[ids[start : start + width]] + PLACES[places]
        keys.extend(x @ W_K)
        values.extend(x @ W_V)
        for i in range(width):
            end = start + i + 1
            weights = softmax(np.array(keys[:end]) @ (x[i] @ W_Q))
            rows.append((x[i] + weights @ np.array(values[:end])) @ TOKENS.T)
        start += width
    return np.stack(rows)


def cached_in_a_buffer(ids, chunks):
    refuse_more(ids, CONTEXT)
    keys, values = np.full((2, CONTEXT, 4), np.nan)
    rows, length = [], 0
    for width in chunks:
        end = length + width
        x = TOKENS[ids[length:end]] + PLACES[length:end]
        keys[length:end] = x @ W_K
        values[length:end] = x @ W_V
        allowed = np.arange(end) <= np.arange(length, end)[:, None]
        scores = np.where(allowed, x @ W_Q @ keys[:end].T, -np.inf)
        rows.append((x + softmax(scores) @ values[:end]) @ TOKENS.T)
        length = end
    return np.concatenate(rows)


def ADAPT(mutant):
    if mutant.__name__ == "plain_full":
        return Pair(mutant, cached_by_lists, VOCAB, CONTEXT)
    return Pair(plain_full, mutant, VOCAB, CONTEXT)


MUTATED = [plain_full, cached_by_lists, cached_in_a_buffer]
EQUIVALENT = {
    "plain_full:3 left only: np.arange(len(ids)) % CONTEXT": "no text is longer than CONTEXT",
    "cached_by_lists:5 left only: np.arange(start, start + width) % CONTEXT": "the same",
    "cached_by_lists:11 call dropped: np.array(keys[:end])": "numpy multiplies lists too",
    "cached_by_lists:12 call dropped: np.array(values[:end])": "numpy multiplies lists too",
    "cached_by_lists:14 call dropped: np.stack(rows)": "a list of rows is an array too",
    "cached_in_a_buffer:10 whole slice: :": "[:, None] as it was",
    "cached_in_a_buffer:2 statement dropped: refuse_more(ids, CONTEXT)": "the buffer ends there",
}
SAYS = {
    "cache_not_reset": "the second equals the end of full_logits(both joined)",
    "stale_slots_read": "the first call of all was right, the same call later was not",
    "mask_top_left": "the first chunk is right, what comes after it is not",
    "full_pass_without_mask": "changing tokens from 1 on changed row 0 of full_logits",
    "no_limit": "answered 13 tokens where 12 fit",
    "chunks_used_up": "the call changed chunks",
    "results_share_memory": "a later call changed an earlier result of cached_logits",
}
UNNAMED = ["noise"]
