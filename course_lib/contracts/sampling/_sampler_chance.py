"""How far counts may stray by chance, and generators whose next draw is known."""

import math
from collections.abc import Callable

import numpy as np

SAMPLER_ALLOWED = 12.0  # powers of ten; some 150 counts are judged: a false alarm once in 10**9


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


def sampler_surprise(count: int, draws: int, prob: float) -> float:
    """How improbable a count so far from draws * prob is, in powers of ten (Chernoff's bound).

    P(count / draws as far as f on either side) ≤ 2 exp(-draws · KL(f ‖ prob))
    """
    share = count / draws
    if prob <= 0 or prob >= 1:
        return 0.0 if share == prob else math.inf
    nats = 0.0
    for part, expected in ((share, prob), (1 - share, 1 - prob)):
        if part > 0:
            nats += part * math.log(part / expected)
    return max(0.0, (draws * nats - math.log(2)) / math.log(10))


def sampler_agreements(ids: np.ndarray, lag: int) -> tuple[int, int]:
    """Of disjoint pairs of rows `lag` apart, how many hold the same id, and how many there are."""
    places = np.arange(len(ids) - lag)
    first = places[places // lag % 2 == 0]
    return int((ids[first] == ids[first + lag]).sum()), len(first)


def sampler_noisy(probs: list[float], below: Callable[[np.ndarray], np.ndarray]) -> list[float]:
    """How often each token has the largest log-probability plus noise, by a sum over a grid."""
    grid = np.linspace(-45.0, 45.0, 3001)
    kept = np.flatnonzero(probs)
    under = np.stack([below(grid - np.log(probs[token])) for token in kept])
    found = np.zeros(len(probs))
    for place, token in enumerate(kept):
        others = np.delete(under, place, axis=0).prod(0)
        found[token] = (np.diff(under[place]) * (others[1:] + others[:-1]) / 2).sum()
    return (found / found.sum()).tolist()


def below_minus_gumbel(x: np.ndarray) -> np.ndarray:
    """How often minus Gumbel noise lies below x."""
    return -np.expm1(-np.exp(x))


def below_logistic(x: np.ndarray) -> np.ndarray:
    """How often logistic noise lies below x."""
    return 1 / (1 + np.exp(-x))
