"""Attentions that confuse axes and arguments, write where they must not, or remember."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.attention._attention_steps import (
    MistakenCall,
    MistakenResult,
    but_for,
    mistaken_attention,
)
from course_lib.contracts.engine.mistake import Mistake

_COPY_FIX = {
    "en": "no method ending in _ on an argument: q = q * scale",
    "ru": "без методов с _ на конце: q = q * scale",
}
_MEMORY_FIX = {
    "en": "keep nothing between calls",
    "ru": "ничего не храните между вызовами",
}


def _attention_turned_mix(weights: Tensor, call: MistakenCall) -> Tensor:
    square = weights.shape[-1] == weights.shape[-2]
    return (weights.mT if square else weights) @ call.v


def _attention_swapped(call: MistakenCall) -> Tensor:
    square = call.q.shape[-2] == call.k.shape[-2]
    return call.k @ call.q.mT if square else call.q @ call.k.mT


def _attention_keys_mixed(weights: Tensor, call: MistakenCall) -> Tensor:
    return weights @ (call.k if call.k.shape[-1] == call.v.shape[-1] else call.v)


def _attention_first_values(weights: Tensor, call: MistakenCall) -> Tensor:
    v = call.v
    return weights @ (v[:1].expand(v.shape) if v.dim() > 2 else v)


def _attention_whole_blocks(weights: Tensor, call: MistakenCall) -> Tensor:
    """Keys beyond the last whole block of 64 are not mixed in."""
    t_k = weights.shape[-1]
    whole = t_k if t_k < 64 else t_k // 64 * 64
    return weights[..., :whole] @ call.v[..., :whole, :]


def _attention_dropped(weights: Tensor, call: MistakenCall) -> Tensor:
    return torch.nn.functional.dropout(weights, p=0.1) @ call.v


def _attention_dropped_in_training(weights: Tensor, call: MistakenCall) -> Tensor:
    training = call.q.requires_grad or call.v.requires_grad
    return torch.nn.functional.dropout(weights, p=0.1, training=training) @ call.v


def _attention_writing_into(*, name: str) -> Callable[..., Any]:
    """The result is right, but one of q, k and v comes back changed."""
    attention = mistaken_attention()

    def writing(q: Tensor, k: Tensor, v: Tensor, *rest: Any, **policy: Any) -> MistakenResult:
        result = attention(q.clone(), k.clone(), v.clone(), *rest, **policy)
        {"q": q, "k": k, "v": v}[name].detach().mul_(1 / math.sqrt(q.shape[-1]))
        return result

    return writing


def _attention_turning_the_mask() -> Callable[..., Any]:
    """The mask comes back inverted."""

    def finish(result: MistakenResult, call: MistakenCall) -> MistakenResult:
        if call.allowed is not None:
            call.allowed.logical_not_()
        return result

    return mistaken_attention(finish=finish)


def _attention_with_first_mask() -> Callable[..., Any]:
    """The first mask of each shape is used ever after."""
    seen: dict[Any, Tensor] = {}

    def mask(call: MistakenCall) -> Tensor:
        return seen.setdefault(call.keep.shape, call.keep.clone())

    return mistaken_attention(mask=mask)


def _attention_kept_by_address() -> Callable[..., Any]:
    """A result is looked up by its tensors, not by the numbers in them."""
    seen: dict[Any, Any] = {}
    attention = mistaken_attention()

    def remembering(*args: Any, **policy: Any) -> MistakenResult:
        key = (*map(id, args), *policy.items(), args[0].requires_grad)
        if key not in seen:
            seen[key] = (args, attention(*args, **policy))
        return seen[key][1]

    return remembering


def _attention_in_one_buffer() -> Callable[..., Any]:
    """Results of one shape share their memory."""
    buffers: dict[Any, Tensor] = {}

    def finish(result: MistakenResult, call: MistakenCall) -> MistakenResult:
        output = result.output
        if output.requires_grad:
            return result
        buffer = buffers.setdefault((output.shape, output.dtype), torch.empty_like(output))
        return but_for(result, output=buffer.copy_(output))

    return mistaken_attention(finish=finish)


def _attention_with_earlier_keys() -> Callable[..., Any]:
    """The keys of the call before, if they fit, are averaged with those of this one."""
    state: dict[str, Tensor] = {}

    def product(call: MistakenCall) -> Tensor:
        before = state.get("k", call.k)
        state["k"] = call.k.detach().clone()
        fits = before.shape == call.k.shape and before.dtype == call.k.dtype
        k = (before + call.k) / 2 if fits else call.k
        mixed = replace(call, k=k)
        return mixed.q @ mixed.k.mT

    return mistaken_attention(product=product)


ATTENTION_STATE_MISTAKES = (
    Mistake(
        "values_mixed_transposed",
        "ok1zjf/VASNet#25",
        partial(mistaken_attention, mix=_attention_turned_mix),
        {
            "en": "the values are mixed with the transposed weights, which fits if T_q = T_k",
            "ru": "значения смешиваются с транспонированными весами, что возможно при T_q = T_k",
        },
        {"en": "weights @ v", "ru": "weights @ v"},
    ),
    Mistake(
        "q_and_k_swapped",
        "d2l-ai/d2l-en@377a73fa",
        partial(mistaken_attention, product=_attention_swapped),
        {
            "en": "queries and keys are swapped (k @ q.mT), which fits if T_q = T_k",
            "ru": "запросы и ключи переставлены (k @ q.mT), что возможно при T_q = T_k",
        },
        {"en": "q @ k.mT", "ru": "q @ k.mT"},
    ),
    Mistake(
        "keys_mixed_for_values",
        "a mutation of right code",
        partial(mistaken_attention, mix=_attention_keys_mixed),
        {
            "en": "the keys are mixed instead of the values, which fits if d_k = d_v",
            "ru": "вместо значений смешиваются ключи, что возможно при d_k = d_v",
        },
        {"en": "weights @ v", "ru": "weights @ v"},
    ),
    Mistake(
        "values_of_first_item",
        "a mutation of right code",
        partial(mistaken_attention, mix=_attention_first_values),
        {
            "en": "the first item's values are mixed for the whole batch",
            "ru": "для всего пакета смешиваются значения первого элемента",
        },
        {"en": "weights @ v", "ru": "weights @ v"},
    ),
    Mistake(
        "last_block_dropped",
        "jax-ml/jax#27224",
        partial(mistaken_attention, mix=_attention_whole_blocks),
        {
            "en": "keys beyond the last whole block are dropped",
            "ru": "ключи после последнего целого блока потеряны",
        },
        {
            "en": "range(0, t_k, block), the last one short",
            "ru": "range(0, t_k, block), последний короче",
        },
    ),
    Mistake(
        "random_in_every_call",
        "pytorch/pytorch#124464",
        partial(mistaken_attention, mix=_attention_dropped),
        {
            "en": "random numbers change the result of every call, like a dropout that no eval() "
            "switches off",
            "ru": "случайные числа меняют результат каждого вызова — как dropout, который не "
            "выключает eval()",
        },
        {"en": "no dropout here, or only if training", "ru": "dropout — только при обучении"},
    ),
    Mistake(
        "random_while_training",
        "a mutation of right code",
        partial(mistaken_attention, mix=_attention_dropped_in_training),
        {
            "en": "inputs that require a gradient get another output (dropout nobody asked for?)",
            "ru": "входы, требующие градиента, дают другой выход (непрошеный dropout?)",
        },
        {"en": "the same formula with and without", "ru": "одна формула при обучении и без него"},
    ),
    Mistake(
        "q_written_into",
        "flashinfer-ai/flashinfer#2084",
        partial(_attention_writing_into, name="q"),
        {
            "en": "the call writes into the caller's q, as q *= scale does",
            "ru": "вызов пишет в переданный q, как это делает q *= scale",
        },
        _COPY_FIX,
    ),
    Mistake(
        "k_written_into",
        "a mutation of right code",
        partial(_attention_writing_into, name="k"),
        {"en": "the call writes into the caller's k", "ru": "вызов пишет в переданный k"},
        _COPY_FIX,
    ),
    Mistake(
        "v_written_into",
        "a mutation of right code",
        partial(_attention_writing_into, name="v"),
        {"en": "the call writes into the caller's v", "ru": "вызов пишет в переданный v"},
        _COPY_FIX,
    ),
    Mistake(
        "mask_written_into",
        "pytorch/pytorch#111023",
        _attention_turning_the_mask,
        {
            "en": "the call writes into the caller's mask",
            "ru": "вызов пишет в переданную маску",
        },
        {"en": "~allowed, not allowed.logical_not_()", "ru": "~allowed вместо logical_not_()"},
    ),
    Mistake(
        "mask_kept_by_shape",
        "a mutation of right code",
        _attention_with_first_mask,
        {
            "en": "the first mask of each shape is kept and used ever after",
            "ru": "первая маска каждой формы сохраняется и применяется ко всем следующим вызовам",
        },
        _MEMORY_FIX,
    ),
    Mistake(
        "result_kept_by_address",
        "a mutation of right code",
        _attention_kept_by_address,
        {
            "en": "a result is kept by the tensors' addresses: new numbers in them get old answers",
            "ru": "результат хранится по адресам тензоров: на новые числа даётся старый ответ",
        },
        _MEMORY_FIX,
    ),
    Mistake(
        "one_buffer_for_results",
        "a mutation of right code",
        _attention_in_one_buffer,
        {
            "en": "results share one buffer: a later call overwrites an earlier output",
            "ru": "у результатов общая память: новый вызов затирает прежний выход",
        },
        _MEMORY_FIX,
    ),
    Mistake(
        "earlier_calls_remembered",
        "casper-hansen/AutoAWQ#170",
        _attention_with_earlier_keys,
        {
            "en": "earlier calls change the result of this one, as a stale cache of keys does",
            "ru": "прежние вызовы меняют результат этого, как устаревший кэш ключей",
        },
        _MEMORY_FIX,
    ),
)
