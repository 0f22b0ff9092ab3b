"""Attention written right in many ways; the contract must accept every one of them."""

import math
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F


def joint_shape(*shapes):
    return torch.broadcast_tensors(*(torch.empty(shape) for shape in shapes))[0].shape


def opened(q, k, v, allowed, empty_row):
    """Checks and broadcasting that most variants share: wide q, k, v, the mask, the empty rows."""
    if not all(tensor.isfinite().all() for tensor in (q, k, v)):
        raise ValueError("q, k and v must be finite")
    batch = joint_shape(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    full = (*batch, q.shape[-2], k.shape[-2])
    if allowed is None:
        allowed = torch.ones((), dtype=torch.bool)
    if allowed.dtype != torch.bool:
        raise TypeError(f"the mask must be bool, got {allowed.dtype}")
    try:
        keep = allowed.expand(full)
    except RuntimeError as error:
        raise ValueError(f"mask {list(allowed.shape)} does not fit {list(full)}") from error
    empty = ~keep.any(-1)
    if empty_row == "error" and empty.any():
        raise ValueError("fully masked rows")
    q, k, v = (t.float() if t.dtype in (torch.half, torch.bfloat16) else t for t in (q, k, v))
    return q, k, v, keep, empty


def packed(output, weights, scores, empty_rows):
    return SimpleNamespace(output=output, weights=weights, scores=scores, empty_rows=empty_rows)


def by_einsum(q, k, v, allowed=None, *, empty_row="error"):
    q, k, v, keep, empty = opened(q, k, v, allowed, empty_row)
    scores = torch.einsum("...qd,...kd->...qk", q, k) * q.shape[-1] ** -0.5
    scores = scores.expand(keep.shape).masked_fill(~keep, -math.inf)
    safe = scores.masked_fill(empty[..., None], 0.0)
    weights = F.softmax(safe, dim=-1) * ~empty[..., None]
    output = torch.einsum("...qk,...kd->...qd", weights, v)
    return packed(output, weights, scores, empty)


def by_online_softmax(q, k, v, allowed=None, *, empty_row="error", block=16):
    """One pass over blocks of keys with a running maximum and a running sum."""
    q, k, v, keep, empty = opened(q, k, v, allowed, empty_row)
    batch, (t_q, t_k) = keep.shape[:-2], keep.shape[-2:]
    top = q.new_full((*batch, t_q, 1), -math.inf)
    total, mixed = q.new_zeros(*batch, t_q, 1), q.new_zeros(*batch, t_q, v.shape[-1])
    pieces = []
    for start in range(0, t_k, block):
        part = slice(start, start + block)
        piece = q @ k[..., part, :].mT / math.sqrt(q.shape[-1])
        piece = piece.expand(*batch, t_q, piece.shape[-1]).masked_fill(~keep[..., part], -math.inf)
        pieces.append(piece)
        new_top = torch.maximum(top, piece.detach().amax(-1, keepdim=True))
        shift = new_top.masked_fill(new_top == -math.inf, 0.0)
        shrink, grown = (top - shift).exp(), (piece - shift).exp()
        total = total * shrink + grown.sum(-1, keepdim=True)
        mixed = mixed * shrink + grown @ v[..., part, :]
        top = new_top
    scores = torch.cat(pieces, -1)
    safe_total = total.masked_fill(total == 0, 1.0)
    final = top.masked_fill(top == -math.inf, 0.0)
    return packed(mixed / safe_total, (scores - final).exp() / safe_total, scores, empty)


def by_logsumexp(q, k, v, allowed=None, *, empty_row="error"):
    q, k, v, keep, empty = opened(q, k, v, allowed, empty_row)
    raw = (q / math.sqrt(q.shape[-1])) @ k.transpose(-1, -2)
    scores = torch.where(keep, raw, -math.inf)
    usable = torch.where(keep | empty[..., None], raw, -math.inf)
    weights = (usable - torch.logsumexp(usable, -1, keepdim=True)).exp()
    weights = torch.where(empty[..., None], torch.zeros_like(weights), weights)
    return packed(weights @ v, weights, scores, empty)


def by_library(q, k, v, allowed=None, *, empty_row="error"):
    """torch's own function makes the output; the other fields are worked out beside it."""
    q, k, v, keep, empty = opened(q, k, v, allowed, empty_row)
    batch = keep.shape[:-2]
    wide = [t.expand(*batch, *t.shape[-2:]) for t in (q, k, v)]
    output = F.scaled_dot_product_attention(*wide, attn_mask=keep | empty[..., None])
    output = output.masked_fill(empty[..., None], 0.0)
    scores = (wide[0] @ wide[1].mT / q.shape[-1] ** 0.5).masked_fill(~keep, -math.inf)
    weights = scores.softmax(-1).nan_to_num(0.0)
    return packed(output, weights.detach(), scores.detach(), empty)


def by_library_output_only(q, k, v, allowed=None, *, empty_row="error"):
    return by_library(q, k, v, allowed, empty_row=empty_row).output


def by_rows(q, k, v, allowed=None, *, empty_row="error"):
    """A loop over every query of every item; each row is a handful of vector operations."""
    q, k, v, keep, empty = opened(q, k, v, allowed, empty_row)
    batch, (t_q, t_k) = keep.shape[:-2], keep.shape[-2:]
    flat = [t.expand(*batch, *t.shape[-2:]).reshape(-1, *t.shape[-2:]) for t in (q, k, v, keep)]
    outputs, weights, scores = [], [], []
    for q_item, k_item, v_item, keep_item in zip(*flat, strict=True):
        for query, may in zip(q_item, keep_item, strict=True):
            score = (k_item * query).sum(-1) / math.sqrt(q.shape[-1])
            seen = score[may]
            weight = torch.zeros_like(score)
            if len(seen):
                parts = (seen - seen.max()).exp()
                weight = weight.masked_scatter(may, parts / parts.sum())
            outputs.append(weight @ v_item)
            weights.append(weight)
            scores.append(torch.where(may, score, -math.inf))
    shape = (*batch, t_q)
    return packed(
        torch.stack(outputs).reshape(*shape, v.shape[-1]),
        torch.stack(weights).reshape(*shape, t_k),
        torch.stack(scores).reshape(*shape, t_k),
        empty,
    )


def by_keys_first(q, k, v, allowed=None, *, empty_row="error"):
    """Everything the other way round: keys as rows, softmax down the columns, then turned."""
    q, k, v, keep, empty = opened(q, k, v, allowed, empty_row)
    scores = (k @ q.mT).mul(1 / math.sqrt(k.shape[-1])).mT
    scores = scores.expand(keep.shape).where(keep, torch.tensor(-math.inf, dtype=q.dtype))
    columns = scores.mT.masked_fill(empty.unsqueeze(-2), 0.0).softmax(-2)
    weights = columns.masked_fill(~keep.mT, 0.0).mT
    return packed((v.mT @ weights.mT).mT, weights, scores, empty)


def by_additive_bias(q, k, v, allowed=None, *, empty_row="error"):
    q, k, v, keep, empty = opened(q, k, v, allowed, empty_row)
    bias = torch.zeros(keep.shape, dtype=q.dtype).masked_fill(~keep, -math.inf)
    scores = torch.matmul(q, k.mT) / math.sqrt(q.shape[-1]) + bias
    filled = torch.where(empty[..., None], torch.zeros_like(scores), scores)
    weights = torch.log_softmax(filled, -1).exp() * keep
    return packed(weights @ v, weights, scores, empty)


def by_bmm(q, k, v, allowed=None, *, empty_row="error"):
    """All batch axes flattened into one, as old code does it."""
    q, k, v, keep, empty = opened(q, k, v, allowed, empty_row)
    batch = keep.shape[:-2]
    flat = [t.expand(*batch, *t.shape[-2:]).reshape(-1, *t.shape[-2:]) for t in (q, k, v)]
    scores = torch.bmm(flat[0], flat[1].transpose(1, 2)) / math.sqrt(q.shape[-1])
    scores = scores.reshape(keep.shape).masked_fill(~keep, -math.inf)
    top = scores.amax(-1, keepdim=True)
    parts = (scores - top.masked_fill(empty[..., None], 0.0)).exp()
    weights = parts / parts.sum(-1, keepdim=True).masked_fill(empty[..., None], 1.0)
    output = torch.bmm(weights.reshape(-1, *keep.shape[-2:]), flat[2])
    return packed(output.reshape(*batch, *output.shape[-2:]), weights, scores, empty)


def by_recursion(q, k, v, allowed=None, *, empty_row="error"):
    """Peel off one batch axis at a time until two axes are left."""
    q, k, v, keep, empty = opened(q, k, v, allowed, empty_row)
    batch = keep.shape[:-2]
    q, k, v = (t.expand(*batch, *t.shape[-2:]) for t in (q, k, v))
    if batch:
        parts = [
            by_recursion(*each, empty_row=empty_row) for each in zip(q, k, v, keep, strict=True)
        ]
        names = ("output", "weights", "scores", "empty_rows")
        return packed(*(torch.stack([getattr(part, name) for part in parts]) for name in names))
    return by_einsum(q, k, v, keep, empty_row=empty_row)


def always_in_float64(q, k, v, allowed=None, *, empty_row="error"):
    return by_einsum(q.double(), k.double(), v.double(), allowed, empty_row=empty_row)


def narrow_again(q, k, v, allowed=None, *, empty_row="error"):
    """Computed wide; output and weights handed back in the dtype of the input."""
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    result.output, result.weights = result.output.to(q.dtype), result.weights.to(q.dtype)
    return result


def unexpanded(q, k, v, allowed=None, *, empty_row="error"):
    """The flags stay in the mask's own shape, the weights in that of q and k where v is wider."""
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    if allowed is None:
        result.empty_rows = torch.zeros(q.shape[-2], dtype=torch.bool)
        batch = joint_shape(q.shape[:-2], k.shape[:-2])
        result.weights = (q.double() @ k.double().mT / q.shape[-1] ** 0.5).softmax(-1)
        result.weights = result.weights.reshape(*batch, q.shape[-2], k.shape[-2])
    elif allowed.dim() == 2:
        result.empty_rows = (~allowed.any(-1)).expand(q.shape[-2])
    return result


class NumpyAttention(torch.autograd.Function):
    """The whole computation in NumPy, with its own backward pass."""

    @staticmethod
    def forward(ctx, q, k, v, keep):
        scale = 1 / np.sqrt(q.shape[-1])
        ctx.arrays = [t.detach().double().numpy() for t in (q, k, v)]
        a, b, c = ctx.arrays
        scores = np.where(keep.numpy(), a @ b.swapaxes(-1, -2) * scale, -np.inf)
        top = scores.max(-1, keepdims=True)
        parts = np.exp(scores - np.where(np.isfinite(top), top, 0.0))
        total = parts.sum(-1, keepdims=True)
        ctx.weights = parts / np.where(total == 0, 1.0, total)
        ctx.scale, ctx.shapes, ctx.dtype = scale, [t.shape for t in (q, k, v)], q.dtype
        fields = (ctx.weights @ c, ctx.weights, scores)
        tensors = tuple(torch.from_numpy(np.ascontiguousarray(f)).to(q.dtype) for f in fields)
        ctx.mark_non_differentiable(*tensors[1:])
        return tensors

    @staticmethod
    def backward(ctx, grad, _weights, _scores):
        (a, b, c), w, g = ctx.arrays, ctx.weights, grad.double().numpy()
        through = g @ c.swapaxes(-1, -2)
        inner = w * (through - (w * through).sum(-1, keepdims=True)) * ctx.scale
        full = (inner @ b, inner.swapaxes(-1, -2) @ a, w.swapaxes(-1, -2) @ g)
        back = [torch.from_numpy(f).sum_to_size(s) for f, s in zip(full, ctx.shapes, strict=True)]
        return *(t.to(ctx.dtype) for t in back), None


def by_numpy(q, k, v, allowed=None, *, empty_row="error"):
    q, k, v, keep, empty = opened(q, k, v, allowed, empty_row)
    output, weights, scores = NumpyAttention.apply(q, k, v, keep)
    return packed(output, weights, scores.expand(keep.shape), empty)


def outside_torch(q, k, v, allowed=None, *, empty_row="error"):
    """Plain NumPy: right forward, and no gradient can follow."""
    q, k, v, keep, empty = opened(q, k, v, allowed, empty_row)
    a, b, c, m = (np.asarray(t.detach()) for t in (q, k, v, keep))
    scores = np.where(m, a @ b.swapaxes(-1, -2) / np.sqrt(a.shape[-1]), -np.inf)
    top = np.where(empty[..., None], 0.0, scores.max(-1, keepdims=True))
    parts = np.exp(scores - top)
    weights = parts / np.where(empty[..., None], 1.0, parts.sum(-1, keepdims=True))
    fields = (np.asarray(f, dtype=a.dtype) for f in (weights @ c, weights, scores))
    return packed(*(torch.from_numpy(np.ascontiguousarray(f)) for f in fields), empty)


def in_python_floats(q, k, v, allowed=None, *, empty_row="error"):
    """One number at a time, taken out of torch with item()."""
    dtype = q.dtype if q.dtype.itemsize > 2 else torch.float32
    q, k, v, keep, empty = opened(q, k, v, allowed, empty_row)
    batch, (t_q, t_k) = keep.shape[:-2], keep.shape[-2:]
    flat = [t.expand(*batch, *t.shape[-2:]).reshape(-1, *t.shape[-2:]) for t in (q, k, v, keep)]
    outputs, weights, scores = [], [], []
    for q_item, k_item, v_item, keep_item in zip(*(t.tolist() for t in flat), strict=True):
        for query, may in zip(q_item, keep_item, strict=True):
            score = [
                sum(x * y for x, y in zip(query, key, strict=True)) / math.sqrt(len(query))
                if each
                else -math.inf
                for key, each in zip(k_item, may, strict=True)
            ]
            top = max(score) if any(may) else 0.0
            parts = [math.exp(s - top) for s in score]
            weight = [part / (sum(parts) or 1.0) for part in parts]
            columns = zip(*v_item, strict=True)
            outputs.append([sum(w * x for w, x in zip(weight, c, strict=True)) for c in columns])
            weights.append(weight)
            scores.append(score)
    shape = (*batch, t_q)
    made = [torch.tensor(rows, dtype=dtype) for rows in (outputs, weights, scores)]
    widths = (v.shape[-1], t_k, t_k)
    return packed(*(t.reshape(*shape, n) for t, n in zip(made, widths, strict=True)), empty)


def written_plainly(q, k, v, allowed=None, *, empty_row="error"):
    """Everything in one place."""
    if not (q.isfinite().all() and k.isfinite().all() and v.isfinite().all()):
        raise ValueError("q, k and v must be finite")
    shape = joint_shape(q.shape[:-2], k.shape[:-2], v.shape[:-2]) + (q.shape[-2], k.shape[-2])
    keep = torch.ones(shape, dtype=torch.bool)
    if allowed is not None:
        if allowed.dtype != torch.bool:
            raise TypeError("not bool")
        try:
            keep = allowed.expand(shape)
        except RuntimeError:
            raise ValueError("mask too large") from None
    empty = ~keep.any(-1)
    if empty_row == "error" and empty.any():
        raise ValueError("fully masked row")
    wide = torch.promote_types(q.dtype, torch.float32)
    scores = q.to(wide) @ k.to(wide).mT / math.sqrt(q.shape[-1])
    scores = scores.expand(shape).masked_fill(~keep, -math.inf)
    weights = scores.masked_fill(empty[..., None], 0.0).softmax(-1)
    weights = weights.masked_fill(empty[..., None], 0.0)
    return packed(weights @ v.to(wide), weights, scores, empty)


def by_vmap(q, k, v, allowed=None, *, empty_row="error"):
    """One head at a time, mapped over a single batch axis."""
    q, k, v, keep, empty = opened(q, k, v, allowed, empty_row)
    batch = keep.shape[:-2]

    def one(q, k, v, keep):
        scores = torch.where(keep, q @ k.T * q.shape[-1] ** -0.5, -math.inf)
        none = ~keep.any(-1, keepdim=True)
        weights = torch.softmax(torch.where(none, 0.0, scores), -1) * ~none
        return weights @ v, weights, scores

    flat = [t.expand(*batch, *t.shape[-2:]).reshape(-1, *t.shape[-2:]) for t in (q, k, v, keep)]
    fields = torch.vmap(one)(*flat)
    return packed(*(field.reshape(*batch, *field.shape[-2:]) for field in fields), empty)


def by_log_space(q, k, v, allowed=None, *, empty_row="error"):
    """The mask as the logarithm of 0 and 1; log_softmax, then exp."""
    q, k, v, keep, empty = opened(q, k, v, allowed, empty_row)
    scores = (q @ k.mT).div(q.shape[-1] ** 0.5) + keep.to(q.dtype).log()
    sure = torch.where(empty[..., None], 0.0, scores)
    weights = sure.log_softmax(dim=-1).exp()
    weights = torch.where(keep, weights, 0.0)
    return packed(torch.einsum("...ij,...jd->...id", weights, v), weights, scores, empty)


class DataOnly:
    """A result with properties and more fields than anybody asked for."""

    def __init__(self, result):
        self.result, self.entropy = result, torch.special.entr(result.weights).sum(-1)

    output = property(lambda self: self.result.output)
    weights = property(lambda self: self.result.weights)
    scores = property(lambda self: self.result.scores)
    empty_rows = property(lambda self: self.result.empty_rows)


class AsModule(torch.nn.Module):
    """A module, with a dropout that eval() has switched off."""

    def __init__(self):
        super().__init__()
        self.dropout = torch.nn.Dropout(0.3)
        self.eval()

    def forward(self, q, k, v, allowed=None, *, empty_row="error"):
        result = by_einsum(q, k, v, allowed, empty_row=empty_row)
        result.output = self.dropout(result.weights) @ v.to(result.weights.dtype)
        return DataOnly(result)


def with_nan_made_harmless(q, k, v, allowed=None, *, empty_row="error"):
    """No error for NaN: hidden values are cleared before they are mixed."""
    clean = [t.nan_to_num(0.0, 0.0, 0.0) for t in (q, k, v)]
    result = by_einsum(*clean, allowed, empty_row=empty_row)
    return result


def sorted_by_score(q, k, v, allowed=None, *, empty_row="error"):
    """Softmax of sorted scores, put back in place."""
    q, k, v, keep, empty = opened(q, k, v, allowed, empty_row)
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).expand(keep.shape).masked_fill(~keep, -math.inf)
    ordered, places = scores.masked_fill(empty[..., None], 0.0).sort(-1, descending=True)
    parts = (ordered - ordered[..., :1]).exp()
    shares = parts / parts.sum(-1, keepdim=True)
    weights = torch.zeros_like(shares).scatter(-1, places, shares) * keep
    return packed(weights @ v, weights, scores, empty)


def skipping_hidden_blocks(q, k, v, allowed=None, *, empty_row="error"):
    """Blocks of three keys; one that no query may read is not computed, and may be every block."""
    q, k, v, keep, empty = opened(q, k, v, allowed, empty_row)
    right = by_einsum(q, k, v, allowed, empty_row="zero")
    output = torch.zeros(*keep.shape[:-1], v.shape[-1], dtype=v.dtype)
    for start in range(0, keep.shape[-1], 3):
        block = slice(start, start + 3)
        if keep[..., block].any():
            output = output + right.weights[..., block] @ v[..., block, :]
    return packed(output, right.weights, right.scores, empty)


FORWARD_ONLY = (outside_torch, in_python_floats)
RIGHT = (
    by_einsum,
    by_online_softmax,
    by_logsumexp,
    by_library,
    by_rows,
    by_keys_first,
    by_additive_bias,
    by_bmm,
    by_recursion,
    always_in_float64,
    narrow_again,
    unexpanded,
    by_numpy,
    written_plainly,
    by_vmap,
    by_log_space,
    with_nan_made_harmless,
    sorted_by_score,
    skipping_hidden_blocks,
)
