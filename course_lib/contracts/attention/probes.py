"""The calls on which known mistakes of attention show, and which of them a candidate makes."""

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.attention import looks
from course_lib.contracts.attention.attention_mistakes import ATTENTION_MISTAKES
from course_lib.contracts.attention.calls import ask, drawn, normal, some_allowed
from course_lib.contracts.attention.steps import mistaken_attention
from course_lib.contracts.engine.call import Call, same_values
from course_lib.contracts.engine.candidate import is_forward_only
from course_lib.contracts.engine.diagnosis import Diagnosis, Probe, diagnose
from course_lib.contracts.engine.look import probed
from course_lib.contracts.engine.subject import Subject

_special = partial(probed, core=False)


def explain_attention(fields: tuple[str, ...], subject: Subject) -> Diagnosis:
    """Name the catalogued mistakes whose wrong answers the candidate gives too."""
    if _lacks(fields, subject.candidate):
        return Diagnosis()
    probes, known = _probed(fields, forward_only(subject.candidate))
    return diagnose(subject.candidate, ATTENTION_MISTAKES, probes, mistaken_attention(), known)


def forward_only(attention: Any) -> bool:
    """Whether the candidate computes outside torch; few queries, so that results are small."""
    return is_forward_only(attention, *drawn(1, 2, 3, 7, 5).fresh().positional)


def _lacks(fields: tuple[str, ...], attention: Any) -> bool:
    """Whether a plain call gives something that cannot be looked at, and no error."""
    try:
        result = drawn(1200, 2, 3, 5, 4).fresh().to(attention)
    except Exception:
        return False
    if fields == ("output",) and isinstance(result, Tensor):
        return False
    return not all(isinstance(getattr(result, name, None), Tensor) for name in fields)


@lru_cache
def _probed(fields: tuple[str, ...], forward_only: bool) -> tuple[list[Probe], dict[str, Any]]:
    """The probes, and what the mistakes were seen to do in them: that never changes.

    In the order of the clauses; without what the candidate cannot show.
    """
    special = [
        *_state(),
        *_special(*_key_masks(), look=looks.at_output),
        *_reported(fields),
        *_special(*_refused_rows(), look=looks.at_empty_row),
        *_numbers(fields),
        *([] if forward_only else _gradients()),
        *_empty_rows(fields),
        *([] if forward_only else _special(_holes("zero"), look=looks.finite_gradients)),
        *_special(*_strange_masks(), look=looks.at_output),
    ]
    return [*probed(*_ordinary(), look=looks.at_output), *special], {}


def _ordinary() -> list[Call]:
    """Small calls; each mask, turned and inverted, leaves every row a key to read.

    Lengths are such as no clause uses, cut down or not: a candidate may remember those.
    """
    sizes = [(12, 11, 5, 2), (11, 11, 3, 2), (12, 13, 5, 4, 2, 2), (1, 12, 3, 5), (11, 13, 7, 7, 3)]
    i, j = torch.arange(11).unsqueeze(-1), torch.arange(11)
    rows, items = (i + 3 * j) % 5 < 2, torch.stack([(2 * i + j) % 5 < 2, (i + 4 * j) % 7 < 3])
    heads = torch.stack([(3 * i + j) % 7 < 3, rows])
    return [
        *(drawn(1000 + 10 * n, *each) for n, each in enumerate(sizes)),
        drawn(1940, 11, 11, 3, 2, allowed=rows),
        drawn(1950, 11, 11, 5, 4, 2, 2, allowed=items.unsqueeze(1)),
        drawn(1955, 11, 11, 5, 3, 2, 2, allowed=heads),
    ]


def _written_into(name: str) -> Callable[[Call, Any], bool]:
    """A look: whether a call writes into this argument."""

    def look(call: Call, attention: Any) -> bool:
        given = call.fresh()
        given.to(attention)
        return not same_values(given.values[name], call.args[name])

    return look


def _stale(call: Call, attention: Any) -> bool:
    """Whether new numbers in the same tensors get the old answer."""
    given = call.fresh()
    first = looks.output_of(given.to(attention)).clone()
    for name, before in call.args.items():
        given.values[name].copy_(before.flip(0) + 1)
    return torch.equal(looks.output_of(given.to(attention)), first)


def _overwritten(call: Call, attention: Any) -> bool:
    """Whether a later call changes an earlier result."""
    first = looks.output_of(looks.see(call, attention))
    kept = first.clone()
    looks.see(call.but(q=-call.q, v=2 * call.v), attention)
    return not torch.equal(first, kept)


def _masks_differ(call: Call, attention: Any) -> bool:
    """Whether a second mask of the same shape is taken for the first."""
    ones = torch.ones(call.q.shape[-2], call.k.shape[-2], dtype=torch.bool)
    first, second = (
        looks.output_of(looks.see(call.but(allowed=mask), attention)).clone()
        for mask in (ones.tril(1), ones.triu())
    )
    return not torch.equal(first, second)


def _state() -> list[Probe]:
    call, square = drawn(1040, 11, 12, 4, 5), drawn(1060, 12, 14, 4, 2)
    masked = drawn(1030, 11, 12, 5, 3, allowed=some_allowed(32, 11, 12))
    writes = [_special(masked, look=_written_into(n)) for n in masked.args]
    return [
        *(probe for each in writes for probe in each),
        *_special(call, look=_stale),
        *_special(call, look=_overwritten),
        *_special(square, look=_masks_differ),
    ]


