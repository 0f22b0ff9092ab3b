"""Attention written wrong in one way each, with the clause that must say so.

`attention_with` is right when nothing is handed to it; a wrong variant replaces one step.
"""

import math
from types import SimpleNamespace

import torch
import torch.nn.functional as F

from .right_attentions import by_einsum, joint_shape, opened, packed
from .trial import Fresh

NEG = -math.inf


def right_scores(q, k, v):
    return q @ k.mT / math.sqrt(q.shape[-1])


def right_hiding(scores, keep):
    return scores.masked_fill(~keep, NEG)


def right_softmax(scores):
    return scores.softmax(-1)


def right_mix(weights, v):
    return weights @ v


def attention_with(
    *,
    opening=opened,
    mask=lambda keep: keep,
    scoring=right_scores,
    hiding=right_hiding,
    softmax=right_softmax,
    weighing=lambda weights, keep, empty: weights.masked_fill(~keep, 0.0),
    mixing=right_mix,
    finish=lambda result: result,
):
    def attention(q, k, v, allowed=None, *, empty_row="error"):
        q, k, v, keep, empty = opening(q, k, v, allowed, empty_row)
        used = keep if allowed is None else mask(keep)
        scores = hiding(scoring(q, k, v).expand(used.shape), used)
        weights = weighing(softmax(scores.masked_fill(empty[..., None], 0.0)), used, empty)
        return finish(packed(mixing(weights, v), weights, scores, empty))

    return attention


def scaled_by(factor):
    return attention_with(scoring=lambda q, k, v: q @ k.mT * factor(q, k, v))


def plain_weights(weights, keep, empty):
    return weights.masked_fill(empty[..., None], 0.0)


def with_mask(change):
    """A mask changed before use; the policy for empty rows still looks at the true mask."""
    return attention_with(mask=change)


def only_2d_transposed(keep):
    return keep.mT if keep.shape[-1] == keep.shape[-2] else keep


def first_item(keep):
    return keep[:1].expand(keep.shape) if keep.dim() > 2 else keep


def heads_for_items(keep):
    return keep.transpose(0, 1) if keep.dim() == 4 and keep.shape[0] == keep.shape[1] else keep


def no_mask_for_one_query(keep):
    return torch.ones_like(keep) if keep.shape[-2] == 1 else keep


def in_place_scale(q, k, v, allowed=None, *, empty_row="error"):
    q = q.detach().div_(math.sqrt(q.shape[-1]))
    q, k, v, keep, empty = opened(q, k, v, allowed, empty_row)
    scores = (q @ k.mT).masked_fill(~keep, NEG)
    weights = scores.masked_fill(empty[..., None], 0.0).softmax(-1).masked_fill(~keep, 0.0)
    return packed(weights @ v, weights, scores, empty)


def edits_the_mask(q, k, v, allowed=None, *, empty_row="error"):
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    if allowed is not None:
        allowed.logical_not_()
    return result


def with_dropout(q, k, v, allowed=None, *, empty_row="error"):
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    return packed(
        F.dropout(result.weights, 0.1) @ v.to(result.weights.dtype),
        *list(vars(result).values())[1:],
    )


def dropout_while_training(q, k, v, allowed=None, *, empty_row="error"):
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    if q.requires_grad:
        result.output = F.dropout(result.weights, 0.1) @ v
    return result


def mask_added(q, k, v, allowed=None, *, empty_row="error"):
    q, k, v, keep, empty = opened(q, k, v, allowed, empty_row)
    scores = right_scores(q, k, v).expand(keep.shape)
    if allowed is not None:
        scores = scores + keep
    weights = scores.softmax(-1).masked_fill(empty[..., None], 0.0)
    return packed(weights @ v, weights, scores, empty)


def weights_after_dropout(q, k, v, allowed=None, *, empty_row="error"):
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    keep = torch.ones_like(result.weights)
    keep[..., ::2] = 0.5
    result.weights = result.weights * keep
    return result


