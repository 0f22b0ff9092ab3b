"""Sampling for a batch: one draw a row, and a sort of no more tokens than the filters need."""

import math
import numbers
from typing import Any

import numpy as np

from course_lib.decoder_lm.errors import ShapeMismatch

_FIRST_CANDIDATES = 256  # a nucleus of a peaked distribution has fewer tokens


def batched_sample(
    logits: np.ndarray, temperature: float, top_p: float | None, rng: Any, top_k: int | None = None
) -> np.ndarray:
    """Draw the next token of every row: temperature, then top-k, then top-p of what top-k left.

    Of equal logits the lower id is kept; the token that reaches top_p is kept; a removed token
    never comes. Temperature 0 is greedy: the first of the largest, whatever the filters.

    Args:    top_p: in (0, 1], 1 or None filters nothing; top_k: at least 1, None filters nothing
             rng: its random() is asked once a row, in order; not at all at temperature 0
    Shapes:  logits [B, V] -> ids [B]
    """
    _check_batched_sample(logits, temperature, top_p, top_k)
    rows = np.asarray(logits)
    if temperature == 0:
        return rows.argmax(axis=1)
    return np.array([_draw(row, temperature, top_p, top_k, rng.random()) for row in rows])


def _draw(
    row: np.ndarray, temperature: float, top_p: float | None, top_k: int | None, uniform: float
) -> int:
    kept = np.arange(len(row)) if top_k is None or top_k >= len(row) else largest(row, top_k)
    values = row[kept].astype(np.float64)
    with np.errstate(over="ignore"):  # a tiny temperature may send all but the top to -inf
        probs = np.exp((values - values.max()) / temperature)
    probs /= probs.sum()
    if top_p is not None and top_p < 1:
        nucleus = nucleus_of(values, probs, top_p)
        kept, probs = kept[nucleus], probs[nucleus]
    mass = np.cumsum(probs)
    place = np.searchsorted(mass, uniform * mass[-1], side="right")  # passes what has no mass
    return int(kept[min(place, np.searchsorted(mass, mass[-1]))])  # the product may be rounded up


def largest(values: np.ndarray, count: int) -> np.ndarray:
    """Return the places of the `count` largest numbers, in order of place; of equals the first.

    Partitioning is linear in len(values), sorting is not.
    """
    smallest_kept = np.partition(values, len(values) - count)[len(values) - count]
    kept = values > smallest_kept
    ties = np.flatnonzero(values == smallest_kept)
    kept[ties[: count - np.count_nonzero(kept)]] = True
    return np.flatnonzero(kept)


def nucleus_of(values: np.ndarray, probs: np.ndarray, top_p: float) -> np.ndarray:
    """Return the places of the likeliest tokens that together reach top_p, in order of place.

    Only numbers are sorted, not places, and of them no more than are needed: the 256 largest, or
    the 4096 largest, or all. Which tokens these are, equal ones too, `largest` says by the logits.
    """
    count = _FIRST_CANDIDATES
    while True:
        first = max(len(probs) - count, 0)
        mass = np.cumsum(np.sort(np.partition(probs, first)[first:])[::-1])
        if mass[-1] >= top_p or first == 0:
            return largest(values, min(1 + int(np.searchsorted(mass, top_p)), len(probs)))
        count *= 16


def _check_batched_sample(logits: Any, temperature: Any, top_p: Any, top_k: Any) -> None:
    if np.ndim(logits) != 2 or 0 in np.shape(logits):
        raise ShapeMismatch(f"logits must have shape [B, V], got {list(np.shape(logits))}")
    if not np.isfinite(logits).all():
        raise ValueError("logits hold NaN or an infinite number: the model has overflowed")
    check_sampling_options(temperature, top_p, top_k)


def check_sampling_options(temperature: Any, top_p: Any, top_k: Any) -> None:
    """Require a temperature of at least 0, top_p in (0, 1] or None, top_k of at least 1 or None."""
    if not _is_finite(temperature) or temperature < 0:
        raise ValueError(
            f"temperature must be a finite number of at least 0 (0 is greedy), got {temperature!r}"
        )
    if top_p is not None and not (_is_finite(top_p) and 0 < top_p <= 1):
        raise ValueError(f"top_p must be in (0, 1] or None, got {top_p!r}")
    whole = isinstance(top_k, numbers.Integral) and not isinstance(top_k, bool)
    if top_k is not None and not (whole and top_k >= 1):
        raise ValueError(f"top_k must be an integer of at least 1 or None, got {top_k!r}")


def _is_finite(value: Any) -> bool:
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return number and math.isfinite(value)
