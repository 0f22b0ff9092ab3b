"""Attention cut into steps, so that a mistake can replace one of them and leave the rest right."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor


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


def mistaken_attention(
    *,
    check: Callable[..., None] | None = None,
    fit: Callable[..., Tensor] | None = None,
    police: Callable[..., None] | None = None,
    widen: Callable[..., Tensor] | None = None,
    product: Callable[..., Tensor] | None = None,
    scale: Callable[..., float] | None = None,
    mask: Callable[..., Tensor] | None = None,
    hide: Callable[..., Tensor] | None = None,
    soften: Callable[..., Tensor] | None = None,
    weigh: Callable[..., Tensor] | None = None,
    mix: Callable[..., Tensor] | None = None,
    finish: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """Attention that is right in every step that is not handed over.

    check(q, k, v) refuses; fit(allowed, shape) -> keep; police(call) refuses empty rows;
    widen(tensor); product(call) -> q·k; scale(call) -> factor; mask(call) -> keep;
    hide(scores, keep, call) -> scores; soften(scores, call) -> weights;
    weigh(weights, keep, call) -> weights; mix(weights, call) -> output; finish(result, call)
    """

    def attention(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        allowed: Tensor | None = None,
        *,
        empty_row: str | None = None,
    ) -> Any:
        (check or check_as_asked)(q, k, v)
        shape = (*_batch_of(q, k, v), q.shape[-2], k.shape[-2])
        keep = torch.ones(shape, dtype=torch.bool)
        if allowed is not None:
            keep = (fit or fit_as_asked)(allowed, shape)
        wide_q, wide_k, wide_v = map(widen or widened, (q, k, v))
        empty = ~keep.any(dim=-1)
        call = MistakenCall(wide_q, wide_k, wide_v, allowed, empty_row, keep, empty, q.dtype)
        (police or refuse_empty_rows)(call)
        scores = (product or products)(call) * (scale or root_scale)(call)
        scores = scores.expand(keep.shape)
        used = keep
        if allowed is not None:
            used = keep if mask is None else mask(call)
            scores = (hide or hidden_by_infinity)(scores, used, call)
        weights = (soften or softmax_or_zero)(scores, call)
        weights = weights if weigh is None else weigh(weights, used, call)
        output = weights @ call.v if mix is None else mix(weights, call)
        result = MistakenResult(output, weights, scores, call.empty)
        return result if finish is None else finish(result, call)

    return attention


def but_for(result: MistakenResult, **fields: Tensor) -> MistakenResult:
    """The same result with other fields."""
    return replace(result, **fields)


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


def _batch_of(q: Tensor, k: Tensor, v: Tensor) -> tuple[int, ...]:
    """The batch axes of q, k and v broadcast together."""
    shapes = [tensor.shape[:-2] for tensor in (q, k, v)]
    if shapes[0] == shapes[1] == shapes[2]:
        return tuple(shapes[0])
    ones = [torch.empty(shape, device="meta") for shape in shapes]
    return tuple((ones[0] + ones[1] + ones[2]).shape)
