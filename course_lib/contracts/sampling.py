"""The contract of the sampling distribution: temperature, top-k, top-p, in this order."""

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from course_lib.contracts._candidate import (
    Breach,
    ContractSubject,
    call_candidate,
    hold_clause,
    is_stub,
    must_raise,
    quiet_globals,
)
from course_lib.contracts._sampling_behaviour import explain_sampling
from course_lib.contracts._sampling_case import SamplingCase, SamplingRefusal
from course_lib.report import ClauseResult, ContractReport, Mismatch
from course_lib.text import localized

_SAMPLING_MEANINGS = {
    "result_form": {
        "en": "one finite number per token",
        "ru": "по одному конечному числу на токен",
    },
    "arguments_unchanged": {
        "en": "the call leaves the list of logits as it was",
        "ru": "вызов оставляет список логитов как был",
    },
    "repeatable": {
        "en": "the same call, the same result, whatever came between",
        "ru": "тот же вызов — тот же результат, что бы ни было между",
    },
    "softmax": {
        "en": "without filters: the softmax, in the order of the ids",
        "ru": "без фильтров: softmax в порядке номеров токенов",
    },
    "temperature": {
        "en": "logits / temperature, then the softmax",
        "ru": "логиты / температура, затем softmax",
    },
    "top_k": {
        "en": "the k likeliest survive, renormalised; k = 1 is greedy",
        "ru": "остаются k вероятнейших, с перенормировкой; k = 1 — жадно",
    },
    "top_k_ties": {
        "en": "exactly k survive: of equal logits the lower ids",
        "ru": "остаётся ровно k: из равных логитов младшие номера",
    },
    "top_p": {
        "en": "the shortest run that reaches p, its last token included",
        "ru": "кратчайший набор с массой не меньше p, включая последний",
    },
    "exact_boundaries": {
        "en": "a mass equal to p is enough; powers of two, no rounding",
        "ru": "массы, равной p, достаточно; степени двойки, без округлений",
    },
    "top_p_ends": {
        "en": "p = 1 removes nothing; a tiny p leaves the likeliest",
        "ru": "p = 1 не удаляет ничего; крошечное p оставляет один токен",
    },
    "temperature_first": {
        "en": "the temperature acts before the filters choose",
        "ru": "температура действует до того, как выбирают фильтры",
    },
    "top_k_then_top_p": {
        "en": "top-p measures what top-k left, renormalised",
        "ru": "top-p отмеряет оставшееся после top-k, с перенормировкой",
    },
    "extreme_logits": {
        "en": "logits in the thousands, tiny temperatures",
        "ru": "логиты в тысячах, крошечные температуры",
    },
    "large_vocabulary": {
        "en": "the same rules for hundreds of tokens",
        "ru": "те же правила для сотен токенов",
    },
    "bad_arguments": {
        "en": "ValueError: T ≤ 0, k or p out of range, bad logits",
        "ru": "ValueError: T ≤ 0, k или p вне границ, плохие логиты",
    },
}

_SAMPLING_FACTS = {
    "not_numbers": {
        "en": "the result is a {came}; it must be a flat list of numbers",
        "ru": "результат имеет тип {came}, а нужен плоский список чисел",
    },
    "length": {
        "en": "{came} numbers came back for {wanted} logits",
        "ru": "вернулось чисел: {came}, а логитов {wanted}",
    },
    "changed": {
        "en": "the call changed its list of logits: work on a copy",
        "ru": "вызов изменил список логитов: работайте с копией",
    },
    "changed_argument": {"en": "logits changed", "ru": "изменены логиты"},
    "unchanged": {"en": "nothing changed", "ru": "без изменений"},
    "kept": {
        "en": "{came} tokens have a probability, {wanted} must: {ids}",
        "ru": "вероятность есть у {came} токенов, а должна быть у {wanted}: {ids}",
    },
    "total": {
        "en": "the probabilities sum to {total:.6g}",
        "ru": "вероятности дают в сумме {total:.6g}",
    },
    "twice": {
        "en": "two calls in a row give different results",
        "ru": "два вызова подряд дают разные результаты",
    },
    "after_others": {
        "en": "after calls with other arguments the first call gives another result",
        "ru": "после вызовов с другими аргументами первый вызов даёт другой результат",
    },
    "overwritten": {
        "en": "a later call changed the list that an earlier call had returned",
        "ru": "следующий вызов изменил список, который вернул предыдущий",
    },
}


