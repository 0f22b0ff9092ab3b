"""Attentions that are right but for large, narrow or hidden numbers, or for their gradients."""

import math
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.contracts.attention.steps import (
    MistakenCall,
    MistakenResult,
    hidden_by_infinity,
    mistaken_attention,
    plain_scores,
    reporting,
    shares_of,
    softmax_or_zero,
    unmasked_weights,
    without_empty,
)
from course_lib.contracts.engine.mistake import mistakes

_INFINITY_FIX = "masked_fill(~allowed, -math.inf)"
_MAXIMUM_FIX = (
    "subtract each row's largest visible score first, or use softmax | "
    "вычтите наибольшую видимую оценку строки или возьмите softmax"
)
_WIDE_FIX = (
    "q, k, v = q.float(), k.float(), v.float() for 16-bit inputs | "
    "для 16-битных входов q, k, v = q.float(), k.float(), v.float()"
)
_GRAPH_FIX = (
    "no detach, no_grad, .data or .item() on the way | без detach, no_grad, .data и .item() по пути"
)
_SCORES_FIX = (
    "return the very scores that went into softmax | верните те самые оценки, что пошли в softmax"
)
_WEIGHTS_FIX = (
    "return the very weights that mixed the values | верните те самые веса, что смешали значения"
)


def _filled(number: float) -> dict[str, Callable[..., Tensor]]:
    return {"hide": lambda scores, keep, call: scores.masked_fill(~keep, number)}


def _one_maximum(scores: Tensor, call: MistakenCall) -> Tensor:
    top = scores.amax(dim=(-2, -1), keepdim=True)
    parts = (scores - top.masked_fill(top == -math.inf, 0.0)).exp()
    return shares_of(parts, call)


def _hidden_maximum(weights: Tensor, keep: Tensor, call: MistakenCall) -> Tensor:
    raw = plain_scores(call)
    parts = (raw - raw.amax(dim=-1, keepdim=True)).exp() * keep
    return without_empty(shares_of(parts, call), call)


def _matmul_narrow(call: MistakenCall) -> Tensor:
    if call.dtype != torch.float32:
        return call.q @ call.k.mT
    return call.q.bfloat16().float() @ call.k.bfloat16().float().mT


def _where_after_exp(weights: Tensor, keep: Tensor, call: MistakenCall) -> Tensor:
    """The forward pass is right; in the backward pass zero meets infinity."""
    raw = plain_scores(call)
    top = hidden_by_infinity(raw.detach(), keep, call).amax(dim=-1, keepdim=True)
    top = top.masked_fill(top == -math.inf, 0.0)
    parts = torch.where(keep, (raw - top).exp(), 0.0)
    return shares_of(parts, call)


def _cut_off(*, names: tuple[str, ...]) -> Callable[..., Any]:
    """Some of q, k and v are detached before they are used."""
    attention = mistaken_attention()

    def cut(q: Tensor, k: Tensor, v: Tensor, *rest: Any, **policy: Any) -> MistakenResult:
        given = {"q": q, "k": k, "v": v}
        parts = (part.detach() if name in names else part for name, part in given.items())
        return attention(*parts, *rest, **policy)

    return cut


def _straight_through(scores: Tensor, call: MistakenCall) -> Tensor:
    """The softmax going forward, the identity going back."""
    weights = softmax_or_zero(scores, call)
    ghost = scores.masked_fill(scores == -math.inf, 0.0)
    return weights.detach() + (ghost - ghost.detach())


def _half_softmax_gradient(scores: Tensor, call: MistakenCall) -> Tensor:
    """The sum of the row is taken for a constant."""
    nothing = (scores == -math.inf).all(dim=-1, keepdim=True) | call.empty.unsqueeze(-1)
    safe = scores.masked_fill(nothing, 0.0)
    parts = (safe - safe.detach().amax(dim=-1, keepdim=True)).exp()
    return (parts / parts.sum(dim=-1, keepdim=True).detach()).masked_fill(nothing, 0.0)


def _without_graph(result: MistakenResult, call: MistakenCall) -> MistakenResult:
    return MistakenResult(*(getattr(result, each.name).detach() for each in fields(result)))


