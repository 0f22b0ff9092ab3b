"""The contract of a batched sampler: one token for each row of logits, by chance from `rng`."""

from collections.abc import Callable
from typing import Any

from course_lib.contracts.engine.clause import Clause, Contract
from course_lib.contracts.engine.subject import Subject, Terms
from course_lib.contracts.sampling.chance import ALLOWED
from course_lib.contracts.sampling.sampler_calls import (
    counted_calls,
    ends,
    other_calls,
    rows_by_library,
    rows_by_loops,
)
from course_lib.contracts.sampling.sampler_judges import (
    at_the_ends,
    counted,
    equal_rows,
    from_rng_alone,
    greedy,
    halves,
    pairs_of_rows,
    read_ids,
    well_formed,
)
from course_lib.contracts.sampling.sampler_probes import explain_sampler
from course_lib.report import ContractReport


def _clauses(subject: Subject) -> list[Clause]:
    """The clauses: what is certain first, then what chance has a part in."""
    calls = other_calls() | counted_calls()
    # fmt: off
    return [
        Clause("result_form", "one integer id for each row: shape [B], each in [0, V) | "
            "на каждую строку один номер токена, целое число: форма [B], каждый в [0, V)",
            well_formed, calls["result_form"]),
        Clause("arguments_unchanged", "the call leaves the logits as they were | "
            "логиты после вызова прежние", well_formed, calls["result_form"]),
        Clause("greedy", "temperature 0: the highest logit, of equal ones the first | "
            "температура 0: наибольший логит, из равных первый", greedy, calls["greedy"]),
        Clause("softmax", "without filters each row follows its own softmax | "
            "без фильтров каждая строка следует своему softmax",
            counted, calls["softmax"], ALLOWED),
        Clause("temperature", "each row follows softmax(logits / temperature) | "
            "каждая строка следует softmax(логиты / температура)",
            counted, calls["temperature"], ALLOWED),
        Clause("top_k", "only each row's own k likeliest tokens come | "
            "выпадают только k вероятнейших токенов своей строки",
            counted, calls["top_k"], ALLOWED),
        Clause("top_p", "only each row's own shortest run that reaches p comes | "
            "выпадает лишь кратчайший набор строки с массой не меньше p",
            counted, calls["top_p"], ALLOWED),
        Clause("ties", "of equal logits the filters keep the lower ids | "
            "из равных логитов фильтры оставляют младшие номера", counted, calls["ties"], ALLOWED),
        Clause("order", "temperature, then top-k, then top-p of what is left | "
            "температура, затем top-k, затем top-p от оставшегося",
            counted, calls["order"], ALLOWED),
        Clause("generator", "chance comes from rng alone, and rng moves on | "
            "случайность только из rng, и rng сдвигается", from_rng_alone, calls["generator"]),
        Clause("independent_rows", "equal rows do not agree more, or less, than by chance | "
            "равные строки совпадают не чаще и не реже, чем случайно",
            equal_rows, calls["independent_rows"], ALLOWED),
        Clause("independent_pairs", "the same in a batch of two, from one call to the next | "
            "то же в батче из двух строк, от вызова к вызову",
            pairs_of_rows, calls["independent_pairs"], ALLOWED),
        Clause("draw_ends", "no removed id even if a draw is 0 or just below 1 | "
            "удалённые номера не выпадают, даже если число 0 или почти 1", at_the_ends, ends()),
        Clause("extreme_logits", "logits in the thousands, a tiny temperature, float32 | "
            "логиты в тысячах, крошечная температура, float32",
            counted, calls["extreme_logits"], ALLOWED),
        Clause("large_vocabulary", "half of the mass on thousands of tokens is not lost | "
            "половина массы на тысячах токенов не теряется",
            halves, calls["large_vocabulary"], ALLOWED),
    ]
    # fmt: on


def _figures(subject: Subject, measured: dict[str, Any]) -> dict[str, float]:
    return {f"{name}_surprise": e for name, e in measured.items() if isinstance(e, float)}


_TERMS = Terms("sample", (rows_by_loops, rows_by_library), read_ids, agree=1e-9)
SAMPLER = Contract("sampler", _TERMS, _clauses, explain_sampler, figures=_figures)


def check_sampler_contract(sample: Callable[..., Any]) -> ContractReport:
    """Hold a batched sampler to its distribution, row by row, by counting what it draws.

        sample(logits [B, V], temperature, top_k, top_p, rng) -> ids [B]

    What is measured is how improbable the counts are, in powers of ten: a right sampler is
    refused less than once in 10^9 implementations, and the same one always gets the same verdict.

    Raises:  ContractViolation when a clause is broken: with a call and what was measured
    """
    return SAMPLER.check(sample)
