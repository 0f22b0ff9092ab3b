"""Attentions that mishandle rows with nothing to read."""

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from course_lib.contracts.attention._attention_steps import (
    MistakenCall,
    MistakenResult,
    but_for,
    mistaken_attention,
    softmax_or_zero,
)
from course_lib.contracts.engine.mistake import Mistake

_EMPTY_FIX = {
    "en": "if not allowed.any(-1).all(): raise ValueError",
    "ru": "if not allowed.any(-1).all(): raise ValueError",
}
_ZERO_FIX = {
    "en": "softmax of 0 in empty rows, then masked_fill(empty, 0.0)",
    "ru": "softmax от нулей в пустых строках, затем masked_fill(empty, 0.0)",
}
_FLAG_FIX = {"en": "empty_rows = ~allowed.any(-1)", "ru": "empty_rows = ~allowed.any(-1)"}


def _attention_unpoliced(call: MistakenCall) -> None:
    """No row is refused."""


def _attention_policed_on_request(call: MistakenCall) -> None:
    if call.empty_row == "error" and bool(call.empty.any()):
        raise ValueError("a query row is fully masked")


def _attention_policed_when_all_hidden(call: MistakenCall) -> None:
    if call.empty_row != "zero" and not bool(call.keep.any()):
        raise ValueError("everything is masked")


def _attention_plain_softmax(scores: Tensor, call: MistakenCall) -> Tensor:
    return scores.softmax(dim=-1)


def _attention_uniform_softmax(scores: Tensor, call: MistakenCall) -> Tensor:
    return scores.masked_fill(call.empty.unsqueeze(-1), 0.0).softmax(dim=-1)


def _attention_nan_unless_zero(scores: Tensor, call: MistakenCall) -> Tensor:
    if call.empty_row == "zero":
        return softmax_or_zero(scores, call)
    return _attention_plain_softmax(scores, call)


def _attention_mean_unless_zero(scores: Tensor, call: MistakenCall) -> Tensor:
    if call.empty_row == "zero":
        return softmax_or_zero(scores, call)
    return _attention_uniform_softmax(scores, call)


def _attention_bias_added(scores: Tensor, keep: Tensor, call: MistakenCall) -> Tensor:
    return scores + torch.zeros_like(scores).masked_fill(~keep, -math.inf)


def _attention_flags(change: Callable[[MistakenResult], Tensor]) -> partial:
    return partial(
        mistaken_attention, finish=lambda result, call: but_for(result, empty_rows=change(result))
    )