def remembering():
    seen = {}

    def attention(q, k, v, allowed=None, *, empty_row="error"):
        key = (tuple(q.shape), tuple(k.shape))
        if allowed is not None and allowed.dim() == 2:
            allowed = seen.setdefault((*key, allowed.shape), allowed.clone())
        return by_einsum(q, k, v, allowed, empty_row=empty_row)

    return attention


def memo_by_address():
    seen = {}

    def attention(q, k, v, allowed=None, *, empty_row="error"):
        key = (id(q), id(k), id(v), id(allowed), empty_row, q.requires_grad)
        if key not in seen:
            seen[key] = ((q, k, v, allowed), by_einsum(q, k, v, allowed, empty_row=empty_row))
        return seen[key][1]

    return attention


def growing_cache():
    state = {}

    def attention(q, k, v, allowed=None, *, empty_row="error"):
        if allowed is None or allowed.dim() != 3:
            return by_einsum(q, k, v, allowed, empty_row=empty_row)
        before = state.get("k", k)
        state["k"] = k.detach().clone()
        if before.shape == k.shape:
            q = q + 0.5 * (before - k)[..., :1, :]
        return by_einsum(q, k, v, allowed, empty_row=empty_row)

    return attention


def reused_buffer():
    buffers = {}

    def attention(q, k, v, allowed=None, *, empty_row="error"):
        result = by_einsum(q, k, v, allowed, empty_row=empty_row)
        if q.requires_grad:
            return result
        key = (result.output.shape, result.output.dtype)
        buffer = buffers.setdefault(key, torch.empty(*key[:1], dtype=key[1]))
        buffer.copy_(result.output)
        result.output = buffer
        return result

    return attention


def recency_bias(q, k, v):
    bias = 0.1 * torch.arange(k.shape[-2], dtype=q.dtype)
    return right_scores(q, k, v) + bias


def unstable_softmax(scores):
    parts = scores.exp()
    return parts / parts.sum(-1, keepdim=True)


def shifted_by_the_matrix_maximum(scores):
    top = scores.amax((-2, -1), keepdim=True)
    parts = (scores - top).exp()
    return parts / parts.sum(-1, keepdim=True)


def clamped_softmax(limit):
    return attention_with(softmax=lambda scores: scores.clamp(max=limit).softmax(-1))


def shifted_by_a_hidden_maximum(q, k, v, allowed=None, *, empty_row="error"):
    q, k, v, keep, empty = opened(q, k, v, allowed, empty_row)
    raw = right_scores(q, k, v).expand(keep.shape)
    parts = (raw - raw.amax(-1, keepdim=True)).exp() * keep
    total = parts.sum(-1, keepdim=True).masked_fill(empty[..., None], 1.0)
    weights = parts / total
    return packed(weights @ v, weights, raw.masked_fill(~keep, NEG), empty)


def where_after_exp(q, k, v, allowed=None, *, empty_row="error"):
    """The forward pass is right; in the backward pass zero meets infinity."""
    q, k, v, keep, empty = opened(q, k, v, allowed, empty_row)
    raw = right_scores(q, k, v).expand(keep.shape)
    top = raw.detach().masked_fill(~keep, NEG).amax(-1, keepdim=True)
    top = top.masked_fill(empty[..., None], 0.0)
    parts = torch.where(keep, (raw - top).exp(), 0.0)
    weights = parts / parts.sum(-1, keepdim=True).masked_fill(empty[..., None], 1.0)
    return packed(weights @ v, weights, raw.masked_fill(~keep, NEG), empty)


def filled_with(number):
    return attention_with(
        hiding=lambda scores, keep: scores.masked_fill(~keep, number), weighing=plain_weights
    )


