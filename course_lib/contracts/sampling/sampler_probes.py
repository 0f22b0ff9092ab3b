"""Name a wrong sampler: what it does, in words that chance cannot change."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch

from course_lib.contracts.engine.diagnosis import Diagnosis, diagnose
from course_lib.contracts.engine.watch import Probe
from course_lib.contracts.sampling.chance import BELOW, noisy, surprises
from course_lib.contracts.sampling.judges import seed_globals
from course_lib.contracts.sampling.references import by_loops
from course_lib.contracts.sampling.sampler_calls import Draws, Scripted
from course_lib.contracts.sampling.sampler_mistakes import SAMPLER_MISTAKES
from course_lib.contracts.sampling.samplers import mistaken_sampler
from course_lib.contracts.sampling.sampling_mistakes import SAMPLING_MISTAKES

_MIXED = (0.4, 2.9, -1.2, 2.1)
_FLAT = (1.05, 1.6, 1.3, 0.8)
_SOME = Draws(((3.6, *(0.0,) * 39),), 300, seed=59)
_ORDINARY_FAULT = "wrong in ordinary calls"
_KNOWN: dict[str, Any] = {}  # what the catalogue's mistakes do never changes: found out once


class _Looks:
    """What samplers do, by look and call, found out as seldom as one diagnosis can do with.

    The words of a look do not hang on chance: of samplers that we know one look is enough. Of a
    stranger the second, which only repeats the first, is spared; any later one is made, and shows
    whether it is steady.
    """

    def __init__(self, stranger: Any) -> None:
        self.stranger, self.found, self.times = stranger, {}, Counter()

    def at(self, look: Callable[..., Any], candidate: Any) -> Any:
        """What is seen of a candidate."""
        self.times[look] += candidate is self.stranger
        if candidate is self.stranger and self.times[look] > 2:
            return look(candidate, self)
        return self.once(look, candidate, self)

    def once(self, look: Callable[..., Any], candidate: Any, *more: Any) -> Any:
        """What is seen of it, remembered with it: a new one in its place is another."""
        key = (look, id(candidate), more)
        if key not in self.found:
            self.found[key] = look(candidate, *more), candidate
        return self.found[key][0]

    def usual(self, draws: Draws, candidate: Any) -> bool:
        """Whether an ordinary call of the same kind is right; if not, a special tells no more."""
        k, p = draws.top_k and 2, draws.top_p and 0.73
        plain = Draws((_MIXED, _FLAT), 200, draws.temperature or 1.0, k, p, 61)
        return self.once(_rightly, candidate, plain)


def explain_sampler(subject: Any) -> Diagnosis:
    """Name the catalogued mistakes that explain what the candidate draws."""
    looks = _Looks(subject.candidate)
    special = [
        *(partial(_support, draws=draws) for draws in _special()),
        *(_coldness, _cold_ties, _first_row),
        *(partial(_scripted, ones=ones) for ones in (False, True)),
        *(partial(_relation, twos=twos) for twos in (False, True)),
        _source,
        *(partial(_shape, size=size) for size in (1, 2)),
        *(partial(_writes, settings=each) for each in ((0.5, None, None), (1.0, 2, 0.9))),
        _tail,
    ]
    probes = [Probe(partial(_followed, draws=draws)) for draws in _ordinary()]
    probes += [Probe(look, core=False) for look in special]
    watched = [Probe(partial(looks.at, probe.look), probe.core) for probe in probes]
    return diagnose(subject.candidate, SAMPLER_MISTAKES, watched, mistaken_sampler(), _KNOWN)


def _ordinary() -> list[Draws]:
    """Rows of two kinds in turn, and settings in which two people's mistakes agree."""
    settings = [
        *((1.0, None, None), (0.5, None, None), (2.0, None, None)),
        *((1.0, 2, None), (1.0, None, 0.73), (1.0, None, 0.5), (0.4, None, 0.85)),
        *((1.0, 3, 0.4), (1.0, 3, 0.7), (1.0, 2, 0.95)),
    ]
    draws = [Draws((_MIXED, _FLAT), 400, *each, seed=40 + n) for n, each in enumerate(settings)]
    return [*draws, Draws(((2.2, 0.0),), 1200, seed=58), _SOME]


def _special() -> list[Draws]:
    """Ties, where the filters must choose, and a sum that meets top_p exactly."""
    ties, pairs = (0.5, 2.0, 2.0, 2.0), (1.5, 0.5, 1.5, 0.5)
    draws = [Draws((ties,), 100, 1.0, 2), Draws((pairs,), 100, 1.0, 3)]
    draws += [Draws((pairs,), 100, 1.0, None, 0.3), Draws((ties,), 100, 1.0, None, 0.5)]
    return [*draws, Draws(((0.0,) * 8,), 200, 1.0, None, 0.25)]


