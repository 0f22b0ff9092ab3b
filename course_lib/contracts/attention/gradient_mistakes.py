"""Attentions whose output is right, but not their gradients or the fields beside it."""

import math
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from course_lib.contracts.attention.steps import (
    MistakenCall,
    MistakenResult,
    mistaken_attention,
    plain_scores,
    reporting,
    softmax_or_zero,
    unmasked_weights,
)
from course_lib.contracts.engine.mistake import mistakes

_GRAPH_FIX = (
    "no detach, no_grad, .data or .item() on the way | без detach, no_grad, .data и .item() по пути"
)
_SCORES_FIX = (
    "return the very scores that went into softmax | верните те самые оценки, что пошли в softmax"
)
_WEIGHTS_FIX = (
    "return the very weights that mixed the values | верните те самые веса, что смешали значения"
)


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