def quietly_filled_with(number):
    """The reported scores are right, the softmax saw a finite filling."""

    def attention(q, k, v, allowed=None, *, empty_row="error"):
        q, k, v, keep, empty = opened(q, k, v, allowed, empty_row)
        raw = right_scores(q, k, v).expand(keep.shape)
        weights = raw.masked_fill(~keep, number).softmax(-1).masked_fill(empty[..., None], 0.0)
        return packed(weights @ v, weights, raw.masked_fill(~keep, NEG), empty)

    return attention


def a_trace_of_weight(q, k, v, allowed=None, *, empty_row="error"):
    """Hidden scores lie 30 below the row's largest: a weight of 1e-13 is small, and not zero."""
    q, k, v, keep, empty = opened(q, k, v, allowed, empty_row)
    raw = right_scores(q, k, v).expand(keep.shape)
    low = raw.masked_fill(~keep, NEG).amax(-1, keepdim=True).masked_fill(empty[..., None], 0.0) - 30
    weights = torch.where(keep, raw, low).softmax(-1).masked_fill(empty[..., None], 0.0)
    return packed(weights @ v, weights, raw.masked_fill(~keep, NEG), empty)


def in_half(q, k, v, allowed=None, *, empty_row="error"):
    """The scores are made in the dtype of the input."""
    wide_q, wide_k, v, keep, empty = opened(q, k, v, allowed, empty_row)
    scores = (right_scores(q, k, v).to(wide_q.dtype)).expand(keep.shape).masked_fill(~keep, NEG)
    weights = scores.masked_fill(empty[..., None], 0.0).softmax(-1).masked_fill(~keep, 0.0)
    return packed(weights @ v, weights, scores, empty)


def narrow_scores(q, k, v, allowed=None, *, empty_row="error"):
    """Computed wide, reported in sixteen bits."""
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    result.scores = result.scores.to(q.dtype)
    return result


def in_float32(q, k, v, allowed=None, *, empty_row="error"):
    result = by_einsum(q.float(), k.float(), v.float(), allowed, empty_row=empty_row)
    wide = {
        name: value.to(q.dtype) for name, value in vars(result).items() if value.dtype != torch.bool
    }
    return packed(**wide, empty_rows=result.empty_rows)


def bfloat16_for_float32(q, k, v, allowed=None, *, empty_row="error"):
    """As if a reduced-precision context had been left on."""
    if q.dtype == torch.float32:
        q, k = q.bfloat16().float(), k.bfloat16().float()
    return by_einsum(q, k, v, allowed, empty_row=empty_row)


def outputs_normalised(q, k, v, allowed=None, *, empty_row="error"):
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    result.output = F.normalize(result.output, dim=-1)
    return result


def drops_the_last_block(q, k, v, allowed=None, *, empty_row="error"):
    """Whole blocks of 64 only, once there is more than one."""
    t_k = k.shape[-2]
    whole = t_k if t_k <= 64 else t_k // 64 * 64
    if allowed is not None:
        allowed = allowed[..., :whole] if allowed.shape[-1] == t_k else allowed
    return by_einsum(q, k[..., :whole, :], v[..., :whole, :], allowed, empty_row=empty_row)


def output_drops_the_last_block(q, k, v, allowed=None, *, empty_row="error"):
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    t_k = k.shape[-2]
    whole = t_k if t_k <= 128 else t_k // 128 * 128
    result.output = result.weights[..., :whole] @ v[..., :whole, :].to(result.weights.dtype)
    return result


def blocks_without_guard(q, k, v, allowed=None, *, empty_row="error"):
    """Online softmax whose running maximum stays -inf while whole blocks are hidden."""
    q, k, v, keep, empty = opened(q, k, v, allowed, empty_row)
    right = by_einsum(q, k, v, keep, empty_row=empty_row)
    top = total = mixed = None
    for start in range(0, k.shape[-2], 32):
        part = slice(start, start + 32)
        piece = right.scores[..., part]
        new = (
            piece.amax(-1, keepdim=True)
            if top is None
            else torch.maximum(top, piece.amax(-1, keepdim=True))
        )
        new = new.masked_fill(empty[..., None], 0.0)
        grown = (piece - new).exp()
        shrink = 0.0 if top is None else (top - new).exp()
        total = grown.sum(-1, keepdim=True) + (0.0 if total is None else total * shrink)
        mixed = grown @ v[..., part, :] + (0.0 if mixed is None else mixed * shrink)
        top = new
    right.output = mixed / total.masked_fill(empty[..., None], 1.0)
    return right


