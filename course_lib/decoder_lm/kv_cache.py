"""The memory of the fast stage: keys and values of all past positions, in slabs allocated once."""

import copy
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from course_lib.decoder_lm.errors import CacheExhausted, ShapeMismatch


class KvCache:
    """Keep what every position has said to those after it, ready to be read without a copy.

    A step appends to layer 0, 1, ... in this order and then advances once. Rows may differ in
    length: each one's positions start at 0, and `lengths` says how many it has. Views end with
    the longest row: what lies past another's own length is not its past, and must not be read.

    Shapes:  keys, values [n_layers, batch, n_heads, context_length, d_head] float32
    """

    def __init__(
        self, n_layers: int, batch: int, n_heads: int, context_length: int, d_head: int
    ) -> None:
        sizes = _checked_cache_sizes(n_layers, batch, n_heads, context_length, d_head)
        self.keys, self.values = np.zeros(sizes, np.float32), np.zeros(sizes, np.float32)
        self.lengths, self.step = np.zeros(sizes[1], np.int64), CacheStep()

    @property
    def length(self) -> int:
        """Return how many positions the longest row holds."""
        return int(self.lengths.max())

    def append(self, layer: int, keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, ...]:
        """Write new positions of one layer; return views of all its keys and all its values.

        Shapes:  [batch, n_heads, width, d_head] -> [batch, n_heads, length + width, d_head]
        """
        return _cache_append(self, layer, keys, values)

    def advance(self, width: int) -> None:
        """Count the new positions in, once every layer has them."""
        _cache_advance(self, width)

    def reset(self) -> None:
        """Forget every position; what the slabs hold will be written over."""
        self.lengths[:], self.step = 0, CacheStep()

    def bytes(self) -> int:
        """Return the size of both slabs, which does not depend on how full they are."""
        return self.keys.nbytes + self.values.nbytes


@dataclass
class CacheStep:
    """What was appended since the last advance: to how many layers, how wide, and where.

    `ends` says how many positions each row has with the new ones; it is empty where all rows end
    at `end`.
    """

    layers: int = 0
    width: int = 0
    end: int = 0
    ends: Sequence[int] = ()


def cache_rows(cache: KvCache, start: int, stop: int) -> KvCache:
    """Return a cache of some of the rows, in the same memory: it fills theirs and no other."""
    part = copy.copy(cache)  # KvCache(...) would allocate slabs only to drop them
    part.keys, part.values = cache.keys[:, start:stop], cache.values[:, start:stop]
    part.lengths = cache.lengths[start:stop]  # a view: to advance the part advances these rows
    part.step = CacheStep()  # its own: other rows may be at another layer of their step
    return part


def _cache_append(
    cache: "KvCache", layer: int, keys: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    _check_cache_append(cache, layer, keys, values)
    step = cache.step
    if layer == 0:  # the places are the same for all layers
        _open_cache_step(cache, keys.shape[2])
    if not step.ends:  # all rows stand at the same place: one assignment
        cache.keys[layer, :, :, step.end - step.width : step.end] = keys
        cache.values[layer, :, :, step.end - step.width : step.end] = values
    for row, end in enumerate(step.ends):
        cache.keys[layer, row, :, end - step.width : end] = keys[row]
        cache.values[layer, row, :, end - step.width : end] = values[row]
    step.layers = layer + 1  # last: an append that was interrupted may be made again
    return cache.keys[layer, :, :, : step.end], cache.values[layer, :, :, : step.end]


def _open_cache_step(cache: "KvCache", width: int) -> None:
    """Find where the new positions go: the same place in all rows, or each row's own."""
    step, starts = cache.step, cache.lengths.tolist()
    longest, room = max(starts), cache.keys.shape[3]
    if longest + width > room:
        raise CacheExhausted(
            f"the cache holds {longest} of {room} positions, {width} more do not fit; "
            f"reset() it for a new text or make one with a longer context_length"
        )
    if min(starts) < longest:  # else `ends` stays empty, and one assignment serves all rows
        step.ends = [start + width for start in starts]
    step.width, step.end = width, longest + width


def _cache_advance(cache: "KvCache", width: int) -> None:
    step, n_layers = cache.step, len(cache.keys)
    if step.layers != n_layers:
        raise RuntimeError(
            f"advance({width}) after {step.layers} of {n_layers} layers were appended; "
            f"append to every layer first, or reset() for a new text"
        )
    if width != step.width:
        raise RuntimeError(f"advance({width}) after {step.width} positions were appended")
    cache.step = CacheStep()
    cache.lengths += width  # in place: a cache made by cache_rows has a view of it


def _checked_cache_sizes(*sizes: Any) -> tuple[int, ...]:
    names = "n_layers", "batch", "n_heads", "context_length", "d_head"
    for name, size in zip(names, sizes, strict=True):
        if not isinstance(size, numbers.Integral) or isinstance(size, bool):
            raise TypeError(f"{name} must be an integer, got {size!r} ({type(size).__name__})")
        if size < 1:
            raise ShapeMismatch(f"{name} must be at least 1, got {size}")
    return sizes


def _check_cache_append(cache: "KvCache", layer: int, keys: Any, values: Any) -> None:
    n_layers, batch, n_heads, _, d_head = cache.keys.shape
    step, shape = cache.step, keys.shape
    fits = shape == values.shape == (batch, n_heads, step.width, d_head)
    if fits and 0 < layer == step.layers < n_layers:
        return  # in every layer of every token; what follows only finds the words for a fault
    if len(shape) != 4 or shape[:2] != (batch, n_heads) or shape[3] != d_head or shape[2] < 1:
        raise ShapeMismatch(
            f"keys must have shape [batch={batch}, n_heads={n_heads}, width, d_head={d_head}], "
            f"got {list(shape)}"
        )
    if values.shape != shape:
        raise ShapeMismatch(f"keys are {list(shape)}, but values are {list(values.shape)}")
    if layer != step.layers or layer >= n_layers:
        wanted = f"layer {step.layers}" if step.layers < n_layers else "advance()"
        raise RuntimeError(f"layers out of step: {wanted} is next, but layer {layer} came")
    if layer > 0 and shape[2] != step.width:
        raise ShapeMismatch(
            f"layer 0 got {step.width} new positions, layer {layer} gets {shape[2]}; "
            f"every layer remembers the same positions"
        )
