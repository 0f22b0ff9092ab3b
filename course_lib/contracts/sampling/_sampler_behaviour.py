"""Name a wrong sampler: what it does, in words that chance cannot change."""

import random
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch

from course_lib.contracts.engine.candidate import ContractSubject
from course_lib.contracts.engine.diagnosis import Diagnosis, Probe, diagnose
from course_lib.contracts.sampling._sampler_case import SamplerCase, ScriptedCase
from course_lib.contracts.sampling._sampler_chance import (
    below_logistic,
    below_minus_gumbel,
    sampler_noisy,
    sampler_surprise,
)
from course_lib.contracts.sampling._sampling_case import SamplingCase, sampling_by_loops
from course_lib.contracts.sampling.sampler_mistakes import SAMPLER_MISTAKES
from course_lib.contracts.sampling.sampling_mistakes import SAMPLING_MISTAKES

_PROBED_MIXED = (0.4, 2.9, -1.2, 2.1)
_PROBED_FLAT = (1.05, 1.6, 1.3, 0.8)
_PROBED_SOME = SamplerCase(((3.6, *(0.0,) * 39),), 300, seed=59)


def explain_sampler(subject: ContractSubject) -> Diagnosis:
    """Name the catalogued mistakes that explain what the candidate draws."""
    probes = [Probe(partial(_sampler_followed, case=case)) for case in _sampler_ordinary()]
    special = [
        *(partial(_sampler_support, case=case) for case in _sampler_special()),
        _sampler_coldness,
        _sampler_cold_ties,
        _sampler_first_row,
        *(partial(_sampler_scripted, ones=ones) for ones in (False, True)),
        *(partial(_sampler_relation, twos=twos) for twos in (False, True)),
        _sampler_source,
        *(partial(_sampler_shape, size=size) for size in (1, 2)),
        *(partial(_sampler_writes, settings=each) for each in ((0.5, None, None), (1.0, 2, 0.9))),
        _sampler_tail,
    ]
    probes += [Probe(look, core=False) for look in special]
    return diagnose(subject.candidate, SAMPLER_MISTAKES, probes, _sampler_reference)


def _sampler_ordinary() -> list[SamplerCase]:
    """Rows of two kinds in turn, and settings in which two people's mistakes agree."""
    settings = [
        *((1.0, None, None), (0.5, None, None), (2.0, None, None)),
        *((1.0, 2, None), (1.0, None, 0.73), (1.0, None, 0.5), (0.4, None, 0.85)),
        *((1.0, 3, 0.4), (1.0, 3, 0.7), (1.0, 2, 0.95)),
    ]
    rows = (_PROBED_MIXED, _PROBED_FLAT)
    cases = [SamplerCase(rows, 400, *each, seed=40 + n) for n, each in enumerate(settings)]
    return [*cases, SamplerCase(((2.2, 0.0),), 1200, seed=58), _PROBED_SOME]


def _sampler_special() -> list[SamplerCase]:
    """Ties, where the filters must choose, and a sum that meets top_p exactly."""
    ties, pairs = (0.5, 2.0, 2.0, 2.0), (1.5, 0.5, 1.5, 0.5)
    cases = [SamplerCase((ties,), 100, 1.0, 2), SamplerCase((pairs,), 100, 1.0, 3)]
    cases += [SamplerCase((pairs,), 100, 1.0, None, 0.3), SamplerCase((ties,), 100, 1.0, None, 0.5)]
    return [*cases, SamplerCase(((0.0,) * 8,), 200, 1.0, None, 0.25)]


def _sampler_reference(
    logits: np.ndarray,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    rng: np.random.Generator,
) -> np.ndarray:
    if temperature == 0:
        return logits.argmax(-1)
    ids = np.zeros(len(logits), dtype=np.int64)
    for row in dict.fromkeys(map(tuple, logits.tolist())):  # in their order
        mine = (logits == row).all(-1)
        probs = sampling_by_loops(SamplingCase(row, temperature, top_k, top_p))
        ids[mine] = rng.choice(len(row), mine.sum(), p=probs)
    return ids


def _sampler_seen(
    sample: Callable[..., Any], case: SamplerCase, rng: np.random.Generator | None = None
) -> np.ndarray:
    result = sample(case.logits(), *case.settings(), rng or case.generator())
    ids = np.asarray(result.detach().cpu().numpy() if isinstance(result, torch.Tensor) else result)
    if ids.size != len(case.rows) * case.repeats or ids.dtype.kind not in "iu":
        raise TypeError("not one id for each row")
    return ids.reshape(-1).astype(np.int64)


