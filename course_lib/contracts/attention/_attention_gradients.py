"""Attentions whose output is right, but not their gradients or the fields beside it."""

import math
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.attention._attention_steps import (
    MistakenCall,
    MistakenResult,
    but_for,
    mistaken_attention,
    plain_scores,
    softmax_or_zero,
    without_empty,
)
from course_lib.contracts.engine.mistake import Mistake

_GRAPH_FIX = {
    "en": "no detach, no_grad, .data or .item() on the way",
    "ru": "без detach, no_grad, .data и .item() по пути",
}
_SCORES_FIX = {
    "en": "return the very scores that went into softmax",
    "ru": "верните те самые оценки, что пошли в softmax",
}
_WEIGHTS_FIX = {
    "en": "return the very weights that mixed the values",
    "ru": "верните те самые веса, что смешали значения",
}


def _attention_cut_off(*, names: tuple[str, ...]) -> Callable[..., Any]:
    """Some of q, k and v are detached before they are used."""
    attention = mistaken_attention()

    def cut(q: Tensor, k: Tensor, v: Tensor, *rest: Any, **policy: Any) -> MistakenResult:
        given = {"q": q, "k": k, "v": v}
        parts = (part.detach() if name in names else part for name, part in given.items())
        return attention(*parts, *rest, **policy)

    return cut


def _attention_straight_through(scores: Tensor, call: MistakenCall) -> Tensor:
    """The softmax going forward, the identity going back."""
    weights = softmax_or_zero(scores, call)
    ghost = scores.masked_fill(scores == -math.inf, 0.0)
    return weights.detach() + (ghost - ghost.detach())


def _attention_half_softmax_gradient(scores: Tensor, call: MistakenCall) -> Tensor:
    """The sum of the row is taken for a constant."""
    nothing = (scores == -math.inf).all(dim=-1, keepdim=True) | call.empty.unsqueeze(-1)
    safe = scores.masked_fill(nothing, 0.0)
    parts = (safe - safe.detach().amax(dim=-1, keepdim=True)).exp()
    return (parts / parts.sum(dim=-1, keepdim=True).detach()).masked_fill(nothing, 0.0)


def _attention_reporting(**makers: Callable[[MistakenResult, MistakenCall], Tensor]) -> partial:
    def finish(result: MistakenResult, call: MistakenCall) -> MistakenResult:
        return but_for(result, **{name: make(result, call) for name, make in makers.items()})

    return partial(mistaken_attention, finish=finish)


def _attention_without_graph(result: MistakenResult, call: MistakenCall) -> MistakenResult:
    return replace(
        result, **{each.name: getattr(result, each.name).detach() for each in fields(result)}
    )


def _attention_dropped_weights(result: MistakenResult, call: MistakenCall) -> Tensor:
    return torch.nn.functional.dropout(result.weights, p=0.5)


def _attention_mean_weights(result: MistakenResult, call: MistakenCall) -> Tensor:
    weights = result.weights
    if weights.dim() < 4:
        return weights
    return weights.mean(dim=1, keepdim=True).expand(weights.shape)


ATTENTION_GRADIENT_MISTAKES = (
    Mistake(
        "output_detached",
        "a mutation of right code",
        partial(mistaken_attention, finish=_attention_without_graph),
        {
            "en": "the output is cut off from q, k and v: nothing can be learnt through it",
            "ru": "выход отрезан от q, k и v: через него ничему не научиться",
        },
        _GRAPH_FIX,
    ),
    Mistake(
        "q_detached",
        "a mutation of right code",
        partial(_attention_cut_off, names=("q",)),
        {"en": "no gradient reaches q", "ru": "градиент не доходит до q"},
        _GRAPH_FIX,
    ),
    Mistake(
        "k_detached",
        "a mutation of right code",
        partial(_attention_cut_off, names=("k",)),
        {"en": "no gradient reaches k", "ru": "градиент не доходит до k"},
        _GRAPH_FIX,
    ),
    Mistake(
        "v_detached",
        "a mutation of right code",
        partial(_attention_cut_off, names=("v",)),
        {"en": "no gradient reaches v", "ru": "градиент не доходит до v"},
        _GRAPH_FIX,
    ),
    Mistake(
        "weights_detached",
        "a mutation of right code",
        partial(_attention_cut_off, names=("q", "k")),
        {
            "en": "the weights are detached: no gradient reaches q and k",
            "ru": "веса отсоединены: градиент не доходит до q и k",
        },
        _GRAPH_FIX,
    ),
    Mistake(
        "straight_through",
        "a mutation of right code",
        partial(mistaken_attention, soften=_attention_straight_through),
        {
            "en": "gradients pass the softmax as if it were not there",
            "ru": "градиенты идут сквозь softmax, будто его нет",
        },
        {"en": "weights = scores.softmax(dim=-1)", "ru": "weights = scores.softmax(dim=-1)"},
    ),
    Mistake(
        "row_sum_detached",
        "a mutation of right code",
        partial(mistaken_attention, soften=_attention_half_softmax_gradient),
        {
            "en": "the sum of a row is detached: its part of the gradient is lost",
            "ru": "сумма строки отсоединена: её доля градиента потеряна",
        },
        {
            "en": "detach the maximum at most, not the sum",
            "ru": "detach — разве что для максимума, но не для суммы",
        },
    ),
    Mistake(
        "weights_after_dropout",
        "pytorch/pytorch#27968",
        _attention_reporting(weights=_attention_dropped_weights),
        {
            "en": "the reported weights have been through dropout",
            "ru": "возвращённые веса прошли через dropout",
        },
        _WEIGHTS_FIX,
    ),
    Mistake(
        "weights_before_mask",
        "a mutation of right code",
        _attention_reporting(
            weights=lambda result, call: without_empty(plain_scores(call).softmax(dim=-1), call)
        ),
        {
            "en": "the reported weights are those of the unmasked scores",
            "ru": "возвращённые веса получены из оценок без маски",
        },
        _WEIGHTS_FIX,
    ),
    Mistake(
        "weights_averaged_over_heads",
        "mlverse/torch#542",
        _attention_reporting(weights=_attention_mean_weights),
        {
            "en": "the reported weights are the mean over the heads",
            "ru": "возвращённые веса усреднены по головам",
        },
        _WEIGHTS_FIX,
    ),
    Mistake(
        "scores_before_mask",
        "a mutation of right code",
        _attention_reporting(scores=lambda result, call: plain_scores(call)),
        {
            "en": "the reported scores are those before the mask",
            "ru": "возвращённые оценки взяты до маски",
        },
        _SCORES_FIX,
    ),
    Mistake(
        "scores_before_scaling",
        "a mutation of right code",
        _attention_reporting(
            scores=lambda result, call: result.scores * math.sqrt(call.q.shape[-1])
        ),
        {
            "en": "the reported scores are those before the division by √d_k",
            "ru": "возвращённые оценки взяты до деления на √d_k",
        },
        _SCORES_FIX,
    ),
    Mistake(
        "scores_reported_in_16_bits",
        "a mutation of right code",
        _attention_reporting(scores=lambda result, call: result.scores.to(call.dtype)),
        {
            "en": "the reported scores of 16-bit inputs are cut back to 16 bits",
            "ru": "возвращённые оценки для 16-битных входов снова обрезаны до 16 бит",
        },
        {"en": "return the scores in float32", "ru": "верните оценки в float32"},
    ),
)
