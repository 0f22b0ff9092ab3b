"""Attentions that use the mask wrongly: reversed, on the wrong axis, too late, or not at all."""

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from course_lib.contracts.attention._attention_steps import (
    MistakenCall,
    mistaken_attention,
    plain_scores,
    products,
    without_empty,
)
from course_lib.contracts.engine.mistake import Mistake

_HIDE_FIX = {
    "en": "scores = scores.masked_fill(~allowed, -math.inf)",
    "ru": "scores = scores.masked_fill(~allowed, -math.inf)",
}
_BROADCAST_FIX = {
    "en": "let the mask broadcast against [..., T_q, T_k]",
    "ru": "пусть маска сама транслируется до [..., T_q, T_k]",
}


def _attention_with_mask(change: Callable[[MistakenCall], Tensor]) -> partial:
    return partial(mistaken_attention, mask=change)


def _attention_mask_turned(call: MistakenCall) -> Tensor:
    return call.keep.mT if call.keep.shape[-1] == call.keep.shape[-2] else call.keep


def _attention_keys_as_queries(call: MistakenCall) -> Tensor:
    """A mask of one axis, laid down a column where there are as many queries as keys."""
    square = call.q.shape[-2] == call.k.shape[-2]
    return call.keep.mT if square and call.allowed.dim() == 1 else call.keep


def _attention_padding_as_queries(call: MistakenCall) -> Tensor:
    """The same for a mask of more axes that has one row."""
    given, square = call.allowed, call.q.shape[-2] == call.k.shape[-2]
    return call.keep.mT if square and given.shape[-2:-1] == (1,) else call.keep


def _attention_mask_on_heads(call: MistakenCall) -> Tensor:
    keep = call.keep
    return keep.transpose(0, 1) if keep.dim() == 4 and keep.shape[0] == keep.shape[1] else keep


def _attention_mask_per_item(call: MistakenCall) -> Tensor:
    given = call.allowed
    if given.dim() == 3 and call.keep.dim() == 4 and len(given) == len(call.keep):
        return given.unsqueeze(1).expand(call.keep.shape)
    return call.keep


def _attention_diagonal_open(call: MistakenCall) -> Tensor:
    return call.keep | torch.eye(*call.keep.shape[-2:], dtype=torch.bool)


def _attention_always_causal(call: MistakenCall) -> Tensor:
    t_q, t_k = call.keep.shape[-2:]
    return products(call).masked_fill(~torch.ones(t_q, t_k, dtype=torch.bool).tril(), -math.inf)


def _attention_weighed_late(weights: Tensor, keep: Tensor, call: MistakenCall) -> Tensor:
    return plain_scores(call).softmax(dim=-1) * keep


def _attention_renormalised(weights: Tensor, keep: Tensor, call: MistakenCall) -> Tensor:
    shares = plain_scores(call).softmax(dim=-1) * keep
    total = shares.sum(dim=-1, keepdim=True)
    return without_empty(shares / total.masked_fill(call.empty.unsqueeze(-1), 1.0), call)


def _attention_mask_for_show(weights: Tensor, keep: Tensor, call: MistakenCall) -> Tensor:
    return without_empty(plain_scores(call).softmax(dim=-1), call)