def _key_masks() -> list[Call]:
    """A mask over the keys alone, with one query and with as many queries as keys."""
    return [
        drawn(1970, 1, 11, 3, 5, allowed=torch.arange(11).unsqueeze(0) % 3 != 1),
        drawn(1960, 11, 11, 3, 4, allowed=torch.arange(11) % 3 != 1),
        drawn(1965, 11, 11, 3, 2, 2, 3, allowed=some_allowed(36, 2, 1, 1, 11)),
    ]


def _masked() -> Call:
    return drawn(1020, 12, 13, 5, 2, 2, 3, allowed=some_allowed(31, 2, 3, 12, 13))


def _reported(fields: tuple[str, ...]) -> list[Probe]:
    probes = []
    if {"weights", "scores"} <= set(fields):
        probes += _special(_masked(), look=looks.at_weights)
        probes += _special(_masked(), look=looks.at_scores)
    if "weights" in fields:
        probes += _special(drawn(1070, 11, 3, 5, 4), look=looks.at_sums)
    return probes


def _holes(policy: str | None, *batch: int) -> Call:
    """A call with fully masked rows."""
    allowed = some_allowed(33, *batch, 11, 14)
    allowed[..., 1, :], allowed[..., 2, :] = False, True
    return drawn(1090, 11, 14, 4, 2, *batch, allowed=allowed, empty_row=policy)


def _refused_rows() -> list[Call]:
    """Calls that must be errors: with a row to which nothing is open, or with every row so.

    Also with the first row so, and with a key that is hidden from all.
    """
    holes = _holes(None)
    first, column = holes.allowed.clone(), holes.allowed.clone()
    first[0], column[:, 0] = False, False
    masks = [first & False, first, column]
    return [holes, _holes("error"), *(holes.but(allowed=mask) for mask in masks)]


def _large() -> Call:
    """Scores near 800000 in one row, near -800000 in the other."""
    axis = torch.tensor([0.5, -0.5, 0.5, 0.5], dtype=torch.float64)
    call, signs = drawn(1110, 2, 3, 4, 2), torch.tensor([[2.0], [-2.0]], dtype=torch.float64)
    return call.but(q=signs * axis + 0.5 * call.q, k=4e5 * axis + call.k)


def _hidden(size: float) -> tuple[Call, Call]:
    """A hidden key among ordinary scores, and far above (size > 0) or visible ones far below."""
    keys = torch.arange(12) != 1
    call = drawn(1120, 1, 12, 3, 2, allowed=keys)
    large = (keys == (size < 0)).unsqueeze(-1)
    moved = torch.where(large, size * (call.k.abs() + 1), 0.1 * call.k)
    return call, call.but(q=call.q.abs() + 1, k=moved)


def _halves() -> list[Call]:
    """q·k past the largest float16; scores whose differences bfloat16 cannot hold."""
    v, calls = torch.tensor([[1.0, 2], [-3, 0.5], [2, 4]]), []
    for large, kind in ((140.0, torch.float16), (8.0, torch.bfloat16)):
        q, k = torch.full((2, 5), large), torch.full((3, 5), large)
        q[:, 4], k[:, 4] = torch.tensor([0.5, 1.0]), torch.tensor([0.25, 1.0, -0.375])
        calls.append(ask(q, k, v).of_dtype(kind))
    return calls


def _numbers(fields: tuple[str, ...]) -> list[Probe]:
    """Lengths beyond a block, scores beyond exp, digits, 16 bits, NaN."""
    spoiled = drawn(1150, 2, 13, 3, 2, allowed=torch.arange(13) != 1)
    spoiled.v[1] = math.nan
    probes, halves = _special(drawn(1080, 2, 133, 3, 2), look=looks.at_output), _halves()
    large = _large()
    small = large.but(k=normal(1112, 3, 4))
    for row in (0, 1):
        probes += _special(large, look=looks.at_large_row(small, row))
    for size in (3e3, -1e6, -1e15, -1e60):
        ordinary, far = _hidden(size)
        probes += _special(far, look=looks.at_hidden_key(ordinary))
    probes += _special(
        drawn(1140, 4, 7, 67, 5).of_dtype(torch.float32), *halves, look=looks.at_narrow
    )
    probes += _special(drawn(1130, 2, 31, 17, 3), look=looks.has_digits)
    if "scores" in fields:
        probes += _special(halves[0].but(q=halves[0].q / 64), look=looks.wide_scores)
    return [*probes, *_special(spoiled, look=looks.free_of_nan)]


def _gradients() -> list[Probe]:
    masked = drawn(1180, 11, 12, 5, 2, allowed=some_allowed(34, 11, 12))
    return [
        *_special(drawn(1170, 4, 5, 3, 6, 2), look=looks.at_training),
        *_special(masked, look=looks.at_gradients),
        *_special(_hidden(3e3)[1], look=looks.finite_gradients),
    ]


def _empty_rows(fields: tuple[str, ...]) -> list[Probe]:
    holes = [_holes("zero"), _holes("zero", 2, 2)]
    probes = _special(*holes, look=looks.at_empty_row)
    if "empty_rows" in fields:
        probes += _special(_masked(), holes[-1], look=looks.at_flags)
    if "scores" in fields:
        probes += _special(holes[0], look=looks.hidden_scores)
    return probes


def _strange_masks() -> list[Call]:
    """Masks of numbers, and masks that are larger than the result."""
    plain, allowed = drawn(1190, 11, 12, 5, 2), some_allowed(35, 11, 12)
    masks = [allowed.double(), allowed.long()]
    for shape in ((12, 14), (3, 11, 12)):
        large = torch.ones(shape, dtype=torch.bool)
        large[..., 0] = False
        masks.append(large)
    return [plain.but(allowed=mask) for mask in masks]
