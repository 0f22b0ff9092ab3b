"""Sampling distributions with one wrong step: what the mistaken ones are made of."""

import math
from collections.abc import Callable
from typing import Any

Soften = Callable[[list[float], float], list[float]]


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


def run_until(
    kept: list[int], shares: dict[int, float], reached: Callable[[float], bool]
) -> list[int]:
    """The first tokens whose sum says that it is reached; all if none does."""
    mass = 0.0
    for count, token in enumerate(kept, start=1):
        mass += shares[token]
        if reached(mass):
            return kept[:count]
    return kept


def shortest_run(kept: list[int], shares: dict[int, float], top_p: float) -> list[int]:
    """The first tokens that together reach top_p."""
    return kept if top_p == 1 else run_until(kept, shares, lambda mass: mass >= top_p)


def spread_over(
    values: list[float], kept: list[int], temperature: float, soften: Soften = softened
) -> list[float]:
    """Share the whole probability out among the kept tokens."""
    shares = dict(zip(kept, soften([values[token] for token in kept], temperature), strict=True))
    return [shares.get(token, 0.0) for token in range(len(values))]


def mistaken_distribution(
    check: Callable[..., None] = refuse_bad_sampling,
    choosing: Callable[[float], float] = lambda temperature: temperature,
    ending: Callable[[float], float] = lambda temperature: temperature,
    soften: Soften = softened,
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
        return finish(values, kept, ending(temperature), soften)

    return token_distribution


def softened_as_they_are(values: list[float], temperature: float) -> list[float]:
    """A softmax that subtracts no maximum: exp overflows, or all of it becomes 0."""
    parts = [math.exp(z / temperature) if z / temperature < 709 else math.inf for z in values]
    total = sum(parts) or math.nan
    return [part / total for part in parts]


def share_of_all(
    values: list[float], kept: list[int], temperature: float, soften: Soften
) -> list[float]:
    """The kept tokens' old probabilities."""
    chosen, whole = set(kept), softened(values, temperature)
    return [prob if token in chosen else 0.0 for token, prob in enumerate(whole)]


def filled_with(fill: float) -> Callable[..., list[float]]:
    """The removed tokens get a finite logit and so a probability."""

    def finish(
        values: list[float], kept: list[int], temperature: float, soften: Soften
    ) -> list[float]:
        chosen = set(kept)
        filled = [value if i in chosen else fill for i, value in enumerate(values)]
        return softened(filled, temperature)

    return finish


def higher_ids_first(values: list[float]) -> list[int]:
    """The ids from the largest value to the smallest; equal ones from the last."""
    return sorted(range(len(values)), key=lambda token: (-values[token], -token))


def ties_of_the_last(ranked: list[int], values: list[float], k: int, p: Any) -> list[int]:
    """All that is not below the k-th."""
    return [token for token in ranked if values[token] >= values[ranked[k - 1]]]


def higher_ids_of_k(ranked: list[int], values: list[float], k: int, p: Any) -> list[int]:
    """Of equal logits the higher ids."""
    chosen = set(higher_ids_first(values)[:k])
    return [token for token in ranked if token in chosen]


def higher_ids_of_p(kept: list[int], shares: dict[int, float], top_p: float) -> list[int]:
    """Of equal probabilities the higher ids."""
    falling = sorted(kept, key=lambda token: (-shares[token], -token))
    return shortest_run(falling, shares, top_p)


def ties_of_nucleus(kept: list[int], shares: dict[int, float], top_p: float) -> list[int]:
    """All that is not below the last of the nucleus."""
    least = shares[shortest_run(kept, shares, top_p)[-1]]
    return [token for token in kept if shares[token] >= least]


def without_crossing(kept: list[int], shares: dict[int, float], top_p: float) -> list[int]:
    """The nucleus without the token that crosses top_p, if one is left."""
    run = shortest_run(kept, shares, top_p)
    return run if sum(shares[token] for token in run) <= top_p else run[:-1] or run


_RIGHT = mistaken_distribution()


def by_k_alone(
    logits: Any, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> list[float]:
    """A distribution in which top_p has no effect when top_k is given."""
    refuse_bad_sampling(logits, temperature, top_k, top_p)
    return _RIGHT(logits, temperature, top_k, top_p if top_k is None else None)


def then_writing(written: Callable[..., list[float]]) -> Callable[[], Callable[..., list[float]]]:
    """A distribution that afterwards writes into the caller's logits."""

    def token_distribution(logits: Any, temperature: float = 1.0, *filters: Any, **named: Any):
        probs = _RIGHT(logits, temperature, *filters, **named)
        logits[:] = written(logits, temperature, probs)
        return probs

    return lambda: token_distribution


def with_one_list() -> Callable[..., list[float]]:
    """A distribution that hands out one stored list each time."""
    stored: list[float] = []

    def token_distribution(*given: Any, **named: Any) -> list[float]:
        stored[:] = _RIGHT(*given, **named)
        return stored

    return token_distribution


_LEGAL = {  # what is made of a bad argument that passes
    "logits": lambda logits: [z if math.isfinite(z) else 0.0 for z in logits] or [0.0],
    "temperature": lambda t: -t or 1e-3,
    "top_k": lambda k: None,
    "top_p": lambda p: None,
}


def taking(**bad: Callable[..., bool]) -> Callable[[], Callable[..., list[float]]]:
    """A distribution that takes for legal what it must refuse, where `bad` says so."""

    def token_distribution(
        logits: Any, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
    ) -> list[float]:
        given = {"logits": logits, "temperature": temperature, "top_k": top_k, "top_p": top_p}
        for name, passes in bad.items():
            if given[name] is not None and passes(given[name], len(logits)):
                given[name] = _LEGAL[name](given[name])
        return _RIGHT(**given)

    return lambda: token_distribution


def not_positive(value: float, size: int) -> bool:
    """Whether a number is 0 or below."""
    return value <= 0


def over_size(k: int, size: int) -> bool:
    """Whether more tokens are asked for than there are."""
    return k > size


def over_one(p: float, size: int) -> bool:
    """Whether a mass is above 1."""
    return p > 1


def not_finite(logits: list[float], size: int) -> bool:
    """Whether a logit is NaN or infinite."""
    return not all(map(math.isfinite, logits))
