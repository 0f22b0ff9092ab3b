"""Attentions that are right until a number is large, narrow, hidden or infinite."""

import math
from functools import partial

import torch
from torch import Tensor

from course_lib.contracts.attention._attention_steps import (
    MistakenCall,
    hidden_by_infinity,
    mistaken_attention,
    plain_scores,
    softmax_or_zero,
    without_empty,
)
from course_lib.contracts.engine.mistake import Mistake

_INFINITY_FIX = {
    "en": "masked_fill(~allowed, -math.inf)",
    "ru": "masked_fill(~allowed, -math.inf)",
}
_MAXIMUM_FIX = {
    "en": "subtract each row's largest visible score first, or use softmax",
    "ru": "вычтите наибольшую видимую оценку строки или возьмите softmax",
}
_WIDE_FIX = {
    "en": "q, k, v = q.float(), k.float(), v.float() for 16-bit inputs",
    "ru": "для 16-битных входов q, k, v = q.float(), k.float(), v.float()",
}


def _attention_filled(number: float) -> partial:
    return partial(
        mistaken_attention, hide=lambda scores, keep, call: scores.masked_fill(~keep, number)
    )


def _attention_unreported_fill(weights: Tensor, keep: Tensor, call: MistakenCall) -> Tensor:
    return softmax_or_zero(plain_scores(call).masked_fill(~keep, -1e30), call)


def _attention_bare_exp(scores: Tensor, call: MistakenCall) -> Tensor:
    parts = scores.exp()
    total = parts.sum(dim=-1, keepdim=True)
    return parts / total.masked_fill(call.empty.unsqueeze(-1), 1.0)


def _attention_one_maximum(scores: Tensor, call: MistakenCall) -> Tensor:
    top = scores.amax(dim=(-2, -1), keepdim=True)
    parts = (scores - top.masked_fill(top == -math.inf, 0.0)).exp()
    total = parts.sum(dim=-1, keepdim=True)
    return parts / total.masked_fill(call.empty.unsqueeze(-1), 1.0)


def _attention_hidden_maximum(weights: Tensor, keep: Tensor, call: MistakenCall) -> Tensor:
    raw = plain_scores(call)
    parts = (raw - raw.amax(dim=-1, keepdim=True)).exp() * keep
    total = parts.sum(dim=-1, keepdim=True)
    return without_empty(parts / total.masked_fill(call.empty.unsqueeze(-1), 1.0), call)


def _attention_clamped(scores: Tensor, call: MistakenCall) -> Tensor:
    return softmax_or_zero(scores.clamp(max=50000.0), call)


def _attention_softmax_narrow(scores: Tensor, call: MistakenCall) -> Tensor:
    return softmax_or_zero(scores.to(call.dtype), call).to(scores.dtype)


def _attention_product_narrow(call: MistakenCall) -> Tensor:
    narrow = call.dtype in (torch.float16, torch.bfloat16)
    product = call.q.to(call.dtype) @ call.k.to(call.dtype).mT
    return product.to(torch.float32) if narrow else product


def _attention_matmul_narrow(call: MistakenCall) -> Tensor:
    if call.dtype != torch.float32:
        return call.q @ call.k.mT
    return call.q.bfloat16().float() @ call.k.bfloat16().float().mT


def _attention_where_after_exp(weights: Tensor, keep: Tensor, call: MistakenCall) -> Tensor:
    """The forward pass is right; in the backward pass zero meets infinity."""
    raw = plain_scores(call)
    top = hidden_by_infinity(raw.detach(), keep, call).amax(dim=-1, keepdim=True)
    top = top.masked_fill(top == -math.inf, 0.0)
    parts = torch.where(keep, (raw - top).exp(), 0.0)
    total = parts.sum(dim=-1, keepdim=True)
    return parts / total.masked_fill(call.empty.unsqueeze(-1), 1.0)


