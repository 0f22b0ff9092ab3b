"""Name the catalogued mistakes that a wrong multi-head attention equals on fresh inputs."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.candidate import ContractSubject, is_forward_only
from course_lib.contracts.engine.diagnosis import Diagnosis, Probe, diagnose
from course_lib.contracts.engine.mistake import Mistake
from course_lib.contracts.heads._multi_head_case import HeadsCase, heads_by_library, heads_case
from course_lib.contracts.heads.mistakes import MULTI_HEAD_MISTAKES
from course_lib.contracts.heads.steps import real_pairs

_HEADS_SHIFT = 10.0  # numbers near 10 are compared to about 1e-5: float32 is right enough
_HEADS_MIXED_ROWS = ("softmax_over_queries", "softmax_over_batch", "heads_joined_by_view")


@dataclass(frozen=True)
class HeadsProbe:
    """A call, the rows that are looked at, what they must be, and the mean of all the values."""

    case: HeadsCase
    rows: Tensor
    truth: Tensor
    mean: Tensor


def explain_heads(subject: ContractSubject) -> Diagnosis:
    """Watch the candidate and every catalogued mistake in the same calls, and compare."""
    lengths = [[1, 1, 1, 1, 0, 0], [1, 1, 0, 1, 1, 0]]  # the last token is padding in every item
    left = [[0, 0, 1, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1, 0]]  # so the first
    mixed = [[1, 1, 1, 1, 1, 1, 0, 0], [0, 1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 1, 1, 1]]
    many = heads_case(903, 3, 9, 4, 3)
    ordinary = [
        heads_case(908, 3, 8, 3, 2, valid=mixed, causal=True),
        many,
        heads_case(900, 3, 5, 2, 3),
        heads_case(901, 2, 3, 1, 4),
        heads_case(904, 2, 11, 3, 2, causal=True),
        replace(heads_case(905, 2, 10, 2, 3, causal=True), token_valid=None),
        heads_case(906, 2, 6, 2, 3, valid=lengths),
        heads_case(907, 3, 7, 2, 2, valid=left),
        heads_case(909, 3, 7, 2, 3, valid=left[::-1], causal=True),
    ]
    probes = [Probe(partial(_heads_read, probe=_heads_probe(case))) for case in ordinary]
    special = [_heads_finite, _heads_rounding, _heads_overwritten, _heads_memory, _heads_training]
    probes += [Probe(look, core=False) for look in special]
    low = ordinary[7]  # opposite projections and a faint padding: of all scores its are the highest
    x = torch.where(low.valid.unsqueeze(-1), 1 + 0.1 * low.x, 0.01)
    low = replace(low, x=x, w_k=-low.w_q)
    high = replace(many, w_q=many.w_q * 60, w_k=many.w_k * 60)
    sized = [replace(low, w_k=size * low.w_k) for size in (1e6, 1e12)]
    for easy, hard in ((low, sized[0]), (low, sized[1]), (many, high)):
        calls = [_heads_probe(easy), _heads_probe(hard)]
        probes.append(Probe(partial(_heads_verdict, probes=calls), core=False))
    candidate = subject.candidate
    named = diagnose(candidate, MULTI_HEAD_MISTAKES, probes, _heads_reference)
    for others in (_heads_where_padding_is_mute(), _heads_where_hidden_columns_are_nan()):
        named = named if named.names else diagnose(candidate, others, probes, _heads_reference)
    return named


def _heads_where_padding_is_mute() -> list[Mistake]:
    """The mistakes that mix rows, made where padding may not ask: other numbers, as usual a way."""
    return [
        replace(mistake, make=partial(mistake.make, real=real_pairs))
        for mistake in MULTI_HEAD_MISTAKES
        if mistake.name in _HEADS_MIXED_ROWS
    ]


def _heads_where_hidden_columns_are_nan() -> list[Mistake]:
    """The softmax along a wrong axis, made as most people would: of nothing but -inf it is NaN."""
    axes = {"softmax_over_queries": -2, "softmax_over_heads": 1, "softmax_over_batch": 0}
    return [
        replace(
            mistake, make=partial(mistake.make, weigh=partial(_heads_along, axes[mistake.name]))
        )
        for mistake in MULTI_HEAD_MISTAKES
        if mistake.name in axes
    ]


def _heads_along(axis: int, scores: Tensor, keep: Tensor) -> Tensor:
    return scores.masked_fill(~keep, -math.inf).softmax(axis)


def _heads_probe(case: HeadsCase) -> HeadsProbe:
    """Of a causal call only the rows that have real tokens before and after them."""
    counted, rows = case.valid.cumsum(1), case.valid
    if case.causal:
        rows = rows & (counted > 1) & (counted < counted[:, -1:])
    mean = (case.x @ case.w_v).mean(1, keepdim=True) @ case.w_o
    return HeadsProbe(case, rows, heads_by_library(case)[rows], mean.expand_as(case.x)[rows])


def _heads_reference(*args: Any, causal: bool, token_valid: Tensor | None) -> Tensor:
    return heads_by_library(HeadsCase(*args, causal, token_valid)).to(args[0].dtype)


def _heads_output(multi_head: Callable[..., Any], case: HeadsCase) -> Tensor:
    """Call with copies; a function that knows no token_valid=None gets all True."""
    copies = [value.clone() if isinstance(value, Tensor) else value for value in case.positional]
    valid = None if case.token_valid is None else case.token_valid.clone()
    try:
        output = multi_head(*copies, causal=case.causal, token_valid=valid)
    except Exception:
        if valid is not None:
            raise
        output = multi_head(*copies, causal=case.causal, token_valid=case.valid.clone())
    if output.shape != case.x.shape:
        raise TypeError("another shape")
    return output.detach().double()


def _heads_read(multi_head: Callable[..., Any], probe: HeadsProbe) -> Tensor:
    """What the rows read; one with nothing to read gives zeros, in whatever way it fails.

    Such a row comes as NaN, as zeros, as the mean of all the values or as a ValueError.
    """
    try:
        rows = _heads_output(multi_head, probe.case)[probe.rows]
    except ValueError:
        return torch.zeros_like(probe.truth) + _HEADS_SHIFT
    gap = (rows - probe.truth).abs().max().item()
    if 1e-9 < gap < 0.05 and _heads_rounding(multi_head).startswith("through"):
        rows = probe.truth  # right but for rounding, which another probe sees
    nothing = ~rows.isfinite().all(-1) | ((rows - probe.mean).abs() < 1e-9).all(-1)
    return rows.masked_fill(nothing.unsqueeze(-1), 0.0) + _HEADS_SHIFT


def _heads_verdict(multi_head: Callable[..., Any], probes: list[HeadsProbe]) -> list[str]:
    """In words, for calls on which only right or wrong is worth comparing; the first is easy."""
    words = []
    for probe in probes:
        rows = _heads_output(multi_head, probe.case)[probe.rows]
        right = torch.allclose(rows, probe.truth, rtol=1e-4, atol=1e-4)
        words.append("right" if right else "wrong" if rows.isfinite().all() else "not finite")
    return words if words[0] == "right" else ["wrong in any case"]


def _heads_finite(multi_head: Callable[..., Any]) -> str:
    """Whether rows of padding, which may come out as anything finite, are finite.

    Where real rows are not, NaN among the others comes of that.
    """
    left = heads_case(910, 2, 4, 2, 3, valid=[[0, 0, 1, 1], [0, 1, 1, 1]], causal=True)
    right = heads_case(911, 2, 4, 3, 2, valid=[[1, 1, 1, 0], [1, 1, 0, 0]])
    outputs = [_heads_output(multi_head, case) for case in (left, right)]
    for case, output in zip((left, right), outputs, strict=True):
        if not output[_heads_probe(case).rows].isfinite().all():
            return "real rows are not"
    return "finite" if all(bool(each.isfinite().all()) for each in outputs) else "not finite"


def _heads_rounding(multi_head: Callable[..., Any]) -> str:
    """Which narrow type the weights have been through; x and w_v are the identity here."""
    case = heads_case(912, 1, 5, 1, 5)
    one = torch.eye(5, dtype=torch.float64)
    case = replace(case, x=one.unsqueeze(0), w_v=one, w_o=one)
    weights, truth = _heads_output(multi_head, case), heads_by_library(case)
    gap = (weights - truth).abs().max().item()
    for narrow, told in ((torch.bfloat16, "16"), (torch.float16, "16"), (torch.float32, "32")):
        if gap < 8 * torch.finfo(narrow).eps and torch.equal(weights, weights.to(narrow).double()):
            return f"through {told} bits"
    return "right" if gap < 1e-9 else "wrong"


def _heads_overwritten(multi_head: Callable[..., Any]) -> list[str]:
    """Which arguments the call has written into."""
    case = heads_case(913, 2, 4, 2, 3, valid=[[1, 1, 1, 0], [1, 1, 0, 0]])
    names = ("x", "w_q", "w_k", "w_v", "w_o", "token_valid")
    given = replace(case, **{name: getattr(case, name).clone() for name in names})
    multi_head(*given.positional, **given.keywords)
    changed = {n for n in names if not torch.equal(getattr(given, n), getattr(case, n))}
    if "x" in changed and not torch.equal(given.x[case.valid], case.x[case.valid]):
        changed.add("real tokens")
    return sorted({"weights" if name.startswith("w_") else name for name in changed})


def _heads_memory(multi_head: Callable[..., Any]) -> list[Any]:
    """Whether a call gets the padding of an earlier one, or changes the result of that."""
    first = heads_case(914, 2, 12, 2, 2, valid=[[1] * 12, [1] * 9 + [0] * 3])
    other = heads_case(915, 2, 12, 2, 2, valid=[[1] * 10 + [0] * 2, [0] * 2 + [1] * 10])
    result = multi_head(*first.positional, **first.keywords)
    kept = result.detach().clone()
    stale = _heads_probe(replace(other, token_valid=first.token_valid))
    stale = replace(stale, case=other, rows=other.valid & first.valid)
    stale = replace(stale, truth=heads_by_library(replace(other, token_valid=first.valid)))
    stale = replace(stale, truth=stale.truth[stale.rows])
    remembered = _heads_verdict(multi_head, [stale]) == ["right"]
    return [remembered, torch.equal(result.detach().nan_to_num(), kept.nan_to_num())]


def _heads_training(multi_head: Callable[..., Any]) -> str:
    """What the gradients are like, where the output is right."""
    case = heads_case(916, 2, 3, 2, 3, causal=True)
    names = ("x", "w_q", "w_k", "w_v", "w_o")
    given, library = (
        replace(case, **{name: getattr(case, name).clone().requires_grad_() for name in names})
        for _ in range(2)
    )
    if is_forward_only(multi_head, *case.positional, **case.keywords):
        return "right"
    output, truth = multi_head(*given.positional, **given.keywords), heads_by_library(library)
    if not torch.allclose(output.double(), truth, rtol=1e-4, atol=1e-4):
        return "another output"
    if not output.requires_grad:
        return "none"
    weight = torch.linspace(-1, 1, output.numel(), dtype=torch.float64).reshape(output.shape)
    leaves = [getattr(given, name) for name in names]
    got = torch.autograd.grad((output * weight).sum(), leaves, allow_unused=True)
    want = torch.autograd.grad((truth * weight).sum(), [getattr(library, n) for n in names])
    asked = 1 if all(gradient is None for gradient in got[1:]) else len(names)
    wrong = [
        name
        for name, one, right in zip(names[:asked], got, want, strict=False)
        if one is None or not torch.allclose(one.double(), right, rtol=1e-4, atol=1e-4)
    ]
    return "right" if not wrong else f"wrong: {', '.join(wrong)}"
