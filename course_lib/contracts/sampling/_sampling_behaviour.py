"""Name a wrong sampling distribution: the calls on which catalogued mistakes show."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from course_lib.contracts.engine.candidate import ContractSubject
from course_lib.contracts.engine.diagnosis import Diagnosis, Probe, diagnose
from course_lib.contracts.sampling._sampling_case import SamplingCase, sampling_by_loops
from course_lib.contracts.sampling.sampling_mistakes import SAMPLING_MISTAKES


def explain_sampling(subject: ContractSubject) -> Diagnosis:
    """Name the catalogued mistakes that give the candidate's numbers on fresh calls."""
    probes = [Probe(partial(_sampling_numbers, case=case)) for case in _sampling_ordinary()]
    special = [
        *(partial(_sampling_special, case=case) for case in _sampling_ties()),
        *(partial(_sampling_survivors, case=case) for case in _sampling_edges()),
        _sampling_flatness,
        *(partial(_sampling_written, case=case) for case in _sampling_kinds()),
        _sampling_overwritten,
        *(partial(_sampling_accepted, case=case) for case in _sampling_illegal()),
    ]
    probes += [Probe(look, core=False) for look in special]
    return diagnose(subject.candidate, SAMPLING_MISTAKES, probes, _sampling_reference)


def _sampling_reference(
    logits: Any, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> list[float]:
    finite = len(logits) > 0 and all(math.isfinite(logit) for logit in logits)
    legal_k = top_k is None or 1 <= top_k <= len(logits)
    legal_p = top_p is None or 0 < top_p <= 1
    if not (finite and temperature > 0 and legal_k and legal_p):
        raise ValueError("bad arguments")
    return sampling_by_loops(SamplingCase(tuple(logits), temperature, top_k, top_p))


def _sampling_ordinary() -> list[SamplingCase]:
    """Calls without ties, bounds or extremes, in which two people's mistakes agree."""
    mixed, flat = (0.4, 2.9, -1.2, 2.1), (1.05, 1.35, 1.2, 0.9, 1.28)
    cases = [SamplingCase(mixed), SamplingCase(flat)]
    cases += [SamplingCase(logits, warmth) for logits in (mixed, flat) for warmth in (0.6, 1.7)]
    cases += [SamplingCase(mixed, None, k) for k in (2, 3)]
    cases += [SamplingCase(flat, None, k) for k in (2, 4)]
    cases += [SamplingCase(mixed, None, None, p) for p in (0.73, 0.97)]
    cases += [SamplingCase(flat, None, None, p) for p in (0.35, 0.55, 0.9)]
    cases += [SamplingCase((1.1, 3.0, 2.2), warmth, None, 0.8) for warmth in (0.45, 3.0)]
    cases += [SamplingCase(flat, warmth, 3) for warmth in (0.6, 1.7)]
    cases += [SamplingCase(flat, None, 3, p) for p in (0.5, 0.63)]
    cases += [SamplingCase(flat, None, 2, 0.93), SamplingCase(mixed, None, 1, 0.9)]
    eight = (1.0, 1.02, 0.98, 1.01, 0.99, 1.03, 0.97, 1.04)
    cases += [SamplingCase(eight, None, 6, p) for p in (0.16, 0.45)]
    return [*cases, SamplingCase(mixed, None, 3, 0.73), SamplingCase(flat, 0.3, 4, 0.5)]


def _sampling_ties() -> list[SamplingCase]:
    """Equal logits where a filter must choose, and sums that meet top_p exactly."""
    ties, pairs, far = (0.5, 2.0, 2.0, 2.0, 1.0), (1.5, 0.5, 1.5, 0.5), (-800.0, 0.0, -801.0, 0.0)
    cases = [SamplingCase(ties, None, 2), SamplingCase(pairs, None, 1)]
    cases += [SamplingCase(pairs, None, 3), SamplingCase(ties, None, None, 0.5)]
    cases += [SamplingCase(pairs, None, None, 0.3), SamplingCase(pairs, None, None, 0.8)]
    return [*cases, SamplingCase(far, None, None, 0.5), SamplingCase((0.0,) * 8, None, None, 0.25)]


def _sampling_edges() -> list[SamplingCase]:
    """top_p at its ends, a tail that rounding could lose, logits below a fill, floods."""
    tail = (0.0, -60.0, -2.0)
    cases = [SamplingCase(tail, None, None, p) for p in (1.0, 1e-12, 1e-40)]
    cases += [SamplingCase(logits, None, None, 1.0) for logits in ((1.2, 0.4, 0.9), (0.0, -60.0))]
    cases += [SamplingCase((-22000.0, -22001.0, -22003.0), None, k) for k in (1, 2)]
    cases.append(SamplingCase((-4e9, -4e9 - 512.0, -4e9 - 1024.0), 512.0, 1))
    return [*cases, SamplingCase((2000.0, 1999.0, 1990.0)), SamplingCase((-2000.0, -2002.0))]


def _sampling_kinds() -> list[SamplingCase]:
    """One call of each kind, in which the caller's list could be written into."""
    logits = (0.3, 1.7, 1.1)
    cases = [SamplingCase(logits), SamplingCase(logits, 2.0)]
    return [*cases, SamplingCase(logits, None, 2), SamplingCase(logits, None, None, 0.5)]


def _sampling_illegal() -> list[SamplingCase]:
    """Calls that are refused, one bad argument each."""
    logits = (1.5, 0.5, 0.0)
    cases = [SamplingCase(logits, warmth) for warmth in (0.0, -2.0)]
    cases += [SamplingCase(logits, None, k) for k in (5, 0, -1)]
    cases += [SamplingCase(logits, None, None, p) for p in (1.25, 0.0, -0.25)]
    bad = ((0.5, math.nan, 0.0), (0.5, math.inf), (0.5, -math.inf), ())
    return cases + [SamplingCase(given) for given in bad]


def _sampling_numbers(distribution: Callable[..., Any], case: SamplingCase) -> list[float]:
    return [float(value) for value in distribution(list(case.logits), **case.keywords)]


def _sampling_commonplace(distribution: Callable[..., Any], case: SamplingCase) -> bool:
    """Whether ordinary calls with the same kinds of arguments are right.

    If they are not, a special case tells nothing more: its fault is the ordinary one.
    """
    logits = (0.7, 2.4, -0.6, 1.6)
    keywords = {
        "temperature": case.temperature and 0.8,
        "top_k": case.top_k and 2,
        "top_p": case.top_p and 0.6,
    }
    calls = [SamplingCase(logits), SamplingCase(logits, **keywords)]
    if case.top_p:
        calls.append(SamplingCase(logits, top_p=0.93))
    for call in calls:
        try:
            pairs = zip(_sampling_numbers(distribution, call), sampling_by_loops(call), strict=True)
            if not all(abs(got - want) <= 1e-6 for got, want in pairs):
                return False
        except Exception:
            return False
    return True


def _sampling_special(distribution: Callable[..., Any], case: SamplingCase) -> list[float] | str:
    if not _sampling_commonplace(distribution, case):
        return "wrong in ordinary calls"
    return _sampling_numbers(distribution, case)


def _sampling_survivors(distribution: Callable[..., Any], case: SamplingCase) -> list[int] | str:
    """The ids that have a probability; one word if none has, or if it is no number."""
    try:
        values = _sampling_special(distribution, case)
    except Exception:
        return "nothing"
    if isinstance(values, str) or not all(math.isfinite(value) for value in values):
        return values if isinstance(values, str) else "nothing"
    return [token for token, value in enumerate(values) if value] or "nothing"


def _sampling_flatness(distribution: Callable[..., Any]) -> bool | str:
    """Whether tiny temperatures, with logits as close together, still tell tokens apart."""
    seen = []
    for warmth in (1e-6, 1e-9, 1e-13):
        case = SamplingCase((0.0, warmth, 4 * warmth), warmth)
        values = _sampling_special(distribution, case)
        if isinstance(values, str):
            return values
        seen.append(max(values) > 0.6)
    return all(seen)


def _sampling_written(distribution: Callable[..., Any], case: SamplingCase) -> bool:
    """Whether the call writes into the caller's list."""
    logits = list(case.logits)
    distribution(logits, **case.keywords)
    return logits != list(case.logits)


def _sampling_overwritten(distribution: Callable[..., Any]) -> bool:
    """Whether a later call changes what an earlier one returned."""
    first = distribution([0.5, 1.5, 0.0])
    kept = [float(value) for value in first]
    distribution([2.5, 0.5, 1.0])
    return [float(value) for value in first] != kept


def _sampling_accepted(distribution: Callable[..., Any], case: SamplingCase) -> bool | str:
    """Whether a bad argument passes as far as any answer, or any error but the right ones."""
    try:
        distribution(list(case.logits), **case.keywords)
    except (ValueError, TypeError):
        return False
    except AssertionError:
        return "asserted"  # refused, though by another error
    except Exception:
        return True
    return True