def hard_coded_axis(axis):
    return attention_with(softmax=lambda scores: scores.softmax(axis))


def views_without_contiguous(q, k, v, allowed=None, *, empty_row="error"):
    if q.dim() == 4 and q.shape == v.shape[:-1] + q.shape[-1:]:
        q.view(-1, *q.shape[-2:])
    return by_einsum(q, k, v, allowed, empty_row=empty_row)


def reads_memory_in_order(q, k, v, allowed=None, *, empty_row="error"):
    """Takes the numbers as they lie in storage, whatever the strides say."""

    def flat(tensor):
        size = tensor.numel()
        lies = tensor.untyped_storage().nbytes() // tensor.element_size() == size
        return (
            tensor.as_strided(tensor.shape, torch.empty(tensor.shape).stride()) if lies else tensor
        )

    return by_einsum(flat(q), k, v, allowed, empty_row=empty_row)


def cut_off(*names, where="inputs"):
    def attention(q, k, v, allowed=None, *, empty_row="error"):
        given = {"q": q, "k": k, "v": v}
        given = {n: t.detach() if n in names else t for n, t in given.items()}
        return by_einsum(**given, allowed=allowed, empty_row=empty_row)

    return attention


def cut_off_weights(q, k, v, allowed=None, *, empty_row="error"):
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    result.output = result.weights.detach() @ v.to(result.weights.dtype)
    return result


def without_grad(q, k, v, allowed=None, *, empty_row="error"):
    with torch.no_grad():
        return by_einsum(q, k, v, allowed, empty_row=empty_row)


def wrapped_again(q, k, v, allowed=None, *, empty_row="error"):
    """Only the result takes the way out of torch and back, and loses its graph there."""
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    if result.output.numel() < 100:
        result.output = torch.tensor(result.output.tolist(), dtype=result.output.dtype)
    result.weights, result.scores = result.weights.detach(), result.scores.detach()
    return result


def zero_by_default(q, k, v, allowed=None, *, empty_row="zero"):
    return by_einsum(q, k, v, allowed, empty_row=empty_row)


def never_refuses(q, k, v, allowed=None, *, empty_row="error"):
    return by_einsum(q, k, v, allowed, empty_row="zero")


def always_refuses(q, k, v, allowed=None, *, empty_row="error"):
    return by_einsum(q, k, v, allowed, empty_row="error")


def refuses_only_2d(q, k, v, allowed=None, *, empty_row="error"):
    if allowed is not None and allowed.dim() > 2 and empty_row == "error":
        empty_row = "zero"
    return by_einsum(q, k, v, allowed, empty_row=empty_row)


def runtime_error_for_empty_rows(q, k, v, allowed=None, *, empty_row="error"):
    try:
        return by_einsum(q, k, v, allowed, empty_row=empty_row)
    except ValueError as error:
        if "masked" in str(error):
            raise RuntimeError("empty row") from error
        raise


def averages_empty_rows(q, k, v, allowed=None, *, empty_row="error"):
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    share = result.empty_rows[..., None] / k.shape[-2]
    result.weights = result.weights + share
    result.output = result.weights @ v.to(result.weights.dtype)
    return result


def nan_to_num_after_additive(q, k, v, allowed=None, *, empty_row="error"):
    """Zeros forward, NaN backward."""
    q, k, v, keep, empty = opened(q, k, v, allowed, empty_row)
    bias = torch.zeros(keep.shape, dtype=q.dtype).masked_fill(~keep, NEG)
    scores = right_scores(q, k, v) + bias
    weights = scores.softmax(-1).nan_to_num(0.0)
    return packed(weights @ v, weights, scores, empty)


