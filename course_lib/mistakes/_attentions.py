"""The mistaken attentions themselves: each is right but for the one thing its docstring says."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class MistakenResult:
    """The four fields of attention, whatever is wrong with them."""

    output: Tensor
    weights: Tensor
    scores: Tensor
    empty_rows: Tensor


def attention_scaled_by_values(
    q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None = None, *, empty_row: str = "error"
) -> MistakenResult:
    """Divide by √d_v: right whenever keys and values happen to be equally wide."""
    q, k, v, allowed, empty_rows = _mistaken_inputs(q, k, v, allowed, empty_row)
    scores = (q @ k.mT / math.sqrt(v.shape[-1])).expand(allowed.shape)
    scores = scores.masked_fill(~allowed, -math.inf)
    weights = _mistaken_softmax(scores, empty_rows)
    return MistakenResult(weights @ v, weights, scores, empty_rows)


def attention_over_queries(
    q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None = None, *, empty_row: str = "error"
) -> MistakenResult:
    """Take the softmax along dim=-2: every key shares itself out among the queries."""
    q, k, v, allowed, empty_rows = _mistaken_inputs(q, k, v, allowed, empty_row)
    scores = _mistaken_scores(q, k, allowed)
    weights = scores.softmax(dim=-2).nan_to_num(0.0)
    return MistakenResult(weights @ v, weights, scores, empty_rows)


def attention_mask_inverted(
    q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None = None, *, empty_row: str = "error"
) -> MistakenResult:
    """Read True as "hide this", the convention of other libraries."""
    q, k, v, keep, empty_rows = _mistaken_inputs(q, k, v, allowed, empty_row)
    scores = _mistaken_scores(q, k, keep if allowed is None else ~keep)
    weights = _mistaken_softmax(scores, empty_rows | (scores == -math.inf).all(dim=-1))
    return MistakenResult(weights @ v, weights, scores, empty_rows)


def attention_mask_added(
    q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None = None, *, empty_row: str = "error"
) -> MistakenResult:
    """Add the bool mask to the scores: 0 and 1 hide nothing."""
    q, k, v, keep, empty_rows = _mistaken_inputs(q, k, v, allowed, empty_row)
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).expand(keep.shape)
    scores = scores if allowed is None else scores + keep
    weights = _mistaken_softmax(scores, empty_rows)
    return MistakenResult(weights @ v, weights, scores, empty_rows)


def attention_masked_after_softmax(
    q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None = None, *, empty_row: str = "error"
) -> MistakenResult:
    """Zero the hidden weights after the softmax: what is left no longer sums to 1."""
    q, k, v, allowed, empty_rows = _mistaken_inputs(q, k, v, allowed, empty_row)
    raw = (q @ k.mT / math.sqrt(q.shape[-1])).expand(allowed.shape)
    weights = raw.softmax(dim=-1) * allowed
    return MistakenResult(weights @ v, weights, raw.masked_fill(~allowed, -math.inf), empty_rows)


def attention_mask_skipped(
    q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None = None, *, empty_row: str = "error"
) -> MistakenResult:
    """Take a single query for the last one, which "may read everything anyway"."""
    q, k, v, allowed, empty_rows = _mistaken_inputs(q, k, v, allowed, empty_row)
    read = torch.ones_like(allowed) if q.shape[-2] == 1 else allowed
    scores = _mistaken_scores(q, k, read)
    weights = _mistaken_softmax(scores, empty_rows)
    return MistakenResult(weights @ v, weights, scores, empty_rows)


def attention_filled_finitely(
    q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None = None, *, empty_row: str = "error"
) -> MistakenResult:
    """Fill masked scores with -1e9: small enough, until the visible ones are smaller."""
    q, k, v, allowed, empty_rows = _mistaken_inputs(q, k, v, allowed, empty_row)
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).expand(allowed.shape)
    scores = scores.masked_fill(~allowed, -1e9)
    weights = _mistaken_softmax(scores, empty_rows)
    return MistakenResult(weights @ v, weights, scores, empty_rows)


def attention_overflowing(
    q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None = None, *, empty_row: str = "error"
) -> MistakenResult:
    """Take exp of the scores as they are: infinity beyond 709 in float64, beyond 88 in float32."""
    q, k, v, allowed, empty_rows = _mistaken_inputs(q, k, v, allowed, empty_row)
    scores = _mistaken_scores(q, k, allowed)
    parts = scores.exp()
    weights = parts / parts.sum(dim=-1, keepdim=True).masked_fill(empty_rows[..., None], 1.0)
    return MistakenResult(weights @ v, weights, scores, empty_rows)


def attention_mixed_transposed(
    q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None = None, *, empty_row: str = "error"
) -> MistakenResult:
    """Mix the values by the transposed weights, which fits when there are as many of each."""
    q, k, v, allowed, empty_rows = _mistaken_inputs(q, k, v, allowed, empty_row)
    scores = _mistaken_scores(q, k, allowed)
    weights = _mistaken_softmax(scores, empty_rows)
    square = weights.shape[-1] == weights.shape[-2]
    return MistakenResult((weights.mT if square else weights) @ v, weights, scores, empty_rows)


def attention_silent_on_empty_rows(
    q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None = None, *, empty_row: str = "zero"
) -> MistakenResult:
    """Return zeros for a row with nothing to read unless an error is asked for."""
    q, k, v, allowed, empty_rows = _mistaken_inputs(q, k, v, allowed, empty_row)
    scores = _mistaken_scores(q, k, allowed)
    weights = _mistaken_softmax(scores, empty_rows)
    return MistakenResult(weights @ v, weights, scores, empty_rows)


def attention_scaling_in_place(
    q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None = None, *, empty_row: str = "error"
) -> MistakenResult:
    """Scale q itself, so that every further call with the same tensor scales it again."""
    scaled = q.detach().mul_(1 / math.sqrt(q.shape[-1]))
    q, k, v, allowed, empty_rows = _mistaken_inputs(scaled, k, v, allowed, empty_row)
    scores = (q @ k.mT).expand(allowed.shape).masked_fill(~allowed, -math.inf)
    weights = _mistaken_softmax(scores, empty_rows)
    return MistakenResult(weights @ v, weights, scores, empty_rows)


def attention_with_dropout(
    q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None = None, *, empty_row: str = "error"
) -> MistakenResult:
    """Drop weights in every call: a plain function does not know about eval()."""
    q, k, v, allowed, empty_rows = _mistaken_inputs(q, k, v, allowed, empty_row)
    scores = _mistaken_scores(q, k, allowed)
    weights = torch.nn.functional.dropout(_mistaken_softmax(scores, empty_rows), p=0.1)
    return MistakenResult(weights @ v, weights, scores, empty_rows)


def _mistaken_inputs(
    q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None, empty_row: str
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """What all the mistaken attentions still do right: refuse, widen and broadcast."""
    if not all(bool(tensor.isfinite().all()) for tensor in (q, k, v)):
        raise ValueError("q, k and v must be finite")
    rows = q[..., :1] * 0 + (k[..., :1] * 0).sum(dim=-2, keepdim=True)
    joint = rows + (v[..., :1] * 0).sum(dim=-2, keepdim=True)  # [..., T_q, 1], jointly broadcast
    shape = (*joint.shape[:-1], k.shape[-2])
    keep = torch.ones((), dtype=torch.bool) if allowed is None else allowed
    if keep.dtype != torch.bool:
        raise TypeError(f"allowed must be bool, got {keep.dtype}")
    try:
        keep = keep.expand(shape)
    except RuntimeError:
        raise ValueError(f"allowed {list(keep.shape)} does not fit {list(shape)}") from None
    empty_rows = ~keep.any(dim=-1)
    if empty_row == "error" and bool(empty_rows.any()):
        raise ValueError("a query row is fully masked")
    narrow = (torch.float16, torch.bfloat16)
    q, k, v = (tensor.float() if tensor.dtype in narrow else tensor for tensor in (q, k, v))
    return q, k, v, keep, empty_rows


def _mistaken_scores(q: Tensor, k: Tensor, allowed: Tensor) -> Tensor:
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).expand(allowed.shape)
    return scores.masked_fill(~allowed, -math.inf)


def _mistaken_softmax(scores: Tensor, empty_rows: Tensor) -> Tensor:
    """The softmax over the keys, with zeros for rows that have nothing to read."""
    safe = scores.masked_fill(empty_rows.unsqueeze(-1), 0.0)
    return safe.softmax(dim=-1).masked_fill(empty_rows.unsqueeze(-1), 0.0)
