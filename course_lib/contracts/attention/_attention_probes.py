"""The calls on which known mistakes of attention show, the ordinary ones first."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from course_lib.contracts.attention._attention_case import (
    AttentionCase,
    attention_inputs,
    normal,
    some_allowed,
)
from course_lib.contracts.attention._attention_looks import (
    look_at_digits,
    look_at_empty_gradient,
    look_at_empty_row,
    look_at_empty_scores,
    look_at_flags,
    look_at_gradients,
    look_at_hidden_gradient,
    look_at_hidden_key,
    look_at_large_row,
    look_at_nan,
    look_at_narrow,
    look_at_output,
    look_at_score_width,
    look_at_scores,
    look_at_sums,
    look_at_training,
    look_at_weights,
    look_whether_answer_is_stale,
    look_whether_argument_changes,
    look_whether_masks_differ,
    look_whether_result_is_overwritten,
)
from course_lib.contracts.engine.diagnosis import Probe


def attention_probes(fields: tuple[str, ...], *, forward_only: bool) -> list[Probe]:
    """Every call to watch, in the order of the clauses; without what the candidate cannot show."""
    special = [
        *_state_probes(),
        *(_looking(look_at_output, case) for case in _key_masks()),
        *(_field_probes() if {"weights", "scores"} <= set(fields) else []),
        *([_looking(look_at_sums, _probe_case(70, 11, 3, 5, 4))] if "weights" in fields else []),
        *(_looking(look_at_empty_row, case) for case in _refused_rows()),
        *_number_probes(fields),
        *([] if forward_only else _gradient_probes()),
        *_empty_row_probes(fields),
        *([] if forward_only else [_looking(look_at_empty_gradient, _with_holes("zero"))]),
        *_strange_mask_probes(),
    ]
    ordinary = [Probe(_looking(look_at_output, case)) for case in _ordinary_cases()]
    return ordinary + [Probe(look, core=False) for look in special]


def _looking(look: Any, case: AttentionCase, **settings: Any) -> partial:
    return partial(look, case=case, **settings)


def _probe_case(seed: int, *sizes: int) -> AttentionCase:
    return AttentionCase(*attention_inputs(1000 + seed, *sizes))


def _ordinary_cases() -> Iterator[AttentionCase]:
    """Small calls; each mask, turned and inverted, leaves every row a key to read.

    Lengths are such as no clause uses, cut down or not: a candidate may remember those.
    """
    sizes = [(12, 11, 5, 2), (11, 11, 3, 2), (12, 13, 5, 4, 2, 2), (1, 12, 3, 5), (11, 13, 7, 7, 3)]
    yield from (_probe_case(10 * n, *each) for n, each in enumerate(sizes))
    i, j = torch.arange(11).unsqueeze(-1), torch.arange(11)
    rows, items = (i + 3 * j) % 5 < 2, torch.stack([(2 * i + j) % 5 < 2, (i + 4 * j) % 7 < 3])
    heads = torch.stack([(3 * i + j) % 7 < 3, rows])
    yield replace(_probe_case(940, 11, 11, 3, 2), allowed=rows)
    yield replace(_probe_case(950, 11, 11, 5, 4, 2, 2), allowed=items.unsqueeze(1))
    yield replace(_probe_case(955, 11, 11, 5, 3, 2, 2), allowed=heads)


def _key_masks() -> Iterator[AttentionCase]:
    """A mask over the keys alone, with one query and with as many queries as keys."""
    yield replace(_probe_case(970, 1, 11, 3, 5), allowed=torch.arange(11).unsqueeze(0) % 3 != 1)
    yield replace(_probe_case(960, 11, 11, 3, 4), allowed=torch.arange(11) % 3 != 1)
    yield replace(_probe_case(965, 11, 11, 3, 2, 2, 3), allowed=some_allowed(36, 2, 1, 1, 11))


def _masked_case() -> AttentionCase:
    allowed = some_allowed(31, 2, 3, 12, 13)
    return replace(_probe_case(20, 12, 13, 5, 2, 2, 3), allowed=allowed)


def _with_holes(policy: str | None, *, everything: bool = False, axes: int = 2) -> AttentionCase:
    """A call with fully masked rows, or with nothing but them."""
    batch = (2, 2) if axes == 4 else ()
    allowed = some_allowed(33, *batch, 11, 14)
    allowed[..., 1, :], allowed[..., 2, :] = False, True
    case = _probe_case(90, 11, 14, 4, 2, *batch)
    return replace(case, allowed=allowed & (not everything), empty_row=policy)


def _refused_rows() -> list[AttentionCase]:
    """Calls that must be errors: with a row to which nothing is open, or with every row so.

    Also with the first row so, and with a key that is hidden from all.
    """
    holes = _with_holes(None)
    first, column = holes.allowed.clone(), holes.allowed.clone()
    first[0], column[:, 0] = False, False
    others = [replace(holes, allowed=mask) for mask in (first, column)]
    return [holes, _with_holes("error"), _with_holes(None, everything=True), *others]


def _large_case() -> AttentionCase:
    """Scores near 800000 in one row, near -800000 in the other."""
    axis = torch.tensor([0.5, -0.5, 0.5, 0.5], dtype=torch.float64)
    signs = torch.tensor([[2.0], [-2.0]], dtype=torch.float64)
    q, k, v = attention_inputs(1110, 2, 3, 4, 2)
    return AttentionCase(signs * axis + 0.5 * q, 4e5 * axis + k, v)


def _hidden_cases(size: float) -> tuple[AttentionCase, AttentionCase]:
    """A hidden key among ordinary scores, and far above (size > 0) or visible ones far below."""
    keys = torch.arange(12) != 1
    q, k, v = attention_inputs(1120, 1, 12, 3, 2)
    large = (keys == (size < 0)).unsqueeze(-1)
    moved = torch.where(large, size * (k.abs() + 1), 0.1 * k)
    return AttentionCase(q, k, v, keys), AttentionCase(q.abs() + 1, moved, v, keys)


def _half_cases() -> Iterator[AttentionCase]:
    """q·k past the largest float16; scores whose differences bfloat16 cannot hold."""
    v = torch.tensor([[1.0, 2], [-3, 0.5], [2, 4]])
    for large, kind in ((140.0, torch.float16), (8.0, torch.bfloat16)):
        q, k = torch.full((2, 5), large), torch.full((3, 5), large)
        q[:, 4], k[:, 4] = torch.tensor([0.5, 1.0]), torch.tensor([0.25, 1.0, -0.375])
        yield AttentionCase(q.to(kind), k.to(kind), v.to(kind))


def _state_probes() -> list[partial]:
    names = ("q", "k", "v", "allowed")
    case, square = _probe_case(40, 11, 12, 4, 5), _probe_case(60, 12, 14, 4, 2)
    masked = replace(_probe_case(30, 11, 12, 5, 3), allowed=some_allowed(32, 11, 12))
    return [
        *(_looking(look_whether_argument_changes, masked, name=name) for name in names),
        _looking(look_whether_answer_is_stale, case),
        _looking(look_whether_result_is_overwritten, case),
        _looking(look_whether_masks_differ, square),
    ]


def _field_probes() -> list[partial]:
    return [_looking(look, _masked_case()) for look in (look_at_weights, look_at_scores)]


def _number_probes(fields: tuple[str, ...]) -> list[partial]:
    """Lengths beyond a block, scores beyond exp, digits, 16 bits, NaN."""
    holes = replace(_probe_case(150, 2, 13, 3, 2), allowed=torch.arange(13) != 1)
    spoiled = holes.v.clone()
    spoiled[1] = math.nan
    narrow = AttentionCase(*(tensor.float() for tensor in attention_inputs(1140, 4, 7, 67, 5)))
    halves = list(_half_cases())
    looks = [_looking(look_at_output, case) for case in (_probe_case(80, 2, 133, 3, 2),)]
    large = _large_case()
    small = replace(large, k=normal(1112, 3, 4))
    looks += [_looking(look_at_large_row, large, ordinary=small, row=row) for row in (0, 1)]
    for size in (3e3, -1e6, -1e15, -1e60):
        case, extreme = _hidden_cases(size)
        looks += [_looking(look_at_hidden_key, case, large=extreme)]
    looks += [_looking(look_at_narrow, case) for case in (narrow, *halves)]
    looks += [_looking(look_at_digits, _probe_case(130, 2, 31, 17, 3))]
    if "scores" in fields:
        looks += [_looking(look_at_score_width, replace(halves[0], q=halves[0].q / 64))]
    return [*looks, _looking(look_at_nan, replace(holes, v=spoiled))]


def _gradient_probes() -> list[partial]:
    masked = replace(_probe_case(180, 11, 12, 5, 2), allowed=some_allowed(34, 11, 12))
    return [
        _looking(look_at_training, _probe_case(170, 4, 5, 3, 6, 2)),
        _looking(look_at_gradients, masked),
        _looking(look_at_hidden_gradient, _hidden_cases(3e3)[1]),
    ]


def _empty_row_probes(fields: tuple[str, ...]) -> list[partial]:
    holes = [_with_holes("zero"), _with_holes("zero", axes=4)]
    looks = [_looking(look_at_empty_row, case) for case in holes]
    if "empty_rows" in fields:
        looks += [_looking(look_at_flags, case) for case in (_masked_case(), holes[-1])]
    if "scores" in fields:
        looks += [_looking(look_at_empty_scores, holes[-2])]
    return looks


def _strange_mask_probes() -> list[partial]:
    """Masks of numbers, and masks that are larger than the result."""
    plain, allowed = _probe_case(190, 11, 12, 5, 2), some_allowed(35, 11, 12)
    masks = [allowed.double(), allowed.long()]
    for shape in ((12, 14), (3, 11, 12)):
        large = torch.ones(shape, dtype=torch.bool)
        large[..., 0] = False
        masks.append(large)
    return [_looking(look_at_output, replace(plain, allowed=mask)) for mask in masks]
