"""More wrong attentions: as textbooks, libraries and kernels get them wrong."""

import math

import torch
import torch.nn.functional as F

from .right_attentions import by_einsum, opened, packed
from .trial import Fresh
from .wrong_attentions import NEG, attention_with, right_scores


def naive(fill=NEG, scale=True, axis=-1, keep=lambda allowed: ~allowed):
    """What a tutorial shows: no checks, no policy."""

    def attention(q, k, v, allowed=None, *, empty_row="error"):
        scores = q @ k.transpose(-2, -1)
        if scale:
            scores = scores / math.sqrt(q.size(-1))
        if allowed is not None:
            scores = scores.masked_fill(keep(allowed), fill)
        weights = F.softmax(scores, dim=axis)
        rows = scores[..., 0] != scores[..., 0]
        return packed(weights @ v, weights, scores, rows)

    return attention


def by_sdpa(change=lambda q: q, **options):
    """The library makes the output, with a wrong setting; the rest is right."""

    def attention(q, k, v, allowed=None, *, empty_row="error"):
        result = by_einsum(q, k, v, allowed, empty_row=empty_row)
        q, k, v, keep, empty = opened(q, k, v, allowed, empty_row)
        batch = keep.shape[:-2]
        wide = [t.expand(*batch, *t.shape[-2:]) for t in (change(q), k, v)]
        mask = None if options.get("is_causal") else keep | empty[..., None]
        output = F.scaled_dot_product_attention(*wide, attn_mask=mask, **options)
        result.output = output.masked_fill(empty[..., None], 0.0)
        return result

    return attention


def sdpa_inverted(q, k, v, allowed=None, *, empty_row="error"):
    """nn.MultiheadAttention's polarity."""
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    if allowed is not None:
        result.output = F.scaled_dot_product_attention(q, k, v, attn_mask=~allowed)
    return result


def blocks(*, rescale=True, last_sum=False, pad=False, size=16):
    """Online softmax with one line missing; the reported fields are right."""

    def attention(q, k, v, allowed=None, *, empty_row="error"):
        right = by_einsum(q, k, v, allowed, empty_row=empty_row)
        scores = right.scores
        v = v.to(scores.dtype)
        if pad and scores.shape[-1] % size:
            extra = size - scores.shape[-1] % size
            scores = F.pad(scores, (0, extra))
            v = F.pad(v, (0, 0, 0, extra))
        top = torch.full_like(scores[..., :1], NEG)
        total = mixed = 0.0
        for start in range(0, scores.shape[-1], size):
            piece = scores[..., start : start + size]
            new = torch.maximum(top, piece.detach().amax(-1, keepdim=True))
            safe = new.masked_fill(new == NEG, 0.0)
            shrink = (top - safe).exp() if rescale else 1.0
            grown = (piece - safe).exp()
            total = grown.sum(-1, keepdim=True) + (0.0 if last_sum else total * shrink)
            mixed = grown @ v[..., start : start + size, :] + mixed * shrink
            top = new
        right.output = mixed / total.masked_fill(right.empty_rows[..., None], 1.0)
        return right

    return attention


def sink_softmax(scores):
    """One more in the denominator."""
    top = scores.amax(-1, keepdim=True)
    parts = (scores - top).exp()
    return parts / (parts.sum(-1, keepdim=True) + (-top).exp())


def soft_capped(q, k, v):
    return 30 * torch.tanh(right_scores(q, k, v) / 30)


def windowed(keep):
    t_q, t_k = keep.shape[-2:]
    near = (torch.arange(t_q)[:, None] + t_k - t_q - torch.arange(t_k)).abs() < 512
    return keep & near


def keeps_the_largest(scores):
    """Sparse attention: all but the 64 largest are dropped."""
    if scores.shape[-1] <= 64:
        return scores.softmax(-1)
    least = scores.topk(64, -1).values[..., -1:]
    return scores.masked_fill(scores < least, NEG).softmax(-1)


class WrongBackward(torch.autograd.Function):
    """A right forward pass whose own backward pass forgets the scale."""

    @staticmethod
    def forward(ctx, q, k, v, weights):
        ctx.save_for_backward(q, k, v, weights)
        return weights @ v

    @staticmethod
    def backward(ctx, grad):
        q, k, v, weights = ctx.saved_tensors
        through = grad @ v.mT
        inner = weights * (through - (weights * through).sum(-1, keepdim=True))
        back = (inner @ k, inner.mT @ q, weights.mT @ grad)
        return *(b.sum_to_size(t.shape) for b, t in zip(back, (q, k, v), strict=True)), None


