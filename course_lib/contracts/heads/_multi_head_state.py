"""Multi-head attentions that remember, write into their arguments or cut the gradient."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from course_lib.contracts.engine.mistake import Mistake
from course_lib.contracts.heads._multi_heads import HeadsCall, heads_softmax, mistaken_heads


def _heads_scaled_in_place(call: HeadsCall) -> HeadsCall:
    call.w_q.detach().mul_(call.d_head**-0.5)
    return call


def _heads_zeroed_in_place(call: HeadsCall) -> HeadsCall:
    call.x.detach().mul_(call.valid.unsqueeze(-1))
    return call


def _heads_valid_inverted(call: HeadsCall) -> HeadsCall:
    valid = call.valid.clone()
    if call.token_valid is not None:
        call.token_valid.logical_not_()
    return call._replace(token_valid=valid)


def _heads_remembering() -> Callable[..., Tensor]:
    """The padding of the first call of a shape is used in all of them."""
    seen = {}

    def begin(call: HeadsCall) -> HeadsCall:
        valid = seen.setdefault((call.valid.shape, call.causal), call.valid.clone())
        return call._replace(token_valid=valid)

    return mistaken_heads(begin=begin)


def _heads_in_one_buffer() -> Callable[..., Tensor]:
    buffers, right = {}, mistaken_heads()

    def multi_head(*args: object, **options: object) -> Tensor:
        result = right(*args, **options)
        if result.requires_grad:
            return result
        buffer = buffers.setdefault((result.shape, result.dtype), torch.empty_like(result))
        return buffer.copy_(result)

    return multi_head


def _heads_keys_detached(call: HeadsCall) -> tuple[Tensor, Tensor, Tensor]:
    return call.x @ call.w_q, (call.x @ call.w_k).detach(), call.x @ call.w_v


HEADS_STATE_MISTAKES = (
    Mistake(
        "weight_scaled_in_place",
        "flashinfer-ai/flashinfer#2084",
        partial(mistaken_heads, begin=_heads_scaled_in_place, scale=lambda call: 1.0),
        {
            "en": "the scale is multiplied into the caller's weight: it grows with every call",
            "ru": "множитель вписан в переданный вес и копится с каждым вызовом",
        },
        {"en": "q = q * scale, not q *= scale", "ru": "q = q * scale, а не q *= scale"},
    ),
    Mistake(
        "padding_zeroed_in_place",
        "a mutation of right code",
        partial(mistaken_heads, begin=_heads_zeroed_in_place),
        {
            "en": "the padding of the caller's x is overwritten with zeros",
            "ru": "дополнение в переданном x затёрто нулями",
        },
        {"en": "x = x * valid, not x *= valid", "ru": "x = x * valid, а не x *= valid"},
    ),
    Mistake(
        "token_valid_overwritten",
        "pytorch/pytorch#117939",
        partial(mistaken_heads, begin=_heads_valid_inverted),
        {
            "en": "the caller's token_valid is overwritten",
            "ru": "переданный token_valid перезаписан",
        },
        {"en": "~token_valid makes a new tensor", "ru": "~token_valid создаёт новый тензор"},
    ),
    Mistake(
        "padding_remembered",
        "a mutation of right code",
        _heads_remembering,
        {
            "en": "a mask is stored by its shape and used again for other padding",
            "ru": "маска хранится по форме и берётся снова при другом дополнении",
        },
        {"en": "build the mask in every call", "ru": "стройте маску в каждом вызове"},
    ),
    Mistake(
        "result_overwritten",
        "a mutation of right code",
        _heads_in_one_buffer,
        {
            "en": "every call returns the same buffer, and the next one overwrites it",
            "ru": (
                "все вызовы возвращают один и тот же буфер, и следующий затирает прежний результат"
            ),
        },
        {"en": "return a new tensor", "ru": "возвращайте новый тензор"},
    ),
    Mistake(
        "no_gradient",
        "a mutation of right code",
        partial(mistaken_heads, out=lambda merged, call: (merged @ call.w_o).detach()),
        {
            "en": "the output carries no gradient: detach, .data or no_grad inside",
            "ru": "выход не несёт градиента: внутри detach, .data или no_grad",
        },
        {"en": "leave out detach and no_grad", "ru": "уберите detach и no_grad"},
    ),
    Mistake(
        "weights_detached",
        "a mutation of right code",
        partial(mistaken_heads, weigh=lambda scores, keep: heads_softmax(scores, keep).detach()),
        {
            "en": "the attention weights are cut off: queries and keys do not learn",
            "ru": "веса внимания отрезаны: запросы и ключи не учатся",
        },
        {"en": "no detach on scores or weights", "ru": "без detach у оценок и весов"},
    ),
    Mistake(
        "keys_detached",
        "a mutation of right code",
        partial(mistaken_heads, project=_heads_keys_detached),
        {
            "en": "the keys are cut off: w_k does not learn",
            "ru": "ключи отрезаны: w_k не учится",
        },
        {"en": "no detach on k", "ru": "без detach у k"},
    ),
)
