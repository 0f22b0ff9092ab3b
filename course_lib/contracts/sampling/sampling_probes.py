"""Name a wrong sampling distribution: the calls on which catalogued mistakes show."""

import math
from typing import Any

from course_lib.contracts.engine.call import Call
from course_lib.contracts.engine.look import arguments_kept, outcome, probed
from course_lib.contracts.engine.watch import Probe
from course_lib.contracts.sampling.references import by_loops
from course_lib.contracts.sampling.sampling_calls import asked

_ORDINARY_FAULT = "wrong in ordinary calls"


def sampling_probes(subject: Any) -> list[Probe]:
    """Ordinary calls first; then one kind of special call after the other."""
    return _probes()


def _probes() -> list[Probe]:
    mixed, flat = (0.4, 2.9, -1.2, 2.1), (1.05, 1.35, 1.2, 0.9, 1.28)
    eight = (1.0, 1.02, 0.98, 1.01, 0.99, 1.03, 0.97, 1.04)
    ordinary = [  # without ties, bounds or extremes: here two people's mistakes agree
        *(asked(mixed), asked(flat)),
        *(asked(logits, t) for logits in (mixed, flat) for t in (0.6, 1.7)),
        *(asked(logits, None, k) for logits, ks in ((mixed, (2, 3)), (flat, (2, 4))) for k in ks),
        *(asked(mixed, None, None, p) for p in (0.73, 0.97)),
        *(asked(flat, None, None, p) for p in (0.35, 0.55, 0.9)),
        *(asked((1.1, 3.0, 2.2), t, None, 0.8) for t in (0.45, 3.0)),
        *(asked(flat, t, 3) for t in (0.6, 1.7)),
        *(asked(flat, None, 3, p) for p in (0.5, 0.63)),
        *(asked(flat, None, 2, 0.93), asked(mixed, None, 1, 0.9)),
        *(asked(eight, None, 6, p) for p in (0.16, 0.45)),
        *(asked(mixed, None, 3, 0.73), asked(flat, 0.3, 4, 0.5)),
    ]
    ties, pairs, far = (0.5, 2.0, 2.0, 2.0, 1.0), (1.5, 0.5, 1.5, 0.5), (-800.0, 0.0, -801.0, 0.0)
    equal = [  # where a filter must choose, and sums that meet top_p exactly
        *(asked(ties, None, 2), asked(pairs, None, 1), asked(pairs, None, 3)),
        *(asked(ties, None, None, 0.5), *(asked(pairs, None, None, p) for p in (0.3, 0.8))),
        *(asked(far, None, None, 0.5), asked((0.0,) * 8, None, None, 0.25)),
    ]
    tail, three, short = (0.0, -60.0, -2.0), (0.3, 1.7, 1.1), (1.5, 0.5, 0.0)
    edges = [  # top_p at its ends, a tail that rounding could lose, logits below a fill, floods
        *(asked(tail, None, None, p) for p in (1.0, 1e-12, 1e-40)),
        *(asked(logits, None, None, 1.0) for logits in ((1.2, 0.4, 0.9), (0.0, -60.0))),
        *(asked((-22000.0, -22001.0, -22003.0), None, k) for k in (1, 2)),
        asked((-4e9, -4e9 - 512.0, -4e9 - 1024.0), 512.0, 1),
        *(asked((2000.0, 1999.0, 1990.0)), asked((-2000.0, -2002.0))),
    ]
    kinds = [asked(three), asked(three, 2.0), asked(three, None, 2), asked(three, None, None, 0.5)]
    illegal = [  # one bad argument each
        *(asked(short, t) for t in (0.0, -2.0)),
        *(asked(short, None, k) for k in (5, 0, -1)),
        *(asked(short, None, None, p) for p in (1.25, 0.0, -0.25)),
        *map(asked, ((0.5, math.nan, 0.0), (0.5, math.inf), (0.5, -math.inf), ())),
    ]
    return [
        *probed(*ordinary, look=_numbers),
        *probed(*equal, look=_special, core=False),
        *probed(*edges, look=_survivors, core=False),
        Probe(_flatness, core=False),
        *probed(*kinds, look=arguments_kept, core=False),
        Probe(_overwritten, core=False),
        *probed(*illegal, look=_accepted, core=False),
    ]


def _numbers(call: Call, candidate: Any) -> list[float]:
    return [float(value) for value in outcome(call, candidate)]


def _commonplace(call: Call, candidate: Any) -> bool:
    """Whether ordinary calls with the same kinds of arguments are right.

    If they are not, a special case tells nothing more: its fault is the ordinary one.
    """
    plain = asked((0.7, 2.4, -0.6, 1.6))
    usual = {"temperature": 0.8, "top_k": 2, "top_p": 0.6}
    calls = [plain, plain.but(**{name: usual[name] for name in call.args if name in usual})]
    if call.top_p:
        calls.append(plain.but(top_p=0.93))
    try:
        return all(
            abs(got - want) <= 1e-6
            for each in calls
            for got, want in zip(_numbers(each, candidate), by_loops(**each.args), strict=True)
        )
    except Exception:
        return False


def _special(call: Call, candidate: Any) -> list[float] | str:
    return _numbers(call, candidate) if _commonplace(call, candidate) else _ORDINARY_FAULT


def _survivors(call: Call, candidate: Any) -> list[int] | str:
    """The ids that have a probability; one word if none has, or if it is no number."""
    try:
        values = _special(call, candidate)
    except Exception:
        return "nothing"
    if isinstance(values, str) or not all(math.isfinite(value) for value in values):
        return values if isinstance(values, str) else "nothing"
    return [token for token, value in enumerate(values) if value] or "nothing"


def _flatness(candidate: Any) -> bool | str:
    """Whether tiny temperatures, with logits as close together, still tell tokens apart."""
    seen = []
    for t in (1e-6, 1e-9, 1e-13):
        values = _special(asked((0.0, t, 4 * t), t), candidate)
        if isinstance(values, str):
            return values
        seen.append(max(values) > 0.6)
    return all(seen)


def _overwritten(candidate: Any) -> bool:
    """Whether a later call changes what an earlier one returned."""
    first = candidate([0.5, 1.5, 0.0])
    kept = [float(value) for value in first]
    candidate([2.5, 0.5, 1.0])
    return [float(value) for value in first] != kept


def _accepted(call: Call, candidate: Any) -> bool | str:
    """Whether a bad argument passes as far as any answer, or any error but the right ones."""
    try:
        outcome(call, candidate)
    except (ValueError, TypeError):
        return False
    except AssertionError:
        return "asserted"  # refused, though by another error
    except Exception:
        return True
    return True
