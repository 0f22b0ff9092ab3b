"""The contract of a batched sampler: one token for each row of logits, by chance from `rng`."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from course_lib.contracts.engine.candidate import (
    ContractSubject,
    hold_clause,
    is_stub,
    quiet_globals,
)
from course_lib.contracts.sampling._sampler_behaviour import explain_sampler
from course_lib.contracts.sampling._sampler_case import SamplerCase
from course_lib.contracts.sampling._sampler_chance import SAMPLER_ALLOWED
from course_lib.contracts.sampling._sampler_inputs import (
    sampler_ends,
    sampler_equal_rows,
    sampler_extremes,
    sampler_forms,
    sampler_greedy,
    sampler_many,
    sampler_orders,
    sampler_pairs,
    sampler_plain,
    sampler_sources,
    sampler_ties,
    sampler_top_k,
    sampler_top_p,
    sampler_warm,
)
from course_lib.contracts.sampling._sampler_judge import (
    judge_sampler,
    judge_sampler_calls,
    judge_sampler_ends,
    judge_sampler_form,
    judge_sampler_greedy,
    judge_sampler_halves,
    judge_sampler_rows,
    judge_sampler_source,
)
from course_lib.report import ClauseResult, ContractReport

_SAMPLER_MEANINGS = {
    "result_form": {
        "en": "one integer id for each row: shape [B], each in [0, V)",
        "ru": "один целый номер на строку: форма [B], каждый в [0, V)",
    },
    "arguments_unchanged": {
        "en": "the call leaves the logits as they were",
        "ru": "логиты после вызова прежние",
    },
    "greedy": {
        "en": "temperature 0: the highest logit, of equal ones the first",
        "ru": "температура 0: наибольший логит, из равных первый",
    },
    "generator": {
        "en": "chance comes from rng alone, and rng moves on",
        "ru": "случайность только из rng, и rng сдвигается",
    },
    "softmax": {
        "en": "without filters each row follows its own softmax",
        "ru": "без фильтров каждая строка следует своему softmax",
    },
    "temperature": {
        "en": "each row follows softmax(logits / temperature)",
        "ru": "каждая строка следует softmax(логиты / температура)",
    },
    "top_k": {
        "en": "only each row's own k likeliest tokens come",
        "ru": "выпадают только k вероятнейших токенов своей строки",
    },
    "top_p": {
        "en": "only each row's own shortest run that reaches p comes",
        "ru": "выпадает лишь кратчайший набор строки с массой не меньше p",
    },
    "ties": {
        "en": "of equal logits the filters keep the lower ids",
        "ru": "из равных логитов фильтры оставляют младшие номера",
    },
    "order": {
        "en": "temperature, then top-k, then top-p of what is left",
        "ru": "температура, затем top-k, затем top-p от оставшегося",
    },
    "independent_rows": {
        "en": "equal rows do not agree more, or less, than by chance",
        "ru": "равные строки совпадают не чаще и не реже случайного",
    },
    "independent_pairs": {
        "en": "the same in a batch of two, from one call to the next",
        "ru": "то же в пакете из двух строк, от вызова к вызову",
    },
    "draw_ends": {
        "en": "no removed id even if a draw is 0 or just below 1",
        "ru": "удалённые номера не выпадают, даже если число 0 или почти 1",
    },
    "extreme_logits": {
        "en": "logits in the thousands, a tiny temperature, float32",
        "ru": "логиты в тысячах, крошечная температура, float32",
    },
    "large_vocabulary": {
        "en": "half of the mass on thousands of tokens is not lost",
        "ru": "половина массы на тысячах токенов не теряется",
    },
}


def check_sampler_contract(sample: Callable[..., Any]) -> ContractReport:
    """Hold a batched sampler to its distribution, row by row, by counting what it draws.

        sample(logits [B, V], temperature, top_k, top_p, rng) -> ids [B]

    What is measured is how improbable the counts are, in powers of ten: a right sampler is
    refused less than once in 10^9 implementations, and the same one always gets the same verdict.

    Raises:  ContractViolation when a clause is broken: with a call and what was measured
    """
    if not callable(sample):
        raise TypeError(f"sample must be a function, got {type(sample).__name__}")
    subject = ContractSubject("check_sampler_contract", sample, _SAMPLER_MEANINGS, explain_sampler)
    with quiet_globals():
        first = SamplerCase(((1.0, 0.0),))
        if is_stub(sample, first.logits(), *first.settings(), first.generator()):
            return ContractReport(subject.contract, attempted=False)
        clauses = tuple(_sampler_clauses(subject))
    figures = {
        f"{clause.name}_surprise": clause.measured
        for clause in clauses
        if isinstance(clause.measured, float)
    }
    return ContractReport(subject.contract, clauses, figures)


def _sampler_clauses(subject: ContractSubject) -> Iterator[ClauseResult]:
    """Run the clauses one by one: what is certain first, then what chance has a part in."""
    certain = partial(hold_clause, subject, allowed=None)
    counted = partial(hold_clause, subject, judge=judge_sampler, allowed=SAMPLER_ALLOWED)
    yield certain("result_form", judge=judge_sampler_form, cases=sampler_forms())
    yield certain("arguments_unchanged", judge=judge_sampler_form, cases=sampler_forms())
    yield certain("greedy", judge=judge_sampler_greedy, cases=sampler_greedy())
    yield counted("softmax", cases=sampler_plain())
    yield counted("temperature", cases=sampler_warm())
    yield counted("top_k", cases=sampler_top_k())
    yield counted("top_p", cases=sampler_top_p())
    yield counted("ties", cases=sampler_ties())
    yield counted("order", cases=sampler_orders())
    yield certain("generator", judge=judge_sampler_source, cases=sampler_sources())
    yield counted("independent_rows", judge=judge_sampler_rows, cases=sampler_equal_rows())
    yield counted("independent_pairs", judge=judge_sampler_calls, cases=sampler_pairs())
    yield certain("draw_ends", judge=judge_sampler_ends, cases=sampler_ends())
    yield counted("extreme_logits", cases=sampler_extremes())
    yield counted("large_vocabulary", judge=judge_sampler_halves, cases=sampler_many())
