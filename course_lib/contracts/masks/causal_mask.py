"""The contract of the causal mask: who may read whom, with a cache and without."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.candidate import (
    Breach,
    ContractSubject,
    call_candidate,
    hold_clause,
    is_stub,
    must_raise,
    quiet_globals,
)
from course_lib.contracts.masks._causal_mask_case import (
    MaskCase,
    explain_mask,
    mask_by_library,
    mask_by_loops,
)
from course_lib.report import ClauseResult, ContractReport, Mismatch
from course_lib.text import localized

_MASK_MEANINGS = {
    "result_form": {
        "en": "a bool tensor of shape [t_q, t_k]",
        "ru": "булев тензор формы [t_q, t_k]",
    },
    "diagonal": {
        "en": "a token reads itself and the past, never the next token",
        "ru": "токен читает себя и прошлое, но не следующий токен",
    },
    "default_offset": {
        "en": "no query_offset means 0: query 0 stands at position 0",
        "ru": "без query_offset сдвиг 0: запрос 0 на позиции 0",
    },
    "geometry": {
        "en": "every size and offset: key j is read if j ≤ i + offset",
        "ru": "любые размеры и сдвиги: ключ j виден при j ≤ i + сдвиг",
    },
    "cached_rows": {
        "en": "the rows of a cached step are those of the full mask",
        "ru": "строки шага с кэшем — те же строки полной маски",
    },
    "long_contexts": {
        "en": "right beyond the size of any stored table",
        "ru": "верно за пределами любой заранее сохранённой таблицы",
    },
    "independent_results": {
        "en": "the same call, the same mask, whatever came between",
        "ru": "тот же вызов — та же маска, что бы ни было между ними",
    },
    "negative_offset": {
        "en": "a negative offset is a ValueError",
        "ru": "отрицательный сдвиг — ValueError",
    },
}

_MASK_FACTS = {
    "not_tensor": {
        "en": "the result is a {came}, not a torch.Tensor",
        "ru": "результат имеет тип {came}, а нужен torch.Tensor",
    },
    "dtype": {
        "en": "the mask is {came}: attention reads only bool as may-read",
        "ru": "маска имеет тип {came}: внимание понимает только bool",
    },
    "shape": {
        "en": "the mask has shape {came}, the call asks for {wanted}",
        "ru": "у маски форма {came}, а вызов требует {wanted}",
    },
    "wrong": {"en": "{count} of {size} entries", "ru": "элементов: {count} из {size}"},
    "count": {
        "en": "{came} True where {wanted} are right",
        "ru": "значений True {came}, а верно {wanted}",
    },
    "shared": {
        "en": "the caller wrote into an earlier result, and it came back: copy the stored table",
        "ru": "записанное в прежний результат оказалось в новом: отдавайте копию хранимой таблицы",
    },
}


def check_causal_mask_contract(causal_allowed: Callable[..., Any]) -> ContractReport:
    """Hold a causal mask to its geometry, with a cached past and without.

        causal_allowed(t_q, t_k, *, query_offset=0) -> bool [t_q, t_k], True = may read

    Raises:  ContractViolation when a clause is broken: with a small call and what was measured
    """
    if not callable(causal_allowed):
        raise TypeError(f"causal_allowed must be a function, got {type(causal_allowed).__name__}")
    subject = ContractSubject(
        "check_causal_mask_contract", causal_allowed, _MASK_MEANINGS, explain_mask
    )
    with quiet_globals():
        if is_stub(causal_allowed, 2, 2):
            return ContractReport(subject.contract, attempted=False)
        clauses = tuple(_mask_clauses(subject))
        figures = {
            "full_mask_true": _mask_count(causal_allowed, 5, 5),
            "wrong_cache_mask_true": _mask_count(causal_allowed, 1, 5, query_offset=0),
            "cache_mask_true": _mask_count(causal_allowed, 1, 5, query_offset=4),
        }
    return ContractReport(subject.contract, clauses, figures)


def _mask_clauses(subject: ContractSubject) -> Iterator[ClauseResult]:
    hold = partial(hold_clause, subject)
    sizes = [(2, 2), (1, 1), (3, 5), (5, 2)]
    small = [
        MaskCase(t_q, t_k, offset)
        for t_q in range(1, 6)
        for t_k in range(1, 7)
        for offset in range(8)
    ]
    squares = [MaskCase(size, size) for size in (2, 3, 5)]
    steps = [MaskCase(t_q, offset + t_q, offset) for t_q in (1, 2, 4) for offset in (1, 3, 6)]
    long = [
        MaskCase(1, 9001, 9000),
        MaskCase(1, 9001, 7),
        MaskCase(3, 5000, 4500),
        MaskCase(2100, 3, 0),
        MaskCase(1100, 1100),
    ]
    yield hold("result_form", None, _judge_mask_form, [MaskCase(*size) for size in sizes])
    yield hold("diagonal", None, _judge_mask, squares)
    yield hold("default_offset", None, _judge_mask, [MaskCase(*size) for size in sizes])
    yield hold("geometry", None, _judge_mask, small)
    yield hold("cached_rows", None, _judge_mask_rows, steps)
    yield hold("long_contexts", None, _judge_mask, long)
    yield hold("independent_results", None, _judge_mask_state, [*squares, *steps[:3]])
    negative = [MaskCase(2, 3, -1), MaskCase(1, 5, -4)]
    yield hold("negative_offset", None, _judge_mask_refusal, negative)


def _mask_count(causal_allowed: Callable[..., Any], *sizes: int, **offset: int) -> int:
    return int(causal_allowed(*sizes, **offset).sum())


def _mask_call(subject: ContractSubject, case: MaskCase) -> Tensor:
    """Call the candidate; breach unless a bool tensor of the right shape comes back."""
    mask = call_candidate(subject.candidate, case.t_q, case.t_k, **case.keywords)
    wanted = [case.t_q, case.t_k]
    if not isinstance(mask, Tensor):
        raise _mask_malformed("not_tensor", came=type(mask).__name__, wanted="torch.Tensor")
    if mask.dtype != torch.bool:
        raise _mask_malformed("dtype", came=str(mask.dtype), wanted="torch.bool")
    if list(mask.shape) != wanted:
        raise _mask_malformed("shape", came=list(mask.shape), wanted=wanted)
    return mask


def _mask_malformed(fact: str, **values: Any) -> Breach:
    text = localized(_MASK_FACTS[fact], **values)
    came, wanted = str(values["came"]), str(values["wanted"])
    return Breach(fact, came, wanted, facts=text, clause="result_form")


def _mask_compare(got: Tensor, want: Tensor, kind: str, facts: str = "") -> float:
    wrong = got != want
    if not wrong.any():
        return 0.0
    places = [tuple(place) for place in wrong.nonzero()[:3].tolist()]
    mismatches = tuple(
        Mismatch("allowed", place, bool(got[place]), bool(want[place])) for place in places
    )
    counted = localized(_MASK_FACTS["count"], came=int(got.sum()), wanted=int(want.sum()))
    count = localized(_MASK_FACTS["wrong"], count=int(wrong.sum()), size=wrong.numel())
    raise Breach(kind, count, "0", mismatches=mismatches, facts=facts or counted)


def _judge_mask_form(subject: ContractSubject, case: MaskCase) -> float:
    _mask_call(subject, case)
    return 0.0


def _judge_mask(subject: ContractSubject, case: MaskCase) -> float:
    """Both references must agree with each other, and the candidate with them."""
    want = mask_by_library(case)
    if case.t_q * case.t_k < 200 and not torch.equal(want, mask_by_loops(case)):
        raise RuntimeError(f"the two references for the causal mask disagree on {case}")
    return _mask_compare(_mask_call(subject, case), want, "wrong")


def _judge_mask_rows(subject: ContractSubject, case: MaskCase) -> float:
    """A step with a cached past must see what the same rows of the full mask see."""
    total = case.t_q + case.query_offset
    full = _mask_call(subject, MaskCase(total, total))
    step = _mask_call(subject, MaskCase(case.t_q, total, case.query_offset))
    return _mask_compare(step, full[case.query_offset :], "wrong rows")


def _judge_mask_state(subject: ContractSubject, case: MaskCase) -> float:
    """Another call in between, and a caller who writes into the result, change nothing."""
    first = _mask_call(subject, case)
    kept = first.clone()
    _mask_call(subject, MaskCase(case.t_q + 1, case.t_k + 2, 1))
    _mask_call(subject, MaskCase(case.t_q, case.t_k, 0))
    _mask_compare(first, kept, "overwritten")
    _mask_compare(_mask_call(subject, case), kept, "remembered")
    try:
        first.logical_not_()
    except RuntimeError:
        return 0.0  # an expanded view cannot be written into
    facts = localized(_MASK_FACTS["shared"])
    return _mask_compare(_mask_call(subject, case), kept, "shared", facts)


def _judge_mask_refusal(subject: ContractSubject, case: MaskCase) -> float:
    if case.query_offset < 0:
        must_raise(ValueError, subject.candidate, case.t_q, case.t_k, **case.keywords)
    return 0.0
