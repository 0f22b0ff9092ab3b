"""The inputs of the sampler's contract: rows that a wrong step serves wrongly, many times each."""

import math

from course_lib.contracts.sampling._sampler_case import SamplerCase, ScriptedCase, WholeSamplerCase

_SAMPLER_FALLING = (2.0, 1.0, 0.0, -1.0)
_SAMPLER_MIXED = (0.0, 1.5, 1.0, -0.5)
_SAMPLER_CLOSE = (0.5, 1.2, 0.1, 0.9)
_SAMPLER_KINDS = ("float64", "float32")


def sampler_forms() -> list[SamplerCase]:
    """One row, one token, as many rows as tokens, both widths of float, every setting."""
    wide = tuple((float(b), 1.0, 0.5 * b, 2.0, 0.3) for b in range(5))
    cases = [
        SamplerCase((_SAMPLER_FALLING, _SAMPLER_MIXED)),
        SamplerCase((_SAMPLER_MIXED,)),
        SamplerCase(((1.5,),)),
    ]
    cases += [SamplerCase(((1.5,),), 3, 0.0), SamplerCase(((1.5,),), 3, 0.7, 1, 0.5)]
    cases += [SamplerCase(wide, 1, 0.7, 3, 0.9), SamplerCase(wide, 1, 0.0), SamplerCase(wide, 3)]
    cases += [
        SamplerCase(wide, 1, 2.0, 2, None, 1, "float32"),
        SamplerCase((_SAMPLER_FALLING,), 1, 0.0),
    ]
    return [*cases, SamplerCase(wide[:2], 1, 0.5, None, 0.6), SamplerCase(wide, 2, 1.0, 5, 1.0)]


def sampler_greedy() -> list[SamplerCase]:
    """Temperature 0: ties, almost ties, filters that are also set, huge and tiny logits."""
    ties = ((1.0, 3.0, 3.0, 2.0), (0.0, 0.0, 0.0, 0.0), (2.0, 1.0, 2.0, 2.0))
    step = 2.0**-20  # seen by float32 too
    near = ((1.0, 1.0 + step, 1.0 - step, 0.0), (2.0, 2.0 - step, 2.0 + step, 2.0))
    cases = [
        SamplerCase((_SAMPLER_FALLING, _SAMPLER_MIXED, _SAMPLER_CLOSE), 4, 0.0),
        SamplerCase(ties, 12, 0.0),
    ]
    cases += [SamplerCase(near, 12, 0.0), SamplerCase(ties, 6, 0.0, 3, 0.9)]
    cases += [
        SamplerCase(ties, 6, 0.0, None, 0.99),
        SamplerCase((*ties, _SAMPLER_MIXED), 1, 0.0, 2),
    ]
    huge = ((1e30, -1e30, 1e29), (-1e30, -2e30, -1e29), (0.0, 1e-30, 0.0))
    return [*cases, SamplerCase(huge, 2, 0.0), SamplerCase(huge, 2, 0.0, dtype="float32")]


def sampler_plain() -> list[SamplerCase]:
    """No filter, temperature 1; and filters that remove nothing."""
    both = (_SAMPLER_FALLING, _SAMPLER_MIXED)
    cases = [SamplerCase(both, 700), SamplerCase(both, 250, 1.0, 4, 1.0, 2, "float32")]
    cases.append(SamplerCase(((2.0, 0.0),), 1500, seed=28))
    return [*cases, SamplerCase(((3.4, *(0.0,) * 29),), 300, seed=29)]


def sampler_warm() -> list[SamplerCase]:
    """Temperatures on either side of 1."""
    cases = [SamplerCase((_SAMPLER_FALLING, _SAMPLER_MIXED), 350, 0.5, seed=3)]
    return [*cases, SamplerCase((_SAMPLER_FALLING, _SAMPLER_MIXED), 500, 2.0, seed=4)]


def sampler_top_k() -> list[SamplerCase]:
    """The k likeliest, in rows whose likeliest tokens are not the same."""
    cases = [SamplerCase((_SAMPLER_CLOSE, _SAMPLER_FALLING[::-1]), 250, 1.0, 2, seed=5)]
    cases.append(
        SamplerCase((_SAMPLER_CLOSE, _SAMPLER_MIXED, _SAMPLER_FALLING), 60, 1.0, 1, seed=6)
    )
    return [*cases, SamplerCase((_SAMPLER_FALLING,), 300, 0.4, 3, seed=7)]


