"""Attentions that mishandle what must be refused: rows with nothing to read, and bad masks."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from course_lib.contracts.attention.steps import (
    MistakenCall,
    fit_as_asked,
    mistaken_attention,
    refuse_empty_rows,
    reporting,
    softmax_or_zero,
    without_empty,
)
from course_lib.contracts.engine.mistake import mistakes

_UNPOLICED = {"police": lambda call: None}  # no row is refused
_EMPTY_FIX = "if not allowed.any(-1).all(): raise ValueError"
_ZERO_FIX = (
    "softmax of 0 in empty rows, then masked_fill(empty, 0.0) | "
    "softmax от нулей в пустых строках, затем masked_fill(empty, 0.0)"
)
_FLAG_FIX = "empty_rows = ~allowed.any(-1)"
_DTYPE_FIX = (
    "raise TypeError unless allowed.dtype == torch.bool | "
    "TypeError, если allowed.dtype != torch.bool"
)
_SHAPE_FIX = (
    "raise ValueError unless it broadcasts to [..., T_q, T_k] | "
    "ValueError, если маска не транслируется до [..., T_q, T_k]"
)


def _plain_softmax(scores: Tensor, call: MistakenCall) -> Tensor:
    return scores.softmax(dim=-1)


def _uniform_softmax(scores: Tensor, call: MistakenCall) -> Tensor:
    return without_empty(scores, call).softmax(dim=-1)


def _unless_zero(soften: Callable[..., Tensor]) -> dict[str, Callable[..., Tensor]]:
    def by_policy(scores: Tensor, call: MistakenCall) -> Tensor:
        return (softmax_or_zero if call.empty_row == "zero" else soften)(scores, call)

    return {"soften": by_policy}


def _truthy(*, floats: bool = False, integers: bool = False) -> dict[str, Callable[..., Tensor]]:
    """Numbers of these kinds pass for a mask: whatever is not 0 is True."""

    def fit(allowed: Tensor, shape: tuple[int, ...]) -> Tensor:
        passes = floats if allowed.is_floating_point() else integers
        return fit_as_asked(allowed != 0 if passes else allowed, shape)

    return {"fit": fit}


def _fit_float(allowed: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A float mask is taken for a bias: nothing counts as hidden but its -inf."""
    kept = allowed > -math.inf if allowed.is_floating_point() else allowed
    return fit_as_asked(kept, shape)


def _hidden_or_biased(scores: Tensor, keep: Tensor, call: MistakenCall) -> Tensor:
    bias = call.allowed if call.allowed.is_floating_point() else 0.0
    return (scores + bias).masked_fill(~keep, -math.inf)