ATTENTION_EMPTY_ROW_MISTAKES = (
    Mistake(
        "empty_row_nan",
        "pytorch/pytorch#41508",
        partial(mistaken_attention, police=_attention_unpoliced, soften=_attention_plain_softmax),
        {
            "en": "a fully masked row passes and comes back as NaN: softmax of nothing is 0/0",
            "ru": "полностью закрытая строка проходит и даёт NaN: softmax от пустоты — это 0/0",
        },
        _EMPTY_FIX,
    ),
    Mistake(
        "empty_row_averaged",
        "pytorch/pytorch#103749",
        partial(mistaken_attention, police=_attention_unpoliced, soften=_attention_uniform_softmax),
        {
            "en": "a fully masked row passes and averages every value, hidden though they are",
            "ru": "полностью закрытая строка проходит и усредняет все значения, хотя они закрыты",
        },
        _EMPTY_FIX,
    ),
    Mistake(
        "error_policy_gives_nan",
        "pytorch/pytorch#103963",
        partial(mistaken_attention, police=_attention_unpoliced, soften=_attention_nan_unless_zero),
        {
            "en": "a fully masked row that must be an error comes back as NaN",
            "ru": "полностью закрытая строка вместо ошибки даёт NaN",
        },
        _EMPTY_FIX,
    ),
    Mistake(
        "error_policy_averages",
        "a mutation of right code",
        partial(
            mistaken_attention, police=_attention_unpoliced, soften=_attention_mean_unless_zero
        ),
        {
            "en": "a fully masked row that must be an error averages every value",
            "ru": "полностью закрытая строка вместо ошибки усредняет все значения",
        },
        _EMPTY_FIX,
    ),
    Mistake(
        "zero_by_default",
        "pytorch/pytorch#131060",
        partial(mistaken_attention, police=_attention_policed_on_request),
        {
            "en": "a fully masked row quietly gives zeros unless an error is asked for",
            "ru": "полностью закрытая строка молча даёт нули, если ошибку не попросили",
        },
        {"en": 'empty_row="error" is the default', "ru": 'по умолчанию empty_row="error"'},
    ),
    Mistake(
        "error_policy_ignored",
        "robertknight/rten#1321",
        partial(mistaken_attention, police=_attention_unpoliced),
        {
            "en": "a fully masked row gives zeros even when an error is asked for",
            "ru": "полностью закрытая строка даёт нули, даже когда просят ошибку",
        },
        _EMPTY_FIX,
    ),
    Mistake(
        "empty_row_seen_if_all_are",
        "a mutation of right code",
        partial(mistaken_attention, police=_attention_policed_when_all_hidden),
        {
            "en": "only a mask that hides everything is refused, not one with a single empty row",
            "ru": "отвергается лишь маска, закрывшая всё, но не одна пустая строка",
        },
        _EMPTY_FIX,
    ),
    Mistake(
        "zero_policy_gives_nan",
        "pytorch/pytorch#103963",
        partial(mistaken_attention, soften=_attention_plain_softmax),
        {
            "en": 'with empty_row="zero" a fully masked row is NaN: softmax of nothing is 0/0',
            "ru": 'при empty_row="zero" закрытая строка — NaN: softmax от пустоты — это 0/0',
        },
        _ZERO_FIX,
    ),
    Mistake(
        "zero_policy_averages",
        "a mutation of right code",
        partial(mistaken_attention, soften=_attention_uniform_softmax),
        {
            "en": 'with empty_row="zero" a fully masked row averages every value',
            "ru": 'при empty_row="zero" полностью закрытая строка усредняет все значения',
        },
        _ZERO_FIX,
    ),
    Mistake(
        "nan_repaired_forward_only",
        "Xilinx/brevitas#1591",
        partial(
            mistaken_attention,
            hide=_attention_bias_added,
            soften=lambda scores, call: scores.softmax(dim=-1).nan_to_num(0.0),
        ),
        {
            "en": "nan_to_num after the softmax repairs the output of an empty row, but its "
            "gradient stays NaN",
            "ru": "nan_to_num после softmax чинит выход пустой строки, но градиент остаётся NaN",
        },
        _ZERO_FIX,
    ),
    Mistake(
        "empty_rows_not_flagged",
        "a mutation of right code",
        _attention_flags(lambda result: torch.zeros_like(result.empty_rows)),
        {"en": ".empty_rows is always False", "ru": ".empty_rows всегда False"},
        _FLAG_FIX,
    ),
    Mistake(
        "empty_rows_inverted",
        "a mutation of right code",
        _attention_flags(lambda result: ~result.empty_rows),
        {
            "en": ".empty_rows flags the rows that may read something",
            "ru": ".empty_rows отмечает строки, которым есть что читать",
        },
        _FLAG_FIX,
    ),
    Mistake(
        "partly_hidden_rows_flagged",
        "a mutation of right code",
        _attention_flags(lambda result: (result.scores == -math.inf).any(dim=-1)),
        {
            "en": ".empty_rows flags every row with a hidden key (any for all)",
            "ru": ".empty_rows отмечает каждую строку с закрытым ключом (any вместо all)",
        },
        _FLAG_FIX,
    ),
    Mistake(
        "empty_row_scores_zeroed",
        "a mutation of right code",
        partial(
            mistaken_attention,
            finish=lambda result, call: but_for(
                result, scores=result.scores.masked_fill(call.empty.unsqueeze(-1), 0.0)
            ),
        ),
        {
            "en": "the reported scores of an empty row are finite, not -inf",
            "ru": "возвращённые оценки пустой строки конечны, а не -inf",
        },
        {"en": "change a copy of the scores for softmax", "ru": "для softmax меняйте копию оценок"},
    ),
)