def _seen(sample: Any, draws: Draws, rng: np.random.Generator | None = None) -> np.ndarray:
    result = draws.fresh(rng).to(sample)
    ids = np.asarray(result.detach().cpu().numpy() if isinstance(result, torch.Tensor) else result)
    if ids.size != len(draws.rows) * draws.repeats or ids.dtype.kind not in "iu":
        raise TypeError("not one id for each row")
    return ids.reshape(-1).astype(np.int64)


def _followed(sample: Any, looks: _Looks | None, draws: Draws) -> list[Any]:
    """For each row the known distribution that its counts follow; else the counts in tenths."""
    ids, told = _seen(sample, draws), []
    for place, right in enumerate(_right(draws)):
        mine = ids[place :: len(draws.rows)]
        if mine.min() < 0 or mine.max() >= len(right):
            return ["ids out of range"]
        if (mine == mine[0]).all() and max(right) < 0.9:
            few = replace(draws, repeats=1)
            fresh = [_seen(sample, few, np.random.default_rng(n)) for n in range(12)]
            if len({int(each[place]) for each in fresh}) > 1:
                told.append("one draw for all rows")
                continue
        told.append(_nearest(draws, place, np.bincount(mine, minlength=len(right))))
    return told


def _nearest(draws: Draws, place: int, counts: np.ndarray) -> list[float]:
    """The right one has the first say: a mistake shows where it cannot be right."""
    right = _right(draws)[place]
    if surprises(counts, draws.repeats, right).max() < 10:
        return right
    known = _known(draws)[place]
    fits = surprises(counts, draws.repeats, known).max(-1)
    if fits.min() < 10:
        return known[fits.argmin()].tolist()
    return [round(10 * int(count) / draws.repeats) for count in counts]


@lru_cache
def _right(draws: Draws) -> list[list[float]]:
    """What each row must follow."""
    return [by_loops(row, **draws.settings()) for row in draws.rows]


@lru_cache
def _known(draws: Draws) -> list[np.ndarray]:
    """For each row: the right distribution, the catalogue's, those with another row's tokens."""
    makers = [each.make for each in SAMPLING_MISTAKES if isinstance(each.make, partial)]
    known, rights = [], _right(draws)
    for row, right in zip(draws.rows, rights, strict=True):
        found = [right, by_loops(row, 1.0, 1)]
        found += [make()(list(row), **draws.settings()) for make in makers]
        found += [noisy(right, below) for below in BELOW.values()]
        whole = by_loops(row, draws.temperature)
        for other in rights:
            shared = [prob if kept else 0.0 for prob, kept in zip(whole, other, strict=True)]
            found.append([prob / sum(shared) for prob in shared])
        unlike: list[np.ndarray] = []
        for probs in map(np.array, found):
            proper = abs(probs.sum() - 1) < 1e-9
            if proper and all(abs(probs - each).max() > 1e-6 for each in unlike):
                unlike.append(probs)
        known.append(np.array(unlike))
    return known


def _rightly(sample: Any, draws: Draws) -> bool:
    """Whether every row follows what it must."""
    try:
        return _followed(sample, None, draws) == _right(draws)
    except Exception:
        return False


def _support(sample: Any, looks: _Looks, draws: Draws) -> list[int] | str:
    """The ids that come at all; each of the right ones is likely enough to come."""
    if not looks.usual(draws, sample):
        return _ORDINARY_FAULT
    return sorted(set(_seen(sample, draws).tolist()))


def _coldness(sample: Any, looks: _Looks) -> str:
    """Temperature 0, no ties: greedy, drawn, or neither."""
    draws = Draws((_MIXED, _FLAT), 40, 0.0)
    if not looks.usual(draws, sample):
        return _ORDINARY_FAULT
    try:
        ids = _seen(sample, draws)
    except Exception:
        return "broken"
    if ids.tolist() == [1, 1] * 40:  # the highest of each
        return "greedy"
    return "drawn" if len(set(ids[::2].tolist())) > 1 else "broken"


def _cold_ties(sample: Any, looks: _Looks) -> list[str] | str:
    """Temperature 0: which of the equal, and of the almost equal logits come."""
    if looks.once(_coldness, sample, looks) != "greedy":
        return "not greedy anyway"
    told = []
    for near in (0.0, 2.0**-20):
        draws = Draws(((1.0, 2.0, 0.5, 2.0 + near, 2.0),), 60, 0.0)
        ids = set(_seen(sample, draws).tolist())
        told.append(str(min(ids)) if len(ids) == 1 else "several")
    return told


