"""Multi-head attentions that are wrong in one way each, as people reported them."""

from collections.abc import Callable

import torch
from torch import Tensor

from course_lib.contracts.engine.mistake import mistakes
from course_lib.contracts.heads.layout_mistakes import LAYOUT_MISTAKES
from course_lib.contracts.heads.mask_mistakes import MASK_MISTAKES
from course_lib.contracts.heads.number_mistakes import NUMBER_MISTAKES
from course_lib.contracts.heads.steps import HeadsCall, masked_softmax, mistaken_heads


def _scaled_in_place(call: HeadsCall) -> HeadsCall:
    call.w_q.detach().mul_(call.d_head**-0.5)
    return call


def _zeroed_in_place(call: HeadsCall) -> HeadsCall:
    call.x.detach().mul_(call.valid.unsqueeze(-1))
    return call


def _valid_inverted(call: HeadsCall) -> HeadsCall:
    valid = call.valid.clone()
    if call.token_valid is not None:
        call.token_valid.logical_not_()
    return call._replace(token_valid=valid)


def _remembering() -> Callable[..., Tensor]:
    """The padding of the first call of a shape is used in all of them."""
    seen = {}

    def begin(call: HeadsCall) -> HeadsCall:
        valid = seen.setdefault((call.valid.shape, call.causal), call.valid.clone())
        return call._replace(token_valid=valid)

    return mistaken_heads(begin=begin)


def _in_one_buffer() -> Callable[..., Tensor]:
    buffers, right = {}, mistaken_heads()

    def multi_head(*args: object, **options: object) -> Tensor:
        result = right(*args, **options)
        if result.requires_grad:
            return result
        buffer = buffers.setdefault((result.shape, result.dtype), torch.empty_like(result))
        return buffer.copy_(result)

    return multi_head


# fmt: off
_STATE_MISTAKES = mistakes(
    mistaken_heads,
    weight_scaled_in_place=("flashinfer-ai/flashinfer#2084",
        "the scale is multiplied into the caller's weight: it grows with every call | "
        "множитель вписан в переданный вес и копится с каждым вызовом",
        "q = q * scale, not q *= scale | q = q * scale, а не q *= scale",
        {"begin": _scaled_in_place, "scale": lambda call: 1.0}),
    padding_zeroed_in_place=("",
        "the padding of the caller's x is overwritten with zeros | "
        "паддинг в переданном x затёрт нулями",
        "x = x * valid, not x *= valid | x = x * valid, а не x *= valid",
        {"begin": _zeroed_in_place}),
    token_valid_overwritten=("pytorch/pytorch#117939",
        "the caller's token_valid is overwritten | переданный token_valid перезаписан",
        "~token_valid makes a new tensor | ~token_valid создаёт новый тензор",
        {"begin": _valid_inverted}),
    padding_remembered=("",
        "a mask is stored by its shape and used again for other padding | "
        "маска хранится по форме и берётся снова при другом паддинге",
        "build the mask in every call | стройте маску в каждом вызове", _remembering),
    result_overwritten=("",
        "every call returns the same buffer, and the next one overwrites it | "
        "все вызовы возвращают один и тот же буфер, и следующий затирает прежний результат",
        "return a new tensor | возвращайте новый тензор", _in_one_buffer),
    no_gradient=("",
        "the output carries no gradient: detach, .data or no_grad inside | "
        "выход не несёт градиента: внутри detach, .data или no_grad",
        "leave out detach and no_grad | уберите detach и no_grad",
        {"out": lambda merged, call: (merged @ call.w_o).detach()}),
    weights_detached=("",
        "the attention weights are cut off: queries and keys do not learn | "
        "веса внимания отрезаны: запросы и ключи не учатся",
        "no detach on scores or weights | без detach у оценок и весов",
        {"weigh": lambda scores, keep: masked_softmax(scores, keep).detach()}),
    keys_detached=("",
        "the keys are cut off: w_k does not learn | ключи отрезаны: w_k не учится",
        "no detach on k | без detach у k", {"share": lambda q, k, v: (q, k.detach(), v)}),
)
# fmt: on

MULTI_HEAD_MISTAKES = (*NUMBER_MISTAKES, *LAYOUT_MISTAKES, *MASK_MISTAKES, *_STATE_MISTAKES)
