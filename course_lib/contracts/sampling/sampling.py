"""The contract of the sampling distribution: temperature, top-k, top-p, in this order."""

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.call import Call
from course_lib.contracts.engine.candidate import Breach, finite_wanted
from course_lib.contracts.engine.clause import Clause, Contract
from course_lib.contracts.engine.diagnosis import by_catalogue
from course_lib.contracts.engine.judge import formed, refuses
from course_lib.contracts.engine.read import malformed
from course_lib.contracts.engine.subject import Subject, Terms
from course_lib.contracts.sampling.references import by_library, by_loops
from course_lib.contracts.sampling.sampling_calls import asked, calls_by_clause
from course_lib.contracts.sampling.sampling_mistakes import SAMPLING_MISTAKES
from course_lib.contracts.sampling.sampling_probes import sampling_probes
from course_lib.contracts.sampling.steps import mistaken_distribution
from course_lib.report import ContractReport, Mismatch
from course_lib.text import say

_NOT_NUMBERS = (
    "the result is a {came}; it must be a flat list of numbers | "
    "результат имеет тип {came}, а нужен плоский список чисел"
)
_LENGTH = (
    "numbers that came back: {came}; logits: {wanted} | вернулось чисел: {came}; логитов: {wanted}"
)
_KEPT = (
    "tokens with a probability: {came}; right: {wanted}, ids {ids} | "
    "токенов с ненулевой вероятностью: {came}; верно: {wanted}, номера {ids}"
)
_TOTAL = "the probabilities sum to {total:.6g} | вероятности дают в сумме {total:.6g}"
_TWICE = "two calls in a row give different results | два вызова подряд дают разные результаты"
_OVERWRITTEN = (
    "a later call changed the list that an earlier call had returned | "
    "следующий вызов изменил список, который вернул предыдущий"
)
_AFTER_OTHERS = (
    "after calls with other arguments the first call gives another result | "
    "после вызовов с другими аргументами повтор первого вызова даёт другой результат"
)


def _probabilities(result: Any, call: Call) -> Tensor:
    """Anything that can be read as V finite numbers: a list, an array, a tensor."""
    try:
        values = [float(value) for value in result]
    except Exception:
        came = type(result).__name__
        raise malformed("type", _NOT_NUMBERS, "list[float]", came=came) from None
    if len(values) != (wanted := len(call.logits)):
        raise malformed("length", _LENGTH, str(wanted), came=len(values), wanted=wanted)
    for token, value in enumerate(values):
        if not math.isfinite(value):
            place = Mismatch("probs", (token,), value, finite_wanted())
            raise Breach("not finite", str(value), finite_wanted(), mismatches=(place,))
    return torch.tensor(values, dtype=torch.float64)


def _distributed(subject: Subject, call: Call, allowed: float) -> float:
    """The right distribution; what is removed has probability exactly 0."""
    got, want = subject.value(call), subject.wanted(call)
    wrong = ((got != 0) != (want != 0)).nonzero().flatten().tolist()
    if wrong:
        kept = want.nonzero().flatten().tolist()
        came, right = int(got.count_nonzero()), len(kept)
        facts = say(_KEPT, came=came, wanted=right, ids=kept[:8])
        shown = tuple(Mismatch("probs", (i,), got[i].item(), want[i].item()) for i in wrong[:3])
        raise Breach("support", str(came), str(right), mismatches=shown, facts=facts)
    return subject.compare(call, got, want, allowed, label="probs", facts=partial(_sum, got))


def _sum(got: Tensor) -> str:
    """What the probabilities add up to, if that is not 1."""
    total = math.fsum(got.tolist())
    return say(_TOTAL, total=total) if abs(total - 1) > 1e-6 else ""


def _steady(subject: Subject, call: Call, allowed: float) -> float:
    """A, A, B, A: the same numbers each time, and nothing overwritten."""
    held = subject.result(call)
    kept = [float(value) for value in held]
    _agree(subject.value(call).tolist(), kept, _TWICE)
    other = call.but(logits=[logit * -2.0 + 1.0 for logit in call.logits[::-1]])
    longer = asked([*other.logits, 5.0], 3.0)
    for between in (other, longer):
        subject.value(between)
    _agree([float(value) for value in held], kept, _OVERWRITTEN)
    _agree(subject.value(call).tolist(), kept, _AFTER_OTHERS)
    return 0.0