def check_sampling_contract(token_distribution: Callable[..., Any]) -> ContractReport:
    """Hold a sampling distribution to its rules: temperature, then top-k, then top-p.

        token_distribution(logits, temperature=1.0, top_k=None, top_p=None) -> V probabilities

    Raises:  ContractViolation when a clause is broken: with a small call and what was measured
    """
    if not callable(token_distribution):
        kind = type(token_distribution).__name__
        raise TypeError(f"token_distribution must be a function, got {kind}")
    subject = ContractSubject(
        "check_sampling_contract", token_distribution, _SAMPLING_MEANINGS, explain_sampling
    )
    with quiet_globals():
        if is_stub(token_distribution, [1.0, 0.0]):
            return ContractReport(subject.contract, attempted=False)
        clauses = tuple(_sampling_clauses(subject))
    errors = {clause.name: clause.measured for clause in clauses}
    numbers = [error for error in errors.values() if isinstance(error, float)]
    figures = {
        "probability_max_error": max(numbers),
        "temperature_max_error": errors["temperature"],
        "top_k_max_error": errors["top_k"],
        "top_p_max_error": errors["top_p"],
    }
    return ContractReport(subject.contract, clauses, figures)


def _sampling_clauses(subject: ContractSubject) -> Iterator[ClauseResult]:
    """Run the clauses one by one, the ones that tell most about a mistake first."""
    hold = partial(hold_clause, subject, judge=judge_sampling, allowed=1e-6)
    four, mixed = (3.0, 2.0, 1.0, 0.0), (0.5, 3.0, -1.0, 2.0, 1.5)
    plain = [SamplingCase(logits) for logits in (four, mixed, (1.5,), (0.0, 0.0, 0.0))]
    calls = [*plain, SamplingCase(mixed, 0.7, 3, 0.9)]
    yield hold("result_form", allowed=None, judge=judge_sampling_form, cases=calls)
    yield hold("arguments_unchanged", allowed=None, judge=judge_sampling_form, cases=calls)
    yield hold("repeatable", allowed=0.0, judge=judge_sampling_state, cases=calls)
    yield hold("softmax", cases=plain)
    warmths = (0.5, 2.0, 0.1, 10.0)
    warm = [SamplingCase(logits, warmth) for logits in (four, mixed) for warmth in warmths]
    warm += [SamplingCase((0.0, 1e-6, 3e-6), 1e-6), SamplingCase((0.0, 1e6, 3e6), 1e6)]
    yield hold("temperature", cases=warm)
    counts = [SamplingCase(mixed, top_k=k) for k in range(1, 6)]
    yield hold("top_k", cases=[*counts, SamplingCase((1.5,), top_k=1)])
    yield hold("top_k_ties", cases=_sampling_ties())
    masses = (0.05, 0.3, 0.6, 0.62, 0.8, 0.9, 0.93, 0.99)
    yield hold("top_p", cases=[SamplingCase(t, top_p=p) for t in (four, mixed) for p in masses])
    yield hold("exact_boundaries", cases=_sampling_boundaries())
    tail = (0.0, -50.0, -3.0)
    ends = [SamplingCase(logits, top_p=p) for logits in (tail, mixed) for p in (1.0, 1e-9, 1e-300)]
    yield hold("top_p_ends", cases=[*ends, SamplingCase(tail, top_k=2, top_p=1.0)])
    yield hold("temperature_first", cases=_sampling_orders())
    both = [SamplingCase(t, None, k, p) for t in (four, mixed) for k in (2, 3) for p in masses[2:]]
    flat = (1.0, 1.2, 1.1, 0.9, 1.15)
    both += [SamplingCase(flat, None, k, p) for k in (2, 3) for p in (0.3, 0.45, 0.55, 0.75)]
    yield hold("top_k_then_top_p", cases=both)
    yield hold("extreme_logits", cases=_sampling_extremes())
    yield hold("large_vocabulary", cases=_sampling_many())
    yield hold("bad_arguments", allowed=None, judge=judge_sampling_refusal, cases=_sampling_bad())


