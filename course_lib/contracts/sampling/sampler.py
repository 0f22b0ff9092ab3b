"""The contract of a batched sampler: one token for each row of logits, by chance from `rng`."""

from collections.abc import Callable
from typing import Any

from course_lib.contracts.engine.clause import Clause, Contract
from course_lib.contracts.engine.subject import Subject, Terms
from course_lib.contracts.sampling import judges
from course_lib.contracts.sampling.chance import ALLOWED
from course_lib.contracts.sampling.sampler_calls import (
    calls_by_clause,
    rows_by_library,
    rows_by_loops,
)
from course_lib.contracts.sampling.sampler_probes import explain_sampler
from course_lib.report import ContractReport

# fmt: off
_CLAUSES = (  # what is certain first, then what chance has a part in
    ("result_form", "one integer id for each row: shape [B], each in [0, V) | "
        "на каждую строку один номер токена, целое число: форма [B], каждый в [0, V)",
        judges.well_formed),
    ("arguments_unchanged", "the call leaves the logits as they were | "
        "логиты после вызова прежние", judges.well_formed),
    ("greedy", "temperature 0: the highest logit, of equal ones the first | "
        "температура 0: наибольший логит, из равных первый", judges.greedy),
    ("softmax", "without filters each row follows its own softmax | "
        "без фильтров каждая строка следует своему softmax", judges.counted),
    ("temperature", "each row follows softmax(logits / temperature) | "
        "каждая строка следует softmax(логиты / температура)", judges.counted),
    ("top_k", "only each row's own k likeliest tokens come | "
        "выпадают только k вероятнейших токенов своей строки", judges.counted),
    ("top_p", "only each row's own shortest run that reaches p comes | "
        "выпадает лишь кратчайший набор строки с массой не меньше p", judges.counted),
    ("ties", "of equal logits the filters keep the lower ids | "
        "из равных логитов фильтры оставляют младшие номера", judges.counted),
    ("order", "temperature, then top-k, then top-p of what is left | "
        "температура, затем top-k, затем top-p от оставшегося", judges.counted),
    ("generator", "chance comes from rng alone, and rng moves on | "
        "случайность только из rng, и rng сдвигается", judges.from_rng_alone),
    ("independent_rows", "equal rows do not agree more, or less, than by chance | "
        "равные строки совпадают не чаще и не реже, чем случайно", judges.equal_rows),
    ("independent_pairs", "the same in a batch of two, from one call to the next | "
        "то же в батче из двух строк, от вызова к вызову", judges.pairs_of_rows),
    ("draw_ends", "no removed id even if a draw is 0 or just below 1 | "
        "удалённые номера не выпадают, даже если число 0 или почти 1", judges.at_the_ends),
    ("extreme_logits", "logits in the thousands, a tiny temperature, float32 | "
        "логиты в тысячах, крошечная температура, float32", judges.counted),
    ("large_vocabulary", "half of the mass on thousands of tokens is not lost | "
        "половина массы на тысячах токенов не теряется", judges.halves),
)
# fmt: on
_BY_CHANCE = (judges.counted, judges.halves, judges.equal_rows, judges.pairs_of_rows)


def _clauses(subject: Subject) -> list[Clause]:
    calls = calls_by_clause()
    return [
        Clause(name, text, judge, calls[name], ALLOWED if judge in _BY_CHANCE else None)
        for name, text, judge in _CLAUSES
    ]


def _figures(subject: Subject, measured: dict[str, Any]) -> dict[str, float]:
    return {f"{name}_surprise": e for name, e in measured.items() if isinstance(e, float)}


_TERMS = Terms("sample", (rows_by_loops, rows_by_library), judges.read_ids, agree=1e-9)
SAMPLER = Contract("sampler", _TERMS, _clauses, explain_sampler, figures=_figures)


def check_sampler_contract(sample: Callable[..., Any]) -> ContractReport:
    """Hold a batched sampler to its distribution, row by row, by counting what it draws.

        sample(logits [B, V], temperature, top_k, top_p, rng) -> ids [B]

    What is measured is how improbable the counts are, in powers of ten: a right sampler is
    refused less than once in 10^9 implementations, and the same one always gets the same verdict.

    Raises:  ContractViolation when a clause is broken: with a call and what was measured
    """
    return SAMPLER.check(sample)
