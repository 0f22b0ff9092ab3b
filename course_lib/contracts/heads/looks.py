"""Name the catalogued mistakes that a wrong multi-head attention equals on fresh inputs."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.call import changed
from course_lib.contracts.engine.candidate import is_forward_only
from course_lib.contracts.engine.diagnosis import Diagnosis, Probe, diagnose
from course_lib.contracts.engine.look import outcome
from course_lib.contracts.engine.mistake import Mistake
from course_lib.contracts.engine.subject import Subject
from course_lib.contracts.heads import calls
from course_lib.contracts.heads.calls import TENSORS, WEIGHTS, HeadsCall, by_library, drawn
from course_lib.contracts.heads.mistakes import MULTI_HEAD_MISTAKES
from course_lib.contracts.heads.steps import mistaken_heads, real_pairs

_SHIFT = 10.0  # numbers near 10 are compared to about 1e-5: float32 is right enough
_MIXED_ROWS = ("softmax_over_queries", "softmax_over_batch", "heads_joined_by_view")


@dataclass(frozen=True)
class HeadsProbe:
    """A call, the rows that are looked at, what they must be, and the mean of all the values."""

    call: HeadsCall
    rows: Tensor
    truth: Tensor
    mean: Tensor


@cache
def _probes() -> list[Probe]:
    """The calls to watch, with what is right there; made once, for they are always the same."""
    lengths = [[1, 1, 1, 1, 0, 0], [1, 1, 0, 1, 1, 0]]  # the last token is padding in every item
    left = [[0, 0, 1, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1, 0]]  # so the first
    mixed = [[1, 1, 1, 1, 1, 1, 0, 0], [0, 1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 1, 1, 1]]
    many = drawn(903, 3, 9, 4, 3)
    ordinary = [
        drawn(908, 3, 8, 3, 2, valid=mixed, causal=True),
        many,
        drawn(900, 3, 5, 2, 3),
        drawn(901, 2, 3, 1, 4),
        drawn(904, 2, 11, 3, 2, causal=True),
        drawn(905, 2, 10, 2, 3, causal=True).but(token_valid=None),
        drawn(906, 2, 6, 2, 3, valid=lengths),
        drawn(907, 3, 7, 2, 2, valid=left),
        drawn(909, 3, 7, 2, 3, valid=left[::-1], causal=True),
    ]
    probes = [Probe(partial(_read, probe=_probe(call))) for call in ordinary]
    special = [_finite, _rounding, _overwritten, _memory, _training]
    probes += [Probe(look, core=False) for look in special]
    low = ordinary[7]  # opposite projections and a faint padding: of all scores its are the highest
    x = torch.where(low.valid.unsqueeze(-1), 1 + 0.1 * low.x, 0.01)
    low = low.but(x=x, w_k=-low.w_q)
    high = many.but(w_q=many.w_q * 60, w_k=many.w_k * 60)
    sized = [low.but(w_k=size * low.w_k) for size in (1e6, 1e12)]
    for easy, hard in ((low, sized[0]), (low, sized[1]), (many, high)):
        calls = [_probe(easy), _probe(hard)]
        probes.append(Probe(partial(_verdict, probes=calls), core=False))
    return probes


def explain(subject: Subject) -> Diagnosis:
    """Watch the candidate and every catalogued mistake in the same calls, and compare."""
    probes = _probes()
    candidate, reference = subject.candidate, mistaken_heads()
    named = diagnose(candidate, MULTI_HEAD_MISTAKES, probes, reference)
    for steps in (_WHERE_PADDING_IS_MUTE, _WHERE_HIDDEN_COLUMNS_ARE_NAN):
        named = named if named.names else diagnose(candidate, _also(steps), probes, reference)
    return named


def _along(axis: int) -> dict[str, Callable[[Tensor, Tensor], Tensor]]:
    return {"weigh": lambda scores, keep: scores.masked_fill(~keep, -math.inf).softmax(axis)}


# What mixes rows, made where padding may not ask: other numbers, as usual a way.
_WHERE_PADDING_IS_MUTE = {name: {"real": real_pairs} for name in _MIXED_ROWS}
# The softmax along a wrong axis, made as most people would: of nothing but -inf it is NaN.
_WHERE_HIDDEN_COLUMNS_ARE_NAN = {
    "softmax_over_queries": _along(-2),
    "softmax_over_heads": _along(1),
    "softmax_over_batch": _along(0),
}


def _also(steps: dict[str, dict[str, Any]]) -> list[Mistake]:
    """The mistakes of these names, made with these other steps as well."""
    named = [mistake for mistake in MULTI_HEAD_MISTAKES if mistake.name in steps]
    return [replace(each, make=partial(each.make, **steps[each.name])) for each in named]


def _probe(call: HeadsCall) -> HeadsProbe:
    """Of a causal call only the rows that have real tokens before and after them."""
    counted, rows = call.valid.cumsum(1), call.valid
    if call.causal:
        rows = rows & (counted > 1) & (counted < counted[:, -1:])
    mean = (call.x @ call.w_v).mean(1, keepdim=True) @ call.w_o
    return HeadsProbe(call, rows, by_library(call)[rows], mean.expand_as(call.x)[rows])


def _output(multi_head: Callable[..., Any], call: HeadsCall) -> Tensor:
    """What comes back; a function that knows no token_valid=None gets all True."""
    try:
        output = outcome(call, multi_head)
    except Exception:
        if call.token_valid is not None:
            raise
        output = outcome(call.but(token_valid=call.valid), multi_head)
    if output.shape != call.x.shape:
        raise TypeError("another shape")
    return output.detach().double()


def _read(multi_head: Callable[..., Any], probe: HeadsProbe) -> Tensor:
    """What the rows read; one with nothing to read gives zeros, in whatever way it fails.

    Such a row comes as NaN, as zeros, as the mean of all the values or as a ValueError.
    """
    try:
        rows = _output(multi_head, probe.call)[probe.rows]
    except ValueError:
        return torch.zeros_like(probe.truth) + _SHIFT
    gap = (rows - probe.truth).abs().max().item()
    if 1e-9 < gap < 0.05 and _rounding(multi_head).startswith("through"):
        rows = probe.truth  # right but for rounding, which another probe sees
    nothing = ~rows.isfinite().all(-1) | ((rows - probe.mean).abs() < 1e-9).all(-1)
    return rows.masked_fill(nothing.unsqueeze(-1), 0.0) + _SHIFT


def _verdict(multi_head: Callable[..., Any], probes: list[HeadsProbe]) -> list[str]:
    """In words, for calls on which only right or wrong is worth comparing; the first is easy."""
    words = []
    for probe in probes:
        rows = _output(multi_head, probe.call)[probe.rows]
        right = torch.allclose(rows, probe.truth, rtol=1e-4, atol=1e-4)
        words.append("right" if right else "wrong" if rows.isfinite().all() else "not finite")
    return words if words[0] == "right" else ["wrong in any case"]


@cache
def _sides() -> list[HeadsProbe]:
    """Padding in front of causal rows, and behind."""
    left = drawn(910, 2, 4, 2, 3, valid=[[0, 0, 1, 1], [0, 1, 1, 1]], causal=True)
    return [_probe(left), _probe(drawn(911, 2, 4, 3, 2, valid=[[1, 1, 1, 0], [1, 1, 0, 0]]))]


def _finite(multi_head: Callable[..., Any]) -> str:
    """Whether rows of padding, which may come out as anything finite, are finite.

    Where real rows are not, NaN among the others comes of that.
    """
    outputs = [_output(multi_head, probe.call) for probe in _sides()]
    for probe, output in zip(_sides(), outputs, strict=True):
        if not output[probe.rows].isfinite().all():
            return "real rows are not"
    return "finite" if all(bool(each.isfinite().all()) for each in outputs) else "not finite"


@cache
def _plain() -> HeadsProbe:
    """One head and one item, whose output is the attention weights."""
    one = torch.eye(5, dtype=torch.float64)
    return _probe(drawn(912, 1, 5, 1, 5).but(x=one.unsqueeze(0), w_v=one, w_o=one))


def _rounding(multi_head: Callable[..., Any]) -> str:
    """Which narrow type the weights have been through."""
    probe = _plain()
    weights, truth = _output(multi_head, probe.call)[probe.rows], probe.truth
    gap = (weights - truth).abs().max().item()
    for narrow, told in ((torch.bfloat16, "16"), (torch.float16, "16"), (torch.float32, "32")):
        if gap < 8 * torch.finfo(narrow).eps and torch.equal(weights, weights.to(narrow).double()):
            return f"through {told} bits"
    return "right" if gap < 1e-9 else "wrong"


def _overwritten(multi_head: Callable[..., Any]) -> list[str]:
    """Which arguments the call has written into."""
    call = drawn(913, 2, 4, 2, 3, valid=[[1, 1, 1, 0], [1, 1, 0, 0]])
    given = call.fresh()
    given.to(multi_head)
    told = {"weights" if name in WEIGHTS else name for name in changed(call, given)}
    if "x" in told and not torch.equal(given.values["x"][call.valid], call.x[call.valid]):
        told.add("real tokens")
    return sorted(told)


@cache
def _two_paddings() -> tuple[HeadsCall, HeadsProbe]:
    """A call, and one of the same sizes with what it would give with the padding of the first."""
    first = drawn(914, 2, 12, 2, 2, valid=[[1] * 12, [1] * 9 + [0] * 3])
    other = drawn(915, 2, 12, 2, 2, valid=[[1] * 10 + [0] * 2, [0] * 2 + [1] * 10])
    stale, rows = by_library(other.but(token_valid=first.valid)), other.valid & first.valid
    return first, replace(_probe(other), rows=rows, truth=stale[rows])


def _memory(multi_head: Callable[..., Any]) -> list[Any]:
    """Whether a call gets the padding of an earlier one, or changes the result of that."""
    first, probe = _two_paddings()
    result = outcome(first, multi_head)
    kept = result.detach().clone()
    remembered = _verdict(multi_head, [probe]) == ["right"]
    return [remembered, torch.equal(result.detach().nan_to_num(), kept.nan_to_num())]


@cache
def _lesson() -> tuple[HeadsCall, Tensor, dict[str, Tensor]]:
    """A call with its right output and gradients."""
    call = drawn(916, 2, 3, 2, 3, causal=True)
    return call, by_library(call), calls.gradients(call)


def _training(multi_head: Callable[..., Any]) -> str:
    """What the gradients are like, where the output is right."""
    call, truth, right_ones = _lesson()
    given = call.fresh()
    if is_forward_only(multi_head, *given.positional, **given.keywords):
        return "right"
    given, leaves = call.tracked(TENSORS)
    output = given.to(multi_head)
    if not torch.allclose(output.double(), truth, rtol=1e-4, atol=1e-4):
        return "another output"
    if not output.requires_grad:
        return "none"
    got = torch.autograd.grad((output * calls.direction(call)).sum(), leaves, allow_unused=True)
    # weights that the function copied away are left out
    asked = 1 if all(gradient is None for gradient in got[1:]) else len(TENSORS)
    wrong = [
        name
        for (name, right), one in list(zip(right_ones.items(), got, strict=True))[:asked]
        if one is None or not torch.allclose(one.double(), right, rtol=1e-4, atol=1e-4)
    ]
    return "right" if not wrong else f"wrong: {', '.join(wrong)}"