ATTENTION_NUMERIC_MISTAKES = (
    Mistake(
        "finite_fill_small",
        "ohdearquant/lattice#361",
        _attention_filled(-1e4),
        {
            "en": "a hidden score is a modest finite number, about -1e4: visible scores sink lower",
            "ru": "закрытая оценка — небольшое конечное число, около -1e4: видимые бывают ниже",
        },
        _INFINITY_FIX,
    ),
    Mistake(
        "finite_fill",
        "TransformerLensOrg/TransformerLens#319",
        _attention_filled(-1e9),
        {
            "en": "a hidden score is a large finite number, as -1e9, instead of -inf",
            "ru": "закрытая оценка — большое конечное число, например -1e9, а не -inf",
        },
        _INFINITY_FIX,
    ),
    Mistake(
        "finite_fill_unreported",
        "a mutation of right code",
        partial(mistaken_attention, weigh=_attention_unreported_fill),
        {
            "en": "the scores say -inf, but the softmax saw a finite number in their place",
            "ru": "в оценках стоит -inf, но softmax видел на их месте конечное число",
        },
        _INFINITY_FIX,
    ),
    Mistake(
        "least_number_fill",
        "pytorch/pytorch#103749",
        _attention_filled(torch.finfo(torch.float64).min),
        {
            "en": "a hidden score is the least finite number (finfo.min) instead of -inf",
            "ru": "закрытая оценка — наименьшее конечное число (finfo.min), а не -inf",
        },
        _INFINITY_FIX,
    ),
    Mistake(
        "plus_infinity_fill",
        "lucidrains/memory-compressed-attention#2",
        _attention_filled(math.inf),
        {
            "en": "hidden scores become +inf, which takes all the weight or gives NaN",
            "ru": "закрытые оценки становятся +inf: это забирает весь вес или даёт NaN",
        },
        _INFINITY_FIX,
    ),
    Mistake(
        "exp_without_maximum",
        "pyg-team/pytorch_geometric#53",
        partial(mistaken_attention, soften=_attention_bare_exp),
        {
            "en": "exp is taken of the scores as they are, and overflows",
            "ru": "exp берётся от оценок как есть и переполняется",
        },
        _MAXIMUM_FIX,
    ),
    Mistake(
        "one_maximum_for_all",
        "a mutation of right code",
        partial(mistaken_attention, soften=_attention_one_maximum),
        {
            "en": "one maximum is subtracted from the whole matrix: low rows become 0/0",
            "ru": "из всей матрицы вычитается один максимум: низкие строки дают 0/0",
        },
        _MAXIMUM_FIX,
    ),
    Mistake(
        "maximum_of_hidden_keys",
        "a mutation of right code",
        partial(mistaken_attention, weigh=_attention_hidden_maximum),
        {
            "en": "the maximum that is subtracted counts hidden keys: the row may become 0/0",
            "ru": "вычитаемый максимум учитывает закрытые ключи: строка может дать 0/0",
        },
        _MAXIMUM_FIX,
    ),
    Mistake(
        "scores_clamped",
        "a mutation of right code",
        partial(mistaken_attention, soften=_attention_clamped),
        {
            "en": "the scores are clamped, so that large ones become equal",
            "ru": "оценки обрезаются сверху, и большие становятся равны",
        },
        _MAXIMUM_FIX,
    ),
    Mistake(
        "scores_in_16_bits",
        "karpathy/nanochat@16788ee",
        partial(mistaken_attention, product=_attention_product_narrow),
        {
            "en": "16-bit inputs are multiplied in 16 bits: q·k overflows or loses its digits",
            "ru": "16-битные входы перемножаются в 16 битах: q·k переполняется или теряет цифры",
        },
        _WIDE_FIX,
    ),
    Mistake(
        "softmax_in_16_bits",
        "facebookresearch/metaseq#247",
        partial(mistaken_attention, soften=_attention_softmax_narrow),
        {
            "en": "the scores are cut back to 16 bits before the softmax",
            "ru": "перед softmax оценки снова обрезаются до 16 бит",
        },
        {"en": "softmax in float32, then cast back", "ru": "softmax в float32, потом обратно"},
    ),
    Mistake(
        "float32_inside",
        "a mutation of right code",
        partial(
            mistaken_attention,
            weigh=lambda weights, keep, call: weights.float().to(weights.dtype),
        ),
        {
            "en": "float64 inputs are computed, at least in part, in float32",
            "ru": "входы float64 считаются, хотя бы отчасти, в float32",
        },
        {"en": "widen 16 bits only", "ru": "расширяйте только 16-битные входы"},
    ),
    Mistake(
        "bfloat16_inside",
        "a mutation of right code",
        partial(mistaken_attention, product=_attention_matmul_narrow),
        {
            "en": "float32 inputs are multiplied with fewer digits (bfloat16, TF32, autocast)",
            "ru": "входы float32 перемножаются грубее (bfloat16, TF32, autocast)",
        },
        {"en": "no reduced precision inside", "ru": "без пониженной точности внутри"},
    ),
    Mistake(
        "nan_spreads",
        "pytorch/pytorch#101967",
        partial(mistaken_attention, check=lambda q, k, v: None),
        {
            "en": "a NaN in a hidden key or value reaches rows that cannot see it: 0 · NaN is NaN",
            "ru": "NaN в закрытом ключе или значении доходит до строк, которые его не видят",
        },
        {
            "en": "refuse inputs that are not finite",
            "ru": "отвергайте входы с NaN и бесконечностями",
        },
    ),
    Mistake(
        "where_after_exp",
        "pytorch/pytorch#68425",
        partial(mistaken_attention, weigh=_attention_where_after_exp),
        {
            "en": "exp overflows behind a where: output right, gradient 0 · inf = NaN",
            "ru": "exp переполняется под where: выход верен, а градиент — 0 · inf = NaN",
        },
        {"en": "mask the scores before exp, not after", "ru": "маска — до exp, а не после"},
    ),
)