def sampler_ties() -> list[SamplerCase]:
    """Equal logits: exactly k of them, the lower ids; equal ones at the end of a nucleus."""
    ties, equal = (1.0, 2.0, 2.0, 2.0), (0.0, 0.0, 0.0, 0.0)
    cases = [SamplerCase((ties, equal), 120, 1.0, 2, seed=8)]
    many = tuple(float(token % 3) for token in range(40))  # too many for a sort by insertion
    cases.append(SamplerCase((many,), 120, 1.0, 6, seed=30))
    return [*cases, SamplerCase((ties, equal), 120, 1.0, None, 0.5, 9)]


def sampler_top_p() -> list[SamplerCase]:
    """The shortest run of likeliest tokens that reaches p, in unlike rows."""
    cases = [SamplerCase((_SAMPLER_FALLING, _SAMPLER_CLOSE), 250, 1.0, None, 0.6, 10)]
    cases.append(
        SamplerCase(
            (_SAMPLER_MIXED, _SAMPLER_CLOSE, _SAMPLER_FALLING[::-1]), 150, 1.0, None, 0.8, 11
        )
    )
    return [*cases, SamplerCase((_SAMPLER_FALLING, _SAMPLER_CLOSE), 60, 1.0, None, 1e-9, 12)]


def sampler_orders() -> list[SamplerCase]:
    """Temperature, then top-k, then top-p of what top-k left."""
    three = (3.0, 2.0, 1.0, 0.0)
    cases = [SamplerCase((three, _SAMPLER_CLOSE), 150, 0.5, None, 0.8, 13)]
    cases.append(SamplerCase((three, _SAMPLER_MIXED), 150, 2.5, None, 0.6, 14))
    return cases + [
        SamplerCase((_SAMPLER_CLOSE, _SAMPLER_MIXED), 120, 1.0, 3, p, 15) for p in (0.53, 0.75)
    ]


def sampler_equal_rows() -> list[SamplerCase]:
    """One row many times: each must draw for itself."""
    return [SamplerCase(((0.3, 0.0, 0.2),), 600, seed=16)]


def sampler_pairs() -> list[SamplerCase]:
    """A batch of two equal rows, to be sampled again and again."""
    eight = (0.1, 0.0, 0.2, -5.0, -5.0, -5.0, -4.0, -4.0)
    return [
        WholeSamplerCase(((0.0, 0.1),) * 2, seed=17),
        WholeSamplerCase((tuple(0.01 * token for token in eight),) * 2, 1, 1.0, None, 0.35, 18),
    ]


def sampler_sources() -> list[SamplerCase]:
    """Enough chance in a call that two calls never agree by chance."""
    flat = tuple(0.1 * token for token in range(6))
    return [
        WholeSamplerCase((flat,), 40, seed=19),
        WholeSamplerCase((flat, flat[::-1]), 24, 0.8, 4, 0.95),
    ]


def sampler_ends() -> list[SamplerCase]:
    """Draws of exactly 0 and just below 1, in rows whose first and last tokens are removed."""
    first = (0.0, 0.0, 1.0, 0.0, 1.0, 1.0)  # keeps tokens 2, 4 and 5
    inner = (0.0, 1.0, 1.0, 1.0, 0.0, 0.0)
    rows = (first, first, inner, inner, inner, inner)
    cases = [ScriptedCase(rows, 1, 1.0, 3, None, 20, ones=ones) for ones in (False, True)]
    cases += [ScriptedCase(rows, 1, 0.7, None, 0.8, 21, "float32", ones) for ones in (False, True)]
    for kept in (5, 6, 7, 10, 11, 13, 2998):
        row = (-1.0, *(0.0,) * kept, -1.0)
        cases.append(ScriptedCase((row,) * 6, 1, 1.0, kept, None, 22, ones=True))
    uneven = (-9.0, *(math.log(1 + token) for token in range(9)), -9.0)
    return [*cases, ScriptedCase((uneven,) * 6, 1, 1.0, 9, None, 23, ones=True)]


def sampler_extremes() -> list[SamplerCase]:
    """Logits in the thousands, of either sign, and a temperature that makes them so."""
    huge, low = (5000.0, 4999.0, 0.0, -5000.0), (-9000.0, -9001.0, -9003.0, -9002.0)
    cases = [SamplerCase((huge, low), 120, 1.0, seed=24, dtype=kind) for kind in _SAMPLER_KINDS]
    cases.append(SamplerCase((huge, low), 120, 1.0, 3, 0.9, 25))
    return [*cases, SamplerCase(((0.003, 0.002, 0.001, 0.0),), 120, 1e-3, seed=26)]


def sampler_many() -> list[SamplerCase]:
    """Half of the probability spread over thousands of tokens."""
    return [SamplerCase(((math.log(2999.0), *(0.0,) * 2999),), 48, seed=27)]