def _averaged(weights: Tensor) -> Tensor:
    return weights.mean(1, keepdim=True).expand(weights.shape) if weights.dim() > 3 else weights


# fmt: off
ATTENTION_NUMERIC_MISTAKES = mistakes(
    mistaken_attention,
    finite_fill_small=("ohdearquant/lattice#361",
        "a hidden score is a modest finite number, about -1e4: visible scores sink lower | "
        "замаскированная оценка — конечное число порядка -1e4: видимые оценки бывают и меньше",
        _INFINITY_FIX, _filled(-1e4)),
    finite_fill=("TransformerLensOrg/TransformerLens#319",
        "a hidden score is a large finite number, as -1e9, instead of -inf | замаскированная "
        "оценка — конечное число, хоть и большое по модулю (например, -1e9), а не -inf",
        _INFINITY_FIX, _filled(-1e9)),
    finite_fill_unreported=("",
        "the scores say -inf, but the softmax saw a finite number in their place | "
        "в оценках стоит -inf, но softmax видел на их месте конечное число",
        _INFINITY_FIX, {"weigh": lambda weights, keep, call: softmax_or_zero(
            plain_scores(call).masked_fill(~keep, -1e30), call)}),
    least_number_fill=("pytorch/pytorch#103749",
        "a hidden score is the least finite number (finfo.min) instead of -inf | "
        "замаскированная оценка — наименьшее конечное число (finfo.min), а не -inf",
        _INFINITY_FIX, _filled(torch.finfo(torch.float64).min)),
    plus_infinity_fill=("lucidrains/memory-compressed-attention#2",
        "hidden scores become +inf, which takes all the weight or gives NaN | "
        "замаскированные оценки становятся +inf: это забирает весь вес или даёт NaN",
        _INFINITY_FIX, _filled(math.inf)),
    exp_without_maximum=("pyg-team/pytorch_geometric#53",
        "exp is taken of the scores as they are, and overflows | "
        "exp берётся от оценок как есть и переполняется",
        _MAXIMUM_FIX, {"soften": lambda scores, call: shares_of(scores.exp(), call)}),
    one_maximum_for_all=("",
        "one maximum is subtracted from the whole matrix: low rows become 0/0 | "
        "из всей матрицы вычитается один максимум: низкие строки дают 0/0",
        _MAXIMUM_FIX, {"soften": _one_maximum}),
    maximum_of_hidden_keys=("",
        "the maximum that is subtracted counts hidden keys: the row may become 0/0 | "
        "вычитаемый максимум учитывает замаскированные ключи: строка может дать 0/0",
        _MAXIMUM_FIX, {"weigh": _hidden_maximum}),
    scores_clamped=("",
        "the scores are clamped, so that large ones become equal | "
        "оценки обрезаются сверху, и большие становятся равны",
        _MAXIMUM_FIX,
        {"soften": lambda scores, call: softmax_or_zero(scores.clamp(max=50000.0), call)}),
    scores_in_16_bits=("karpathy/nanochat@16788ee",
        "16-bit inputs are multiplied in 16 bits: q·k overflows or loses its digits | "
        "16-битные входы перемножаются в 16 битах: q·k переполняется или теряет цифры",
        _WIDE_FIX, {"product": lambda call: (
            call.q.to(call.dtype) @ call.k.to(call.dtype).mT).to(call.q.dtype)}),
    softmax_in_16_bits=("facebookresearch/metaseq#247",
        "the scores are cut back to 16 bits before the softmax | "
        "перед softmax оценки снова обрезаются до 16 бит",
        "softmax in float32, then cast back | softmax в float32, потом обратно",
        {"soften": lambda scores, call: softmax_or_zero(
            scores.to(call.dtype), call).to(scores.dtype)}),
    float32_inside=("",
        "float64 inputs are computed, at least in part, in float32 | "
        "входы float64 считаются, хотя бы отчасти, в float32",
        "widen 16 bits only | расширяйте только 16-битные входы",
        {"weigh": lambda weights, keep, call: weights.float().to(weights.dtype)}),
    bfloat16_inside=("",
        "float32 inputs are multiplied with fewer digits (bfloat16, TF32, autocast) | "
        "входы float32 перемножаются грубее (bfloat16, TF32, autocast)",
        "no reduced precision inside | без пониженной точности внутри",
        {"product": _matmul_narrow}),
    nan_spreads=("pytorch/pytorch#101967",
        "a NaN in a hidden key or value reaches rows that cannot see it: 0 · NaN is NaN | "
        "NaN в замаскированном ключе или значении доходит до строк, которые его не видят",
        "refuse inputs that are not finite | отвергайте входы с NaN и бесконечностями",
        {"check": lambda q, k, v: None}),
    where_after_exp=("pytorch/pytorch#68425",
        "exp overflows behind a where: output right, gradient 0 · inf = NaN | "
        "exp переполняется под where: выход верен, а градиент — 0 · inf = NaN",
        "mask the scores before exp, not after | маска — до exp, а не после",
        {"weigh": _where_after_exp}),
)