def _sampler_followed(sample: Callable[..., Any], case: SamplerCase) -> list[Any]:
    """For each row the known distribution that its counts follow; else the counts in tenths.

    The right one has the first say: a mistake shows where it cannot be right.
    """
    ids, told = _sampler_seen(sample, case), []
    for place, known in enumerate(_sampler_known(case)):
        mine = ids[place :: len(case.rows)]
        if mine.min() < 0 or mine.max() >= len(case.rows[0]):
            return ["ids out of range"]
        if len(set(mine.tolist())) == 1 and max(known[0]) < 0.9:
            fresh = [_sampler_seen(sample, case, np.random.default_rng(n)) for n in range(12)]
            if len({int(each[place]) for each in fresh}) > 1:
                told.append("one draw for all rows")
                continue
        counts = np.bincount(mine, minlength=len(case.rows[0])).tolist()
        fits = []
        for probs in known:
            pairs = zip(counts, probs, strict=True)
            fits.append(max(sampler_surprise(count, len(mine), prob) for count, prob in pairs))
        best = 0 if fits[0] < 10 else fits.index(min(fits))
        tenths = [round(10 * count / len(mine)) for count in counts]
        told.append(known[best] if fits[best] < 10 else tenths)
    return told


@lru_cache
def _sampler_known(case: SamplerCase) -> list[list[list[float]]]:
    """For each row: the right distribution, the catalogue's, those with another row's tokens."""
    rights = [sampling_by_loops(SamplingCase(row, *case.settings())) for row in case.rows]
    makers = [each.make for each in SAMPLING_MISTAKES if isinstance(each.make, partial)]
    known = []
    for row, right in zip(case.rows, rights, strict=True):
        found = [right, sampling_by_loops(SamplingCase(row, 1.0, 1, None))]
        found += [make()(list(row), *case.settings()) for make in makers]
        found += [sampler_noisy(right, below) for below in (below_minus_gumbel, below_logistic)]
        whole = sampling_by_loops(SamplingCase(row, case.temperature))
        for other in rights:
            shared = [prob if kept else 0.0 for prob, kept in zip(whole, other, strict=True)]
            found.append([prob / sum(shared) for prob in shared])
        unlike: list[list[float]] = []
        for probs in found:
            proper = abs(sum(probs) - 1) < 1e-9
            if proper and all(_sampler_apart(probs, each) for each in unlike):
                unlike.append(probs)
        known.append(unlike)
    return known


def _sampler_apart(one: list[float], other: list[float]) -> bool:
    return max(abs(a - b) for a, b in zip(one, other, strict=True)) > 1e-6


def _sampler_commonplace(sample: Callable[..., Any], case: SamplerCase) -> bool:
    """Whether an ordinary call of the same kind is right; if not, a special one tells no more."""
    k, p = case.top_k and 2, case.top_p and 0.73
    plain = SamplerCase((_PROBED_MIXED, _PROBED_FLAT), 200, case.temperature or 1.0, k, p, 61)
    try:
        followed = _sampler_followed(sample, plain)
    except Exception:
        return False
    rights = [sampling_by_loops(SamplingCase(row, *plain.settings())) for row in plain.rows]
    return all(
        isinstance(one, list) and len(one) == len(other) and not _sampler_apart(one, other)
        for one, other in zip(followed, rights, strict=False)
    )


def _sampler_support(sample: Callable[..., Any], case: SamplerCase) -> list[int] | str:
    """The ids that come at all; each of the right ones is likely enough to come."""
    if not _sampler_commonplace(sample, case):
        return "wrong in ordinary calls"
    return sorted(set(_sampler_seen(sample, case).tolist()))


def _sampler_coldness(sample: Callable[..., Any]) -> str:
    """Temperature 0, no ties: greedy, drawn, or neither."""
    case = SamplerCase((_PROBED_MIXED, _PROBED_FLAT), 40, 0.0)
    if not _sampler_commonplace(sample, case):
        return "wrong in ordinary calls"
    try:
        ids = _sampler_seen(sample, case)
    except Exception:
        return "broken"
    if ids.tolist() == case.greedy() * 40:
        return "greedy"
    return "drawn" if len(set(ids[::2].tolist())) > 1 else "broken"


def _sampler_cold_ties(sample: Callable[..., Any]) -> list[str] | str:
    """Temperature 0: which of the equal, and of the almost equal logits come."""
    if _sampler_coldness(sample) != "greedy":
        return "not greedy anyway"
    told = []
    for near in (0.0, 2.0**-20):
        case = SamplerCase(((1.0, 2.0, 0.5, 2.0 + near, 2.0),), 60, 0.0)
        ids = set(_sampler_seen(sample, case).tolist())
        told.append(str(min(ids)) if len(ids) == 1 else "several")
    return told


