"""Attentions that accept masks that they must refuse."""

import math
from functools import partial

from torch import Tensor

from course_lib.contracts.attention._attention_steps import (
    MistakenCall,
    fit_as_asked,
    mistaken_attention,
)
from course_lib.contracts.engine.mistake import Mistake

_DTYPE_FIX = {
    "en": "raise TypeError unless allowed.dtype == torch.bool",
    "ru": "TypeError, если allowed.dtype != torch.bool",
}
_SHAPE_FIX = {
    "en": "raise ValueError unless it broadcasts to [..., T_q, T_k]",
    "ru": "ValueError, если маска не транслируется до [..., T_q, T_k]",
}


def _attention_fit_any_dtype(allowed: Tensor, shape: tuple[int, ...]) -> Tensor:
    return fit_as_asked(allowed != 0, shape)


def _attention_fit_truthy_floats(allowed: Tensor, shape: tuple[int, ...]) -> Tensor:
    return fit_as_asked(allowed != 0 if allowed.is_floating_point() else allowed, shape)


def _attention_fit_truthy_integers(allowed: Tensor, shape: tuple[int, ...]) -> Tensor:
    return fit_as_asked(allowed if allowed.is_floating_point() else allowed != 0, shape)


def _attention_fit_float(allowed: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A float mask is taken for a bias: nothing counts as hidden but its -inf."""
    kept = allowed > -math.inf if allowed.is_floating_point() else allowed
    return fit_as_asked(kept, shape)


def _attention_hidden_or_biased(scores: Tensor, keep: Tensor, call: MistakenCall) -> Tensor:
    bias = call.allowed if call.allowed.is_floating_point() else 0.0
    return (scores + bias).masked_fill(~keep, -math.inf)


def _attention_fit_cut(allowed: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A mask that is too large is cut to its upper left corner."""
    cut = allowed[..., : shape[-1]]
    return fit_as_asked(cut[..., : shape[-2], :] if cut.dim() > 1 else cut, shape)


def _attention_fit_growing(allowed: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A mask with more batch axes than the tensors makes the result grow."""
    if allowed.dim() > len(shape):
        fit_as_asked(allowed[(0,) * (allowed.dim() - len(shape))], shape)
        return allowed.expand(*allowed.shape[: allowed.dim() - len(shape)], *shape)
    return fit_as_asked(allowed, shape)


ATTENTION_REFUSAL_MISTAKES = (
    Mistake(
        "any_dtype_of_mask",
        "a mutation of right code",
        partial(mistaken_attention, fit=_attention_fit_any_dtype),
        {
            "en": "numbers pass for a mask (allowed == 0, .bool()), so a bias is taken for True",
            "ru": (
                "числа сходят за маску (allowed == 0, .bool()), и прибавка (bias) считается True"
            ),
        },
        _DTYPE_FIX,
    ),
    Mistake(
        "float_mask_taken_as_bool",
        "a mutation of right code",
        partial(mistaken_attention, fit=_attention_fit_truthy_floats),
        {
            "en": "a float mask passes, and whatever is not 0 counts as True",
            "ru": "маска из чисел float проходит, и всё, что не 0, считается True",
        },
        _DTYPE_FIX,
    ),
    Mistake(
        "integer_mask_taken_as_bool",
        "a mutation of right code",
        partial(mistaken_attention, fit=_attention_fit_truthy_integers),
        {
            "en": "a mask of whole numbers passes, and whatever is not 0 counts as True",
            "ru": "маска из целых чисел проходит, и всё, что не 0, считается True",
        },
        _DTYPE_FIX,
    ),
    Mistake(
        "float_mask_added",
        "pytorch/pytorch#136816",
        partial(mistaken_attention, fit=_attention_fit_float, hide=_attention_hidden_or_biased),
        {
            "en": "a float mask is added to the scores: its 0 and 1 hide nothing",
            "ru": "маска из чисел прибавляется к оценкам: её 0 и 1 ничего не закрывают",
        },
        _DTYPE_FIX,
    ),
    Mistake(
        "large_mask_cut",
        "rasbt/LLMs-from-scratch@6522be9",
        partial(mistaken_attention, fit=_attention_fit_cut),
        {
            "en": "a mask that is too large is cut to its upper left corner",
            "ru": "слишком большая маска обрезается до левого верхнего угла",
        },
        _SHAPE_FIX,
    ),
    Mistake(
        "mask_enlarges_result",
        "a mutation of right code",
        partial(mistaken_attention, fit=_attention_fit_growing),
        {
            "en": "a mask with more batch axes than q, k and v makes the result grow",
            "ru": "маска, у которой осей пакета больше, чем у q, k и v, увеличивает результат",
        },
        _SHAPE_FIX,
    ),
)
