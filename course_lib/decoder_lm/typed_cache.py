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
        run_of_keys = _checked_run("keys", keys, self.shape)
        run_of_values = _checked_run("values", values, self.shape)
        end = _checked_end(run_of_keys, run_of_values, self._length, self.shape)
        self._keys[:, :, self._length : end] = run_of_keys
        self._values[:, :, self._length : end] = run_of_values
        self._length = end

    def keys(self) -> np.ndarray:
        """Return a read-only view [n_layers, n_heads, length, d_head]; it does not grow."""
        return _read_only(self._keys[:, :, : self._length])

    def values(self) -> np.ndarray:
        """Return a read-only view [n_layers, n_heads, length, d_head]; it does not grow."""
        return _read_only(self._values[:, :, : self._length])

    def reset(self) -> None:
        """Forget everything; views taken before keep what they show."""
        sizes = (self.shape.n_layers, self.shape.n_heads, self.shape.context_length)
        self._keys = np.full((*sizes, self.shape.d_head), np.nan)
        self._values = np.full_like(self._keys, np.nan)
        self._length = 0


def _read_only(view: np.ndarray) -> np.ndarray:
    view.flags.writeable = False
    return view


def _checked_run(name: str, entries: Any, shape: ModelShape) -> np.ndarray:
    run = np.asarray(entries, dtype=np.float64)
    if run.ndim == 3:
        run = run[:, :, None]  # one position: [n_layers, n_heads, 1, d_head]
    around = (shape.n_layers, shape.n_heads, shape.d_head)
    if run.ndim != 4 or (*run.shape[:2], run.shape[3]) != around or run.shape[2] == 0:
        layers, heads, d_head = around
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


def _checked_end(keys: np.ndarray, values: np.ndarray, length: int, shape: ModelShape) -> int:
    width = keys.shape[2]
    if values.shape[2] != width:
        raise ShapeMismatch(f"keys bring {width} positions but values {values.shape[2]}")
    if length + width > shape.context_length:
        raise CacheExhausted(
            f"the cache holds {length} of {shape.context_length} positions, {width} more do not "
            f"fit; reset() it and start again from a text shortened with fit_context"
        )
    return length + width
