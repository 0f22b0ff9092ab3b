"""The contract of the sampling distribution: temperature, top-k, top-p, in this order."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from course_lib.contracts.engine.candidate import (
    ContractSubject,
    hold_clause,
    is_stub,
    quiet_globals,
)
from course_lib.contracts.sampling._sampling_behaviour import explain_sampling
from course_lib.contracts.sampling._sampling_case import SamplingCase
from course_lib.contracts.sampling._sampling_inputs import (
    sampling_bad,
    sampling_boundaries,
    sampling_combinations,
    sampling_extremes,
    sampling_many,
    sampling_orders,
    sampling_ties,
)
from course_lib.contracts.sampling._sampling_judge import (
    judge_sampling,
    judge_sampling_form,
    judge_sampling_refusal,
    judge_sampling_state,
)
from course_lib.report import ClauseResult, ContractReport

_SAMPLING_MEANINGS = {
    "result_form": {
        "en": "one finite number per token",
        "ru": "по одному конечному числу на токен",
    },
    "arguments_unchanged": {
        "en": "the call leaves the list of logits as it was",
        "ru": "список логитов после вызова прежний",
    },
    "repeatable": {
        "en": "the same call, the same result, whatever came between",
        "ru": "тот же вызов — тот же результат, что бы ни было между ними",
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
        "ru": "остаются k вероятнейших, с перенормировкой; k = 1 — жадно",
    },
    "top_k_ties": {
        "en": "exactly k survive: of equal logits the lower ids",
        "ru": "остаётся ровно k: из равных логитов младшие номера",
    },
    "top_p": {
        "en": "the shortest run that reaches p, its last token included",
        "ru": "кратчайший набор с массой не меньше p, с последним токеном",
    },
    "exact_boundaries": {
        "en": "a mass equal to p is enough; powers of two, no rounding",
        "ru": "массы, равной p, достаточно; степени двойки, без округлений",
    },
    "top_p_ends": {
        "en": "p = 1 removes nothing; a tiny p leaves the likeliest",
        "ru": "p = 1 не удаляет ничего; крошечное p оставляет вероятнейший",
    },
    "temperature_first": {
        "en": "the temperature acts before the filters choose",
        "ru": "температура действует до того, как выбирают фильтры",
    },
    "top_k_then_top_p": {
        "en": "top-p measures what top-k left, renormalised",
        "ru": "top-p отмеряет оставшееся после top-k, с перенормировкой",
    },
    "any_mixture": {
        "en": "few tokens, ties or none; any temperature with any k and p",
        "ru": "мало токенов, равные логиты или нет; любые T, k и p",
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
    yield hold("repeatable", allowed=None, judge=judge_sampling_state, cases=calls)
    yield hold("softmax", cases=plain)
    warmths = (0.5, 2.0, 0.1, 10.0)
    warm = [SamplingCase(logits, warmth) for logits in (four, mixed) for warmth in warmths]
    warm += [SamplingCase((0.0, 1e-6, 3e-6), 1e-6), SamplingCase((0.0, 1e6, 3e6), 1e6)]
    warm.append(SamplingCase((0.0, 1e-12, 3e-12), 1e-12))
    yield hold("temperature", cases=warm)
    counts = [SamplingCase(mixed, top_k=k) for k in range(1, 6)]
    yield hold("top_k", cases=[*counts, SamplingCase((1.5,), top_k=1)])
    yield hold("top_k_ties", cases=sampling_ties())
    masses = (0.05, 0.3, 0.6, 0.62, 0.8, 0.9, 0.93, 0.99)
    logits = (four, mixed, (1.0, 3.0, 3.0, 3.0, 2.0))
    yield hold("top_p", cases=[SamplingCase(t, top_p=p) for t in logits for p in masses])
    yield hold("exact_boundaries", cases=sampling_boundaries())
    tail = (0.0, -50.0, -3.0)
    ends = [SamplingCase(logits, top_p=p) for logits in (tail, mixed) for p in (1.0, 1e-9, 1e-30)]
    ends.append(SamplingCase(tail, top_p=0.995))
    yield hold("top_p_ends", cases=[*ends, SamplingCase(tail, top_k=2, top_p=1.0)])
    yield hold("temperature_first", cases=sampling_orders())
    both = [SamplingCase(t, None, k, p) for t in (four, mixed) for k in (2, 3) for p in masses[2:]]
    flat = (1.0, 1.2, 1.1, 0.9, 1.15)
    both += [SamplingCase(flat, None, k, p) for k in (2, 3) for p in (0.3, 0.45, 0.55, 0.75)]
    both += [SamplingCase(mixed, warmth, 3, 0.6) for warmth in (0.4, 2.5)]
    both += [SamplingCase(mixed, None, k, p) for k in (1, 5) for p in (0.3, 0.6, 0.95)]
    both += [SamplingCase((0.0,) * 4, None, 2, 0.5), SamplingCase(logits[2], 2.0, 2, 0.6)]
    yield hold("top_k_then_top_p", cases=both)
    yield hold("any_mixture", cases=sampling_combinations())
    yield hold("extreme_logits", cases=sampling_extremes())
    yield hold("large_vocabulary", cases=sampling_many())
    yield hold("bad_arguments", allowed=None, judge=judge_sampling_refusal, cases=sampling_bad())
