"""Attentions that use the mask wrongly: reversed, on the wrong axis, too late, or not at all."""

import math

import torch
from torch import Tensor

from course_lib.contracts.attention.steps import (
    MistakenCall,
    mistaken_attention,
    products,
    shares_of,
    unmasked_weights,
    without_empty,
)
from course_lib.contracts.engine.mistake import mistakes

_HIDE_FIX = "scores = scores.masked_fill(~allowed, -math.inf)"
_BROADCAST_FIX = (
    "let the mask broadcast against [..., T_q, T_k] | "
    "пусть маска сама транслируется до [..., T_q, T_k]"
)


def _mask_on_heads(call: MistakenCall) -> Tensor:
    keep = call.keep
    return keep.transpose(0, 1) if keep.dim() == 4 and keep.shape[0] == keep.shape[1] else keep


def _mask_per_item(call: MistakenCall) -> Tensor:
    given = call.allowed
    if given.dim() == 3 and call.keep.dim() == 4 and len(given) == len(call.keep):
        return given.unsqueeze(1).expand(call.keep.shape)
    return call.keep


# fmt: off
ATTENTION_MASK_MISTAKES = mistakes(
    mistaken_attention,
    mask_ignored=("opendilab/DI-engine#333",
        "no mask is applied (masked_fill, if it is there, returns a new tensor) | "
        "маска не применяется (masked_fill, если он есть, возвращает новый тензор)",
        _HIDE_FIX, {"hide": lambda scores, keep, call: scores}),
    mask_for_show=("",
        "the reported scores are masked, but the weights come from the scores before it | "
        "возвращены оценки под маской, а веса получены из оценок без неё",
        "take the softmax of the masked scores | softmax берите от оценок под маской",
        {"weigh": lambda weights, keep, call: unmasked_weights(call)}),
    mask_inverted=("rasbt/LLMs-from-scratch#1061",
        "True in the mask means hidden (here True = may read) | "
        "True в маске значит «закрыто» (здесь True = разрешено читать)",
        "masked_fill(~allowed, -math.inf)", {"mask": lambda call: ~call.keep}),
    mask_transposed=("cs231n/cs231n.github.io#279",
        "queries and keys are swapped in the mask | запросы и ключи в маске переставлены",
        "rows are queries, columns are keys | строки — запросы, столбцы — ключи",
        {"mask": lambda call: call.turned}),
    mask_added_as_0_and_1=("huggingface/transformers#41443",
        "the bool mask is added to the scores as 0 and 1, which hides nothing | "
        "булева маска прибавляется к оценкам как 0 и 1, а это ничего не закрывает",
        _HIDE_FIX, {"hide": lambda scores, keep, call: scores + keep}),
    mask_multiplied=("",
        "hidden scores are multiplied by 0, and a score of 0 still has a weight | "
        "замаскированные оценки умножены на 0, а у оценки 0 тоже есть вес",
        _HIDE_FIX, {"hide": lambda scores, keep, call: scores * keep}),
    mask_filled_with_nearly_0=("awslabs/gluonts#1401",
        "a sign of the exponent is lost: 1e-9 is nearly 0 and hides nothing | "
        "потерян знак степени: 1e-9 — почти 0 и ничего не закрывает",
        _HIDE_FIX, {"hide": lambda scores, keep, call: scores.masked_fill(~keep, 1e-9)}),
    mask_after_softmax=("huggingface/pytorch-image-models#2236",
        "the mask comes after the softmax, and the weights that are left do not sum to 1 | "
        "маска стоит после softmax, и оставшиеся веса не дают в сумме 1",
        "mask the scores, then take softmax | маска на оценки, затем softmax",
        {"weigh": lambda weights, keep, call: unmasked_weights(call) * keep}),
    mask_renormalised_late=("",
        "weights are masked after the softmax and divided by their sum: 0/0 where a hidden key "
        "took all | веса закрываются после softmax и делятся на сумму: "
        "0/0, если замаскированный ключ забрал всё",
        "mask the scores, then take softmax | маска на оценки, затем softmax",
        {"weigh": lambda weights, keep, call: without_empty(
            shares_of(unmasked_weights(call) * keep, call), call)}),
    mask_of_first_item=("facebookresearch/jepa#93",
        "the first item's mask is used for the whole batch | "
        "маска первого элемента применяется ко всему батчу",
        _BROADCAST_FIX, {"mask": lambda call: call.keep[:1] if call.keep.dim() > 2 else call.keep}),
    mask_of_first_query=("",
        "every query gets the mask of the first | каждый запрос получает маску первого",
        _BROADCAST_FIX, {"mask": lambda call: call.keep[..., :1, :]}),
    mask_on_queries=("",
        "a mask [T] over the keys is laid over the queries as [T, 1] | "
        "маска ключей [T] ложится на запросы как [T, 1]",
        "allowed[..., None, :]",
        {"mask": lambda call: call.turned if call.allowed.dim() == 1 else call.keep}),
    padding_on_queries=("hyunwoongko/transformer#40",
        "a padding mask [..., 1, T] is laid over the queries as [..., T, 1] | "
        "маска паддинга [..., 1, T] ложится на запросы как [..., T, 1]",
        "allowed[:, None, None, :]",
        {"mask": lambda call: call.turned if call.allowed.shape[-2:-1] == (1,) else call.keep}),
    mask_on_heads=("keras-team/keras-hub#2911",
        "the batch axis of the mask is laid over the heads | "
        "ось батча в маске попадает на ось голов",
        "[B, 1, T_q, T_k] for a mask per item | [B, 1, T_q, T_k] для маски элемента",
        {"mask": _mask_on_heads}),
    mask_axes_guessed=("",
        "a mask of three axes is taken to be per item, although it broadcasts over heads | "
        "маска с тремя осями принята за маску элементов, хотя она ложится на головы",
        _BROADCAST_FIX, {"mask": _mask_per_item}),
    mask_skipped_for_one_query=("lucidrains/x-transformers@4465de5",
        "the mask is skipped when there is a single query | маска пропускается, когда запрос один",
        "apply the mask whatever T_q is | маска нужна при любом T_q",
        {"mask": lambda call: call.keep | (call.q.shape[-2] == 1)}),
    mask_diagonal_open=("",
        "query i always reads key i, whatever the mask says | "
        "запрос i всегда читает ключ i, что бы ни говорила маска",
        "use the mask as it is given | берите маску как есть",
        {"mask": lambda call: call.keep | torch.eye(*call.keep.shape[-2:], dtype=torch.bool)}),
    always_causal=("",
        "a causal mask is applied in every call (is_causal=True, tril) | "
        "причинная маска применяется в каждом вызове (is_causal=True, tril)",
        "only what `allowed` hides is hidden | закрыто лишь то, что закрыл `allowed`",
        {"product": lambda call: products(call).masked_fill(
            torch.ones(call.keep.shape[-2:]).triu(1) > 0, -math.inf)}),
)
# fmt: on
