"""Sampling distributions with one wrong step: what the mistaken ones are made of."""

import math
from collections.abc import Callable
from typing import Any


def refuse_bad_sampling(logits: Any, temperature: Any, top_k: Any, top_p: Any) -> None:
    """Refuse what every sampling distribution must refuse."""
    if len(logits) == 0 or not all(math.isfinite(logit) for logit in logits):
        raise ValueError("logits must be finite, at least one")
    if temperature <= 0:
        raise ValueError(f"temperature={temperature} must be above 0")
    if top_k is not None and not 1 <= top_k <= len(logits):
        raise ValueError(f"top_k={top_k} must lie in [1, {len(logits)}]")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p={top_p} must lie in (0, 1]")


def softened(values: list[float], temperature: float) -> list[float]:
    """The softmax of values / temperature."""
    top = max(values)
    parts = [math.exp((value - top) / temperature) for value in values]
    total = math.fsum(parts)
    return [part / total for part in parts]


def likeliest_first(values: list[float]) -> list[int]:
    """The ids from the largest value to the smallest; equal ones by id."""
    return sorted(range(len(values)), key=lambda token: (-values[token], token))


def shortest_run(kept: list[int], shares: dict[int, float], top_p: float) -> list[int]:
    """The first tokens that together reach top_p."""
    if top_p == 1:
        return kept
    mass = 0.0
    for count, token in enumerate(kept, start=1):
        mass += shares[token]
        if mass >= top_p:
            return kept[:count]
    return kept


def spread_over(values: list[float], kept: list[int], temperature: float) -> list[float]:
    """Share the whole probability out among the kept tokens."""
    shares = dict(zip(kept, softened([values[token] for token in kept], temperature), strict=True))
    return [shares.get(token, 0.0) for token in range(len(values))]


def mistaken_distribution(
    check: Callable[..., None] = refuse_bad_sampling,
    choosing: Callable[[float], float] = lambda temperature: temperature,
    ending: Callable[[float], float] = lambda temperature: temperature,
    soften: Callable[..., list[float]] = softened,
    rank: Callable[..., list[int]] = likeliest_first,
    cut: Callable[..., list[int]] = lambda ranked, values, k, p: ranked[:k],
    measure: Callable[..., list[int]] = lambda ranked, kept: kept,
    nucleus: Callable[..., list[int]] = shortest_run,
    finish: Callable[..., list[float]] = spread_over,
) -> Callable[..., list[float]]:
    """Build a sampling distribution, right unless a step of it is replaced.

    `choosing` and `ending` are the temperatures at which the filters look and the result is made.
    """

    def token_distribution(
        logits: Any, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
    ) -> list[float]:
        check(logits, temperature, top_k, top_p)
        values = [float(logit) for logit in logits]
        ranked = rank(values)
        kept = ranked if top_k is None else cut(ranked, values, top_k, top_p)
        if top_p is not None:
            pool = measure(ranked, kept)
            probs = soften([values[token] for token in pool], choosing(temperature))
            kept = nucleus(kept, dict(zip(pool, probs, strict=True)), top_p)
        if not kept:
            return [math.nan] * len(values)  # the softmax of nothing but -inf
        if soften is not softened:
            probs = soften([values[token] for token in kept], ending(temperature))
            shares = dict(zip(kept, probs, strict=True))
            return [shares.get(token, 0.0) for token in range(len(values))]
        return finish(values, kept, ending(temperature))

    return token_distribution
