"""Attentions that are wrong in one way each, as people reported them."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.contracts.attention.number_mistakes import (
    ATTENTION_GRADIENT_MISTAKES,
    ATTENTION_NUMERIC_MISTAKES,
)
from course_lib.contracts.attention.refusal_mistakes import (
    ATTENTION_EMPTY_ROW_MISTAKES,
    ATTENTION_REFUSAL_MISTAKES,
)
from course_lib.contracts.attention.score_mistakes import (
    ATTENTION_MASK_MISTAKES,
    ATTENTION_SCALE_MISTAKES,
)
from course_lib.contracts.attention.steps import (
    MistakenCall,
    MistakenResult,
    mistaken_attention,
    products,
)
from course_lib.contracts.engine.mistake import mistakes

_COPY_FIX = (
    "no method ending in _ on an argument: q = q * scale | без методов с _ на конце: q = q * scale"
)
_MEMORY_FIX = "keep nothing between calls | ничего не храните между вызовами"


def _whole_blocks(weights: Tensor, call: MistakenCall) -> Tensor:
    """Keys beyond the last whole block of 64 are not mixed in."""
    t_k = weights.shape[-1]
    whole = t_k if t_k < 64 else t_k // 64 * 64
    return weights[..., :whole] @ call.v[..., :whole, :]


def _writing_into(*, name: str) -> Callable[..., Any]:
    """The result is right, but one of q, k and v comes back changed."""
    attention = mistaken_attention()

    def writing(q: Tensor, k: Tensor, v: Tensor, *rest: Any, **policy: Any) -> MistakenResult:
        result = attention(q.clone(), k.clone(), v.clone(), *rest, **policy)
        {"q": q, "k": k, "v": v}[name].detach().mul_(1 / math.sqrt(q.shape[-1]))
        return result

    return writing


def _turn_the_mask(result: MistakenResult, call: MistakenCall) -> MistakenResult:
    if call.allowed is not None:
        call.allowed.logical_not_()
    return result


def _with_first_mask() -> Callable[..., Any]:
    """The first mask of each shape is used ever after."""
    seen: dict[Any, Tensor] = {}

    def mask(call: MistakenCall) -> Tensor:
        return seen.setdefault(call.keep.shape, call.keep.clone())

    return mistaken_attention(mask=mask)


def _kept_by_address() -> Callable[..., Any]:
    """A result is looked up by its tensors, not by the numbers in them."""
    seen: dict[Any, Any] = {}
    attention = mistaken_attention()

    def remembering(*args: Any, **policy: Any) -> MistakenResult:
        key = (*map(id, args), *policy.items(), args[0].requires_grad)
        if key not in seen:
            seen[key] = (args, attention(*args, **policy))
        return seen[key][1]

    return remembering


def _in_one_buffer() -> Callable[..., Any]:
    """Results of one shape share their memory."""
    buffers: dict[Any, Tensor] = {}

    def finish(result: MistakenResult, call: MistakenCall) -> MistakenResult:
        output = result.output
        if output.requires_grad:
            return result
        buffer = buffers.setdefault((output.shape, output.dtype), torch.empty_like(output))
        return replace(result, output=buffer.copy_(output))

    return mistaken_attention(finish=finish)


def _with_earlier_keys() -> Callable[..., Any]:
    """The keys of the call before, if they fit, are averaged with those of this one."""
    state: dict[str, Tensor] = {}

    def product(call: MistakenCall) -> Tensor:
        before = state.get("k", call.k)
        state["k"] = call.k.detach().clone()
        fits = before.shape == call.k.shape and before.dtype == call.k.dtype
        return call.q @ ((before + call.k) / 2 if fits else call.k).mT

    return mistaken_attention(product=product)


# fmt: off
_STATE_MISTAKES = mistakes(
    mistaken_attention,
    values_mixed_transposed=("ok1zjf/VASNet#25",
        "the values are mixed with the transposed weights, which fits if T_q = T_k | "
        "значения смешиваются с транспонированными весами, что возможно при T_q = T_k",
        "weights @ v",
        {"mix": lambda weights, call: (weights.mT if call.square else weights) @ call.v}),
    q_and_k_swapped=("d2l-ai/d2l-en@377a73fa",
        "queries and keys are swapped (k @ q.mT), which fits if T_q = T_k | "
        "запросы и ключи переставлены (k @ q.mT), что возможно при T_q = T_k",
        "q @ k.mT",
        {"product": lambda call: call.k @ call.q.mT if call.square else products(call)}),
    keys_mixed_for_values=("",
        "the keys are mixed instead of the values, which fits if d_k = d_v | "
        "вместо значений смешиваются ключи, что возможно при d_k = d_v",
        "weights @ v",
        {"mix": lambda weights, call: weights @ (
            call.k if call.k.shape[-1] == call.v.shape[-1] else call.v)}),
    values_of_first_item=("",
        "the first item's values are mixed for the whole batch | "
        "для всего батча смешиваются значения первого элемента",
        "weights @ v",
        {"mix": lambda weights, call: weights @ (call.v[:1] if call.v.dim() > 2 else call.v)}),
    last_block_dropped=("jax-ml/jax#27224",
        "keys beyond the last whole block are dropped | "
        "ключи после последнего целого блока потеряны",
        "range(0, t_k, block), the last one short | range(0, t_k, block), последний короче",
        {"mix": _whole_blocks}),
    random_in_every_call=("pytorch/pytorch#124464",
        "random numbers change the result of every call, like a dropout that no eval() switches "
        "off | случайные числа меняют результат каждого вызова — как dropout, который не выключает "
        "eval()",
        "no dropout here, or only if training | dropout — только при обучении",
        {"mix": lambda weights, call: F.dropout(weights, p=0.1) @ call.v}),
    random_while_training=("",
        "inputs that require a gradient get another output (dropout nobody asked for?) | "
        "входы, требующие градиента, дают другой выход (непрошеный dropout?)",
        "the same formula with and without | одна формула при обучении и без него",
        {"mix": lambda weights, call: F.dropout(
            weights, p=0.1, training=call.q.requires_grad or call.v.requires_grad) @ call.v}),
    q_written_into=("flashinfer-ai/flashinfer#2084",
        "the call writes into the caller's q, as q *= scale does | "
        "вызов пишет в переданный q, как это делает q *= scale",
        _COPY_FIX, partial(_writing_into, name="q")),
    k_written_into=("",
        "the call writes into the caller's k | вызов пишет в переданный k",
        _COPY_FIX, partial(_writing_into, name="k")),
    v_written_into=("",
        "the call writes into the caller's v | вызов пишет в переданный v",
        _COPY_FIX, partial(_writing_into, name="v")),
    mask_written_into=("pytorch/pytorch#111023",
        "the call writes into the caller's mask | вызов пишет в переданную маску",
        "~allowed, not allowed.logical_not_() | ~allowed вместо logical_not_()",
        {"finish": _turn_the_mask}),
    mask_kept_by_shape=("",
        "the first mask of each shape is kept and used ever after | "
        "первая маска каждой формы сохраняется и применяется ко всем следующим вызовам",
        _MEMORY_FIX, _with_first_mask),
    result_kept_by_address=("",
        "a result is kept by the tensors' addresses: new numbers in them get old answers | "
        "результат хранится по адресам тензоров: на новые числа даётся старый ответ",
        _MEMORY_FIX, _kept_by_address),
    one_buffer_for_results=("",
        "results share one buffer: a later call overwrites an earlier output | "
        "у результатов общая память: новый вызов затирает прежний выход",
        _MEMORY_FIX, _in_one_buffer),
    earlier_calls_remembered=("casper-hansen/AutoAWQ#170",
        "earlier calls change the result of this one, as a stale cache of keys does | "
        "прежние вызовы меняют результат этого, как устаревший кэш ключей",
        _MEMORY_FIX, _with_earlier_keys),
)
# fmt: on

ATTENTION_MISTAKES = (
    *ATTENTION_SCALE_MISTAKES,
    *ATTENTION_MASK_MISTAKES,
    *_STATE_MISTAKES,
    *ATTENTION_NUMERIC_MISTAKES,
    *ATTENTION_EMPTY_ROW_MISTAKES,
    *ATTENTION_REFUSAL_MISTAKES,
    *ATTENTION_GRADIENT_MISTAKES,
)
