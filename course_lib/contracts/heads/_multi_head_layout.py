"""Multi-head attentions that cut, share or join their heads in a wrong way."""

from functools import partial

import torch
from torch import Tensor

from course_lib.contracts.engine.mistake import Mistake
from course_lib.contracts.heads._multi_heads import (
    HeadsCall,
    heads_joined,
    heads_projected,
    mistaken_heads,
)


def _heads_grouped(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    """Half as many heads of keys and values, each for two heads of queries in a row."""
    n_heads = q.shape[1]
    source = torch.arange(n_heads) // (1 if n_heads % 2 else 2)
    return q, k[:, source], v[:, source]


def _heads_tiled(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    """Half as many heads of keys and values, one set after the other."""
    n_heads = q.shape[1]
    source = torch.arange(n_heads) % (n_heads if n_heads % 2 else n_heads // 2)
    return q, k[:, source], v[:, source]


def _heads_rotated(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
    return _heads_turned(q), _heads_turned(k), v


def _heads_turned(x: Tensor) -> Tensor:
    """Turn the two halves of an even width by angles that grow with the position."""
    half = x.shape[-1] // 2
    if x.shape[-1] % 2:
        return x
    rates = 10000.0 ** (-torch.arange(half, dtype=x.dtype) / half)
    angles = torch.arange(x.shape[-2], dtype=x.dtype).unsqueeze(-1) * rates
    one, other = x.chunk(2, dim=-1)
    turned = one * angles.cos() - other * angles.sin(), other * angles.cos() + one * angles.sin()
    return torch.cat(turned, dim=-1)


def _heads_averaged(x: Tensor) -> Tensor:
    return heads_joined(x.mean(1, keepdim=True).expand_as(x))


def _heads_over_batch(call: HeadsCall) -> tuple[Tensor, ...]:
    return tuple(part.transpose(0, 1) for part in heads_projected(call))


def _heads_batch_past(call: HeadsCall) -> Tensor:
    i = torch.arange(call.x.shape[0])
    return (i <= i.unsqueeze(-1)) | (not call.causal)


HEADS_LAYOUT_MISTAKES = (
    Mistake(
        "heads_cut_by_view",
        "chelsea0x3b/dfdx#158",
        partial(mistaken_heads, cut=lambda x, n: x.reshape(x.shape[0], n, x.shape[1], -1)),
        {
            "en": "the heads are cut with view(B, H, T, d_head), without a transpose: tokens mix",
            "ru": "головы выделены через view(B, H, T, d_head) без transpose: токены смешались",
        },
        {
            "en": "x.view(B, T, H, d_head).transpose(1, 2)",
            "ru": "x.view(B, T, H, d_head).transpose(1, 2)",
        },
    ),
    Mistake(
        "heads_cut_interleaved",
        "a mutation of right code",
        partial(mistaken_heads, cut=lambda x, n: x.unflatten(-1, (-1, n)).permute(0, 3, 1, 2)),
        {
            "en": "head h takes every H-th column instead of d_head columns in a row",
            "ru": "голова h берёт каждый H-й столбец, а не d_head столбцов подряд",
        },
        {
            "en": "view(B, T, H, d_head), not (B, T, d_head, H)",
            "ru": "view(B, T, H, d_head), а не (B, T, d_head, H)",
        },
    ),
    Mistake(
        "heads_joined_by_view",
        "jsbaan/transformer-from-scratch#6",
        partial(mistaken_heads, join=lambda x: x.reshape(x.shape[0], x.shape[2], -1)),
        {
            "en": "the heads are joined with view(B, T, d_model), without a transpose: tokens mix",
            "ru": "головы соединены через view(B, T, d_model) без transpose: токены смешались",
        },
        {
            "en": "y.transpose(1, 2).reshape(B, T, d_model)",
            "ru": "y.transpose(1, 2).reshape(B, T, d_model)",
        },
    ),
    Mistake(
        "heads_joined_interleaved",
        "a mutation of right code",
        partial(mistaken_heads, join=lambda x: x.permute(0, 2, 3, 1).flatten(-2)),
        {
            "en": "the columns of the heads are interleaved instead of put side by side",
            "ru": "столбцы голов чередуются, а не идут головой за головой",
        },
        {"en": "y.transpose(1, 2).flatten(-2)", "ru": "y.transpose(1, 2).flatten(-2)"},
    ),
    Mistake(
        "heads_reversed",
        "a mutation of right code",
        partial(mistaken_heads, join=lambda x: heads_joined(x.flip(1))),
        {
            "en": "the heads are put side by side in reverse order",
            "ru": "головы составлены в обратном порядке",
        },
        {"en": "head h: columns from h * d_head", "ru": "голова h: столбцы с h * d_head"},
    ),
    Mistake(
        "heads_averaged",
        "a mutation of right code",
        partial(mistaken_heads, join=_heads_averaged),
        {
            "en": "the heads are averaged instead of put side by side",
            "ru": "головы усреднены, а не поставлены рядом",
        },
        {"en": "torch.cat(heads, dim=-1)", "ru": "torch.cat(heads, dim=-1)"},
    ),
    Mistake(
        "weights_averaged",
        "a mutation of right code",
        partial(mistaken_heads, mix=lambda weights, v: weights.mean(1, keepdim=True) @ v),
        {
            "en": "the weights are averaged over the heads before they mix the values",
            "ru": "веса усреднены по головам, прежде чем смешать значения",
        },
        {"en": "weights @ v for each head", "ru": "weights @ v для каждой головы"},
    ),
    Mistake(
        "first_head_for_all",
        "MarcoMeter/episodic-transformer-memory-ppo#22",
        partial(mistaken_heads, mix=lambda weights, v: weights[:, :1] @ v),
        {
            "en": "the weights of head 0 serve all the heads",
            "ru": "веса головы 0 служат всем головам",
        },
        {"en": "weights of its own for each head", "ru": "у каждой головы свои веса"},
    ),
    Mistake(
        "kv_heads_grouped",
        "a mutation of right code",
        partial(mistaken_heads, share=_heads_grouped),
        {
            "en": "heads 0, 1 read the keys and values of head 0, heads 2, 3 of head 1: "
            "grouped queries",
            "ru": "головы 0, 1 читают ключи и значения головы 0, головы 2, 3 — головы 1: "
            "группы запросов",
        },
        {"en": "keys and values of its own for each head", "ru": "у каждой головы свои k и v"},
    ),
    Mistake(
        "kv_heads_tiled",
        "onnx/onnx#7274",
        partial(mistaken_heads, share=_heads_tiled),
        {
            "en": "half of the heads of keys and values is repeated for the other half",
            "ru": "половина голов ключей и значений повторена для другой половины",
        },
        {"en": "keys and values of its own for each head", "ru": "у каждой головы свои k и v"},
    ),
    Mistake(
        "positions_rotated_in",
        "a mutation of right code",
        partial(mistaken_heads, share=_heads_rotated),
        {
            "en": "queries and keys are rotated by their positions (RoPE), which was not asked for",
            "ru": "запросы и ключи повёрнуты по позициям (RoPE), хотя это не требовалось",
        },
        {"en": "no rotation: cos = 1, sin = 0", "ru": "без поворота: cos = 1, sin = 0"},
    ),
    Mistake(
        "batch_taken_for_time",
        "aipixel/AEMatter#3",
        partial(
            mistaken_heads,
            project=_heads_over_batch,
            past=_heads_batch_past,
            real=lambda call: call.valid.T[:, None, None, :],
            join=lambda x: heads_joined(x).transpose(0, 1),
        ),
        {
            "en": "x is read as [T, B, d_model]: an item attends to the other items of the batch",
            "ru": "x понят как [T, B, d_model]: внимание идёт между элементами пакета",
        },
        {
            "en": "nn.MultiheadAttention(..., batch_first=True)",
            "ru": "nn.MultiheadAttention(..., batch_first=True)",
        },
    ),
)
