"""Judge one call of a sampling distribution: its form, its numbers, its memory, its refusals."""

import itertools
import math
from dataclasses import replace

from course_lib.contracts.engine.candidate import (
    Breach,
    ContractSubject,
    call_candidate,
    finite_wanted,
    must_raise,
)
from course_lib.contracts.engine.words import say
from course_lib.contracts.sampling._sampling_case import SamplingCase
from course_lib.report import Mismatch

# fmt: off
_SAMPLING_FACTS = {
    "not_numbers": "the result is a {came}; it must be a flat list of numbers | "
    "результат имеет тип {came}, а нужен плоский список чисел",
    "length":
        "numbers that came back: {came}; logits: {wanted} | вернулось чисел: {came}; логитов: "
    "{wanted}",
    "changed": "the call changed its list of logits: work on a copy | "
    "вызов изменил список логитов: работайте с копией",
    "changed_argument": "logits changed | изменены логиты",
    "unchanged": "nothing changed | без изменений",
    "kept": "tokens with a probability: {came}; right: {wanted}, ids {ids} | "
    "токенов с вероятностью: {came}; верно: {wanted}, номера {ids}",
    "total": "the probabilities sum to {total:.6g} | вероятности дают в сумме {total:.6g}",
    "twice": "two calls in a row give different results | два вызова подряд дают разные результаты",
    "after_others": "after calls with other arguments the first call gives another result | "
    "после вызовов с другими аргументами повтор первого вызова даёт другой результат",
    "overwritten": "a later call changed the list that an earlier call had returned | "
    "следующий вызов изменил список, который вернул предыдущий",
}
# fmt: on


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
        facts = say(_SAMPLING_FACTS["kept"], came=count, wanted=right, ids=ids)
        mismatches = tuple(Mismatch("probs", (i,), got[i], want[i]) for i in wrong[:3])
        raise Breach("support", str(count), str(right), mismatches=mismatches, facts=facts)
    errors = [abs(a - b) for a, b in zip(got, want, strict=True)]
    if max(errors) <= 1e-6:
        return max(errors)
    places = [i for i, error in enumerate(errors) if error > 1e-6][:3]
    total = math.fsum(got)
    facts = say(_SAMPLING_FACTS["total"], total=total) if abs(total - 1) > 1e-6 else ""
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
    if got == kept:
        return
    pairs = list(itertools.zip_longest(got, kept))
    places = [i for i, (a, b) in enumerate(pairs) if a != b]
    mismatches = tuple(Mismatch("probs", (i,), *pairs[i]) for i in places[:3])
    facts = say(_SAMPLING_FACTS[fact])
    raise Breach(fact, f"{len(places)}/{len(pairs)}", "0", mismatches=mismatches, facts=facts)


def _sampling_call(subject: ContractSubject, case: SamplingCase) -> list[float]:
    """Call the candidate; breach unless V finite numbers come back and the logits are untouched."""
    logits = list(case.logits)
    result = call_candidate(subject.candidate, logits, **case.keywords)
    if logits != list(case.logits):
        raise Breach(
            "changed",
            say(_SAMPLING_FACTS["changed_argument"]),
            say(_SAMPLING_FACTS["unchanged"]),
            facts=say(_SAMPLING_FACTS["changed"]),
            clause="arguments_unchanged",
        )
    try:
        values = [float(value) for value in result]
    except Exception:
        came = type(result).__name__
        text = say(_SAMPLING_FACTS["not_numbers"], came=came)
        raise Breach("type", came, "list[float]", facts=text, clause="result_form") from None
    if len(values) != len(logits):
        text = say(_SAMPLING_FACTS["length"], came=len(values), wanted=len(logits))
        size = (str(len(values)), str(len(logits)))
        raise Breach("length", *size, facts=text, clause="result_form")
    for token, value in enumerate(values):
        if not math.isfinite(value):
            place = Mismatch("probs", (token,), value, finite_wanted())
            raise Breach("not finite", str(value), finite_wanted(), mismatches=(place,))
    return values
