"""Likelihood: what one prediction costs when the truth is known."""

import math
from collections.abc import Sequence

from course_lib.arguments import check_finite_vector
from course_lib.integers import check_int_at_least


def token_nll(logits: Sequence[float], target: int) -> float:
    """Return the negative log-probability of one token, in nats.

        nll = -log softmax(z)[target] = max(z) - z[target] + log Σ exp(z - max(z))

    The sum of exponentials never overflows, and a loss of 800 nats stays 800: no probability is
    ever formed that could round to 0.

    Args:    logits: one finite number per token of the vocabulary
             target: the id of the token that really came
    Raises:  ValueError for logits that are empty or not finite, or a target outside [0, V)
    """
    check_finite_vector("logits", logits)
    check_int_at_least("target", target, 0)
    if target >= len(logits):
        raise ValueError(f"target={target} is outside the vocabulary of {len(logits)} tokens")
    values = [float(z) for z in logits]
    top = max(values)
    return (top - values[target]) + math.log(math.fsum(math.exp(z - top) for z in values))