ATTENTION_GRADIENT_MISTAKES = mistakes(
    mistaken_attention,
    output_detached=("",
        "the output is cut off from q, k and v: nothing can be learnt through it | "
        "выход отрезан от q, k и v: через него ничему не научиться",
        _GRAPH_FIX, {"finish": _without_graph}),
    q_detached=("",
        "no gradient reaches q | градиент не доходит до q",
        _GRAPH_FIX, partial(_cut_off, names=("q",))),
    k_detached=("",
        "no gradient reaches k | градиент не доходит до k",
        _GRAPH_FIX, partial(_cut_off, names=("k",))),
    v_detached=("",
        "no gradient reaches v | градиент не доходит до v",
        _GRAPH_FIX, partial(_cut_off, names=("v",))),
    weights_detached=("",
        "the weights are detached: no gradient reaches q and k | "
        "веса отсоединены: градиент не доходит до q и k",
        _GRAPH_FIX, partial(_cut_off, names=("q", "k"))),
    straight_through=("",
        "gradients pass the softmax as if it were not there | "
        "градиенты идут сквозь softmax, будто его нет",
        "weights = scores.softmax(dim=-1)", {"soften": _straight_through}),
    row_sum_detached=("",
        "the sum of a row is detached: its part of the gradient is lost | "
        "сумма строки отсоединена: её доля градиента потеряна",
        "detach the maximum at most, not the sum | "
        "detach — разве что для максимума, но не для суммы", {"soften": _half_softmax_gradient}),
    weights_after_dropout=("pytorch/pytorch#27968",
        "the reported weights have been through dropout | возвращённые веса прошли через dropout",
        _WEIGHTS_FIX, reporting("weights", lambda result, call: F.dropout(result.weights, p=0.5))),
    weights_before_mask=("",
        "the reported weights are those of the unmasked scores | "
        "возвращённые веса получены из оценок без маски",
        _WEIGHTS_FIX, reporting("weights", lambda result, call: unmasked_weights(call))),
    weights_averaged_over_heads=("mlverse/torch#542",
        "the reported weights are the mean over the heads | возвращённые веса усреднены по головам",
        _WEIGHTS_FIX, reporting("weights", lambda result, call: _averaged(result.weights))),
    scores_before_mask=("",
        "the reported scores are those before the mask | возвращённые оценки взяты до маски",
        _SCORES_FIX, reporting("scores", lambda result, call: plain_scores(call))),
    scores_before_scaling=("",
        "the reported scores are those before the division by √d_k | "
        "возвращённые оценки взяты до деления на √d_k",
        _SCORES_FIX,
        reporting("scores", lambda result, call: result.scores * math.sqrt(call.q.shape[-1]))),
    scores_reported_in_16_bits=("",
        "the reported scores of 16-bit inputs are cut back to 16 bits | "
        "возвращённые оценки для 16-битных входов снова обрезаны до 16 бит",
        "return the scores in float32 | верните оценки в float32",
        reporting("scores", lambda result, call: result.scores.to(call.dtype))),
)
# fmt: on