def own_backward(q, k, v, allowed=None, *, empty_row="error"):
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    wide = [t.to(result.weights.dtype) for t in (q, k, v)]
    result.output = WrongBackward.apply(*wide, result.weights.detach())
    return result


def clipped_gradient(q, k, v, allowed=None, *, empty_row="error"):
    """A clamp that forgets that it stops gradients."""
    return by_einsum(
        q.clamp(-1.5, 1.5) + (q - q.clamp(-1.5, 1.5)).detach(), k, v, allowed, empty_row=empty_row
    )


def policy_seen_in_weights(q, k, v, allowed=None, *, empty_row="error"):
    """Empty rows are looked for where the weights are not numbers, and averages are numbers."""
    result = naive(fill=-1e30)(q, k, v, allowed)
    if empty_row == "error" and result.weights.isnan().any():
        raise ValueError("empty row")
    return result


def hides_nan_weights(q, k, v, allowed=None, *, empty_row="error"):
    result = naive()(q, k, v, allowed)
    result.weights = result.weights.nan_to_num(0.0)
    result.output = result.weights @ v
    return result


def zeroes_hidden_values(q, k, v, allowed=None, *, empty_row="error"):
    """Values of keys that nobody reads are cleared in the caller's own tensor."""
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    if allowed is not None and allowed.dim() == 2 and v.dim() == 2:
        v.detach()[~allowed.expand(q.shape[-2], k.shape[-2]).any(0)] = 0.0
    return result


def sorts_the_keys(q, k, v, allowed=None, *, empty_row="error"):
    """Batched calls take their values in another order than their keys."""
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    if v.dim() > 2:
        result.output = result.weights @ v.flip(-2).to(result.weights.dtype)
    return result


def heads_mixed_up(q, k, v, allowed=None, *, empty_row="error"):
    """The values of four-dimensional calls are laid out [B, T, H] by mistake."""
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    if v.dim() == 4:
        turned = v.transpose(1, 2).reshape(v.shape).to(result.weights.dtype)
        result.output = result.weights @ turned
    return result


def mask_tiled(keep):
    """Masks of a flattened batch repeated in the wrong order."""
    if keep.dim() != 4:
        return keep
    b, h = keep.shape[:2]
    return keep[:, 0].repeat(h, 1, 1).reshape(b, h, *keep.shape[-2:])


def first_row_of_mask(keep):
    return keep[..., :1, :].expand(keep.shape)


def last_row_of_mask(keep):
    return keep[..., -1:, :].expand(keep.shape)


def mask_or_causal(keep):
    return keep | torch.ones_like(keep).tril() if keep.shape[-1] == keep.shape[-2] else keep


def counts_its_calls():
    """Every seventh call is a little off."""
    calls = []

    def attention(q, k, v, allowed=None, *, empty_row="error"):
        calls.append(1)
        result = by_einsum(q, k, v, allowed, empty_row=empty_row)
        if len(calls) % 7 == 0:
            result.output = result.output * 1.001
        return result

    return attention


def noise(q, k, v, allowed=None, *, empty_row="error"):
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    result.output = result.output + 1e-3 * torch.randn(result.output.shape)
    return result


def scale_kept():
    """The scale of the first call is kept for all others."""
    state = {}

    def attention(q, k, v, allowed=None, *, empty_row="error"):
        factor = state.setdefault("factor", q.shape[-1] ** -0.5) * q.shape[-1] ** 0.5
        return by_einsum(q * factor, k, v, allowed, empty_row=empty_row)

    return attention


def scores_shared(q, k, v, allowed=None, *, empty_row="error"):
    """The softmax is taken in place, so that the reported scores are the weights."""
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    result.scores = result.weights
    return result


def log_weights(q, k, v, allowed=None, *, empty_row="error"):
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    result.scores = (result.scores.masked_fill(result.empty_rows[..., None], 0.0)).log_softmax(-1)
    return result


def weights_turned(q, k, v, allowed=None, *, empty_row="error"):
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    if q.shape[-2] == k.shape[-2]:
        result.weights = result.weights.mT
    return result


def empty_rows_by_output(q, k, v, allowed=None, *, empty_row="error"):
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    result.empty_rows = (result.weights <= 0).any(-1) & (allowed is not None)
    return result


def single_key_open(q, k, v, allowed=None, *, empty_row="error"):
    """Nothing to choose from, so nothing to mask: so it was thought."""
    if k.shape[-2] == 1 and allowed is not None and allowed.dtype == torch.bool:
        opened(q, k, v, allowed, "zero")
        allowed = None
    return by_einsum(q, k, v, allowed, empty_row=empty_row)