def _sampling_ties() -> list[SamplingCase]:
    ties, equal = (1.0, 3.0, 3.0, 3.0, 2.0), (0.0, 0.0, 0.0, 0.0)
    cases = [SamplingCase(ties, top_k=k) for k in (2, 1, 3, 4)]
    cases += [SamplingCase(equal, top_k=k) for k in (1, 2, 3)]
    cases += [SamplingCase((2.0, 1.0, 2.0, 1.0), top_k=k) for k in (1, 3)]
    return [*cases, SamplingCase(ties, top_p=0.5), SamplingCase(ties, 2.0, 2, 0.6)]


def _sampling_boundaries() -> list[SamplingCase]:
    """Probabilities that are powers of two, so that every sum is exact."""
    two, equal = math.log(2.0), (0.0, 0.0, 0.0, 0.0)
    cases = [SamplingCase(equal, top_p=p) for p in (0.25, 0.5, 0.75)]
    cases += [SamplingCase((two, 0.0, 0.0), top_p=p) for p in (0.5, 0.75)]
    cases += [SamplingCase((0.0,) * 8, top_p=p) for p in (0.125, 0.5, 0.625)]
    return [*cases, SamplingCase((0.0, 0.0), top_p=0.5), SamplingCase(equal, None, 2, 0.5)]


def _sampling_orders() -> list[SamplingCase]:
    """A temperature together with a filter whose choice it changes."""
    three, mixed = (3.0, 2.0, 1.0), (0.5, 3.0, -1.0, 2.0, 1.5)
    cases = [SamplingCase(three, 0.5, None, 0.8), SamplingCase(three, 2.0, None, 0.8)]
    for warmth in (0.4, 2.5):
        cases += [SamplingCase(mixed, warmth, 3, p) for p in (None, 0.6, 0.85)]
        cases += [SamplingCase(mixed, warmth, None, p) for p in (0.5, 0.9)]
    return cases


def _sampling_extremes() -> list[SamplingCase]:
    cases = [SamplingCase(logits) for logits in ((1000.0, 999.0, 998.0), (-1000.0, -1001.0))]
    cases += [
        SamplingCase((5000.0, 4999.0, 0.0, -5000.0), 2.0),
        SamplingCase((-9000.0, -9001.0, -9003.0), 0.5, None, 0.9),
        SamplingCase((3.0, 2.0, 1.0), 1e-3),
        SamplingCase((12000.0, 11999.0, 11998.0, -12000.0), 1.0, 2, 0.6),
        SamplingCase((100.0, -100.0, 99.0), 0.1, 2),
    ]
    return cases


def _sampling_many() -> list[SamplingCase]:
    draw = random.Random(18)
    spread = tuple(round(draw.gauss(0.0, 2.0), 6) for _ in range(600))
    cases = [SamplingCase(spread), SamplingCase(spread, 0.7, 300), SamplingCase(spread, None, 77)]
    return cases + [SamplingCase(spread, 1.3, k, p) for k in (None, 500) for p in (0.3, 0.95)]


def _sampling_bad() -> list[SamplingCase]:
    """Calls that must be refused; each differs from a right one in a single argument."""
    right = SamplingRefusal((2.0, 1.0, 0.0))
    cases = [replace(right, temperature=warmth) for warmth in (0.0, -1.0)]
    cases += [replace(right, top_k=k) for k in (0, -1, 4)]
    cases += [replace(right, top_p=p) for p in (0.0, -0.5, 1.5)]
    bad = ((), (1.0, math.nan), (math.inf, 0.0), (0.0, -math.inf))
    return cases + [replace(right, logits=logits) for logits in bad]


def judge_sampling_form(subject: ContractSubject, case: SamplingCase) -> float:
    """A number for each token comes back, and the list of logits is as it was."""
    _sampling_call(subject, case)
    return 0.0