def unflagged(q, k, v, allowed=None, *, empty_row="error"):
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    result.empty_rows = torch.zeros_like(result.empty_rows)
    return result


def flags_fully_visible_rows(q, k, v, allowed=None, *, empty_row="error"):
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    if allowed is not None:
        result.empty_rows = result.scores.isfinite().all(-1)
    return result


def zeros_for_scores_of_empty_rows(q, k, v, allowed=None, *, empty_row="error"):
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    result.scores = result.scores.masked_fill(result.empty_rows[..., None], 0.0)
    return result


def lax_opening(*, kinds=False, shapes=False, numbers=False):
    def opening(q, k, v, allowed, empty_row):
        if kinds and allowed is not None and allowed.dtype != torch.bool:
            allowed = allowed.bool()
        if shapes and allowed is not None:
            full = joint_shape(q.shape[:-2], k.shape[:-2], v.shape[:-2])
            full = (*full, q.shape[-2], k.shape[-2])
            try:
                allowed.expand(full)
            except RuntimeError:
                allowed = allowed[..., : full[-2], : full[-1]] if allowed.dim() > 1 else allowed
                wide = (*joint_shape(full[:-2], allowed.shape[:-2]), *full[-2:])
                q = q.expand(*wide[:-2], *q.shape[-2:])
                allowed = allowed.expand(wide)
        if numbers:
            clean = [t.nan_to_num(0.0, 0.0, 0.0) for t in (q, k, v)]
            _, _, _, keep, empty = opened(*clean, allowed, empty_row)
            q, k, v = (t.float() if t.element_size() == 2 else t for t in (q, k, v))
            return q, k, v, keep, empty
        return opened(q, k, v, allowed, empty_row)

    return opening


def value_error_for_everything(q, k, v, allowed=None, *, empty_row="error"):
    if allowed is not None and allowed.dtype != torch.bool:
        raise ValueError("no such mask")
    return by_einsum(q, k, v, allowed, empty_row=empty_row)


def shape_errors_from_torch(q, k, v, allowed=None, *, empty_row="error"):
    if allowed is not None and allowed.dtype == torch.bool:
        q.new_zeros(*q.shape[:-1], k.shape[-2]) + allowed
    return by_einsum(q, k, v, allowed, empty_row=empty_row)


def mask_before_the_head_axis(q, k, v, allowed=None, *, empty_row="error"):
    """A mask with three axes is taken to be per item, although it broadcasts over heads."""
    if allowed is not None and allowed.dim() == 3 and q.dim() == 4 and len(allowed) == len(q):
        allowed = allowed.unsqueeze(1)
    return by_einsum(q, k, v, allowed, empty_row=empty_row)


def keys_mask_on_queries(q, k, v, allowed=None, *, empty_row="error"):
    if allowed is not None and allowed.shape[-2:-1] == (1,) and q.shape[-2] == k.shape[-2]:
        visible = allowed.mT.expand(*allowed.shape[:-2], k.shape[-2], k.shape[-2]).clone()
        visible[..., 0] = True
        allowed = visible
    return by_einsum(q, k, v, allowed, empty_row=empty_row)


def batch_of_v_refused(q, k, v, allowed=None, *, empty_row="error"):
    if v.dim() > max(q.dim(), k.dim()):
        raise ValueError("v has more axes than q and k")
    return by_einsum(q, k, v, allowed, empty_row=empty_row)


def first_v_for_all(q, k, v, allowed=None, *, empty_row="error"):
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    if v.dim() > q.dim():
        result.output = result.output[:1].expand(result.output.shape).clone()
    return result


