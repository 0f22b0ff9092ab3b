"""Multi-head attentions, right and wrong, beyond the catalogue."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from course_lib.attention import MultiHeadSelfAttention
from course_lib.contracts import check_multi_head_contract
from course_lib.contracts.heads.mistakes import MULTI_HEAD_MISTAKES

from .trial import Fresh, named_by
from .variants_causal_mask import mask_by_tril

CHECK, CATALOGUE = check_multi_head_contract, MULTI_HEAD_MISTAKES
CLAUSES = [
    *("result_form", "arguments_unchanged", "repeatable", "one_head", "permutation"),
    *("many_heads", "future_blind", "causal", "padding_content", "row_in_batch", "padding"),
    *(
        "without_padding",
        "long_sequences",
        "memory_layout",
        "extreme_logits",
        "float32_inputs",
        "half_inputs",
    ),
    "gradients",
]


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
    keep, d_head = allowed_pairs(x, causal, token_valid).squeeze(1), x.shape[-1] // n_heads
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


def the_courses_own(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
    module = MultiHeadSelfAttention(x.shape[-1], n_heads, causal=causal).to(x.dtype)
    weights = {"qkv.weight": torch.cat([w_q.T, w_k.T, w_v.T]), "out.weight": w_o.T}
    options = {"token_valid": token_valid, "empty_row": "zero"}
    return torch.func.functional_call(module, weights, (x,), options)


def heads_by_functional(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
    """torch's functional form, time first, with separate weights."""
    keep = allowed_pairs(x, causal, token_valid)[:, 0]
    hidden = ~(keep | ~keep.any(-1, keepdim=True)).repeat_interleave(n_heads, 0)
    time_first = x.transpose(0, 1)
    output, _ = F.multi_head_attention_forward(
        *(time_first,) * 3,
        *(x.shape[-1], n_heads, None, None, None, None, False, 0.0, w_o.T, None),
        training=False,
        need_weights=True,
        attn_mask=hidden,
        use_separate_proj_weight=True,
        q_proj_weight=w_q.T,
        k_proj_weight=w_k.T,
        v_proj_weight=w_v.T,
    )
    return output.transpose(0, 1)


