"""The scaling experiment: why scores are divided by the root of d_k."""

import math

import torch

from course_lib.integers import check_int_at_least, check_positive_int


def score_variance(d_k: int, samples: int, *, seed: int) -> tuple[float, float]:
    """Measure the variance of q·k and of q·k / √d_k over random pairs of vectors.

        q·k = q₁k₁ + ... + q_dk_d:  d_k independent terms, each of mean 0 and variance 1

    Args:    samples: how many pairs, at least 2; every entry of q and k is drawn from N(0, 1)
             seed: of a generator of this function's own; the global one is left alone
    """
    check_positive_int("d_k", d_k)
    check_int_at_least("samples", samples, 2)
    _check_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    scores = torch.zeros(samples, dtype=torch.float64)
    for _ in range(d_k):  # one coordinate of all the pairs at a time
        q, k = torch.randn(2, samples, generator=generator, dtype=torch.float64)
        scores = scores + q * k
    return scores.var().item(), (scores / math.sqrt(d_k)).var().item()


def _check_seed(seed: int) -> None:
    check_int_at_least("seed", seed, 0)
    if seed >= 2**63:
        raise ValueError(f"seed must be below 2**63, got {seed}")
