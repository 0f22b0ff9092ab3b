"""Causal masks and multi-head attentions, right and wrong, with the clause for each wrong one."""

import math

import torch
import torch.nn.functional as F

from .trial import Fresh, candidate  # noqa: F401
from .variants_causal_mask import mask_by_tril

# ---------------------------------------------------------------- multi-head attention


def allowed_pairs(x, causal, token_valid):
    items, tokens = x.shape[:2]
    valid = torch.ones(items, tokens, dtype=torch.bool) if token_valid is None else token_valid
    keep = valid[:, None, None, :] & valid[:, None, :, None]
    if causal:
        keep = keep & mask_by_tril(tokens, tokens)
    return keep  # [B, 1, T, T]


def split(x, n_heads):
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def merge(x):
    return x.transpose(1, 2).flatten(-2)


def attend(scores, keep):
    weights = scores.masked_fill(~keep, -math.inf).softmax(-1)
    return weights.masked_fill(~keep, 0.0)


def zero_where_empty(scores, keep):
    empty = ~keep.any(-1, keepdim=True)
    return attend(scores, keep | empty).masked_fill(empty, 0.0)


def heads_with(
    *,
    cut=split,
    join=merge,
    pairs=allowed_pairs,
    width=lambda x, q: q.shape[-1],
    project=lambda x, w_q, w_k, w_v: (x @ w_q, x @ w_k, x @ w_v),
    out=lambda y, w_o: y @ w_o,
    weigh=zero_where_empty,
):
    """Right when nothing is handed to it; a wrong variant replaces one step."""

    def multi_head(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid=None):
        q, k, v = (cut(part, n_heads) for part in project(x, w_q, w_k, w_v))
        weights = weigh(q @ k.mT / math.sqrt(width(x, q)), pairs(x, causal, token_valid))
        return out(join(weights @ v), w_o)

    return multi_head


