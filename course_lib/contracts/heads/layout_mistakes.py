"""Multi-head attentions that use wrong weights, or cut, share or join their heads wrongly."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.mistake import mistakes
from course_lib.contracts.heads.calls import WEIGHTS, HeadsCall
from course_lib.contracts.heads.steps import (
    join_heads,
    mistaken_heads,
    past_keys,
    projected,
)


def _named(*names: str) -> dict[str, Any]:
    """Queries, keys and values made by other weights than their own."""

    def project(call: HeadsCall) -> tuple[Tensor, ...]:
        return tuple(call.x @ getattr(call, name) for name in names)

    return {"project": project}


def _fused(call: HeadsCall) -> tuple[Tensor, ...]:
    """One wide projection, cut as [H, 3, d_head] where [3, H, d_head] was put together."""
    wide = torch.cat(projected(call), dim=-1)
    parts = wide.unflatten(-1, (call.n_heads, 3, -1))
    return tuple(part.flatten(-2) for part in parts.unbind(-2))


def _shared(source: Callable[[Tensor, int], Tensor]) -> dict[str, Any]:
    """Half as many heads of keys and values (all, if they are odd), source(heads, half) each's."""

    def share(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        heads = torch.arange(q.shape[1])
        of = source(heads, len(heads) if len(heads) % 2 else len(heads) // 2)
        return q, k[:, of], v[:, of]

    return {"share": share}


def _turned(x: Tensor) -> Tensor:
    """Turn the two halves of an even width by angles that grow with the position."""
    half = x.shape[-1] // 2
    if x.shape[-1] % 2:
        return x
    rates = 10000.0 ** (-torch.arange(half, dtype=x.dtype) / half)
    angles = torch.arange(x.shape[-2], dtype=x.dtype).unsqueeze(-1) * rates
    one, other = x.chunk(2, dim=-1)
    turned = one * angles.cos() - other * angles.sin(), other * angles.cos() + one * angles.sin()
    return torch.cat(turned, dim=-1)


# fmt: off
LAYOUT_MISTAKES = mistakes(
    mistaken_heads,
    w_q_w_k_swapped=("d2l-ai/d2l-en@377a73fa",
        "w_q makes the keys and w_k the queries | w_q даёт ключи, а w_k — запросы",
        "q = x @ w_q, k = x @ w_k", _named("w_k", "w_q", "w_v")),
    w_k_w_v_swapped=("jsbaan/transformer-from-scratch#1",
        "w_k makes the values and w_v the keys | w_k даёт значения, а w_v — ключи",
        "k = x @ w_k, v = x @ w_v", _named("w_q", "w_v", "w_k")),
    keys_from_w_q=("",
        "w_q makes the keys too, w_k is not used | w_q даёт и ключи, а w_k не используется",
        "k = x @ w_k", _named("w_q", "w_q", "w_v")),
    values_from_w_k=("ruvnet/agentic-flow#191",
        "the keys serve as values too | ключи служат и значениями",
        "v = x @ w_v", _named("w_q", "w_k", "w_k")),
    weights_transposed=("vllm-project/vllm#44113",
        "the weights are applied as x @ w.T, as in nn.Linear (here: x @ w) | "
        "веса применяются как x @ w.T, как в nn.Linear (здесь: x @ w)",
        "x @ w, or nn.Linear with weight w.T | x @ w или nn.Linear с весом w.T",
        {"begin": lambda call: call.but(**{name: call.args[name].T for name in WEIGHTS})}),
    w_o_missing=("Kyubyong/transformer#117",
        "the output projection w_o is left out | выходная проекция w_o пропущена",
        "return merged @ w_o", {"out": lambda merged, call: merged}),
    w_o_transposed=("AaltoML/SUQ#2",
        "w_o alone is applied transposed | транспонированной применяется одна только w_o",
        "merged @ w_o, not w_o.T | merged @ w_o, а не w_o.T",
        {"out": lambda merged, call: merged @ call.w_o.T}),
    w_o_first_rows=("",
        "every head goes out through the first d_head rows of w_o | "
        "каждая голова выходит через первые d_head строк w_o",
        "w_o[h * d_head : (h + 1) * d_head] for head h | "
        "w_o[h * d_head : (h + 1) * d_head] для головы h",
        {"out": lambda merged, call: merged @ call.w_o[: call.d_head].repeat(call.n_heads, 1)}),
    residual_inside=("",
        "x is added inside: the block that adds it again carries it twice | "
        "x прибавлен внутри: блок прибавит его ещё раз",
        "return merged @ w_o; the block adds x | return merged @ w_o без x",
        {"out": lambda merged, call: call.x + merged @ call.w_o}),
    qkv_cut_by_head=("awslabs/slapo#46",
        "one fused projection is cut head by head, as [H, 3, d_head], not as q, k, v | "
        "общая проекция разрезана по головам, как [H, 3, d_head], а не на q, k, v",
        "qkv.chunk(3, dim=-1), then the heads | qkv.chunk(3, dim=-1), затем головы",
        {"project": _fused}),
    heads_cut_by_view=("chelsea0x3b/dfdx#158",
        "the heads are cut with view(B, H, T, d_head), without a transpose: tokens mix | "
        "головы выделены через view(B, H, T, d_head) без transpose: токены смешались",
        "x.view(B, T, H, d_head).transpose(1, 2)",
        {"cut": lambda x, n: x.reshape(x.shape[0], n, x.shape[1], -1)}),
    heads_cut_interleaved=("",
        "head h takes every H-th column instead of d_head columns in a row | "
        "голова h берёт каждый H-й столбец, а не d_head столбцов подряд",
        "view(B, T, H, d_head), not (B, T, d_head, H) | "
        "view(B, T, H, d_head), а не (B, T, d_head, H)",
        {"cut": lambda x, n: x.unflatten(-1, (-1, n)).permute(0, 3, 1, 2)}),
    heads_joined_by_view=("jsbaan/transformer-from-scratch#6",
        "the heads are joined with view(B, T, d_model), without a transpose: tokens mix | "
        "головы соединены через view(B, T, d_model) без transpose: токены смешались",
        "y.transpose(1, 2).reshape(B, T, d_model)",
        {"join": lambda x: x.reshape(x.shape[0], x.shape[2], -1)}),
    heads_joined_interleaved=("",
        "the columns of the heads are interleaved instead of put side by side | "
        "столбцы голов чередуются, а не идут головой за головой",
        "y.transpose(1, 2).flatten(-2)", {"join": lambda x: x.permute(0, 2, 3, 1).flatten(-2)}),
    heads_reversed=("",
        "the heads are put side by side in reverse order | головы составлены в обратном порядке",
        "head h: columns from h * d_head | голова h: столбцы с h * d_head",
        {"join": lambda x: join_heads(x.flip(1))}),
    heads_averaged=("",
        "the heads are averaged instead of put side by side | "
        "головы усреднены, а не поставлены рядом",
        "torch.cat(heads, dim=-1)",
        {"join": lambda x: join_heads(x.mean(1, keepdim=True).expand_as(x))}),
    weights_averaged=("",
        "the weights are averaged over the heads before they mix the values | "
        "веса усреднены по головам, прежде чем смешать значения",
        "weights @ v for each head | weights @ v для каждой головы",
        {"mix": lambda weights, v: weights.mean(1, keepdim=True) @ v}),
    first_head_for_all=("MarcoMeter/episodic-transformer-memory-ppo#22",
        "the weights of head 0 serve all the heads | веса головы 0 служат всем головам",
        "weights of its own for each head | у каждой головы свои веса",
        {"mix": lambda weights, v: weights[:, :1] @ v}),
    kv_heads_grouped=("",
        "heads 0, 1 read the keys and values of head 0, heads 2, 3 of head 1: grouped queries | "
        "головы 0, 1 читают ключи и значения головы 0, головы 2, 3 — головы 1: группы запросов",
        "keys and values of its own for each head | у каждой головы свои k и v",
        _shared(lambda heads, half: heads * half // len(heads))),
    kv_heads_tiled=("onnx/onnx#7274",
        "half of the heads of keys and values is repeated for the other half | "
        "половина голов ключей и значений повторена для другой половины",
        "keys and values of its own for each head | у каждой головы свои k и v",
        _shared(lambda heads, half: heads % half)),
    positions_rotated_in=("",
        "queries and keys are rotated by their positions (RoPE), which was not asked for | "
        "запросы и ключи повёрнуты по позициям (RoPE), хотя это не требовалось",
        "no rotation: cos = 1, sin = 0 | без поворота: cos = 1, sin = 0",
        {"share": lambda q, k, v: (_turned(q), _turned(k), v)}),
    batch_taken_for_time=("aipixel/AEMatter#3",
        "x is read as [T, B, d_model]: an item attends to the other items of the batch | "
        "x понят как [T, B, d_model]: внимание идёт между элементами батча",
        "nn.MultiheadAttention(..., batch_first=True)",
        {"project": lambda call: tuple(part.transpose(0, 1) for part in projected(call)),
         "past": lambda call: past_keys(call.but(x=call.x.transpose(0, 1))),
         "real": lambda call: call.valid.T[:, None, None, :],
         "join": lambda x: join_heads(x).transpose(0, 1)}),
)
# fmt: on
