"""The contract of causal attention in plain lists: the right past, and nothing but the past."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from course_lib.contracts.attention._causal_attention_case import (
    CausalAttentionCase,
    causal_attention_by_library,
    causal_attention_by_loops,
    causal_attention_case,
    explain_causal_attention,
)
from course_lib.contracts.engine.candidate import (
    Breach,
    ContractSubject,
    call_candidate,
    finite_wanted,
    hold_clause,
    is_stub,
    quiet_globals,
)
from course_lib.report import ClauseResult, ContractReport, Mismatch
from course_lib.text import localized

_CAUSAL_ATTENTION_MEANINGS = {
    "result_form": {
        "en": "one list of d_head finite numbers per position",
        "ru": "по списку из d_head конечных чисел на каждую позицию",
    },
    "first_position": {
        "en": "the first position reads only itself: its own value",
        "ru": "первая позиция читает только себя: на выходе её же значение",
    },
    "values": {
        "en": "the mixture of values, by loops and by the library",
        "ru": "смесь значений — по циклам и по библиотеке",
    },
    "future_unread": {
        "en": "whatever comes later, an output stays as it was",
        "ru": "что бы ни шло дальше, выход остаётся прежним",
    },
    "large_scores": {
        "en": "scores in the thousands neither overflow nor go astray",
        "ru": "при оценках в тысячи ничего не переполняется",
    },
    "repeatable": {
        "en": "the same text, the same result, whatever came between",
        "ru": "тот же текст — тот же результат, что бы ни было между",
    },
    "arguments_unchanged": {
        "en": "queries, keys and values are left as they were",
        "ru": "queries, keys и values остаются прежними",
    },
}

_CAUSAL_ATTENTION_FACTS = {
    "not_rows": {
        "en": "the result is a {came}, the text asks for {wanted}",
        "ru": "результат — {came}, а текст требует {wanted}",
    },
    "lengths": {
        "en": "the rows hold {came} numbers, the text asks for {wanted}",
        "ru": "в строках чисел: {came}, а текст требует {wanted}",
    },
    "shape": {
        "en": "the result has shape {came}, the text asks for {wanted}",
        "ru": "у результата форма {came}, а текст требует {wanted}",
    },
    "leak": {
        "en": "only later positions were changed, and this output moved",
        "ru": "изменены только более поздние позиции, а этот выход сдвинулся",
    },
    "edited": {
        "en": "{name} was changed by the call: work on a copy",
        "ru": "вызов изменил {name}: работайте с копией",
    },
}
_CAUSAL_ATTENTION_ERROR = 1e-9


def check_causal_attention_contract(causal_attention: Callable[..., Any]) -> ContractReport:
    """Hold a causal attention of one head, in plain lists, to its definition.

        causal_attention(queries, keys, values, d_head) -> T lists of d_head numbers

    Raises:  ContractViolation when a clause is broken: with a small text and what was measured
    """
    if not callable(causal_attention):
        name = type(causal_attention).__name__
        raise TypeError(f"causal_attention must be a function, got {name}")
    subject = ContractSubject(
        "check_causal_attention_contract",
        causal_attention,
        _CAUSAL_ATTENTION_MEANINGS,
        explain_causal_attention,
    )
    with quiet_globals():
        if is_stub(causal_attention, [[1.0]], [[1.0]], [[1.0]], 1):
            return ContractReport(subject.contract, attempted=False)
        clauses = tuple(_causal_attention_clauses(subject))
    measured = {clause.name: clause.measured for clause in clauses}
    figures = {
        "output_max_error": max(measured["values"], measured["large_scores"]),
        "leak": measured["future_unread"],
    }
    return ContractReport(subject.contract, clauses, figures)


def _causal_attention_clauses(subject: ContractSubject) -> Iterator[ClauseResult]:
    hold, allowed = partial(hold_clause, subject), _CAUSAL_ATTENTION_ERROR
    sizes = [(positions, d_head) for positions in (1, 2, 3, 5, 8) for d_head in (1, 2, 3, 5)]
    texts = [causal_attention_case(*each) for each in sizes]
    firsts = [causal_attention_case(1, d_head) for d_head in (1, 2, 3, 7)]
    longer = [causal_attention_case(*each) for each in ((40, 3), (3, 17), (70, 2))]
    loud = [causal_attention_case(*each, scale=s) for each in sizes[1:] for s in (30.0, 200.0)]
    yield hold("result_form", None, _judge_causal_form, texts[:8])
    yield hold("first_position", allowed, _judge_causal_values, firsts)
    yield hold("values", allowed, _judge_causal_values, [*texts, *longer])
    yield hold("future_unread", allowed, _judge_causal_future, texts[4:])
    yield hold("large_scores", allowed, _judge_causal_values, loud)
    yield hold("repeatable", allowed, _judge_causal_again, texts[4:12])
    yield hold("arguments_unchanged", None, _judge_causal_edits, texts[2:9])


def _causal_rows(subject: ContractSubject, arguments: dict[str, Any]) -> np.ndarray:
    """Call the candidate; breach unless finite numbers of the right shape come back."""
    rows = call_candidate(subject.candidate, *arguments.values())
    wanted = (len(arguments["queries"]), arguments["d_head"])
    try:
        table = [[float(number) for number in row] for row in rows]
    except (TypeError, ValueError):
        raise _causal_malformed("not_rows", _spelled_type(rows), "list[list[float]]") from None
    lengths = [len(row) for row in table]
    if len(set(lengths)) > 1:
        raise _causal_malformed("lengths", lengths, [wanted[1]] * wanted[0])
    table = np.array(table)
    if table.shape != wanted:
        raise _causal_malformed("shape", list(table.shape), list(wanted))
    if not np.isfinite(table).all():
        place = tuple(int(axis) for axis in np.argwhere(~np.isfinite(table))[0])
        wrong = Mismatch("output", place, float(table[place]), finite_wanted())
        raise Breach("not finite", str(table[place]), finite_wanted(), mismatches=(wrong,))
    return table


def _spelled_type(value: Any) -> str:
    """Spell out what lists hold, as list[list[float | NoneType]]."""
    if not isinstance(value, list | tuple):
        return type(value).__name__
    inside = " | ".join(sorted({_spelled_type(item) for item in value}))
    return f"{type(value).__name__}[{inside}]"


def _causal_malformed(fact: str, came: Any, wanted: Any) -> Breach:
    text = localized(_CAUSAL_ATTENTION_FACTS[fact], came=came, wanted=wanted)
    return Breach(fact, str(came), str(wanted), facts=text, clause="result_form")


def _causal_compare(got: np.ndarray, want: np.ndarray, kind: str, facts: str = "") -> float:
    error = np.abs(got - want)
    worst = float(error.max())
    if worst <= _CAUSAL_ATTENTION_ERROR * max(1.0, float(np.abs(want).max())):
        return min(worst, _CAUSAL_ATTENTION_ERROR)
    places = [tuple(map(int, place)) for place in np.argwhere(error > _CAUSAL_ATTENTION_ERROR)[:3]]
    mismatches = tuple(
        Mismatch("output", place, float(got[place]), float(want[place])) for place in places
    )
    raise Breach(kind, worst, mismatches=mismatches, facts=facts)


def _judge_causal_form(subject: ContractSubject, case: CausalAttentionCase) -> float:
    _causal_rows(subject, case.arguments())
    return 0.0


def _judge_causal_values(subject: ContractSubject, case: CausalAttentionCase) -> float:
    """Both references must agree with each other, and the candidate with them."""
    want = np.array(causal_attention_by_loops(**case.arguments()))
    other = np.array(causal_attention_by_library(**case.arguments()))
    if not np.allclose(want, other, rtol=1e-10, atol=1e-10):
        raise RuntimeError(f"the two references for causal attention disagree on {case}")
    return _causal_compare(_causal_rows(subject, case.arguments()), want, "wrong")


def _judge_causal_future(subject: ContractSubject, case: CausalAttentionCase) -> float:
    """Change the last position beyond recognition: every other output stays."""
    if len(case.queries) < 2:
        return 0.0
    before = _causal_rows(subject, case.arguments())[:-1]
    changed = case.arguments()
    for name, number in (("queries", 3.0), ("keys", -5.0), ("values", 900.0)):
        changed[name][-1] = [number] * case.d_head
    after = _causal_rows(subject, changed)[:-1]
    return _causal_compare(after, before, "leak", localized(_CAUSAL_ATTENTION_FACTS["leak"]))


def _judge_causal_again(subject: ContractSubject, case: CausalAttentionCase) -> float:
    first = _causal_rows(subject, case.arguments())
    _causal_rows(subject, causal_attention_case(4, 2).arguments())
    return _causal_compare(_causal_rows(subject, case.arguments()), first, "remembered")


def _judge_causal_edits(subject: ContractSubject, case: CausalAttentionCase) -> float:
    given = case.arguments()
    _causal_rows(subject, given)
    for name, table in case.arguments().items():
        if given[name] != table:
            facts = localized(_CAUSAL_ATTENTION_FACTS["edited"], name=name)
            raise Breach("edited", name, "", facts=facts)
    return 0.0