def heads_by_einsum(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
    d_head = x.shape[-1] // n_heads
    q, k, v = (
        torch.einsum("btd,dhe->bthe", x, w.reshape(-1, n_heads, d_head)) for w in (w_q, w_k, w_v)
    )
    scores = torch.einsum("bihe,bjhe->bhij", q, k) * d_head**-0.5
    weights = zero_where_empty(scores, allowed_pairs(x, causal, token_valid))
    mixed = torch.einsum("bhij,bjhe->bihe", weights, v)
    return torch.einsum("bihe,hed->bid", mixed, w_o.reshape(n_heads, d_head, -1))


def heads_one_by_one(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
    """One head after the other, each adding its share through its own rows of w_o."""
    keep, d_head = allowed_pairs(x, causal, token_valid)[:, 0], x.shape[-1] // n_heads
    output = torch.zeros_like(x)
    for head in range(n_heads):
        part = slice(head * d_head, (head + 1) * d_head)
        q, k, v = x @ w_q[:, part], x @ w_k[:, part], x @ w_v[:, part]
        weights = zero_where_empty(q @ k.mT / math.sqrt(d_head), keep)
        output = output + weights @ v @ w_o[part]
    return output


def heads_by_sdpa(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    keep = allowed_pairs(x, causal, token_valid)
    empty = ~keep.any(-1, keepdim=True)
    output = F.scaled_dot_product_attention(q, k, v, attn_mask=keep | empty)
    return merge(output.masked_fill(empty, 0.0)) @ w_o


def heads_by_module(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
    """torch's module with copied weights; padding queries like any token, but is never read."""
    module = torch.nn.MultiheadAttention(
        x.shape[-1], n_heads, bias=False, batch_first=True, dtype=x.dtype
    )
    with torch.no_grad():
        module.in_proj_weight.copy_(torch.cat([w_q.T, w_k.T, w_v.T]))
        module.out_proj.weight.copy_(w_o.T)
    keep = allowed_pairs(x, causal, token_valid)[:, 0]
    hidden = ~(keep | ~keep.any(-1, keepdim=True)).repeat_interleave(n_heads, 0)
    return module(x, x, x, attn_mask=hidden, need_weights=False)[0]


def heads_padding_queries_too(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
    """Padding is not read, but its rows are computed like the others."""
    valid = torch.ones(x.shape[:2], dtype=torch.bool) if token_valid is None else token_valid
    keep = valid[:, None, None, :] & (mask_by_tril(x.shape[1], x.shape[1]) | (not causal))
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    return merge(zero_where_empty(q @ k.mT / math.sqrt(q.shape[-1]), keep) @ v) @ w_o


def heads_in_numpy(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
    """Forward only, in another framework: the report must say that gradients were not checked."""
    import numpy as np

    a, *weights = (tensor.detach().numpy() for tensor in (x, w_q, w_k, w_v, w_o))
    d_head = a.shape[-1] // n_heads
    q, k, v = ((a @ w).reshape(*a.shape[:2], n_heads, d_head).swapaxes(1, 2) for w in weights[:3])
    keep = allowed_pairs(x, causal, token_valid).numpy()
    scores = np.where(keep, q @ k.swapaxes(-1, -2) / np.sqrt(d_head), -np.inf)
    top = scores.max(-1, keepdims=True)
    parts = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = parts.sum(-1, keepdims=True)
    mixed = (parts / np.where(total == 0, 1, total)) @ v
    merged = mixed.swapaxes(1, 2).reshape(a.shape)
    return torch.from_numpy(merged @ weights[3]).to(x.dtype)


def heads_needing_a_mask(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
    """Takes token_valid at its word: None is not a tensor."""
    return heads_by_sdpa(
        x, w_q, w_k, w_v, w_o, n_heads, causal=causal, token_valid=token_valid.bool()
    )


RIGHT_HEADS = (
    heads_with(),
    heads_by_einsum,
    heads_one_by_one,
    heads_by_sdpa,
    heads_by_module,
    heads_padding_queries_too,
    heads_in_numpy,
    heads_needing_a_mask,
)


def pairs_with(change):
    """Other pairs than the right ones; queries of padding are left to the right rule."""

    def pairs(x, causal, token_valid):
        right = allowed_pairs(x, causal, token_valid)
        valid = torch.ones(x.shape[:2], dtype=torch.bool) if token_valid is None else token_valid
        return change(x, causal, valid, right)

    return pairs


def keys_only(valid):
    return valid[:, None, None, :]


def causal_part(x, causal):
    return mask_by_tril(x.shape[1], x.shape[1]) | (not causal)


def lengths_from_the_left(x, causal, valid, right):
    """Counts the real tokens and takes them to be the first ones."""
    first = torch.arange(x.shape[1]) < valid.sum(-1, keepdim=True)
    return keys_only(first) & causal_part(x, causal)


def first_lengths(x, causal, valid, right):
    return keys_only(valid[:1]) & causal_part(x, causal)


def lengths_on_heads(x, causal, valid, right):
    """[B, T] broadcast as [1, B, 1, T], which fits when there are as many items as heads."""
    return valid[None, :, None, :] & causal_part(x, causal)


def padding_lost_when_causal(x, causal, valid, right):
    return causal_part(x, True).expand_as(right) if causal else right


def causal_lost_when_padded(x, causal, valid, right):
    return right if valid.all() else keys_only(valid) & valid[:, None, :, None]


def maybe_items_on_heads(x, causal, token_valid):
    if token_valid is None or x.shape[0] != 3:
        return allowed_pairs(x, causal, token_valid)
    return lengths_on_heads(x, causal, token_valid, None)


def no_mask_without_padding(x, causal, token_valid):
    return allowed_pairs(x, causal and token_valid is not None, token_valid)


def nan_rows(scores, keep):
    return scores.masked_fill(~keep, -math.inf).softmax(-1)


def unstable(scores, keep):
    parts = scores.exp() * keep
    return parts / parts.sum(-1, keepdim=True).clamp(min=1e-300)


def finite_fill(scores, keep):
    return scores.masked_fill(~keep, -1e4).softmax(-1)


def mask_after_softmax(scores, keep):
    return scores.softmax(-1) * keep


def over_queries(scores, keep):
    return scores.masked_fill(~keep, -math.inf).softmax(-2).nan_to_num(0.0)


def over_heads(scores, keep):
    return scores.masked_fill(~keep, -math.inf).softmax(1).nan_to_num(0.0)


def view_split(x, n_heads):
    return x.reshape(x.shape[0], n_heads, x.shape[1], -1)


def interleaved_split(x, n_heads):
    return x.unflatten(-1, (-1, n_heads)).permute(0, 3, 1, 2)


def view_merge(x):
    return x.reshape(x.shape[0], x.shape[2], -1)


def interleaved_merge(x):
    return x.permute(0, 2, 3, 1).flatten(-2)


def remembering_lengths():
    seen = {}

    def pairs(x, causal, token_valid):
        if token_valid is not None:
            token_valid = seen.setdefault((tuple(token_valid.shape), causal), token_valid.clone())
        return allowed_pairs(x, causal, token_valid)

    return heads_with(pairs=pairs)


def scales_in_place(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
    w_q = w_q.detach().mul_(1 / math.sqrt(x.shape[-1] // n_heads))
    run = heads_with(width=lambda x, q: 1)
    return run(x, w_q, w_k, w_v, w_o, n_heads, causal=causal, token_valid=token_valid)


def edits_the_lengths(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
    right = heads_by_sdpa(x, w_q, w_k, w_v, w_o, n_heads, causal=causal, token_valid=token_valid)
    if token_valid is not None:
        token_valid.logical_not_()
    return right


def one_buffer():
    buffers = {}

    def multi_head(x, *weights, **options):
        result = heads_by_sdpa(x, *weights, **options)
        if result.requires_grad:
            return result
        key = (result.shape, result.dtype)
        return buffers.setdefault(key, torch.empty_like(result)).copy_(result)

    return multi_head


def in_half(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
    narrow = (tensor.bfloat16().to(tensor.dtype) for tensor in (x, w_q, w_k, w_v, w_o))
    if x.dtype == torch.float64:
        narrow = (x, w_q, w_k, w_v, w_o)
    return heads_by_sdpa(*narrow, n_heads, causal=causal, token_valid=token_valid)


def zeroes_the_padding(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
    """Padding becomes zeros, which still take their share of the softmax."""
    if token_valid is not None:
        x = x * token_valid.unsqueeze(-1)
    return heads_by_sdpa(x, w_q, w_k, w_v, w_o, n_heads, causal=causal, token_valid=None)


def cut_off_weights(scores, keep):
    return zero_where_empty(scores, keep).detach()


WRONG_HEADS = {
    "root of d_model": (heads_with(width=lambda x, q: x.shape[-1]), "many_heads"),
    "not scaled": (heads_with(width=lambda x, q: 1), "one_head"),
    "heads cut by view": (heads_with(cut=view_split), "permutation"),
    "heads interleaved": (heads_with(cut=interleaved_split), "many_heads"),
    "heads merged by view": (heads_with(join=view_merge), "permutation"),
    "merged interleaved": (heads_with(join=interleaved_merge), "many_heads"),
    "q and k swapped": (heads_with(project=lambda x, a, b, c: (x @ b, x @ a, x @ c)), "one_head"),
    "k and v swapped": (heads_with(project=lambda x, a, b, c: (x @ a, x @ c, x @ b)), "one_head"),
    "one projection for all": (
        heads_with(project=lambda x, a, b, c: (x @ a, x @ a, x @ c)),
        "one_head",
    ),
    "weights transposed": (
        heads_with(
            project=lambda x, a, b, c: (x @ a.T, x @ b.T, x @ c.T), out=lambda y, w: y @ w.T
        ),
        "one_head",
    ),
    "no output projection": (heads_with(out=lambda y, w: y), "one_head"),
    "output projection transposed": (heads_with(out=lambda y, w: y @ w.T), "one_head"),
    "softmax over queries": (heads_with(weigh=over_queries), "one_head"),
    "softmax over heads": (heads_with(weigh=over_heads), "one_head"),
    "never causal": (heads_with(pairs=pairs_with(lambda x, c, v, r: keys_only(v))), "future_blind"),
    "always causal": (heads_with(pairs=lambda x, c, v: allowed_pairs(x, True, v)), "one_head"),
    "causal, next token too": (
        heads_with(
            pairs=lambda x, c, v: (
                allowed_pairs(x, False, v)
                & torch.ones(x.shape[1], x.shape[1]).tril(1 if c else 99).bool()
            )
        ),
        "future_blind",
    ),
    "causal, not itself": (
        heads_with(
            pairs=lambda x, c, v: (
                allowed_pairs(x, c, v)
                & torch.ones(x.shape[1], x.shape[1]).tril(-1 if c else 99).bool()
            )
        ),
        "causal",
    ),
    "padding read": (
        heads_with(pairs=pairs_with(lambda x, c, v, r: causal_part(x, c).expand_as(r))),
        "padding_content",
    ),
    "padding inverted": (
        heads_with(pairs=pairs_with(lambda x, c, v, r: keys_only(~v) & causal_part(x, c))),
        "one_head",
    ),
    "padding on the queries": (
        heads_with(pairs=pairs_with(lambda x, c, v, r: v[:, None, :, None] & causal_part(x, c))),
        "padding_content",
    ),
    "first item's lengths": (heads_with(pairs=pairs_with(first_lengths)), "padding_content"),
    "lengths on heads when equal": (heads_with(pairs=maybe_items_on_heads), "result_form"),
    "padding zeroed, not masked": (zeroes_the_padding, "row_in_batch"),
    "padding taken to be on the right": (
        heads_with(pairs=pairs_with(lengths_from_the_left)),
        "padding",
    ),
    "padding lost when causal": (
        heads_with(pairs=pairs_with(padding_lost_when_causal)),
        "padding",
    ),
    "causal lost when padded": (
        heads_with(pairs=pairs_with(causal_lost_when_padded)),
        "padding",
    ),
    "causal lost without padding": (heads_with(pairs=no_mask_without_padding), "without_padding"),
    "NaN for padded rows": (heads_with(weigh=nan_rows), "result_form"),
    "exp without the maximum": (heads_with(weigh=unstable), "padding_content"),
    "filling -1e4": (heads_with(weigh=finite_fill), "extreme_logits"),
    "mask after the softmax": (heads_with(weigh=mask_after_softmax), "future_blind"),
    "lengths remembered": (Fresh(remembering_lengths), "causal"),
    "weights scaled in place": (scales_in_place, "arguments_unchanged"),
    "lengths edited": (edits_the_lengths, "arguments_unchanged"),
    "one buffer": (Fresh(one_buffer), "repeatable"),
    "dropout": (
        heads_with(weigh=lambda s, k: F.dropout(zero_where_empty(s, k), 0.1)),
        "repeatable",
    ),
    "bfloat16 inside": (in_half, "float32_inputs"),
    "no_grad inside": (torch.no_grad()(heads_by_sdpa), "gradients"),
    "weights detached": (heads_with(weigh=cut_off_weights), "gradients"),
    "a tuple": (lambda *a, **o: (heads_by_sdpa(*a, **o), None), "result_form"),
    "time first": (lambda *a, **o: heads_by_sdpa(*a, **o).transpose(0, 1), "result_form"),
}