def _sampler_first_row(sample: Callable[..., Any]) -> list[bool] | str:
    """Whether removed ids come in the first and in the second row of small batches."""
    row = (0.2, 0.0, 0.1, -0.1, -0.2, 0.3)
    case = SamplerCase((row, row), 1, 1.0, 2, None, 62)
    if not _sampler_commonplace(sample, SamplerCase((row, row), 30, 1.0, 2)):
        return "wrong in ordinary calls"
    rng = case.generator()
    seen = np.array([_sampler_seen(sample, case, rng) for _ in range(40)])
    return [bool(set(ids) - {0, 5}) for ids in seen.T.tolist()]


def _sampler_scripted(sample: Callable[..., Any], ones: bool) -> list[str] | str:
    """What comes when a draw lies at an end of its range: a kept id, a removed one, or none."""
    first, inner = (0.0, 0.0, 1.0, 0.0, 1.0, 1.0), (0.0, 1.0, 1.0, 1.0, 0.0, 0.0)
    rows = [((first, first, *(inner,) * 4), 3)]
    rows += [(((-1.0, *(0.0,) * kept, -1.0),) * 6, kept) for kept in (6, 9, 10, 12) if ones]
    told = []
    for batch, kept in rows:
        scripted = ScriptedCase(batch, 1, 1.0, kept, None, 63, ones=ones)
        for case in (SamplerCase(batch, 20, 1.0, kept, None, 64), scripted):
            try:
                ids = _sampler_seen(sample, case)
            except Exception:
                return "broken" if case is scripted else "wrong in ordinary calls"
            right = [np.argsort(-np.array(row), kind="stable")[:kept].tolist() for row in batch]
            removed = [t for b, t in enumerate(ids.tolist()) if t not in right[b % len(batch)]]
            if removed and case is not scripted:
                return "wrong in ordinary calls"
            outside = max([t - len(batch[0]) + 1 for t in removed], default=0) > 0
            told.append("outside" if outside else "removed" if removed else "kept")
    return [next((word for word in ("outside", "removed") if word in told), "kept")]


def _sampler_relation(sample: Callable[..., Any], twos: bool) -> str:
    """How equal rows relate: in one large batch, or in many batches of two."""
    row = (0.1, 0.0)
    case = SamplerCase((row,), 2, seed=65) if twos else SamplerCase((row,), 400, seed=66)
    rng = case.generator()
    calls = [_sampler_seen(sample, case, rng) for _ in range(60 if twos else 1)]
    pairs = np.concatenate(calls).reshape(-1, 2)
    agreed = int((pairs[:, 0] == pairs[:, 1]).sum())
    if len(pairs) - agreed < 2:
        return "always the same"
    same = sum(prob * prob for prob in sampling_by_loops(SamplingCase(row)))
    if sampler_surprise(agreed, len(pairs), same) < 7:
        return "independent"
    return "never the same" if agreed < len(pairs) / 20 else "otherwise related"


def _sampler_source(sample: Callable[..., Any]) -> list[bool]:
    """What decides the ids: rng, the global generators, neither; and whether rng moves on."""
    case = SamplerCase(((0.0,) * 6,), 40, seed=67)

    def drawn(seed: int, outside: int) -> tuple[list[int], list[int]]:
        random.seed(outside)
        np.random.seed(outside)
        torch.default_generator.manual_seed(outside)
        rng = np.random.default_rng(seed)
        return tuple(_sampler_seen(sample, case, rng).tolist() for _ in range(2))

    first, again, other, global_one = drawn(1, 5), drawn(1, 5), drawn(2, 5), drawn(1, 6)
    moves = first[0] != first[1]
    return [first == again, first == other, first == global_one, moves]


def _sampler_shape(sample: Callable[..., Any], size: int) -> list[int] | str:
    case = SamplerCase((_PROBED_MIXED,), size, 0.7, 3)
    if not _sampler_commonplace(sample, case):
        return "wrong in ordinary calls"
    return list(np.shape(sample(case.logits(), *case.settings(), case.generator())))


def _sampler_writes(sample: Callable[..., Any], settings: tuple[Any, ...]) -> bool:
    """Whether the call writes into the caller's logits."""
    case = SamplerCase((_PROBED_MIXED, _PROBED_FLAT), 2, *settings)
    logits = case.logits()
    sample(logits, *case.settings(), case.generator())
    return not np.array_equal(logits, case.logits())


def _sampler_tail(sample: Callable[..., Any]) -> str:
    """Whether thousands of improbable tokens come as often as together they must."""
    right = sampling_by_loops(SamplingCase(_PROBED_SOME.rows[0]))
    (followed,) = _sampler_followed(sample, _PROBED_SOME)
    if (
        not isinstance(followed, list)
        or len(followed) != len(right)
        or _sampler_apart(followed, right)
    ):
        return "wrong in ordinary calls"
    case = SamplerCase(((8.0, *(0.0,) * 2999),), 60, seed=68)
    ids = _sampler_seen(sample, case)
    if ids.max() >= 3000:
        return "outside"
    tail = int((ids > 0).sum())
    return "kept" if 6 <= tail <= 54 else "lost"
