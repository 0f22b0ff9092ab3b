"""How far counts may stray by chance, and generators whose next draw is known."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

ALLOWED = 12.0  # powers of ten; some 150 counts are judged: a false alarm once in 10**9
_NEVER = 1e-300  # what cannot happen at all: a logarithm of it can be taken
BELOW = {  # how often a noise lies below x
    "minus Gumbel": lambda x: -np.expm1(-np.exp(x)),
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
}


class SeededGenerator(np.random.Generator):
    """default_rng(seed), which prints as the call that makes it."""

    def __init__(self, seed: int) -> None:
        super().__init__(np.random.PCG64(seed))
        self.made = f"np.random.default_rng({seed})"

    def __str__(self) -> str:
        return self.made


class ScriptedGenerator(np.random.Generator):
    """An ordinary generator, but for one of its draws: all its 64 bits are 0, or all are 1.

    random() makes 0.0 of the first and the largest number below 1 of the second.
    """

    def __init__(self, seed: int, place: int, ones: bool) -> None:
        bits = np.random.PCG64(seed)
        state = bits.state
        # PCG64 steps its state, then gives (high xor low) rotated by the top six bits.
        high = (0x9E3779B97F4A7C15 * (seed + 1)) % 2**58  # so that it rotates by 0
        low = high ^ (2**64 - 1 if ones else 0)
        state["state"]["state"] = high << 64 | low
        bits.state = state
        bits.advance(2**128 - place - 1)
        super().__init__(bits)
        self.made = f"a Generator whose draw {place} is {'just below 1' if ones else '0.0'}"

    def __str__(self) -> str:
        return self.made


def surprises(counts: Any, draws: int, probs: Any) -> np.ndarray:
    """How improbable counts so far from draws * probs are, in powers of ten (Chernoff's bound).

    P(count / draws as far as f on either side) ≤ 2 exp(-draws · KL(f ‖ prob))
    """
    share, prob = np.asarray(counts) / draws, np.asarray(probs)
    nats = np.zeros(np.broadcast(share, prob).shape)
    for part, expected in ((share, prob), (1 - share, 1 - prob)):
        nats += part * np.log(np.maximum(part, _NEVER) / np.maximum(expected, _NEVER))
    return np.maximum(0.0, (draws * nats - math.log(2)) / math.log(10))


def agreements(ids: np.ndarray, lag: int) -> tuple[int, int]:
    """Of disjoint pairs of rows `lag` apart, how many hold the same id, and how many there are."""
    places = np.arange(len(ids) - lag)
    first = places[places // lag % 2 == 0]
    return int((ids[first] == ids[first + lag]).sum()), len(first)


def noisy(probs: list[float], below: Callable[[np.ndarray], np.ndarray]) -> list[float]:
    """How often each token has the largest log-probability plus noise, by a sum over a grid."""
    grid = np.linspace(-45.0, 45.0, 3001)
    levels, places, counts = np.unique(probs, return_inverse=True, return_counts=True)
    kept = levels > 0
    under = np.stack([below(grid - np.log(level)) for level in levels[kept]])
    found, own = np.zeros(len(levels)), np.eye(len(under), dtype=int)
    for n, place in enumerate(np.flatnonzero(kept)):
        # equally likely tokens stand under one curve: all of them but one are among the others
        others = (under ** (counts[kept] - own[n])[:, None]).prod(0)
        found[place] = (np.diff(under[n]) * (others[1:] + others[:-1]) / 2).sum()
    each = found[places]
    return (each / each.sum()).tolist()
