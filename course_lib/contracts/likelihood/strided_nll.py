"""The contract of a long text's loss: overlapping windows, every token counted once."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from course_lib.contracts.engine.candidate import (
    Breach,
    ContractSubject,
    hold_clause,
    is_stub,
    quiet_globals,
)
from course_lib.contracts.likelihood._strided_nll_case import StridedCase, strided_by_windows
from course_lib.contracts.likelihood._strided_nll_judge import (
    by_token,
    call_strided,
    counted_weights,
    explain_strided,
    judge_context,
    judge_counts,
    judge_strided_form,
    judge_strided_state,
    judge_window_length,
)
from course_lib.report import ClauseResult, ContractReport
from course_lib.text import localized

_STRIDED_MEANINGS = {
    "result_form": {
        "en": "one finite number: a float, or a tensor with no axes",
        "ru": "одно конечное число: float или тензор без осей",
    },
    "one_window": {
        "en": "a text that fits: the mean of score(ids), nothing else",
        "ru": "текст помещается: среднее score(ids), и только",
    },
    "window_length": {
        "en": "no call of score holds more than max_length tokens",
        "ru": "в каждом вызове score не больше max_length токенов",
    },
    "every_token_once": {
        "en": "the mean of T - 1 tokens, each counted exactly once",
        "ru": "среднее по T - 1 токенам, каждый учтён ровно раз",
    },
    "context": {
        "en": "no token is predicted from less context than fits",
        "ru": "ни один токен не лишён контекста, который помещается",
    },
    "repeated_tokens": {
        "en": "tokens that occur again are counted again",
        "ru": "повторяющиеся токены учтены каждый раз",
    },
    "long_text": {
        "en": "hundreds of windows: still every token once",
        "ru": "сотни окон: по-прежнему каждый токен один раз",
    },
    "independent_results": {
        "en": "the same call, the same result; ids unchanged",
        "ru": "тот же вызов — тот же результат; ids не изменены",
    },
}

_STRIDED_NOTES = {
    "refused": {
        "en": "outside the contract: no number for stride = max_length, but {error}",
        "ru": "вне контракта: при stride = max_length вместо числа {error}",
    },
    "lost": {
        "en": "outside the contract: with stride = max_length {lost} of {count} tokens are never "
        "counted; refuse such a stride, or let the windows overlap by one token",
        "ru": "вне контракта: при stride = max_length не учтено токенов: {lost} из {count}; "
        "откажитесь от такого шага или оставьте перекрытие в один токен",
    },
}


def check_strided_nll_contract(strided_nll: Callable[..., Any]) -> ContractReport:
    """Hold a strided loss to its definition: mean nats of every token but the first, once each.

        strided_nll(score, ids, max_length, stride) -> float

    score takes a window of ids (tensor or list) of at most max_length tokens and returns the nats
    of its tokens but the first, a float64 tensor. Windows may begin at the multiples of stride or
    end there, the last may be shorter or moved back: demanded is that a token has min(t,
    max_length - stride) tokens of context or more, and all of them if the whole text fits. Legal
    calls have 1 ≤ stride < max_length; what stride = max_length does is only told in a note.

    Shapes:  ids [T] long, T of at least 2
    Raises:  ContractViolation when a clause is broken: with a small call and what was measured
    """
    if not callable(strided_nll):
        raise TypeError(f"strided_nll must be a function, got {type(strided_nll).__name__}")
    subject = ContractSubject(
        "check_strided_nll_contract", strided_nll, _STRIDED_MEANINGS, explain_strided
    )
    with quiet_globals():
        if is_stub(strided_nll, *StridedCase(3, 4, 2).arguments().values()):
            return ContractReport(subject.contract, attempted=False)
        clauses = tuple(_strided_clauses(subject))
        _, score = call_strided(strided_nll, StridedCase(22, 8, 4), by_token)
        figures = {
            "windows_22_8_4": len(score.windows),
            "tokens_read_22_8_4": sum(map(len, score.windows)),
        }
        notes = tuple(_disjoint_notes(strided_nll))
    return ContractReport(subject.contract, clauses, figures, notes=notes)


def _strided_clauses(subject: ContractSubject) -> Iterator[ClauseResult]:
    hold = partial(hold_clause, subject)
    counts = partial(judge_counts, windows=strided_by_windows)
    fits = [StridedCase(*size) for size in ((2, 4, 2), (5, 8, 4), (8, 8, 4), (3, 3, 1), (7, 30, 5))]
    sizes = ((22, 8, 4), (9, 8, 4), (12, 8, 4), (13, 8, 4), (22, 8, 3), (23, 8, 5), (17, 6, 2))
    sizes += ((10, 5, 1), (13, 5, 4), (9, 2, 1), (6, 3, 2), (16, 7, 6), (21, 10, 7))
    cases = [StridedCase(*size) for size in sizes]
    every = [
        StridedCase(length, max_length, stride)
        for length in range(2, 12)
        for max_length in range(2, 7)
        for stride in range(1, max_length)
    ]
    repeated = [StridedCase(length, 6, 3, repeated=True) for length in (5, 6, 14)]
    long = [StridedCase(301, 7, 3), StridedCase(700, 64, 32), StridedCase(257, 128, 127)]
    yield hold("result_form", None, judge_strided_form, [fits[1], cases[0]])
    yield hold("one_window", 1e-6, counts, fits)
    yield hold("window_length", None, judge_window_length, [*fits, *cases, *every])
    yield hold("every_token_once", 1e-6, counts, [*cases, *every])
    yield hold("context", None, judge_context, [*fits, *cases, *every])
    yield hold("repeated_tokens", 1e-6, counts, repeated)
    yield hold("long_text", 1e-6, counts, long)
    yield hold("independent_results", 1e-9, judge_strided_state, [fits[1], *cases[:3]])


def _disjoint_notes(strided_nll: Callable[..., Any]) -> Iterator[str]:
    """What becomes of the tokens at the borders when the windows do not overlap."""
    case = StridedCase(9, 4, 4)
    try:
        weights = counted_weights(strided_nll, case)[1:]
    except Breach as breach:
        yield localized(_STRIDED_NOTES["refused"], error=breach.measured)
        return
    lost = sum(weight < 1e-6 for weight in weights)
    if lost:
        yield localized(_STRIDED_NOTES["lost"], lost=lost, count=len(weights))