def _first_row(sample: Any, looks: _Looks) -> list[bool] | str:
    """Whether removed ids come in the first and in the second row of small batches."""
    row = (0.2, 0.0, 0.1, -0.1, -0.2, 0.3)
    draws = Draws((row, row), 1, 1.0, 2, None, 62)
    if not looks.usual(draws, sample):
        return _ORDINARY_FAULT
    rng = draws.generator()
    seen = np.array([_seen(sample, draws, rng) for _ in range(40)])
    return [bool(set(ids) - {0, 5}) for ids in seen.T.tolist()]


def _scripted(sample: Any, looks: _Looks, ones: bool) -> list[str] | str:
    """What comes when a draw lies at an end of its range: a kept id, a removed one, or none."""
    first, inner = (0.0, 0.0, 1.0, 0.0, 1.0, 1.0), (0.0, 1.0, 1.0, 1.0, 0.0, 0.0)
    rows = [((first, first, *(inner,) * 4), 3)]
    rows += [(((-1.0, *(0.0,) * kept, -1.0),) * 6, kept) for kept in (6, 9, 10, 12) if ones]
    told = []
    for batch, kept in rows:
        scripted = Scripted(batch, 1, 1.0, kept, None, 63, ones=ones)
        for draws in (Draws(batch, 20, 1.0, kept, None, 64), scripted):
            try:
                ids = _seen(sample, draws)
            except Exception:
                return "broken" if draws is scripted else _ORDINARY_FAULT
            right = [np.argsort(-np.array(row), kind="stable")[:kept].tolist() for row in batch]
            removed = [t for b, t in enumerate(ids.tolist()) if t not in right[b % len(batch)]]
            if removed and draws is not scripted:
                return _ORDINARY_FAULT
            outside = any(token >= len(batch[0]) for token in removed)
            told.append("outside" if outside else "removed" if removed else "kept")
    return [next((word for word in ("outside", "removed") if word in told), "kept")]


def _relation(sample: Any, looks: _Looks, twos: bool) -> str:
    """How equal rows relate: in one large batch, or in many batches of two."""
    row = (0.1, 0.0)
    draws = Draws((row,), 2, seed=65) if twos else Draws((row,), 400, seed=66)
    rng = draws.generator()
    calls = [_seen(sample, draws, rng) for _ in range(60 if twos else 1)]
    pairs = np.concatenate(calls).reshape(-1, 2)
    agreed = int((pairs[:, 0] == pairs[:, 1]).sum())
    if len(pairs) - agreed < 2:
        return "always the same"
    same = sum(prob * prob for prob in by_loops(row))
    if surprises(agreed, len(pairs), same) < 7:
        return "independent"
    return "never the same" if agreed < len(pairs) / 20 else "otherwise related"


def _source(sample: Any, looks: _Looks) -> list[bool]:
    """What decides the ids: rng, the global generators, neither; and whether rng moves on."""
    draws = Draws(((0.0,) * 6,), 40, seed=67)

    def drawn(seed: int, outside: int) -> tuple[list[int], ...]:
        seed_globals(outside)
        rng = np.random.default_rng(seed)
        return tuple(_seen(sample, draws, rng).tolist() for _ in range(2))

    first, again, other, global_one = drawn(1, 5), drawn(1, 5), drawn(2, 5), drawn(1, 6)
    moves = first[0] != first[1]
    return [first == again, first == other, first == global_one, moves]


def _shape(sample: Any, looks: _Looks, size: int) -> list[int] | str:
    draws = Draws((_MIXED,), size, 0.7, 3)
    if not looks.usual(draws, sample):
        return _ORDINARY_FAULT
    return list(np.shape(draws.fresh().to(sample)))


def _writes(sample: Any, looks: _Looks, settings: tuple[Any, ...]) -> bool:
    """Whether the call writes into the caller's logits."""
    draws = Draws((_MIXED, _FLAT), 2, *settings)
    given = draws.fresh()
    given.to(sample)
    return not np.array_equal(given.values["logits"], draws.logits())


def _tail(sample: Any, looks: _Looks) -> str:
    """Whether thousands of improbable tokens come as often as together they must."""
    if not looks.once(_rightly, sample, _SOME):
        return _ORDINARY_FAULT
    draws = Draws(((8.0, *(0.0,) * 1999),), 60, seed=68)  # each adds less than half can hold
    ids = _seen(sample, draws)
    if ids.max() >= 2000:
        return "outside"
    return "kept" if 6 <= (ids > 0).sum() <= 54 else "lost"
