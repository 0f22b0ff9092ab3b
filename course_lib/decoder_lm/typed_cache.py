"""The key-value cache that cannot lie: whole positions, checked before they are written."""

from typing import Any

import numpy as np

from course_lib.decoder_lm.errors import CacheExhausted, ShapeMismatch
from course_lib.decoder_lm.shape import ModelShape


class KeyValueCache:
    """Remember the keys and values of every layer and head, position after position.

    A position enters with all its layers at once or not at all. What was never written is NaN:
    code that reads past `length` is seen at once.
    """

    def __init__(self, shape: ModelShape) -> None:
        self.shape = shape
        self.reset()

    @property
    def length(self) -> int:
        """Return how many positions are remembered."""
        return self._length

    def append(self, keys: Any, values: Any) -> None:
        """Remember one position, [n_layers, n_heads, d_head], or a run of them.

        Shapes:  a run: keys, values [n_layers, n_heads, width, d_head]
        Raises:  ShapeMismatch, ValueError for what is not finite, CacheExhausted: nothing changes
        """
        run = _checked_run(keys, values, self.shape)  # [2, n_layers, n_heads, width, d_head]
        end = _checked_end(run.shape[3], self._length, self.shape)
        self._slab[:, :, :, self._length : end] = run
        self._length = end

    def keys(self) -> np.ndarray:
        """Return a read-only view [n_layers, n_heads, length, d_head]; it does not grow."""
        return _read_only(self._slab[0, :, :, : self._length])

    def values(self) -> np.ndarray:
        """Return a read-only view [n_layers, n_heads, length, d_head]; it does not grow."""
        return _read_only(self._slab[1, :, :, : self._length])

    def reset(self) -> None:
        """Forget everything; views taken before keep what they show."""
        layers, heads, length = (self.shape.n_layers, self.shape.n_heads, self.shape.context_length)
        self._slab = np.full((2, layers, heads, length, self.shape.d_head), np.nan)
        self._length = 0


def _read_only(view: np.ndarray) -> np.ndarray:
    view.flags.writeable = False
    return view


def _checked_run(keys: Any, values: Any, shape: ModelShape) -> np.ndarray:
    found = _checked_entries("keys", keys, shape), _checked_entries("values", values, shape)
    if found[0].shape != found[1].shape:
        raise ShapeMismatch(
            f"keys bring {found[0].shape[2]} positions but values {found[1].shape[2]}"
        )
    return np.stack(found)


def _checked_entries(name: str, entries: Any, shape: ModelShape) -> np.ndarray:
    run = np.asarray(entries, dtype=np.float64)
    if run.ndim == 3:
        run = run[:, :, None]  # one position: [n_layers, n_heads, 1, d_head]
    layers, heads, d_head = shape.n_layers, shape.n_heads, shape.d_head
    if run.ndim != 4 or run.size == 0 or (*run.shape[:2], run.shape[3]) != (layers, heads, d_head):
        raise ShapeMismatch(
            f"{name} must have shape [n_layers={layers}, n_heads={heads}, d_head={d_head}] or "
            f"[{layers}, {heads}, width, {d_head}], got {list(np.shape(entries))}; "
            f"append all layers of a position together"
        )
    if not np.isfinite(run).all():
        raise ValueError(
            f"{np.sum(~np.isfinite(run))} of {run.size} numbers in {name} are NaN or infinite; "
            f"nothing was stored: look for an overflow in the step that made them"
        )
    return run


def _checked_end(width: int, length: int, shape: ModelShape) -> int:
    if length + width > shape.context_length:
        raise CacheExhausted(
            f"the cache holds {length} of {shape.context_length} positions, {width} more do not "
            f"fit; reset() it and start again from a text shortened with fit_context"
        )
    return length + width