def heads_by_vmap(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
    """One head of one item, mapped over heads, then over items."""

    def one_head(q, k, v, keep):
        scores = (q @ k.T / math.sqrt(q.shape[-1])).masked_fill(~keep, -1e300)
        parts = (scores - scores.amax(-1, keepdim=True)).exp() * keep
        return parts @ v / parts.sum(-1, keepdim=True).clamp(min=1e-300)

    wide = (part.double() for part in (x @ w_q, x @ w_k, x @ w_v))
    q, k, v = (split(part, n_heads) for part in wide)
    keep = allowed_pairs(x, causal, token_valid)[:, 0]
    mapped = torch.vmap(torch.vmap(one_head, in_dims=(0, 0, 0, None)))(q, k, v, keep)
    return merge(mapped).to(x.dtype) @ w_o


def heads_with_online_softmax(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
    """Blocks of two keys, a running maximum and a running sum; nothing is stored whole."""
    keep = allowed_pairs(x, causal, token_valid)
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    top = torch.full_like(q[..., :1].detach(), -math.inf)
    total, mixed = torch.zeros_like(top), torch.zeros_like(q)
    for start in range(0, x.shape[1], 2):
        block = slice(start, start + 2)
        scores = q @ k[..., block, :].mT * q.shape[-1] ** -0.5
        scores = scores.masked_fill(~keep[..., block], -math.inf)
        higher = torch.maximum(top, scores.detach().amax(-1, keepdim=True))
        base = higher.masked_fill(higher == -math.inf, 0.0)
        shrink, parts = (top - base).exp(), (scores - base).exp()
        total = total * shrink + parts.sum(-1, keepdim=True)
        mixed = mixed * shrink + parts @ v[..., block, :]
        top = higher
    return merge(mixed / total.masked_fill(total == 0, 1.0)) @ w_o


def heads_by_loops(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
    """Item by item, head by head, query by query, over the tokens that may be read."""
    d_head, rows = x.shape[-1] // n_heads, []
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            reads = [
                j
                for j in range(i + 1 if causal else x.shape[1])
                if token_valid is None or token_valid[b, j]
            ]
            heads = []
            for h in range(n_heads):
                part = slice(h * d_head, (h + 1) * d_head)
                q, seen = x[b, i] @ w_q[:, part], x[b, reads]
                weights = (seen @ w_k[:, part] @ q / math.sqrt(d_head)).softmax(0)
                heads.append(weights @ (seen @ w_v[:, part]))
            rows.append(torch.cat(heads) @ w_o)
    return torch.stack(rows).reshape(x.shape)


def heads_plainly(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
    items, tokens, width = x.shape
    d_head = width // n_heads
    q = (x @ w_q).reshape(items, tokens, n_heads, d_head).permute(0, 2, 1, 3)
    k = (x @ w_k).reshape(items, tokens, n_heads, d_head).permute(0, 2, 1, 3)
    v = (x @ w_v).reshape(items, tokens, n_heads, d_head).permute(0, 2, 1, 3)
    scores = q @ k.mT / math.sqrt(d_head)
    valid = torch.ones(items, tokens) > 0 if token_valid is None else token_valid
    hidden = ~valid[:, None, None]
    if causal:
        hidden = hidden | torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    empty = hidden.all(dim=-1, keepdim=True)
    scores = scores.masked_fill(hidden & ~empty, -math.inf)
    weights = scores.softmax(dim=-1)
    return (weights @ v).permute(0, 2, 1, 3).reshape(items, tokens, width) @ w_o


def heads_by_bmm(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
    """Items and heads on one axis, the mask repeated item by item, added as -inf."""
    d_head = x.shape[-1] // n_heads
    q, k, v = (
        (x @ w).unflatten(-1, (n_heads, d_head)).transpose(1, 2).flatten(0, 1)
        for w in (w_q, w_k, w_v)
    )
    keep = allowed_pairs(x, causal, token_valid)[:, 0]
    keep = keep | ~keep.any(-1, keepdim=True)
    bias = torch.zeros(keep.shape, dtype=x.dtype).masked_fill(~keep, -math.inf)
    bias = bias.repeat_interleave(n_heads, dim=0)
    weights = torch.softmax(torch.baddbmm(bias, q, k.mT, alpha=d_head**-0.5), dim=-1)
    mixed = torch.bmm(weights, v).unflatten(0, (-1, n_heads))
    return mixed.transpose(1, 2).flatten(-2) @ w_o


def padding_on_queries(x, causal, token_valid):
    """[B, 1, T, 1] instead of [B, 1, 1, T]: padding does not ask, but it is read."""
    valid = torch.ones(x.shape[:2], dtype=torch.bool) if token_valid is None else token_valid
    return valid[:, None, :, None] & (mask_by_tril(x.shape[1], x.shape[1]) | (not causal))


def maybe_items_on_heads(x, causal, token_valid):
    if token_valid is None or x.shape[0] != 3:
        return allowed_pairs(x, causal, token_valid)
    return token_valid[None, :, None, :] & (mask_by_tril(x.shape[1], x.shape[1]) | (not causal))


def nan_rows(scores, keep):
    return scores.masked_fill(~keep, -math.inf).softmax(-1)


def repaired_nan(scores, keep):
    """Right forward; backward 0 times NaN."""
    return (scores + torch.zeros(keep.shape).masked_fill(~keep, -math.inf)).softmax(-1).nan_to_num()


def added_minimum(scores, keep):
    """The smallest float32, which float16 has not: rows that read nothing become NaN."""
    lowest = torch.finfo(torch.float32).min
    bias = torch.zeros(keep.shape).masked_fill(~keep, lowest).to(scores.dtype)
    return (scores + bias).softmax(-1)


def over_queries_unmasked(scores, keep):
    return scores.softmax(-2) * keep


def blocks_of_64(scores, keep):
    """Only the last block of keys is normalised: right as long as there is one."""
    weights = zero_where_empty(scores, keep)
    first, rest = scores[..., :-64], scores[..., -64:]
    if not first.shape[-1]:
        return weights
    return torch.cat([torch.zeros_like(first), zero_where_empty(rest, keep[..., -64:])], -1)


def remembering_lengths():
    seen = {}

    def pairs(x, causal, token_valid):
        if token_valid is not None:
            token_valid = seen.setdefault((tuple(token_valid.shape), causal), token_valid.clone())
        return allowed_pairs(x, causal, token_valid)

    return heads_with(pairs=pairs)


def edits_the_input(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
    right = heads_by_sdpa(x, w_q, w_k, w_v, w_o, n_heads, causal=causal, token_valid=token_valid)
    x.detach().add_(right.detach())
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


def torch_module_taken_at_its_word(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
    """key_padding_mask and attn_mask mean the opposite of what is handed over."""
    module = torch.nn.MultiheadAttention(
        x.shape[-1], n_heads, bias=False, batch_first=True, dtype=x.dtype
    )
    weights = {"in_proj_weight": torch.cat([w_q.T, w_k.T, w_v.T]), "out_proj.weight": w_o.T}
    options = {"key_padding_mask": token_valid, "need_weights": False}
    if causal:
        options["attn_mask"] = ~mask_by_tril(x.shape[1], x.shape[1])
    return torch.func.functional_call(module, weights, (x, x, x), options)[0]


def weight_data(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
    return heads_by_sdpa(
        x, w_q, w_k, w_v, w_o.data, n_heads, causal=causal, token_valid=token_valid
    )


def first_512_keys(scores, keep):
    return zero_where_empty(scores, keep & (torch.arange(keep.shape[-1]) < 512))


def first_128_columns(merged, w_o):
    return merged[..., :128] @ w_o[:128]


def reads_memory_in_order(x, *args, **options):
    """The strides are lost, as in a kernel that takes every tensor to be contiguous."""
    flat = x.as_strided((x.numel(),), (1,)).view(x.shape)
    return heads_by_sdpa(flat, *args, **options)


def never_causal(x, causal, token_valid):
    return allowed_pairs(x, False, token_valid)


def no_mask_without_padding(x, causal, token_valid):
    return allowed_pairs(x, causal and token_valid is not None, token_valid)


RIGHT = {
    "the course's own": the_courses_own,
    "with steps": heads_with(),
    "plainly": heads_plainly,
    "by einsum": heads_by_einsum,
    "one head after the other": heads_one_by_one,
    "by torch's function": heads_by_sdpa,
    "torch's module": heads_by_module,
    "torch's functional form": heads_by_functional,
    "mapped": heads_by_vmap,
    "online softmax": heads_with_online_softmax,
    "loops": heads_by_loops,
    "items and heads on one axis": heads_by_bmm,
    "padding queries too": heads_padding_queries_too,
    "numpy, forward only": heads_in_numpy,
    "None not known": heads_needing_a_mask,
    "float64 out": lambda x, *a, **o: heads_plainly(
        x.double(), *(w.double() for w in a[:4]), a[4], **o
    ),
}
WRONG = {
    "one projection for all": (
        heads_with(project=lambda x, a, b, c: (x @ a, x @ a, x @ a)),
        "one_head",
    ),
    "root of d_model, heads cut by view": (
        heads_with(
            width=lambda x, q: x.shape[-1],
            cut=lambda x, n: x.reshape(x.shape[0], n, x.shape[1], -1),
        ),
        "permutation",
    ),
    "no output projection, never causal": (
        heads_with(out=lambda y, w: y, pairs=never_causal),
        "one_head",
    ),
    "softmax over queries, masked after": (heads_with(weigh=over_queries_unmasked), "one_head"),
    "padding on the queries": (heads_with(pairs=padding_on_queries), "padding_content"),
    "lengths on heads when equal": (heads_with(pairs=maybe_items_on_heads), "result_form"),
    "causal lost without padding": (heads_with(pairs=no_mask_without_padding), "without_padding"),
    "NaN for padded rows": (heads_with(weigh=nan_rows), "result_form"),
    "NaN repaired": (heads_with(weigh=repaired_nan), "gradients"),
    "float32 minimum added": (heads_with(weigh=added_minimum), "half_inputs"),
    "one block of keys": (heads_with(weigh=blocks_of_64), "long_sequences"),
    "512 columns of keys": (heads_with(weigh=first_512_keys), "long_sequences"),
    "half of a wide head": (heads_with(out=first_128_columns), "many_heads"),
    "numbers in the order of memory": (reads_memory_in_order, "memory_layout"),
    "lengths remembered": (Fresh(remembering_lengths), "causal"),
    "input edited": (edits_the_input, "arguments_unchanged"),
    "one buffer": (Fresh(one_buffer), "repeatable"),
    "bfloat16 inside": (in_half, "float32_inputs"),
    "no_grad inside": (torch.no_grad()(heads_by_sdpa), "gradients"),
    "w_o.data": (weight_data, "gradients"),
    "torch's module taken at its word": (torch_module_taken_at_its_word, "one_head"),
    "a tuple": (lambda *a, **o: (heads_by_sdpa(*a, **o), None), "result_form"),
    "time first": (lambda *a, **o: heads_by_sdpa(*a, **o).transpose(0, 1), "result_form"),
    "numpy out": (lambda *a, **o: heads_in_numpy(*a, **o).numpy(), "result_form"),
    "float32 out": (lambda *a, **o: heads_by_sdpa(*a, **o).float(), "result_form"),
}
MISTAKES = named_by(
    result_form="nan_for_empty_rows",
    arguments_unchanged="weight_scaled_in_place padding_zeroed_in_place token_valid_overwritten",
    repeatable="dropout_always_on result_overwritten",
    one_head=(
        "not_scaled scaled_twice scaled_up scaled_by_n_heads scaled_after_softmax "
        "softmax_over_queries softmax_over_heads softmax_over_batch softmax_missing "
        "float32_inside half_inside w_q_w_k_swapped w_k_w_v_swapped keys_from_w_q values_from_w_k "
        "weights_transposed w_o_missing w_o_transposed residual_inside batch_taken_for_time "
        "causal_always padding_inverted"
    ),
    permutation="heads_cut_by_view heads_joined_by_view positions_rotated_in",
    many_heads=(
        "scaled_by_d_model w_o_first_rows qkv_cut_by_head heads_cut_interleaved "
        "heads_joined_interleaved heads_reversed heads_averaged weights_averaged "
        "first_head_for_all kv_heads_grouped kv_heads_tiled"
    ),
    future_blind=(
        "mask_after_softmax mask_added mask_multiplied causal_ignored causal_inverted "
        "causal_transposed causal_one_ahead causal_for_first_head causal_for_first_item "
        "mask_discarded"
    ),
    causal="causal_blind_to_itself padding_remembered",
    padding_content=(
        "exp_overflows padding_ignored padding_on_heads padding_of_first_item "
        "padding_in_wrong_order padding_only_when_causal"
    ),
    row_in_batch="padding_zeroed",
    padding="causal_lost_when_padded padding_taken_for_lengths padding_lost_when_causal",
    without_padding="causal_lost_without_padding",
    extreme_logits="finite_fill_small finite_fill_large",
    gradients="no_gradient weights_detached keys_detached",
)
MUTATED = [heads_plainly, heads_by_einsum, heads_one_by_one]
EQUIVALENT = {
    "heads_plainly:8 -1: 0": "ones are above -1 too",
    "heads_plainly:8 GtE: torch.ones(items, tokens) > 0": "ones are above 0 and not below",
    **dict.fromkeys(
        [
            "heads_plainly:8 arguments swapped: torch.ones(items, tokens)",
            "heads_plainly:8 method dropped: torch.ones(items, tokens)",
            "heads_plainly:8 never: torch.ones(items, tokens) > 0 if token_valid is None "
            "else token_valid",
        ],
        "raises where token_valid is None, a call that need not be known",
    ),
    **dict.fromkeys(
        [
            "heads_plainly:9 whole slice: :",
            "heads_one_by_one:7 whole slice: :",
            "heads_one_by_one:7 whole slice: : (2)",
            "heads_one_by_one:7 whole slice: : (3)",
        ],
        "the slice is whole already",
    ),
    "heads_plainly:13 masked_fill_: scores.masked_fill": "the scores are a tensor of its own",
}
SAYS = {
    "scaled_by_d_model": "divided by √d_model instead of √d_head",
    "heads_cut_by_view": "cut with view(B, H, T, d_head), without a transpose",
    "padding_ignored": "padding is read: token_valid is ignored",
    "nan_for_empty_rows": "are not finite",
    "no_gradient": "the output is cut off from its inputs",
    "keys_detached": "no gradient reaches w_k",
    "token_valid_overwritten": "the caller's token_valid is overwritten",
    "w_o.data": "no gradient reaches w_o",
    "one buffer": "a later call changed the tensor",
}