def _fit_cut(allowed: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A mask that is too large is cut to its upper left corner."""
    cut = allowed[..., : shape[-1]]
    return fit_as_asked(cut[..., : shape[-2], :] if cut.dim() > 1 else cut, shape)


def _fit_growing(allowed: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A mask with more batch axes than the tensors makes the result grow."""
    if allowed.dim() > len(shape):
        fit_as_asked(allowed[(0,) * (allowed.dim() - len(shape))], shape)
        return allowed.expand(*allowed.shape[: allowed.dim() - len(shape)], *shape)
    return fit_as_asked(allowed, shape)


# fmt: off
ATTENTION_EMPTY_ROW_MISTAKES = mistakes(
    mistaken_attention,
    empty_row_nan=("pytorch/pytorch#41508",
        "a fully masked row passes and comes back as NaN: softmax of nothing is 0/0 | "
        "полностью замаскированная строка проходит и даёт NaN: softmax от пустоты — это 0/0",
        _EMPTY_FIX, _UNPOLICED | {"soften": _plain_softmax}),
    empty_row_averaged=("pytorch/pytorch#103749",
        "a fully masked row passes and averages every value, hidden though they are | "
        "полностью замаскированная строка проходит и усредняет все значения, хотя они закрыты",
        _EMPTY_FIX, _UNPOLICED | {"soften": _uniform_softmax}),
    error_policy_gives_nan=("pytorch/pytorch#103963",
        "a fully masked row that must be an error comes back as NaN | "
        "полностью замаскированная строка вместо ошибки даёт NaN",
        _EMPTY_FIX, _UNPOLICED | _unless_zero(_plain_softmax)),
    error_policy_averages=("",
        "a fully masked row that must be an error averages every value | "
        "полностью замаскированная строка вместо ошибки усредняет все значения",
        _EMPTY_FIX, _UNPOLICED | _unless_zero(_uniform_softmax)),
    zero_by_default=("pytorch/pytorch#131060",
        "a fully masked row quietly gives zeros unless an error is asked for | "
        "полностью замаскированная строка молча даёт нули, если ошибку не попросили",
        'empty_row="error" is the default | по умолчанию empty_row="error"',
        {"police": lambda call: call.empty_row == "error" and refuse_empty_rows(call)}),
    error_policy_ignored=("robertknight/rten#1321",
        "a fully masked row gives zeros even when an error is asked for | "
        "полностью замаскированная строка даёт нули, даже когда просят ошибку",
        _EMPTY_FIX, _UNPOLICED),
    empty_row_seen_if_all_are=("",
        "only a mask that hides everything is refused, not one with a single empty row | "
        "отвергается лишь маска, закрывшая всё, но не одна пустая строка",
        _EMPTY_FIX, {"police": lambda call: call.keep.any() or refuse_empty_rows(call)}),
    zero_policy_gives_nan=("pytorch/pytorch#103963",
        'with empty_row="zero" a fully masked row is NaN: softmax of nothing is 0/0 | '
        'при empty_row="zero" замаскированная строка — NaN: softmax от пустоты — это 0/0',
        _ZERO_FIX, {"soften": _plain_softmax}),
    zero_policy_averages=("",
        'with empty_row="zero" a fully masked row averages every value | '
        'при empty_row="zero" полностью замаскированная строка усредняет все значения',
        _ZERO_FIX, {"soften": _uniform_softmax}),
    nan_repaired_forward_only=("Xilinx/brevitas#1591",
        "nan_to_num after the softmax repairs the output of an empty row, but its gradient stays "
        "NaN | nan_to_num после softmax чинит выход пустой строки, но градиент остаётся NaN",
        _ZERO_FIX,
        {"hide": lambda scores, keep, call: scores + torch.where(keep, 0.0, -math.inf),
         "soften": lambda scores, call: scores.softmax(dim=-1).nan_to_num(0.0)}),
    empty_rows_not_flagged=("",
        ".empty_rows is always False | .empty_rows всегда False",
        _FLAG_FIX, reporting("empty_rows", lambda result, call: call.empty & False)),
    empty_rows_inverted=("",
        ".empty_rows flags the rows that may read something | "
        ".empty_rows отмечает строки, которым есть что читать",
        _FLAG_FIX, reporting("empty_rows", lambda result, call: ~call.empty)),
    partly_hidden_rows_flagged=("",
        ".empty_rows flags every row with a hidden key (any for all) | "
        ".empty_rows отмечает каждую строку с замаскированным ключом (any вместо all)",
        _FLAG_FIX,
        reporting("empty_rows", lambda result, call: (result.scores == -math.inf).any(dim=-1))),
    empty_row_scores_zeroed=("",
        "the reported scores of an empty row are finite, not -inf | "
        "возвращённые оценки пустой строки конечны, а не -inf",
        "change a copy of the scores for softmax | для softmax меняйте копию оценок",
        reporting("scores", lambda result, call: without_empty(result.scores, call))),
)

ATTENTION_REFUSAL_MISTAKES = mistakes(
    mistaken_attention,
    any_dtype_of_mask=("",
        "numbers pass for a mask (allowed == 0, .bool()), so a bias is taken for True | "
        "числа сходят за маску (allowed == 0, .bool()), и прибавка (bias) считается True",
        _DTYPE_FIX, _truthy(floats=True, integers=True)),
    float_mask_taken_as_bool=("",
        "a float mask passes, and whatever is not 0 counts as True | "
        "маска из чисел float проходит, и всё, что не 0, считается True",
        _DTYPE_FIX, _truthy(floats=True)),
    integer_mask_taken_as_bool=("",
        "a mask of whole numbers passes, and whatever is not 0 counts as True | "
        "маска из целых чисел проходит, и всё, что не 0, считается True",
        _DTYPE_FIX, _truthy(integers=True)),
    float_mask_added=("pytorch/pytorch#136816",
        "a float mask is added to the scores: its 0 and 1 hide nothing | "
        "маска из чисел прибавляется к оценкам: её 0 и 1 ничего не закрывают",
        _DTYPE_FIX, {"fit": _fit_float, "hide": _hidden_or_biased}),
    large_mask_cut=("rasbt/LLMs-from-scratch@6522be9",
        "a mask that is too large is cut to its upper left corner | "
        "слишком большая маска обрезается до левого верхнего угла",
        _SHAPE_FIX, {"fit": _fit_cut}),
    mask_enlarges_result=("",
        "a mask with more batch axes than q, k and v makes the result grow | "
        "маска, у которой осей батча больше, чем у q, k и v, увеличивает результат",
        _SHAPE_FIX, {"fit": _fit_growing}),
)
# fmt: on
