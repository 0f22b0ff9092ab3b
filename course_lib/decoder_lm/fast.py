"""Stage three, fast: the same model in float32 NumPy, with the cache, for a batch of texts."""

import numbers
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from course_lib.decoder_lm.batch_generation import BatchGeneration, checked_prompts
from course_lib.decoder_lm.batched import batched_sample
from course_lib.decoder_lm.blas_threads import single_threaded_products
from course_lib.decoder_lm.cached_attention import cached_attention, fused_qkv_decode
from course_lib.decoder_lm.fast_model import (
    FastModel,
    all_logits,
    check_room,
    checked_token_array,
    even_groups,
    part_caches,
    prefill,
)
from course_lib.decoder_lm.fast_pass import TokenPass, Unembedding
from course_lib.decoder_lm.helper_thread import Crew
from course_lib.decoder_lm.kv_cache import KvCache, cache_rows
from course_lib.decoder_lm.packed import PackedModel
from course_lib.decoder_lm.shape import ModelShape
from course_lib.decoder_lm.stats import DecodeStats

__all__ = [
    "FastDecoder",
    "KvCache",
    "arithmetic_intensity",
    "batched_sample",
    "cached_attention",
    "fused_qkv_decode",
    "prefill",
]


def generate_batch(
    decoder: Any,
    prompts: Sequence[Sequence[int]],
    max_new_tokens: int,
    *,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    rng: Any = None,
    eos_id: int | None = None,
) -> BatchGeneration:
    """Return an iterator over the steps of a continuation; nothing is computed before the first.

    Args:    temperature, top_k, top_p, rng: as in batched_sample; 0 is greedy and needs no rng
             eos_id: the token that ends a row; it is among the row's tokens
    """
    options = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "rng": rng}
    options |= {"max_new_tokens": max_new_tokens, "eos_id": eos_id}
    return BatchGeneration(decoder, prompts, **options)


class FastDecoder(FastModel):
    """Continue a batch of texts: read the prompts once, then one token of each row a step."""

    def __init__(
        self, params: dict[str, Any], shape: ModelShape, threads: int | None = None
    ) -> None:
        super().__init__(params, shape, threads)
        self.stats, self.batch_number, self.batch = DecodeStats(), 0, None

    @property
    def lengths(self) -> np.ndarray:
        """Return how many tokens of each row have been read, [B]; empty before the first batch."""
        return self.batch.lengths.copy() if self.batch else np.zeros(0, np.int64)

    def prefill(self, prompts: Sequence[Sequence[int]]) -> np.ndarray:
        """Start a new batch, of prompts of any lengths; return each one's last logits, [B, V].

        The weights lie in memory as one text or as several read them fastest: to change from one
        to the other lays them out anew, for a large model a second and its size in memory.
        """
        return _prefill_batch(self, prompts)

    def extend(self, token_ids: Any) -> np.ndarray:
        """Read a chunk [B, w] after what each row holds; return all its logits, [B, w, V]."""
        return _extend_batch(self, token_ids)

    def decode_step(self, token_ids: Any, active: Any = None) -> np.ndarray:
        """Read one token of each row, [B]; return logits [B, V] that the next step writes over.

        Rows that are not `active` rest: nothing is read, and their logits say nothing.
        """
        return _decode_batch(self, token_ids, active)

    generate = generate_batch

    def reset(self) -> None:
        """Forget the batch, and count anew in `stats`."""
        self.stats, self.batch_number, self.batch = DecodeStats(), self.batch_number + 1, None


def arithmetic_intensity(parameters: int, batch: int, bytes_per_parameter: float = 2) -> float:
    """Return the FLOPs that a decoding step does for every byte of weights that it reads.

        2 · P · batch / (P · bytes): a multiply and an add a weight and row, one reading for all

    The cache is left out: its bytes grow with batch and length, and no row shares another's.
    """
    for name, value in (("parameters", parameters), ("batch", batch)):
        if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name} must be an integer of at least 1, got {value!r}")
    if not bytes_per_parameter > 0:
        raise ValueError(f"bytes_per_parameter must be above 0, got {bytes_per_parameter!r}")
    return 2 * int(parameters) * int(batch) / (int(parameters) * bytes_per_parameter)