ATTENTION_MASK_MISTAKES = (
    Mistake(
        "mask_ignored",
        "opendilab/DI-engine#333",
        partial(mistaken_attention, hide=lambda scores, keep, call: scores),
        {
            "en": "no mask is applied (masked_fill, if it is there, returns a new tensor)",
            "ru": "маска не применяется (masked_fill, если он есть, возвращает новый тензор)",
        },
        _HIDE_FIX,
    ),
    Mistake(
        "mask_for_show",
        "a mutation of right code",
        partial(mistaken_attention, weigh=_attention_mask_for_show),
        {
            "en": "the reported scores are masked, but the weights come from the scores before it",
            "ru": "возвращены оценки под маской, а веса получены из оценок без неё",
        },
        {
            "en": "take the softmax of the masked scores",
            "ru": "softmax берите от оценок под маской",
        },
    ),
    Mistake(
        "mask_inverted",
        "rasbt/LLMs-from-scratch#1061",
        _attention_with_mask(lambda call: ~call.keep),
        {
            "en": "True in the mask means hidden (here True = may read)",
            "ru": "True в маске значит «закрыто» (здесь True = разрешено читать)",
        },
        {"en": "masked_fill(~allowed, -math.inf)", "ru": "masked_fill(~allowed, -math.inf)"},
    ),
    Mistake(
        "mask_transposed",
        "cs231n/cs231n.github.io#279",
        _attention_with_mask(_attention_mask_turned),
        {
            "en": "queries and keys are swapped in the mask",
            "ru": "запросы и ключи в маске переставлены",
        },
        {"en": "rows are queries, columns are keys", "ru": "строки — запросы, столбцы — ключи"},
    ),
    Mistake(
        "mask_added_as_0_and_1",
        "huggingface/transformers#41443",
        partial(mistaken_attention, hide=lambda scores, keep, call: scores + keep),
        {
            "en": "the bool mask is added to the scores as 0 and 1, which hides nothing",
            "ru": "булева маска прибавляется к оценкам как 0 и 1, а это ничего не закрывает",
        },
        _HIDE_FIX,
    ),
    Mistake(
        "mask_multiplied",
        "a mutation of right code",
        partial(mistaken_attention, hide=lambda scores, keep, call: scores * keep),
        {
            "en": "hidden scores are multiplied by 0, and a score of 0 still has a weight",
            "ru": "закрытые оценки умножены на 0, а у оценки 0 тоже есть вес",
        },
        _HIDE_FIX,
    ),
    Mistake(
        "mask_filled_with_nearly_0",
        "awslabs/gluonts#1401",
        partial(
            mistaken_attention, hide=lambda scores, keep, call: scores.masked_fill(~keep, 1e-9)
        ),
        {
            "en": "a sign of the exponent is lost: 1e-9 is nearly 0 and hides nothing",
            "ru": "потерян знак степени: 1e-9 — почти 0 и ничего не закрывает",
        },
        _HIDE_FIX,
    ),
    Mistake(
        "mask_after_softmax",
        "huggingface/pytorch-image-models#2236",
        partial(mistaken_attention, weigh=_attention_weighed_late),
        {
            "en": "the mask comes after the softmax, and the weights that are left do not sum to 1",
            "ru": "маска стоит после softmax, и оставшиеся веса не дают в сумме 1",
        },
        {"en": "mask the scores, then take softmax", "ru": "маска на оценки, затем softmax"},
    ),
    Mistake(
        "mask_renormalised_late",
        "a mutation of right code",
        partial(mistaken_attention, weigh=_attention_renormalised),
        {
            "en": "weights are masked after the softmax and divided by their sum: 0/0 where a "
            "hidden key took all",
            "ru": "веса закрываются после softmax и делятся на сумму: 0/0, если закрытый ключ "
            "забрал всё",
        },
        {"en": "mask the scores, then take softmax", "ru": "маска на оценки, затем softmax"},
    ),
    Mistake(
        "mask_of_first_item",
        "facebookresearch/jepa#93",
        _attention_with_mask(
            lambda call: call.keep[:1].expand(call.keep.shape) if call.keep.dim() > 2 else call.keep
        ),
        {
            "en": "the first item's mask is used for the whole batch",
            "ru": "маска первого элемента применяется ко всему пакету",
        },
        _BROADCAST_FIX,
    ),
    Mistake(
        "mask_of_first_query",
        "a mutation of right code",
        _attention_with_mask(lambda call: call.keep[..., :1, :].expand(call.keep.shape)),
        {
            "en": "every query gets the mask of the first",
            "ru": "каждый запрос получает маску первого",
        },
        _BROADCAST_FIX,
    ),
    Mistake(
        "mask_on_queries",
        "a mutation of right code",
        _attention_with_mask(_attention_keys_as_queries),
        {
            "en": "a mask [T] over the keys is laid over the queries as [T, 1]",
            "ru": "маска ключей [T] ложится на запросы как [T, 1]",
        },
        {"en": "allowed[..., None, :]", "ru": "allowed[..., None, :]"},
    ),
    Mistake(
        "padding_on_queries",
        "hyunwoongko/transformer#40",
        _attention_with_mask(_attention_padding_as_queries),
        {
            "en": "a padding mask [..., 1, T] is laid over the queries as [..., T, 1]",
            "ru": "маска дополнения [..., 1, T] ложится на запросы как [..., T, 1]",
        },
        {"en": "allowed[:, None, None, :]", "ru": "allowed[:, None, None, :]"},
    ),
    Mistake(
        "mask_on_heads",
        "keras-team/keras-hub#2911",
        _attention_with_mask(_attention_mask_on_heads),
        {
            "en": "the batch axis of the mask is laid over the heads",
            "ru": "ось пакета в маске попадает на ось голов",
        },
        {"en": "[B, 1, T_q, T_k] for a mask per item", "ru": "[B, 1, T_q, T_k] для маски элемента"},
    ),
    Mistake(
        "mask_axes_guessed",
        "a mutation of right code",
        _attention_with_mask(_attention_mask_per_item),
        {
            "en": "a mask of three axes is taken to be per item, although it broadcasts over heads",
            "ru": "маска с тремя осями принята за маску элементов, хотя она ложится на головы",
        },
        _BROADCAST_FIX,
    ),
    Mistake(
        "mask_skipped_for_one_query",
        "lucidrains/x-transformers@4465de5",
        _attention_with_mask(
            lambda call: torch.ones_like(call.keep) if call.q.shape[-2] == 1 else call.keep
        ),
        {
            "en": "the mask is skipped when there is a single query",
            "ru": "маска пропускается, когда запрос один",
        },
        {"en": "apply the mask whatever T_q is", "ru": "маска нужна при любом T_q"},
    ),
    Mistake(
        "mask_diagonal_open",
        "a mutation of right code",
        _attention_with_mask(_attention_diagonal_open),
        {
            "en": "query i always reads key i, whatever the mask says",
            "ru": "запрос i всегда читает ключ i, что бы ни говорила маска",
        },
        {"en": "use the mask as it is given", "ru": "берите маску как есть"},
    ),
    Mistake(
        "always_causal",
        "a mutation of right code",
        partial(mistaken_attention, product=_attention_always_causal),
        {
            "en": "a causal mask is applied in every call (is_causal=True, tril)",
            "ru": "причинная маска применяется в каждом вызове (is_causal=True, tril)",
        },
        {
            "en": "only what `allowed` hides is hidden",
            "ru": "закрыто лишь то, что закрыл `allowed`",
        },
    ),
)
