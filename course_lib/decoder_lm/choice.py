"""The choice of one token: how to draw it, and how likely the model itself found it."""

import math
import numbers
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


@dataclass(frozen=True)
class SamplingConfig:
    """Say how the next token is drawn: temperature, then top-k, then top-p.

    Args:    temperature: at least 0; 0 takes the likeliest token, of equal ones the lowest id
             top_p: in (0, 1]; 1 filters nothing
             top_k: at least 0; 0 filters nothing, and so does a top_k above the vocabulary
             seed: of the generator of one text; None draws another text each time
    Raises:  ValueError for anything else
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = None

    def __post_init__(self) -> None:
        if not _is_finite_real(self.temperature) or self.temperature < 0:
            raise ValueError(
                f"temperature must be a finite number of at least 0 (0 is greedy), "
                f"got {self.temperature!r}"
            )
        if not _is_finite_real(self.top_p) or not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be in (0, 1], where 1 is off, got {self.top_p!r}")
        if not _is_count(self.top_k):
            raise ValueError(f"top_k must be an integer >= 0, where 0 is off, got {self.top_k!r}")
        if self.seed is not None and not _is_count(self.seed):
            raise ValueError(f"seed must be an integer >= 0 or None, got {self.seed!r}")

    @property
    def deterministic(self) -> bool:
        """Tell whether no chance is asked for at all: the temperature is 0."""
        return self.temperature == 0


class TokenScore(NamedTuple):
    """A token, and its log-probability in nats under the model: temperature 1, no filter.

    So the number means the same whatever the sampling was: it can score a text and find what is
    odd in it.
    """

    token: int
    log_probability: float


def stable_log_softmax(logits: Any) -> np.ndarray:
    """Return the log-probabilities over the last axis.

        log p_i = (z_i - max z) - log Σ_j exp(z_j - max z)

    No probability is formed, so -500 nats stay -500. A logit of -inf is a probability of 0.

    Shapes:  logits [..., V] -> [..., V] float64
    Raises:  ValueError for NaN, +inf, or a row in which no logit is finite
    """
    values = np.asarray(logits, dtype=np.float64)
    if values.ndim == 0 or values.size == 0:
        raise ValueError(f"logits must have shape [..., V], got {list(values.shape)}")
    top = values.max(axis=-1, keepdims=True)
    if not np.isfinite(top).all():  # the maximum carries NaN and +inf along
        raise ValueError("a row of logits holds NaN or +inf, or -inf only: it has no softmax")
    with np.errstate(over="ignore"):  # 1e308 below the top may be called infinitely far
        shifted = values - top
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def sampling_probs(logits: np.ndarray, config: SamplingConfig) -> np.ndarray:
    """Return what the next token is drawn from: temperature, top-k, top-p of what top-k left.

    A removed token has probability exactly 0. Of equal logits the lower id is kept.

    Shapes:  logits [V] finite -> [V]; the temperature must be above 0
    """
    order = np.argsort(-logits, kind="stable")[: config.top_k or None]  # the kept ids
    probs = _tempered_probs(logits[order], config.temperature)
    if config.top_p < 1:
        mass = np.cumsum(probs)
        count = 1 + int(np.searchsorted(mass, config.top_p))  # the one that reaches it is kept
        order = order[:count]
        probs = _tempered_probs(logits[order], config.temperature)
    distribution = np.zeros(len(logits))
    distribution[order] = probs
    return distribution


def sample_token(logits: Any, config: SamplingConfig, rng: Any) -> int:
    """Draw the next token; never one that a filter has removed, and never none.

    Args:    logits: [V], all finite: not even -inf, which in a model's logits means an overflow
             rng: anything whose random() is uniform in [0, 1); not asked when deterministic
    Raises:  ValueError for logits that are not finite
    """
    values = _checked_logits(logits)
    if config.deterministic:
        return int(values.argmax())  # the first of the largest
    mass = np.cumsum(sampling_probs(values, config))
    first_above = np.searchsorted(mass, rng.random(), side="right")  # skips what has prob 0
    last_kept = np.searchsorted(mass, mass[-1])  # rounding may end the sum below the draw
    return int(min(first_above, last_kept))


def _tempered_probs(values: np.ndarray, temperature: float) -> np.ndarray:
    with np.errstate(over="ignore"):  # a tiny temperature may send all but the top to -inf
        parts = np.exp((values - values.max()) / temperature)
    return parts / parts.sum()


def _checked_logits(logits: Any) -> np.ndarray:
    values = np.asarray(logits, dtype=np.float64)
    if values.ndim != 1 or values.size == 0:
        raise ValueError(f"logits must have shape [V], got {list(values.shape)}")
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise ValueError(
            f"{bad.size} of {values.size} logits are not finite; the first is {values[bad[0]]} "
            f"at token {bad[0]}: look for an overflow in the model"
        )
    return values


def _is_finite_real(value: Any) -> bool:
    is_real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return is_real and math.isfinite(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= 0