def top_left_for_one_query(q, k, v, allowed=None, *, empty_row="error"):
    """Trusts a built-in causal rule instead of the mask when there are more keys than queries."""
    if allowed is not None and allowed.dim() == 2 and allowed[-1].all() and len(allowed) == 1:
        allowed = torch.ones_like(allowed).tril()
    return by_einsum(q, k, v, allowed, empty_row=empty_row)


def as_tuple(q, k, v, allowed=None, *, empty_row="error"):
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    return result.output, result.weights


def as_lists(q, k, v, allowed=None, *, empty_row="error"):
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    return SimpleNamespace(**{name: value.tolist() for name, value in vars(result).items()})


def squeezed(q, k, v, allowed=None, *, empty_row="error"):
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    result.output = result.output.squeeze()
    return result


def on_another_device(q, k, v, allowed=None, *, empty_row="error"):
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    result.weights = result.weights.to("meta")
    return result


def flags_as_numbers(q, k, v, allowed=None, *, empty_row="error"):
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    result.empty_rows = result.empty_rows.long()
    return result


def averaged_weights(q, k, v, allowed=None, *, empty_row="error"):
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    if result.weights.dim() == 4:
        mean = result.weights.mean(1, keepdim=True)
        result.weights = mean.expand(result.weights.shape)
    return result


def raw_scores(q, k, v, allowed=None, *, empty_row="error"):
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    result.scores = q.double() @ k.double().mT / math.sqrt(q.shape[-1])
    result.scores = result.scores.expand(result.weights.shape)
    return result


def no_policy(q, k, v, allowed=None):
    return by_einsum(q, k, v, allowed)


def only_four_axes(q, k, v, allowed=None, *, empty_row="error"):
    b, h, t, d = q.shape
    return by_einsum(q, k, v, allowed, empty_row=empty_row)


def cosine_scores(q, k, v):
    return F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT


def small_epsilon(scores):
    parts = (scores - scores.amax(-1, keepdim=True)).exp()
    return parts / (parts.sum(-1, keepdim=True) + 1e-8)


def after_softmax(renormalised):
    def attention(q, k, v, allowed=None, *, empty_row="error"):
        q, k, v, keep, empty = opened(q, k, v, allowed, empty_row)
        raw = right_scores(q, k, v).expand(keep.shape)
        weights = raw.softmax(-1) * keep
        if renormalised:  # exact until a hidden key takes all the mass
            weights = weights / weights.sum(-1, keepdim=True).masked_fill(empty[..., None], 1.0)
        return packed(weights @ v, weights, raw.masked_fill(~keep, NEG), empty)

    return attention


def never_masks(q, k, v, allowed=None, *, empty_row="error"):
    """The result of masked_fill is thrown away; the reported scores are masked for show."""
    q, k, v, keep, empty = opened(q, k, v, allowed, empty_row)
    raw = right_scores(q, k, v).expand(keep.shape)
    weights = raw.softmax(-1).masked_fill(empty[..., None], 0.0)
    return packed(weights @ v, weights, raw.masked_fill(~keep, NEG), empty)


