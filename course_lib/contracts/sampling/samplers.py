"""Batched samplers with one wrong step: what the mistaken ones are made of."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from course_lib.contracts.sampling.steps import mistaken_distribution


def in_each_row(distribution: Callable[..., list[float]]) -> Callable[..., np.ndarray]:
    """Apply a distribution to every row of a batch; equal rows are computed once."""

    def distributions(
        logits: np.ndarray, temperature: float, top_k: int | None, top_p: float | None
    ) -> np.ndarray:
        rows = np.ascontiguousarray(logits)
        keys = rows.view(f"V{rows.itemsize * rows.shape[1]}").ravel().tolist()  # a row's bytes
        unlike = dict(zip(keys, logits, strict=True))
        places = {key: place for place, key in enumerate(unlike)}
        probs = [distribution(z.tolist(), temperature, top_k, top_p) for z in unlike.values()]
        return np.array(probs)[[places[key] for key in keys]]

    return distributions


def greedy_rows(logits: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The likeliest token of each row, the lowest id of equal ones."""
    return logits.argmax(-1)


def draw_rows(probs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a token from each row: where its running sum passes a number of the row's own."""
    return at_sums(probs, rng.random(len(probs)))


def at_sums(
    probs: np.ndarray,
    numbers: np.ndarray,
    below: Callable[..., np.ndarray] = np.less_equal,
    sums: np.ndarray | None = None,
) -> np.ndarray:
    """The first token whose running sum is not below the row's number, but none past the last."""
    sums = probs.cumsum(-1) if sums is None else sums
    last = probs.shape[-1] - 1 - (probs[:, ::-1] > 0).argmax(-1)
    return np.minimum(below(sums, numbers[:, None]).sum(-1), last)


def mistaken_sampler(
    distribution: Callable[..., np.ndarray] | None = None,
    greedy: Callable[..., np.ndarray] = greedy_rows,
    source: Callable[[np.random.Generator], np.random.Generator] = lambda rng: rng,
    draw: Callable[..., np.ndarray] = draw_rows,
    finish: Callable[..., Any] = lambda ids, probs, greedily: ids,
) -> Callable[..., Any]:
    """Build a batched sampler, right unless a step of it is replaced."""
    distributions = distribution or in_each_row(mistaken_distribution())

    def sample(
        logits: np.ndarray,
        temperature: float,
        top_k: int | None,
        top_p: float | None,
        rng: np.random.Generator,
    ) -> Any:
        wide = np.asarray(logits, dtype=np.float64)
        if temperature == 0:
            return finish(greedy(wide, rng), None, True)
        probs = distributions(wide, temperature, top_k, top_p)
        return finish(draw(probs, source(rng)), probs, False)

    return sample


def softened_rows(logits: np.ndarray, axis: int = -1) -> np.ndarray:
    """The softmax along an axis."""
    parts = np.exp(logits - logits.max(axis, keepdims=True))
    return parts / parts.sum(axis, keepdims=True)


def kept_rows(probs: np.ndarray) -> np.ndarray:
    """Which tokens have a probability, renormalised over nothing but them."""
    total = probs.sum(-1, keepdims=True)
    return np.where(total > 0, probs / np.where(total > 0, total, 1.0), math.nan)
