"""Attention cut into steps, so that a mistake can replace one of them and leave the rest right."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.attention.calls import broadcast_axes


@dataclass(frozen=True)
class MistakenResult:
    """The four fields of attention, whatever is wrong with them."""

    output: Tensor
    weights: Tensor
    scores: Tensor
    empty_rows: Tensor


@dataclass(frozen=True)
class MistakenCall:
    """One call: its arguments, the mask in full as `keep`, and its rows with nothing to read.

    `empty_row` is None where the caller said nothing; `dtype` is that of the q that was given.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    allowed: Tensor | None
    empty_row: str | None
    keep: Tensor
    empty: Tensor
    dtype: torch.dtype

    @property
    def square(self) -> bool:
        """Whether there are as many queries as keys, so that one passes for the other."""
        return self.q.shape[-2] == self.k.shape[-2]

    @property
    def turned(self) -> Tensor:
        """The mask with queries and keys exchanged, where that fits."""
        return self.keep.mT if self.square else self.keep


def check_as_asked(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Refuse NaN and infinities."""
    if not all(bool(tensor.isfinite().all()) for tensor in (q, k, v)):
        raise ValueError("q, k and v must be finite")


def fit_as_asked(allowed: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Broadcast a bool mask to the shape of the scores; refuse any other."""
    if allowed.dtype != torch.bool:
        raise TypeError(f"allowed must be bool, got {allowed.dtype}")
    try:
        return allowed.expand(shape)
    except RuntimeError:
        raise ValueError(f"allowed {list(allowed.shape)} does not fit {list(shape)}") from None


def refuse_empty_rows(call: MistakenCall) -> None:
    """Refuse a fully masked row unless zeros are asked for."""
    if call.empty_row != "zero" and bool(call.empty.any()):
        raise ValueError("a query row is fully masked")


def widened(tensor: Tensor) -> Tensor:
    """Sixteen bits become thirty-two."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def products(call: MistakenCall) -> Tensor:
    """Every query with every key."""
    return call.q @ call.k.mT


def root_scale(call: MistakenCall) -> float:
    """The factor 1/√d_k."""
    return 1 / math.sqrt(call.q.shape[-1])


def plain_scores(call: MistakenCall) -> Tensor:
    """The scores as they should be but for the mask."""
    return (products(call) * root_scale(call)).expand(call.keep.shape)


def unmasked_weights(call: MistakenCall) -> Tensor:
    """The weights as they are where nothing but an empty row is hidden."""
    return without_empty(plain_scores(call).softmax(dim=-1), call)


def hidden_by_infinity(scores: Tensor, keep: Tensor, call: MistakenCall) -> Tensor:
    """Scores with -inf where a key is hidden."""
    return scores.masked_fill(~keep, -math.inf)


def softmax_or_zero(scores: Tensor, call: MistakenCall) -> Tensor:
    """The softmax over the keys, with zeros for rows that have nothing to read."""
    nothing = (scores == -math.inf).all(dim=-1, keepdim=True) | call.empty.unsqueeze(-1)
    return scores.masked_fill(nothing, 0.0).softmax(dim=-1).masked_fill(nothing, 0.0)


def without_empty(weights: Tensor, call: MistakenCall) -> Tensor:
    """Zeros in the rows that have nothing to read, whatever stood there."""
    return weights.masked_fill(call.empty.unsqueeze(-1), 0.0)


def shares_of(parts: Tensor, call: MistakenCall) -> Tensor:
    """Each part of its row's sum; an empty row has none, and stays as it is."""
    return parts / parts.sum(dim=-1, keepdim=True).masked_fill(call.empty.unsqueeze(-1), 1.0)


def reporting(
    field: str, make: Callable[[MistakenResult, MistakenCall], Tensor]
) -> dict[str, Callable[..., MistakenResult]]:
    """One field of the result is not what was worked with."""
    return {"finish": lambda result, call: replace(result, **{field: make(result, call)})}


_RIGHT_STEPS = {
    "check": check_as_asked,
    "fit": fit_as_asked,
    "police": refuse_empty_rows,
    "widen": widened,
    "product": products,
    "scale": root_scale,
    "mask": lambda call: call.keep,
    "hide": hidden_by_infinity,
    "soften": softmax_or_zero,
    "weigh": lambda weights, keep, call: weights,
    "mix": lambda weights, call: weights @ call.v,
    "finish": lambda result, call: result,
}


def mistaken_attention(**steps: Callable[..., Any]) -> Callable[..., Any]:
    """Attention that is right in every step that is not handed over.

    check(q, k, v) refuses; fit(allowed, shape) -> keep; police(call) refuses empty rows;
    widen(tensor); product(call) -> q·k; scale(call) -> factor; mask(call) -> keep;
    hide(scores, keep, call) -> scores; soften(scores, call) -> weights;
    weigh(weights, keep, call) -> weights; mix(weights, call) -> output; finish(result, call)
    """
    step = {**_RIGHT_STEPS, **steps}

    def attention(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        allowed: Tensor | None = None,
        *,
        empty_row: str | None = None,
    ) -> Any:
        step["check"](q, k, v)
        shape = (*broadcast_axes(*(t.shape[:-2] for t in (q, k, v))), q.shape[-2], k.shape[-2])
        masked = allowed is not None
        keep = step["fit"](allowed, shape) if masked else torch.ones(shape, dtype=torch.bool)
        wide, empty = [step["widen"](tensor) for tensor in (q, k, v)], ~keep.any(dim=-1)
        call = MistakenCall(*wide, allowed, empty_row, keep, empty, q.dtype)
        step["police"](call)
        scores = (step["product"](call) * step["scale"](call)).expand(keep.shape)
        if masked:  # a wrong mask must not show where there is none
            keep = step["mask"](call)
            scores = step["hide"](scores, keep, call)
        weights = step["weigh"](step["soften"](scores, call), keep, call)
        output = step["mix"](weights, call)
        return step["finish"](MistakenResult(output, weights, scores, empty), call)

    return attention