class _Batch:
    """The texts of a decoder, and the buffers with which it takes a step."""

    def __init__(self, model: PackedModel, crew: Crew, rows: int) -> None:
        self.model, self.crew, self.rows = model, crew, rows
        self.caches = part_caches(model, rows, model.shape.context_length)
        self.lengths = self.caches[0].lengths  # all parts have the same
        self.unembedding = Unembedding(model, crew, rows)
        self.logits = self.unembedding.logits
        self.active: list[bool] = []
        self.step: Any = None

    def plan(self, active: list[bool]) -> None:
        """Allocate what a step of these rows needs, unless the last one had the same."""
        if active == self.active:
            return
        groups, start = [], 0
        for runs, members in groupby(active):  # neighbours share their products with the cache
            stop = start + len(list(members))
            if runs:
                groups.append(([cache_rows(cache, start, stop) for cache in self.caches], 1))
            start = stop
        self.active = []  # an interrupt from here on leaves no plan rather than half of one
        self.step = TokenPass(self.model, self.crew, groups)
        self.some = None if all(active) else Unembedding(self.model, self.crew, sum(active))
        self.active = active


def _decode_batch(decoder: "FastDecoder", token_ids: Any, active: Any) -> np.ndarray:
    batch = _started(decoder)
    ids = checked_token_array(token_ids, decoder.shape, (batch.rows,))
    active = _checked_active(active, batch.rows)
    check_room(decoder.shape, batch.lengths if all(active) else batch.lengths[active], 1)
    decoder.batch = None  # a step that fails, or is interrupted, ends the batch
    batch.plan(active)
    with single_threaded_products():
        if batch.some is None:
            batch.unembedding.run(batch.step.run(ids))
        else:
            batch.logits[active] = batch.some.run(batch.step.run(ids[active]))
    decoder.batch = batch
    decoder.stats.record_decode(sum(active))
    return batch.logits


def _prefill_batch(decoder: "FastDecoder", prompts: Any) -> np.ndarray:
    prompts = checked_prompts(prompts, decoder.shape)
    batch, decoder.batch = decoder.batch, None  # a failure on the way leaves no half-read batch
    if batch is None or batch.rows != len(prompts):  # else all buffers fit already
        decoder.lay_out(len(prompts))
        batch = _Batch(decoder.model, decoder.crew, len(prompts))
    for cache in batch.caches:
        cache.reset()
    groups, start = [], 0
    for width, members in groupby(len(prompt) for prompt in prompts):
        stop = start + len(list(members))
        groups.append(([cache_rows(cache, start, stop) for cache in batch.caches], width))
        start = stop
    ids = np.concatenate(prompts)
    with single_threaded_products():
        x = TokenPass(decoder.model, decoder.crew, groups).run(ids)
        last = np.cumsum([len(prompt) for prompt in prompts]) - 1
        logits = batch.unembedding.run(x[last]).copy()  # the next step writes over the buffer
    decoder.batch, decoder.batch_number = batch, decoder.batch_number + 1
    decoder.stats.record_prefill(len(ids))
    return logits


def _extend_batch(decoder: "FastDecoder", token_ids: Any) -> np.ndarray:
    batch = _started(decoder)
    ids = checked_token_array(token_ids, decoder.shape, (batch.rows, -1))
    check_room(decoder.shape, batch.lengths, ids.shape[1])
    decoder.batch = None  # as in a step: a failure on the way ends the batch
    logits = all_logits(decoder, even_groups(batch.caches, ids.shape[1]), ids.ravel())
    decoder.batch = batch
    decoder.stats.record_prefill(ids.size)
    return logits.reshape(*ids.shape, -1)


def _started(decoder: "FastDecoder") -> _Batch:
    if decoder.batch is None:
        raise RuntimeError(
            "there is no batch to continue (a step that failed or was interrupted ends it): "
            "prefill(prompts) starts one"
        )
    return decoder.batch


def _checked_active(active: Any, rows: int) -> list[bool]:
    if active is None:
        return [True] * rows
    active = np.asarray(active)
    if active.shape != (rows,) or active.dtype != bool or not active.any():
        raise ValueError(f"active must be {rows} booleans, at least one True, got {active!r}")
    return active.tolist()
