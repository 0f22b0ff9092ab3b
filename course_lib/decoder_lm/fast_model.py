"""The fast stage without a batch: logits of whole texts, and a prefill into a given cache."""

import numbers
from typing import Any

import numpy as np

from course_lib.decoder_lm.blas_threads import blas_threads, single_threaded_products
from course_lib.decoder_lm.errors import ContextOverflow, ShapeMismatch
from course_lib.decoder_lm.fast_pass import TokenPass, Unembedding
from course_lib.decoder_lm.helper_thread import Crew
from course_lib.decoder_lm.kv_cache import KvCache, cache_rows
from course_lib.decoder_lm.packed import PackedModel, pack_parameters, packed_again
from course_lib.decoder_lm.shape import ModelShape

_WORTH_A_THREAD = 1_000_000  # weights in a layer; below, handing over costs more than it saves
_MOST_THREADS = 4  # decoding waits for memory, not for more threads, and Python runs one at a time


class FastModel:
    """The packed model and its threads: it computes the logits of whole texts, without a memory.

    Args:    threads: None takes as many as NumPy's matrix products use, 1 for a small model
    """

    def __init__(
        self, params: dict[str, Any], shape: ModelShape, threads: int | None = None
    ) -> None:
        threads = _checked_threads(threads, shape)
        self.shape, self.crew = shape, Crew(threads)
        self.model = pack_parameters(params, shape, threads, whole=True)

    def lay_out(self, rows: int) -> None:
        """Have the weights as a batch of so many texts reads them fastest; may take a second."""
        whole = rows == 1
        if self.model.whole != whole:
            self.model = packed_again(self.model, whole=whole)

    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("a FastDecoder is views of shared memory: make another from the parameters")

    def full_logits(self, token_ids: Any) -> np.ndarray:
        """Return the logits of every position: [T] -> [T, V], or [B, T] -> [B, T, V]."""
        ids = checked_token_array(token_ids, self.shape, (-1,), (-1, -1))
        check_room(self.shape, np.zeros(1, np.int64), ids.shape[-1])
        caches = part_caches(self.model, len(np.atleast_2d(ids)), ids.shape[-1])
        logits = all_logits(self, [(caches, ids.shape[-1])], ids.ravel())
        return logits.reshape(*ids.shape, -1)


def prefill(token_ids: Any, weights: Any, cache: KvCache) -> np.ndarray:
    """Read whole prompts in one pass, into the cache; return the last logits of each.

    Args:    weights: a parameter dict, or what pack_parameters made of it
    Shapes:  token_ids [B, T] -> [B, V]
    """
    model = _packed_for(weights, cache)
    ids = checked_token_array(token_ids, model.shape, (len(cache.lengths), -1))
    check_room(model.shape, cache.lengths, ids.shape[1])
    crew, groups = Crew(1), even_groups([cache], ids.shape[1])
    with single_threaded_products():
        x = TokenPass(model, crew, groups).run(ids.ravel())
        last = x.reshape(*ids.shape, -1)[:, -1]
        return Unembedding(model, crew, len(ids)).run(last)


def all_logits(
    model: "FastModel", groups: list[tuple[list[KvCache], int]], ids: np.ndarray
) -> np.ndarray:
    """Return the logits of every token of a pass, [N, V]."""
    with single_threaded_products():
        x = TokenPass(model.model, model.crew, groups).run(ids)
        return Unembedding(model.model, model.crew, len(x)).run(x)


def even_groups(caches: list[KvCache], width: int) -> list[tuple[list[KvCache], int]]:
    """Group the rows: together if they stand at the same place, else each for itself."""
    lengths = caches[0].lengths
    if width == 1 or lengths.min() == lengths.max():
        return [(caches, width)]
    return [
        ([cache_rows(cache, row, row + 1) for cache in caches], width)
        for row in range(len(lengths))
    ]


def part_caches(model: PackedModel, rows: int, positions: int) -> list[KvCache]:
    """Return empty caches, one for the heads of each part of the model."""
    layers, d_head = model.shape.n_layers, model.shape.d_head
    return [KvCache(layers, rows, part.n_heads, positions, d_head) for part in model.parts]


def _packed_for(weights: Any, cache: Any) -> PackedModel:
    """Return packed weights whose heads are those of the cache."""
    if not isinstance(cache, KvCache):
        raise TypeError(f"cache must be a KvCache, got {type(cache).__name__}")
    n_layers, _, n_heads, _, d_head = cache.keys.shape
    if not isinstance(weights, PackedModel):
        context, d_model = np.shape(weights["position_embedding"])
        vocab_size = len(weights["token_embedding"])
        if d_model != n_heads * d_head:
            raise ShapeMismatch(f"d_model={d_model}, but the cache has {n_heads} heads of {d_head}")
        shape = ModelShape(len(weights["blocks"]), d_model, n_heads, context, vocab_size)
        weights = pack_parameters(weights, shape)
    shape = weights.shape
    sizes = shape.n_layers, shape.n_heads, shape.d_head
    if sizes != (n_layers, n_heads, d_head) or len(weights.parts) != 1:
        raise ShapeMismatch(
            f"the cache is for {n_layers} layers, {n_heads} heads of {d_head}; the weights have "
            f"{sizes[0]} layers, {sizes[1]} heads of {sizes[2]}, in {len(weights.parts)} parts"
        )
    return weights


def checked_token_array(token_ids: Any, shape: ModelShape, *sizes: tuple[int, ...]) -> np.ndarray:
    """Return the ids as an array if they are of the vocabulary and of one of the given sizes.

    Args:    sizes: as in (8,) or (8, -1); -1 stands for any length
    """
    ids = np.asarray(token_ids)
    if ids.dtype.kind not in "iu" or ids.size == 0:
        raise ShapeMismatch(f"token_ids must be integers, at least one, got {token_ids!r}")
    if ids.shape not in sizes and not any(_has_size(ids.shape, size) for size in sizes):
        wanted = " or ".join(str(list(size)) for size in sizes)
        raise ShapeMismatch(
            f"token_ids must have shape {wanted} (-1: any length), got {list(ids.shape)}"
        )
    flat = ids.ravel().tolist()  # of a few numbers Python finds the largest sooner than NumPy
    low, high = min(flat), max(flat)
    if low < 0 or high >= shape.vocab_size:
        raise ValueError(f"token ids must be in [0, {shape.vocab_size}), got {low} to {high}")
    return ids


def _has_size(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    return len(shape) == len(wanted) and all(map(lambda n, w: w in (-1, n), shape, wanted))


def check_room(shape: ModelShape, lengths: np.ndarray, width: int) -> None:
    """Require places for `width` more tokens in every row."""
    if max(lengths.tolist()) + width > shape.context_length:
        rows = np.flatnonzero(lengths + width > shape.context_length).tolist()
        raise ContextOverflow(
            f"rows {rows} hold {lengths[rows].tolist()} tokens; {width} more do not fit in "
            f"context_length={shape.context_length}; let these rows rest or prefill() shorter texts"
        )


def _checked_threads(threads: Any, shape: ModelShape) -> int:
    if threads is None:
        wide = 12 * shape.d_model**2 >= _WORTH_A_THREAD
        return min(blas_threads(), shape.n_heads, _MOST_THREADS) if wide else 1
    if not isinstance(threads, numbers.Integral) or not 1 <= int(threads) <= shape.n_heads:
        raise ValueError(f"threads must be in [1, n_heads={shape.n_heads}], got {threads!r}")
    return int(threads)
