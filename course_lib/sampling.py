"""Sampling: from logits to the distribution that the next token is drawn from. Plain Python."""

import math
from collections.abc import Sequence
from typing import Any, Literal

from course_lib.arguments import check_finite_vector, is_finite_number
from course_lib.integers import check_int_at_least, check_positive_int, is_integer


def token_distribution(
    logits: Sequence[float],
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> list[float]:
    """Return the probability of every token: temperature first, then top-k, then top-p.

    Top-p looks at the probabilities of the tokens that top-k left, renormalised. Of equal logits
    the lower id is kept. A removed token has probability exactly 0.

    Args:    logits: one finite number per token; temperature: above 0, small = greedier
             top_k: in [1, V]; top_p: in (0, 1], where 1 filters nothing; None switches a filter off
    Raises:  ValueError for anything else
    """
    _check_sampling(logits, temperature, top_k, top_p)
    values = [float(z) for z in logits]
    kept = sorted(range(len(values)), key=lambda token: (-values[token], token))[:top_k]
    probs = tempered_softmax([values[token] for token in kept], temperature)
    if top_p is not None:
        kept = kept[: nucleus_size(probs, top_p)]
        probs = tempered_softmax([values[token] for token in kept], temperature)
    distribution = [0.0] * len(values)
    for token, prob in zip(kept, probs, strict=True):
        distribution[token] = prob
    return distribution


def tempered_softmax(values: Sequence[float], temperature: float) -> list[float]:
    """Turn finite logits into probabilities; a temperature below 1 sharpens them.

    p_i = exp((z_i - max z) / temperature) / Σ_j exp((z_j - max z) / temperature)
    """
    top = max(values)
    shifted = [math.exp((z - top) / temperature) for z in values]  # each in [0, 1]: no overflow
    total = math.fsum(shifted)
    return [part / total for part in shifted]


def nucleus_size(probs: Sequence[float], top_p: float) -> int:
    """Count the likeliest tokens that together reach `top_p`, the one that reaches it included.

    Args:    probs: from the likeliest to the least likely
    """
    if top_p == 1:
        return len(probs)  # rounding could reach 1.0 before the last token
    mass = 0.0
    for count, prob in enumerate(probs, start=1):
        mass += prob
        if mass >= top_p:
            return count
    return len(probs)


def sampling_scenario() -> dict[str, list[float]]:
    """Return four ways to sample from the logits [3, 2, 1, 0], by name."""
    logits = [3.0, 2.0, 1.0, 0.0]
    return {
        "logits": logits,
        "temperature_1": token_distribution(logits),
        "temperature_2": token_distribution(logits, temperature=2.0),
        "top_k_2": token_distribution(logits, top_k=2),
        "top_p_09": token_distribution(logits, top_p=0.9),
    }


def greedy_trace(
    prepared_logits: Sequence[Sequence[float]], eos_id: int, max_new_tokens: int
) -> tuple[list[int], Literal["eos", "length_limit"]]:
    """Follow the likeliest token, row by row, and say why the generation stopped.

    Args:    prepared_logits: row t holds the logits of new token t, as a model would give them
             eos_id: the token that ends the text; it is returned with the others
    Raises:  ValueError when the rows run out before either reason to stop
    """
    _check_trace(prepared_logits, eos_id, max_new_tokens)
    token_ids: list[int] = []
    for logits in prepared_logits:
        token_ids.append(max(range(len(logits)), key=lambda token: logits[token]))
        if token_ids[-1] == eos_id:
            return token_ids, "eos"  # before the limit is asked: EOS may be the last token allowed
        if len(token_ids) == max_new_tokens:
            return token_ids, "length_limit"
    raise ValueError(
        f"prepared_logits ran out after {len(token_ids)} rows, before eos_id={eos_id} came "
        f"or max_new_tokens={max_new_tokens} were made"
    )


def _check_sampling(logits: Any, temperature: Any, top_k: Any, top_p: Any) -> None:
    check_finite_vector("logits", logits)
    if not is_finite_number(temperature) or temperature <= 0:
        raise ValueError(f"temperature must be a finite number above 0, got {temperature!r}")
    if top_k is not None and not (is_integer(top_k) and 1 <= top_k <= len(logits)):
        raise ValueError(f"top_k must be an integer in [1, {len(logits)}] or None, got {top_k!r}")
    if top_p is not None and not (is_finite_number(top_p) and 0 < top_p <= 1):
        raise ValueError(f"top_p must be a number in (0, 1] or None, got {top_p!r}")


def _check_trace(prepared_logits: Any, eos_id: Any, max_new_tokens: Any) -> None:
    check_int_at_least("eos_id", eos_id, 0)
    check_positive_int("max_new_tokens", max_new_tokens)
    if not isinstance(prepared_logits, Sequence):
        raise TypeError(
            f"prepared_logits must be a list of rows, got {type(prepared_logits).__name__}"
        )
    for row, logits in enumerate(prepared_logits):
        check_finite_vector(f"prepared_logits[{row}]", logits)
        if eos_id >= len(logits):
            raise ValueError(
                f"eos_id={eos_id} is outside the vocabulary: prepared_logits[{row}] has "
                f"{len(logits)} logits"
            )