def single_entry_skipped(q, k, v, allowed=None, *, empty_row="error"):
    if allowed is not None and allowed.numel() == 1 and allowed.dtype == torch.bool:
        allowed = None
    return by_einsum(q, k, v, allowed, empty_row=empty_row)


def empty_rows_by_zeros(q, k, v, allowed=None, *, empty_row="error"):
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    result.empty_rows = result.empty_rows | (result.output == 0).all(-1)
    return result


def third_batch_axis_lost(q, k, v, allowed=None, *, empty_row="error"):
    """Right for items and heads; of a third axis before them every item gets the first keys."""
    if k.dim() > 4:
        k = k[:, :1].expand_as(k) if k.shape[1] > 1 else k[:, :, :1].expand_as(k)
    return by_einsum(q, k, v, allowed, empty_row=empty_row)


def one_dimension_skipped(q, k, v, allowed=None, *, empty_row="error"):
    if allowed is not None and allowed.dim() == 1 and allowed.dtype == torch.bool:
        opened(q, k, v, allowed, "zero")
        allowed = None
    return by_einsum(q, k, v, allowed, empty_row=empty_row)


def only_first_row_refused(q, k, v, allowed=None, *, empty_row="error"):
    result = by_einsum(q, k, v, allowed, empty_row="zero")
    if empty_row == "error" and result.empty_rows.flatten()[0]:
        raise ValueError("fully masked")
    return result


def scaled_unless_training(q, k, v, allowed=None, *, empty_row="error"):
    scale = q.shape[-1] ** 0.5 if q.requires_grad else 1.0
    return by_einsum(q * scale, k, v, allowed, empty_row=empty_row)


def hard_weights(scores):
    return F.one_hot(scores.argmax(-1), scores.shape[-1]).to(scores.dtype)


def integers_pass(q, k, v, allowed=None, *, empty_row="error"):
    if allowed is not None and not allowed.is_floating_point():
        allowed = allowed.bool()
    return by_einsum(q, k, v, allowed, empty_row=empty_row)


def float_is_a_bias(q, k, v, allowed=None, *, empty_row="error"):
    if allowed is not None and allowed.is_floating_point():
        scores = right_scores(q, k, v) + allowed
        weights = scores.softmax(-1)
        return packed(weights @ v, weights, scores, (scores == NEG).all(-1))
    return by_einsum(q, k, v, allowed, empty_row=empty_row)


def assertion_for_a_bad_mask(q, k, v, allowed=None, *, empty_row="error"):
    assert allowed is None or allowed.dtype == torch.bool
    return by_einsum(q, k, v, allowed, empty_row=empty_row)


def mask_in_the_first_axes(q, k, v, allowed=None, *, empty_row="error"):
    """A mask that is too small on the left is unsqueezed on the right."""
    if allowed is not None and allowed.dim() == 3 and q.dim() == 4:
        allowed = allowed.unsqueeze(1) if allowed.shape[0] == q.shape[0] else allowed
    return by_einsum(q, k, v, allowed, empty_row=empty_row)


def nan_becomes_a_number(q, k, v, allowed=None, *, empty_row="error"):
    """Infinities are cut to large numbers, which reach rows by way of 0 times anything."""
    result = naive()(q, k, v, allowed)
    clean = by_einsum(q.nan_to_num(), k.nan_to_num(), v.nan_to_num(), allowed, empty_row=empty_row)
    clean.output = torch.where(v.isfinite().all(), clean.output, result.output)
    return clean


def half_sum(q, k, v, allowed=None, *, empty_row="error"):
    """16-bit inputs: right scores, a softmax in the input's own width."""
    result = by_einsum(q, k, v, allowed, empty_row=empty_row)
    if q.dtype.itemsize == 2:
        hidden = result.empty_rows[..., None]
        weights = result.scores.masked_fill(hidden, 0.0).to(q.dtype).softmax(-1)
        result.weights = weights.masked_fill(hidden, 0.0)
        result.output = result.weights @ v
    return result


def small_products_lost(q, k, v):
    """Scores below float32's smallest are rounded away, large ones overflow."""
    return right_scores(q, k, v).float().to(q.dtype)


def grouped(keep):
    """Blocks of eight keys are read together if the first of them is."""
    t_k = keep.shape[-1]
    return keep if t_k < 16 else keep[..., ::8].repeat_interleave(8, -1)[..., :t_k]