def judge_sampling(subject: ContractSubject, case: SamplingCase) -> float:
    """The distribution equals both references; what is removed has probability exactly 0."""
    got, want = _sampling_call(subject, case), case.truth
    wrong = [i for i, (a, b) in enumerate(zip(got, want, strict=True)) if (a != 0) != (b != 0)]
    if wrong:
        count, right = sum(a != 0 for a in got), sum(b != 0 for b in want)
        ids = [i for i, b in enumerate(want) if b != 0][:8]
        facts = localized(_SAMPLING_FACTS["kept"], came=count, wanted=right, ids=ids)
        mismatches = tuple(Mismatch("probs", (i,), got[i], want[i]) for i in wrong[:3])
        raise Breach("support", str(count), str(right), mismatches=mismatches, facts=facts)
    errors = [abs(a - b) for a, b in zip(got, want, strict=True)]
    if max(errors) <= 1e-6:
        return max(errors)
    places = [i for i, error in enumerate(errors) if error > 1e-6][:3]
    total = math.fsum(got)
    facts = localized(_SAMPLING_FACTS["total"], total=total) if abs(total - 1) > 1e-6 else ""
    mismatches = tuple(Mismatch("probs", (i,), got[i], want[i]) for i in places)
    raise Breach("wrong", max(errors), 1e-6, mismatches=mismatches, facts=facts)


def judge_sampling_state(subject: ContractSubject, case: SamplingCase) -> float:
    """A, A, B, A: the same numbers each time, and nothing overwritten."""
    first = call_candidate(subject.candidate, list(case.logits), **case.keywords)
    kept = [float(value) for value in first]
    _sampling_agree(_sampling_call(subject, case), kept, "twice")
    other = tuple(logit * -2.0 + 1.0 for logit in case.logits[::-1])
    _sampling_call(subject, replace(case, logits=other))
    _sampling_call(subject, SamplingCase((*other, 5.0), 3.0))
    _sampling_agree([float(value) for value in first], kept, "overwritten")
    _sampling_agree(_sampling_call(subject, case), kept, "after_others")
    return 0.0


def judge_sampling_refusal(subject: ContractSubject, case: SamplingCase) -> float:
    """The call raises ValueError."""
    must_raise(ValueError, subject.candidate, list(case.logits), **case.keywords)
    return 0.0


def _sampling_agree(got: list[float], kept: list[float], fact: str) -> None:
    places = [i for i, (a, b) in enumerate(zip(got, kept, strict=True)) if a != b]
    if places:
        mismatches = tuple(Mismatch("probs", (i,), got[i], kept[i]) for i in places[:3])
        worst = max(abs(got[i] - kept[i]) for i in places)
        facts = localized(_SAMPLING_FACTS[fact])
        raise Breach(fact, worst, 0.0, mismatches=mismatches, facts=facts)


def _sampling_call(subject: ContractSubject, case: SamplingCase) -> list[float]:
    """Call the candidate; breach unless V finite numbers come back and the logits are untouched."""
    logits = list(case.logits)
    result = call_candidate(subject.candidate, logits, **case.keywords)
    if logits != list(case.logits):
        raise Breach(
            "changed",
            localized(_SAMPLING_FACTS["changed_argument"]),
            localized(_SAMPLING_FACTS["unchanged"]),
            facts=localized(_SAMPLING_FACTS["changed"]),
            clause="arguments_unchanged",
        )
    try:
        values = [float(value) for value in result]
    except Exception:
        came = type(result).__name__
        text = localized(_SAMPLING_FACTS["not_numbers"], came=came)
        raise Breach("type", came, "list[float]", facts=text, clause="result_form") from None
    if len(values) != len(logits):
        text = localized(_SAMPLING_FACTS["length"], came=len(values), wanted=len(logits))
        size = (str(len(values)), str(len(logits)))
        raise Breach("length", *size, facts=text, clause="result_form")
    for token, value in enumerate(values):
        if not math.isfinite(value):
            place = Mismatch("probs", (token,), value, "finite")
            raise Breach("not finite", str(value), "finite", mismatches=(place,))
    return values
