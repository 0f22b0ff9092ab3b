"""The calls of the sampling contract: ties, exact boundaries, extremes, calls to refuse."""

import math
import random
from collections.abc import Sequence
from functools import partial

from course_lib.contracts.engine.call import Call, Calls, Each

_FOUR = (3.0, 2.0, 1.0, 0.0)
_MIXED = (0.5, 3.0, -1.0, 2.0, 1.5)
_TIES = (1.0, 3.0, 3.0, 3.0, 2.0)
_SAME = (0.0,) * 4
_TAIL = (0.0, -50.0, -3.0)
_FLAT = (1.0, 1.2, 1.1, 0.9, 1.15)
_LOW = (-12000.0, -12001.0, -12003.0)
_MASSES = (0.05, 0.3, 0.6, 0.62, 0.8, 0.9, 0.93, 0.99)
_FEW = (
    *((1.0, 2.5), (0.0, 0.0), (2.0, 0.5), (0.0, 2.0, 2.0), (3.0, 1.0, 0.5), (1.0, 0.0, 1.0)),
    *((0.5, 2.0, 0.5, 2.0), (1.0, 3.0, 2.0, -1.0), (2.0, 1.0, 0.5, 0.5, 2.0)),
)

_make = Calls(  # one token alone shows nothing: whatever is done to it, its probability is 1
    "logits [V], *, temperature?, top_k?, top_p?",
    legal=lambda call: len(call.logits) >= max(2, call.top_k or 0),
)


def asked(
    logits: Sequence[float],
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Call:
    """One call of a sampling distribution; None leaves an argument out."""
    return _make(list(logits), temperature, top_k, top_p)


def calls_by_clause() -> dict[str, list[Call]]:
    """The calls of each clause that asks for a distribution, and those that must be refused."""
    return {**_calls(), "bad_arguments": _illegal()}


def _calls() -> dict[str, list[Call]]:
    draw = random.Random(18)
    spread = tuple(round(draw.gauss(0.0, 2.0), 6) for _ in range(600))  # all different
    tied = tuple(float(round(logit)) for logit in spread)
    return {
        "softmax": [asked(logits) for logits in (_FOUR, _MIXED, (1.5,), (0.0, 0.0, 0.0))],
        "temperature": [
            *(asked(logits, t) for logits in (_FOUR, _MIXED) for t in (0.5, 2.0, 0.1, 10.0)),
            *(asked((0.0, t, 3 * t), t) for t in (1e-6, 1e6, 1e-12)),
        ],
        "top_k": [*(asked(_MIXED, top_k=k) for k in range(1, 6)), asked((1.5,), top_k=1)],
        "top_k_ties": [
            *(asked(_TIES, top_k=k) for k in (2, 1, 3, 4)),
            *(asked(_SAME, top_k=k) for k in (1, 2, 3)),
            *(asked((2.0, 1.0, 2.0, 1.0), top_k=k) for k in (1, 3)),
        ],
        "top_p": [asked(logits, top_p=p) for logits in (_FOUR, _MIXED, _TIES) for p in _MASSES],
        # two, four or eight equal logits, so that every sum is a power of two's multiple
        "exact_boundaries": [
            *(asked(_SAME, top_p=p) for p in (0.25, 0.5, 0.75)),
            *(asked((0.0,) * 8, top_p=p) for p in (0.125, 0.5, 0.625)),
            *(asked(z, top_p=0.5) for z in ((0.0, 0.0), (-900.0, 0.0, -901.0, 0.0))),
        ],
        # top_p at its ends, and a tail that rounding could lose
        "top_p_ends": [
            *(asked(logits, top_p=p) for logits in (_TAIL, _MIXED) for p in (1.0, 1e-9, 1e-30)),
            *(asked(_TAIL, top_p=0.995), asked(_TAIL, top_k=2, top_p=1.0)),
        ],
        # a temperature together with a filter whose choice it changes
        "temperature_first": [
            *(asked((3.0, 2.0, 1.0), t, None, 0.8) for t in (0.5, 2.0)),
            *(
                asked(_MIXED, t, k, p)
                for t in (0.4, 2.5)
                for k, p in ((3, None), (None, 0.5), (None, 0.6), (None, 0.85), (None, 0.9))
            ),
        ],
        "top_k_then_top_p": [
            *(asked(z, None, k, p) for z in (_FOUR, _MIXED) for k in (2, 3) for p in _MASSES[2:]),
            *(asked(_FLAT, None, k, p) for k in (2, 3) for p in (0.3, 0.45, 0.55, 0.75)),
            *(asked(_MIXED, t, 3, 0.6) for t in (0.4, 2.5)),
            *(asked(_MIXED, None, k, p) for k in (1, 5) for p in (0.3, 0.6, 0.95)),
            *(asked(_SAME, None, 2, 0.5), asked(_TIES, 2.0, 2, 0.6)),
        ],
        "any_mixture": [
            asked(logits, t, k, p)
            for logits in _FEW
            for t in (None, 0.6, 1.7)
            for k in (None, *range(1, len(logits) + 1))
            for p in (None, 0.13, 0.43, 0.71, 0.89)
        ],
        "extreme_logits": [
            *(asked((1000.0, 999.0, 998.0)), asked((-1000.0, -1001.0))),
            asked((5000.0, 4999.0, 0.0, -5000.0), 2.0),
            *(asked((-9000.0, -9001.0, -9003.0), 0.5, None, 0.9), asked((3.0, 2.0, 1.0), 1e-3)),
            asked((12000.0, 11999.0, 11998.0, -12000.0), 1.0, 2, 0.6),
            asked((100.0, -100.0, 99.0), 0.1, 2),
            *(asked(_LOW, 1.0, 1), asked(_LOW, 1.0, None, 0.8)),
            asked((-3e9, -3e9 - 256.0, -3e9 - 512.0), 256.0, 2),  # below a usual fill
            asked((-3e30, -1e30, -2e30), None, 1),  # below any
        ],
        "large_vocabulary": [
            *(asked(spread), asked(spread, 0.7, 300), asked(spread, None, 77)),
            *(asked(spread, 1.3, k, p) for k in (None, 500) for p in (0.3, 0.95)),
            *(asked(tied, None, 77), asked(tied, 1.0, 123)),
        ],
    }


def _illegal() -> list[Call]:
    """Calls that must be refused; each differs from a right one in a single argument."""
    right = asked((2.0, 1.0, 0.0)).whole()
    calls = [right.but(temperature=t) for t in (0.0, -1.0)]
    calls += [right.but(top_k=k) for k in (0, -1, 4)]
    calls += [right.but(top_p=p) for p in (0.0, -0.5, 1.5)]
    bad = ([], [1.0, math.nan], [math.inf, 0.0], [0.0, -math.inf])
    # made anew for each call: a list with NaN in it is not to be rounded when it is cut down
    return calls + [right.but(logits=Each(partial(list, logits))) for logits in bad]