WRONG = {
    # scale
    "not scaled": (scaled_by(lambda q, k, v: 1.0), "scores"),
    "multiplied by the root": (scaled_by(lambda q, k, v: math.sqrt(q.shape[-1])), "scores"),
    "divided by d_k": (scaled_by(lambda q, k, v: 1 / q.shape[-1]), "scores"),
    "root of d_v": (scaled_by(lambda q, k, v: v.shape[-1] ** -0.5), "scores"),
    "root of T_k": (scaled_by(lambda q, k, v: k.shape[-2] ** -0.5), "scores"),
    "root cut to an integer": (scaled_by(lambda q, k, v: 1 / int(q.shape[-1] ** 0.5)), "scores"),
    "root of heads times d_k": (
        scaled_by(lambda q, k, v: (q.shape[-1] * (q.shape[1] if q.dim() == 4 else 1)) ** -0.5),
        "scores",
    ),
    "scaled after the softmax": (
        attention_with(
            scoring=lambda q, k, v: q @ k.mT,
            finish=lambda r: packed(r.output / 5**0.5, r.weights / 5**0.5, r.scores, r.empty_rows),
        ),
        "scores",
    ),
    "cosine similarity": (attention_with(scoring=cosine_scores), "scores"),
    # softmax
    "softmax over the queries": (hard_coded_axis(-2), "row_sums"),
    "softmax over axis 0": (hard_coded_axis(0), "row_sums"),
    "softmax over axis 1": (hard_coded_axis(1), "row_sums"),
    "softmax over axis 2": (hard_coded_axis(2), "result_form"),
    "softmax over the whole matrix": (
        attention_with(softmax=lambda s: s.flatten(-2).softmax(-1).reshape(s.shape)),
        "row_sums",
    ),
    "softmax twice": (attention_with(softmax=lambda s: s.softmax(-1).softmax(-1)), "weights"),
    "sigmoid instead of softmax": (attention_with(softmax=torch.sigmoid), "row_sums"),
    "epsilon in the denominator": (attention_with(softmax=small_epsilon), "row_sums"),
    "a bias towards late keys": (attention_with(scoring=recency_bias), "permutation"),
    # mask
    "mask inverted": (with_mask(lambda keep: ~keep), "masked_keys"),
    "mask transposed when square": (with_mask(only_2d_transposed), "masked_keys"),
    "mask added as 0 and 1": (mask_added, "masked_keys"),
    "masked scores zeroed": (filled_with(0.0), "masked_keys"),
    "masked scores tiny": (filled_with(1e-10), "masked_keys"),
    "masked scores -1e4": (filled_with(-1e4), "masked_keys"),
    "masked scores +inf": (filled_with(math.inf), "result_form"),
    "quiet filling -1e4": (quietly_filled_with(-1e4), "extreme_logits"),
    "quiet filling -1e9": (quietly_filled_with(-1e9), "hidden_keys"),
    "quiet filling -1e30": (quietly_filled_with(-1e30), "hidden_keys"),
    "a trace of weight": (a_trace_of_weight, "masked_keys"),
    "mask never applied": (never_masks, "masked_keys"),
    "mask after the softmax": (after_softmax(False), "masked_keys"),
    "mask after the softmax, renormalised": (after_softmax(True), "hidden_keys"),
    "first item's mask for all": (with_mask(first_item), "row_in_batch"),
    "items taken for heads": (with_mask(heads_for_items), "row_in_batch"),
    "three axes taken for items": (mask_before_the_head_axis, "mask_broadcast"),
    "keys' mask laid on the queries": (keys_mask_on_queries, "mask_broadcast"),
    "no mask for one query": (with_mask(no_mask_for_one_query), "masked_keys"),
    "causal rule for one query": (top_left_for_one_query, "cached_decode"),
    "strictly below the diagonal lost": (
        with_mask(lambda keep: keep | torch.eye(*keep.shape[-2:], dtype=torch.bool)),
        "masked_keys",
    ),
    "output normalised": (outputs_normalised, "output"),
    # batch, layout, sizes
    "values mixed by transposed weights": (
        attention_with(mixing=lambda w, v: (w.mT if w.shape[-1] == w.shape[-2] else w) @ v),
        "permutation",
    ),
    "q and k swapped when square": (
        attention_with(
            scoring=lambda q, k, v: (
                right_scores(k, q, v) if q.shape[-2] == k.shape[-2] else right_scores(q, k, v)
            )
        ),
        "permutation",
    ),
    "extra axis only in v refused": (batch_of_v_refused, "batch_broadcast"),
    "first v for the whole batch": (first_v_for_all, "batch_broadcast"),
    "last block dropped": (drops_the_last_block, "result_form"),
    "last block not mixed": (output_drops_the_last_block, "long_sequences"),
    "no guard for hidden blocks": (blocks_without_guard, "long_sequences"),
    "view of a transposed tensor": (views_without_contiguous, "memory_layout"),
    "strides ignored": (reads_memory_in_order, "memory_layout"),
    "only four axes": (only_four_axes, "result_form"),
    # numbers
    "exp without the maximum": (attention_with(softmax=unstable_softmax), "extreme_logits"),
    "maximum of the whole matrix": (
        attention_with(softmax=shifted_by_the_matrix_maximum),
        "extreme_logits",
    ),
    "scores clamped at 1000": (clamped_softmax(1000.0), "extreme_logits"),
    "scores clamped at 50000": (clamped_softmax(50000.0), "extreme_logits"),
    "maximum taken over hidden keys": (shifted_by_a_hidden_maximum, "hidden_keys"),
    "scores in the input's half": (in_half, "half_inputs"),
    "bfloat16 for float32": (bfloat16_for_float32, "float32_inputs"),
    "scores reported in half": (narrow_scores, "result_form"),
    "always float32": (in_float32, "scores"),
    "NaN let through": (attention_with(opening=lax_opening(numbers=True)), "nonfinite_inputs"),
    # gradients
    "q detached": (cut_off("q"), "gradients"),
    "k detached": (cut_off("k"), "gradients"),
    "v detached": (cut_off("v"), "gradients"),
    "weights detached": (cut_off_weights, "gradients"),
    "no_grad inside": (without_grad, "gradients"),
    "wrapped in a new tensor": (wrapped_again, "gradients"),
    "infinity behind a where": (where_after_exp, "gradients"),
    "dropout while training": (dropout_while_training, "gradients"),
    # state
    "q scaled in place": (in_place_scale, "arguments_unchanged"),
    "mask edited": (edits_the_mask, "arguments_unchanged"),
    "dropout always on": (with_dropout, "repeatable"),
    "result kept by address": (Fresh(memo_by_address), "repeatable"),
    "mask remembered by size": (Fresh(remembering), "masked_keys"),
    "one buffer for all results": (Fresh(reused_buffer), "repeatable"),
    "keys of an earlier call": (Fresh(growing_cache), "after_another"),
    # fields
    "a tuple": (as_tuple, "result_form"),
    "lists": (as_lists, "result_form"),
    "squeezed output": (squeezed, "result_form"),
    "weights on another device": (on_another_device, "result_form"),
    "flags as numbers": (flags_as_numbers, "result_form"),
    "weights after dropout": (weights_after_dropout, "permutation"),
    "weights averaged over heads": (averaged_weights, "weights"),
    "scores before the mask": (raw_scores, "masked_keys"),
    "no policy argument": (no_policy, "result_form"),
    # empty rows
    "zero by default": (zero_by_default, "empty_row_error"),
    "error policy ignored": (never_refuses, "empty_row_error"),
    "empty rows found in 2-D masks only": (refuses_only_2d, "empty_row_error"),
    "RuntimeError for empty rows": (runtime_error_for_empty_rows, "empty_row_error"),
    "zero policy ignored": (always_refuses, "empty_row_zero"),
    "empty rows averaged": (averages_empty_rows, "empty_row_zero"),
    "empty rows not flagged": (unflagged, "empty_row_zero"),
    "full rows flagged": (flags_fully_visible_rows, "masked_keys"),
    "scores of empty rows zeroed": (zeros_for_scores_of_empty_rows, "empty_row_zero"),
    "NaN gradients of empty rows": (nan_to_num_after_additive, "zero_row_gradients"),
    # refusals
    "any dtype of mask": (attention_with(opening=lax_opening(kinds=True)), "bad_masks"),
    "mask cut to size": (attention_with(opening=lax_opening(shapes=True)), "bad_masks"),
    "ValueError for the dtype": (value_error_for_everything, "bad_masks"),
    "torch's own error for the shape": (shape_errors_from_torch, "bad_masks"),
}