def _agree(got: list[float], kept: list[float], fact: str) -> None:
    """Not read as a result is: a list that was handed out may have grown since."""
    pairs = list(itertools.zip_longest(got, kept))
    places = [i for i, (a, b) in enumerate(pairs) if a != b]
    if places:
        shown = tuple(Mismatch("probs", (i,), *pairs[i]) for i in places[:3])
        count = f"{len(places)}/{len(pairs)}"
        raise Breach(fact, count, "0", mismatches=shown, facts=say(fact))


def _clauses(subject: Subject) -> list[Clause]:
    """The clauses, the ones that tell most about a mistake first."""
    calls = calls_by_clause()
    some = [*calls["softmax"], asked((0.5, 3.0, -1.0, 2.0, 1.5), 0.7, 3, 0.9)]
    # fmt: off
    distributions = (
        ("softmax", "without filters: the softmax, in the order of the ids | "
            "без фильтров: softmax в порядке номеров токенов"),
        ("temperature", "logits / temperature, then the softmax | "
            "логиты / температура, затем softmax"),
        ("top_k", "the k likeliest survive, renormalised; k = 1 is greedy | "
            "остаются k вероятнейших, с перенормировкой; k = 1 — жадно"),
        ("top_k_ties", "exactly k survive: of equal logits the lower ids | "
            "остаётся ровно k: из равных логитов младшие номера"),
        ("top_p", "the shortest run that reaches p, its last token included | "
            "кратчайший набор с массой не меньше p, включая токен на пороге"),
        ("exact_boundaries", "a mass equal to p is enough; powers of two, no rounding | "
            "массы, равной p, достаточно; степени двойки, без округлений"),
        ("top_p_ends", "p = 1 removes nothing; a tiny p leaves the likeliest | "
            "p = 1 не удаляет ничего; крошечное p оставляет вероятнейший"),
        ("temperature_first", "the temperature acts before the filters choose | "
            "температура действует до того, как выбирают фильтры"),
        ("top_k_then_top_p", "top-p measures what top-k left, renormalised | "
            "top-p считается по тому, что оставил top-k, после перенормировки"),
        ("any_mixture", "few tokens, ties or none; any temperature with any k and p | "
            "мало токенов, с равными логитами и без них; любые T, k и p"),
        ("extreme_logits", "logits in the thousands, tiny temperatures | "
            "логиты в тысячах, крошечные температуры"),
        ("large_vocabulary", "the same rules for hundreds of tokens | "
            "те же правила для сотен токенов"),
    )
    return [
        Clause("result_form", "one finite number per token | по одному конечному числу на токен",
            formed, some),
        Clause("arguments_unchanged", "the call leaves the list of logits as it was | "
            "список логитов после вызова прежний", formed, some),
        Clause("repeatable", "the same call, the same result, whatever came between | "
            "тот же вызов — тот же результат, что бы ни было между ними", _steady, some),
        *(Clause(name, text, _distributed, calls[name], 1e-6) for name, text in distributions),
        Clause("bad_arguments", "ValueError: T ≤ 0, k or p out of range, bad logits | "
            "ValueError: T ≤ 0, k или p вне границ, плохие логиты",
            refuses(ValueError), calls["bad_arguments"]),
    ]
    # fmt: on


def _figures(subject: Subject, measured: dict[str, Any]) -> dict[str, float]:
    errors = {f"{name}_max_error": measured[name] for name in ("temperature", "top_k", "top_p")}
    worst = max(error for error in measured.values() if isinstance(error, float))
    return {"probability_max_error": worst, **errors}


_REFERENCES = tuple(
    lambda call, right=right: torch.tensor(right(**call.args), dtype=torch.float64)
    for right in (by_loops, by_library)
)
_TERMS = Terms("token_distribution", _REFERENCES, _probabilities, agree=1e-9)
SAMPLING = Contract(
    "sampling",
    _TERMS,
    _clauses,
    by_catalogue(SAMPLING_MISTAKES, sampling_probes, mistaken_distribution()),
    figures=_figures,
)


def check_sampling_contract(token_distribution: Callable[..., Any]) -> ContractReport:
    """Hold a sampling distribution to its rules: temperature, then top-k, then top-p.

        token_distribution(logits, temperature=1.0, top_k=None, top_p=None) -> V probabilities

    Raises:  ContractViolation when a clause is broken: with a small call and what was measured
    """
    return SAMPLING.check(token_distribution)
