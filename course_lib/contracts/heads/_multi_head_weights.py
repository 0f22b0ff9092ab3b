"""Multi-head attentions that use the wrong weights, or the right ones in a wrong way."""

from functools import partial

import torch
from torch import Tensor

from course_lib.contracts.engine.mistake import Mistake
from course_lib.contracts.heads._multi_heads import (
    HeadsCall,
    heads_cut,
    heads_projected,
    mistaken_heads,
)


def _heads_named(*names: str) -> partial:
    """Queries, keys and values made by other weights than their own."""

    def project(call: HeadsCall) -> tuple[Tensor, ...]:
        return tuple(call.x @ getattr(call, name) for name in names)

    return partial(mistaken_heads, project=project)


def _heads_transposed(call: HeadsCall) -> HeadsCall:
    weights = {name: getattr(call, name).T for name in ("w_q", "w_k", "w_v", "w_o")}
    return call._replace(**weights)


def _heads_fused(call: HeadsCall) -> tuple[Tensor, ...]:
    """One wide projection, cut as [H, 3, d_head] where [3, H, d_head] was put together."""
    wide = torch.cat(heads_projected(call), dim=-1)
    parts = wide.unflatten(-1, (call.n_heads, 3, -1))
    return tuple(part.flatten(-2) for part in parts.unbind(-2))


def _heads_first_rows(merged: Tensor, call: HeadsCall) -> Tensor:
    return heads_cut(merged, call.n_heads).sum(1) @ call.w_o[: call.d_head]


HEADS_WEIGHT_MISTAKES = (
    Mistake(
        "w_q_w_k_swapped",
        "d2l-ai/d2l-en@377a73fa",
        _heads_named("w_k", "w_q", "w_v"),
        {"en": "w_q makes the keys and w_k the queries", "ru": "w_q даёт ключи, а w_k — запросы"},
        {"en": "q = x @ w_q, k = x @ w_k", "ru": "q = x @ w_q, k = x @ w_k"},
    ),
    Mistake(
        "w_k_w_v_swapped",
        "jsbaan/transformer-from-scratch#1",
        _heads_named("w_q", "w_v", "w_k"),
        {"en": "w_k makes the values and w_v the keys", "ru": "w_k даёт значения, а w_v — ключи"},
        {"en": "k = x @ w_k, v = x @ w_v", "ru": "k = x @ w_k, v = x @ w_v"},
    ),
    Mistake(
        "keys_from_w_q",
        "a mutation of right code",
        _heads_named("w_q", "w_q", "w_v"),
        {
            "en": "w_q makes the keys too, w_k is not used",
            "ru": "w_q даёт и ключи, а w_k не используется",
        },
        {"en": "k = x @ w_k", "ru": "k = x @ w_k"},
    ),
    Mistake(
        "values_from_w_k",
        "ruvnet/agentic-flow#191",
        _heads_named("w_q", "w_k", "w_k"),
        {"en": "the keys serve as values too", "ru": "ключи служат и значениями"},
        {"en": "v = x @ w_v", "ru": "v = x @ w_v"},
    ),
    Mistake(
        "weights_transposed",
        "vllm-project/vllm#44113",
        partial(mistaken_heads, begin=_heads_transposed),
        {
            "en": "the weights are applied as x @ w.T, as in nn.Linear (here: x @ w)",
            "ru": "веса применяются как x @ w.T, как в nn.Linear (здесь: x @ w)",
        },
        {"en": "x @ w, or nn.Linear with weight w.T", "ru": "x @ w или nn.Linear с весом w.T"},
    ),
    Mistake(
        "w_o_missing",
        "Kyubyong/transformer#117",
        partial(mistaken_heads, out=lambda merged, call: merged),
        {"en": "the output projection w_o is left out", "ru": "выходная проекция w_o пропущена"},
        {"en": "return merged @ w_o", "ru": "return merged @ w_o"},
    ),
    Mistake(
        "w_o_transposed",
        "AaltoML/SUQ#2",
        partial(mistaken_heads, out=lambda merged, call: merged @ call.w_o.T),
        {
            "en": "w_o alone is applied transposed",
            "ru": "транспонированной применяется одна только w_o",
        },
        {"en": "merged @ w_o, not w_o.T", "ru": "merged @ w_o, а не w_o.T"},
    ),
    Mistake(
        "w_o_first_rows",
        "a mutation of right code",
        partial(mistaken_heads, out=_heads_first_rows),
        {
            "en": "every head goes out through the first d_head rows of w_o",
            "ru": "каждая голова выходит через первые d_head строк w_o",
        },
        {
            "en": "w_o[h * d_head : (h + 1) * d_head] for head h",
            "ru": "w_o[h * d_head : (h + 1) * d_head] для головы h",
        },
    ),
    Mistake(
        "residual_inside",
        "a mutation of right code",
        partial(mistaken_heads, out=lambda merged, call: call.x + merged @ call.w_o),
        {
            "en": "x is added inside: the block that adds it again carries it twice",
            "ru": "x прибавлен внутри: блок прибавит его ещё раз",
        },
        {"en": "return merged @ w_o; the block adds x", "ru": "return merged @ w_o без x"},
    ),
    Mistake(
        "qkv_cut_by_head",
        "awslabs/slapo#46",
        partial(mistaken_heads, project=_heads_fused),
        {
            "en": "one fused projection is cut head by head, as [H, 3, d_head], not as q, k, v",
            "ru": "общая проекция разрезана по головам, как [H, 3, d_head], а не на q, k, v",
        },
        {"en": "qkv.chunk(3, dim=-1), then the heads", "ru": "qkv.chunk(3, dim=-1), затем головы"},
    ),
)
