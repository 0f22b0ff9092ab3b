"""The inputs of the sampling contract: ties, exact boundaries, extremes, calls to refuse."""

import math
import random
from dataclasses import replace

from course_lib.contracts.sampling._sampling_case import SamplingCase, SamplingRefusal


def sampling_ties() -> list[SamplingCase]:
    """Equal logits at the k-th place: exactly k survive."""
    ties, equal = (1.0, 3.0, 3.0, 3.0, 2.0), (0.0, 0.0, 0.0, 0.0)
    cases = [SamplingCase(ties, top_k=k) for k in (2, 1, 3, 4)]
    cases += [SamplingCase(equal, top_k=k) for k in (1, 2, 3)]
    cases += [SamplingCase((2.0, 1.0, 2.0, 1.0), top_k=k) for k in (1, 3)]
    return cases


def sampling_boundaries() -> list[SamplingCase]:
    """Equal logits, two, four or eight of them, so that every sum is a power of two's multiple."""
    equal, far = (0.0, 0.0, 0.0, 0.0), (-900.0, 0.0, -901.0, 0.0)
    cases = [SamplingCase(equal, top_p=p) for p in (0.25, 0.5, 0.75)]
    cases += [SamplingCase((0.0,) * 8, top_p=p) for p in (0.125, 0.5, 0.625)]
    return [*cases, SamplingCase((0.0, 0.0), top_p=0.5), SamplingCase(far, top_p=0.5)]


def sampling_orders() -> list[SamplingCase]:
    """A temperature together with a filter whose choice it changes."""
    three, mixed = (3.0, 2.0, 1.0), (0.5, 3.0, -1.0, 2.0, 1.5)
    cases = [SamplingCase(three, 0.5, None, 0.8), SamplingCase(three, 2.0, None, 0.8)]
    for warmth in (0.4, 2.5):
        cases.append(SamplingCase(mixed, warmth, 3))
        cases += [SamplingCase(mixed, warmth, None, p) for p in (0.5, 0.6, 0.85, 0.9)]
    return cases


def sampling_extremes() -> list[SamplingCase]:
    """Logits in the thousands and beyond, and a temperature that makes them so."""
    cases = [SamplingCase(logits) for logits in ((1000.0, 999.0, 998.0), (-1000.0, -1001.0))]
    cases += [
        SamplingCase((5000.0, 4999.0, 0.0, -5000.0), 2.0),
        SamplingCase((-9000.0, -9001.0, -9003.0), 0.5, None, 0.9),
        SamplingCase((3.0, 2.0, 1.0), 1e-3),
        SamplingCase((12000.0, 11999.0, 11998.0, -12000.0), 1.0, 2, 0.6),
        SamplingCase((100.0, -100.0, 99.0), 0.1, 2),
        SamplingCase((-12000.0, -12001.0, -12003.0), 1.0, 1),
        SamplingCase((-12000.0, -12001.0, -12003.0), 1.0, None, 0.8),
        SamplingCase((-3e9, -3e9 - 256.0, -3e9 - 512.0), 256.0, 2),  # below a usual fill
        SamplingCase((-3e30, -1e30, -2e30), None, 1),  # below any
    ]
    return cases


def sampling_many() -> list[SamplingCase]:
    """A vocabulary of hundreds of tokens, first all different, then with many ties."""
    draw = random.Random(18)
    spread = tuple(round(draw.gauss(0.0, 2.0), 6) for _ in range(600))
    tied = tuple(float(round(logit)) for logit in spread)
    cases = [SamplingCase(spread), SamplingCase(spread, 0.7, 300), SamplingCase(spread, None, 77)]
    cases += [SamplingCase(spread, 1.3, k, p) for k in (None, 500) for p in (0.3, 0.95)]
    return [*cases, SamplingCase(tied, None, 77), SamplingCase(tied, 1.0, 123)]


def sampling_bad() -> list[SamplingCase]:
    """Calls that must be refused; each differs from a right one in a single argument."""
    right = SamplingRefusal((2.0, 1.0, 0.0))
    cases = [replace(right, temperature=warmth) for warmth in (0.0, -1.0)]
    cases += [replace(right, top_k=k) for k in (0, -1, 4)]
    cases += [replace(right, top_p=p) for p in (0.0, -0.5, 1.5)]
    bad = ((), (1.0, math.nan), (math.inf, 0.0), (0.0, -math.inf))
    return cases + [replace(right, logits=logits) for logits in bad]


def sampling_combinations() -> list[SamplingCase]:
    """Few tokens, with ties and without, under every mixture of temperature, k and p."""
    tokens = [(1.0, 2.5), (0.0, 0.0), (2.0, 0.5), (0.0, 2.0, 2.0), (3.0, 1.0, 0.5), (1.0, 0.0, 1.0)]
    tokens += [(0.5, 2.0, 0.5, 2.0), (1.0, 3.0, 2.0, -1.0), (2.0, 1.0, 0.5, 0.5, 2.0)]
    cases = []
    for logits in tokens:
        for warmth in (None, 0.6, 1.7):
            counts, masses = (None, *range(1, len(logits) + 1)), (None, 0.13, 0.43, 0.71, 0.89)
            cases += [SamplingCase(logits, warmth, k, p) for k in counts for p in masses]
    return cases