WRONG = {
    # tutorials
    "tutorial without a scale": (naive(scale=False), "scores"),
    "tutorial with its mask inverted": (naive(keep=lambda allowed: allowed), "masked_keys"),
    "tutorial over the queries": (naive(axis=-2), "repeatable"),
    "tutorial over dim 1": (naive(axis=1), "result_form"),
    "tutorial with -1e9": (naive(fill=-1e9), "masked_keys"),
    "tutorial with the least float32": (naive(fill=torch.finfo(torch.float32).min), "masked_keys"),
    "tutorial without checks": (naive(), "empty_row_error"),
    "tutorial for masks of any dtype": (
        naive(keep=lambda allowed: allowed == 0),
        "empty_row_error",
    ),
    # the library, set wrongly
    "library with scale 1": (by_sdpa(scale=1.0), "output"),
    "library after scaling by hand": (
        by_sdpa(change=lambda q: q / math.sqrt(q.shape[-1])),
        "output",
    ),
    "library always causal": (by_sdpa(is_causal=True), "permutation"),
    "library with dropout": (by_sdpa(dropout_p=0.2), "repeatable"),
    "library with the other polarity": (sdpa_inverted, "masked_keys"),
    # kernels
    "blocks not rescaled": (blocks(rescale=False), "long_sequences"),
    "sum of the last block": (blocks(last_sum=True), "long_sequences"),
    "padded keys of score 0": (blocks(pad=True), "output"),
    "a window of 512": (attention_with(mask=windowed), "long_sequences"),
    "the 64 largest only": (attention_with(softmax=keeps_the_largest), "long_sequences"),
    "keys read in groups of 8": (attention_with(mask=grouped), "long_sequences"),
    "one more in the denominator": (attention_with(softmax=sink_softmax), "row_sums"),
    "scores capped softly": (attention_with(scoring=soft_capped), "scores"),
    "scores through float32": (attention_with(scoring=small_products_lost), "scores"),
    # layout and masks
    "a third batch axis lost": (third_batch_axis_lost, "scores"),
    "the largest takes all": (attention_with(softmax=hard_weights), "weights"),
    "values in reverse in a batch": (sorts_the_keys, "permutation"),
    "heads and tokens confused": (heads_mixed_up, "permutation"),
    "masks tiled": (attention_with(mask=mask_tiled), "row_in_batch"),
    "first row of the mask": (attention_with(mask=first_row_of_mask), "masked_keys"),
    "last row of the mask": (attention_with(mask=last_row_of_mask), "masked_keys"),
    "causal keys always open": (attention_with(mask=mask_or_causal), "masked_keys"),
    "three axes unsqueezed": (mask_in_the_first_axes, "mask_broadcast"),
    # gradients
    "no scale while training": (scaled_unless_training, "gradients"),
    "own backward without the scale": (own_backward, "gradients"),
    "a clamp in the gradient": (clipped_gradient, "gradients"),
    # memory, chance
    "every seventh call": (Fresh(counts_its_calls), "permutation"),
    "noise": (noise, "repeatable"),
    "scale of the first call": (Fresh(scale_kept), "scores"),
    "values cleared in place": (zeroes_hidden_values, "arguments_unchanged"),
    # fields
    "scores that are weights": (scores_shared, "scores"),
    "scores that are logs of weights": (log_weights, "scores"),
    "weights turned round": (weights_turned, "permutation"),
    "partly hidden rows flagged": (empty_rows_by_output, "masked_keys"),
    # empty rows, refusals
    "a single key never hidden": (single_key_open, "empty_row_error"),
    "a mask of one entry skipped": (single_entry_skipped, "empty_row_error"),
    "a mask of one axis skipped": (one_dimension_skipped, "empty_row_error"),
    "only the first row refused": (only_first_row_refused, "empty_row_error"),
    "rows of zeros flagged as empty": (empty_rows_by_zeros, "empty_row_zero"),
    "empty rows looked for as NaN": (policy_seen_in_weights, "masked_keys"),
    "NaN hidden by nan_to_num": (hides_nan_weights, "empty_row_error"),
    "integers pass for masks": (integers_pass, "bad_masks"),
    "a float mask is a bias": (float_is_a_bias, "bad_masks"),
    "AssertionError for the dtype": (assertion_for_a_bad_mask, "bad_masks"),
    "NaN in v let through": (nan_becomes_a_number, "nonfinite_inputs"),
    "softmax of 16 bits": (half_sum, "half_inputs"),
}
