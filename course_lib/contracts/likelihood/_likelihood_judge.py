"""Judge one call of a likelihood: a finite number, the right one, and nothing else touched."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.candidate import Breach, ContractSubject, call_candidate
from course_lib.contracts.likelihood._likelihood_case import (
    Likelihood,
    LikelihoodCase,
    likelihood_scale,
    likelihood_wanted,
    nats_by_loops,
)
from course_lib.report import Mismatch
from course_lib.text import localized

_LIKELIHOOD_FACTS = {
    "not_number": {
        "en": "the result is {came}, not a number (a float, or a tensor with no axes)",
        "ru": "результат — {came}, а нужно число (float или тензор без осей)",
    },
    "not_finite": {
        "en": "the result is {came}, although the right one is {want}",
        "ru": "результат {came}, хотя верный конечен: {want}",
    },
    "finite": {"en": "a finite number", "ru": "конечное число"},
    "unchanged": {"en": "arguments unchanged", "ru": "аргументы не изменены"},
    "off": {
        "en": "predicted tokens: {count}; the right answer is {want}",
        "ru": "предсказанных токенов: {count}; верный ответ {want}",
    },
    "padding_read": {
        "en": "with other numbers in the padding it gives {other} instead of {first}",
        "ru": "при других числах в дополнении получается {other} вместо {first}",
    },
    "renamed": {
        "en": "with tokens 0 and {last} renamed into each other it gives {other}, not {first}",
        "ru": "если поменять номера токенов 0 и {last} местами, получается {other}, а не {first}",
    },
    "changed": {
        "en": "the function writes into the caller's {name}",
        "ru": "функция пишет в переданный аргумент {name}",
    },
    "remembered": {
        "en": "the same call gave {first} before another call and {again} after it",
        "ru": "один и тот же вызов дал {first} до другого вызова и {again} после него",
    },
}


def likelihood_number(result: Any) -> float | None:
    """The result as a float; None if it is not one number."""
    if isinstance(result, (bool, str, bytes, complex)) or result is None:
        return None
    if isinstance(result, Tensor):
        result = result.detach()
        if result.is_complex() or result.dtype == torch.bool:
            return None
    if getattr(result, "shape", ()) != ():
        return None
    try:
        return float(result)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return None


def call_likelihood(
    subject: ContractSubject, case: LikelihoodCase, asked: Likelihood, want: float
) -> float:
    """Call the candidate; breach unless one finite number comes back."""
    return _finite_number(call_candidate(subject.candidate, *case.copies()), asked, want)


def _finite_number(result: Any, asked: Likelihood, want: float) -> float:
    got = likelihood_number(result)
    if got is None:
        shape = getattr(result, "shape", None)
        came = type(result).__name__ + ("" if shape is None else f" {list(shape)}")
        facts = localized(_LIKELIHOOD_FACTS["not_number"], came=came)
        raise Breach("not a number", came, "float", facts=facts, clause="result_form")
    if not math.isfinite(got):
        facts = localized(_LIKELIHOOD_FACTS["not_finite"], came=got, want=f"{want:.6g}")
        mismatch = Mismatch(asked.name, (), got, want)
        finite = localized(_LIKELIHOOD_FACTS["finite"])
        raise Breach("not finite", str(got), finite, mismatches=(mismatch,), facts=facts)
    return got


def judge_likelihood(
    subject: ContractSubject, case: LikelihoodCase, asked: Likelihood, allowed: float
) -> float:
    """Hold one call to both references."""
    want = likelihood_wanted(case, asked, nats_by_loops)
    if not math.isfinite(want):
        return 0.0
    got = call_likelihood(subject, case, asked, want)
    error = asked.misses(got, want, likelihood_scale(case))
    if error > allowed:
        count = case.token_ids[..., 1:].numel()
        count = count if case.valid is None else int(case.valid[..., 1:].sum())
        facts = localized(_LIKELIHOOD_FACTS["off"], count=count, want=f"{want:.6g}")
        mismatch = Mismatch(asked.name, (), got, want)
        raise Breach("wrong", asked.misses(got, want, 1.0), mismatches=(mismatch,), facts=facts)
    return error


def judge_likelihood_form(
    subject: ContractSubject, case: LikelihoodCase, asked: Likelihood
) -> float:
    """One finite number must come back, whatever it is."""
    call_likelihood(subject, case, asked, likelihood_wanted(case, asked, nats_by_loops))
    return 0.0


def judge_padding(
    subject: ContractSubject, case: LikelihoodCase, asked: Likelihood, allowed: float
) -> float:
    """Other ids and logits in the padding must change nothing; then hold the call to the truth."""
    want = likelihood_wanted(case, asked, nats_by_loops)
    first = call_likelihood(subject, case, asked, want)
    other = call_likelihood(subject, _padding_replaced(case), asked, want)
    error = asked.misses(other, first, likelihood_scale(case))
    if error > allowed:
        facts = localized(
            _LIKELIHOOD_FACTS["padding_read"], other=f"{other:.6g}", first=f"{first:.6g}"
        )
        mismatch = Mismatch(asked.name, (), first, want)
        raise Breach(
            "padding read", asked.misses(other, first, 1.0), mismatches=(mismatch,), facts=facts
        )
    return max(error, judge_likelihood(subject, case, asked, allowed))


def _padding_replaced(case: LikelihoodCase) -> LikelihoodCase:
    if case.valid is None:
        return case
    padding, vocab_size = ~case.valid, case.logits.shape[-1]
    other_ids = (case.token_ids + 1) % vocab_size
    token_ids = torch.where(padding, other_ids, case.token_ids)
    logits = torch.where(padding.unsqueeze(-1), case.logits.flip(-1) * 3 - 2, case.logits)
    return LikelihoodCase(logits, token_ids, case.valid)


def judge_renaming(
    subject: ContractSubject, case: LikelihoodCase, asked: Likelihood, allowed: float
) -> float:
    """Tokens 0 and V - 1 change their names in ids and logits: the result must not notice."""
    want = likelihood_wanted(case, asked, nats_by_loops)
    last = case.logits.shape[-1] - 1
    names = torch.arange(last + 1)
    names[0], names[last] = last, 0
    renamed = LikelihoodCase(case.logits[..., names], names[case.token_ids], case.valid)
    first = call_likelihood(subject, case, asked, want)
    other = call_likelihood(subject, renamed, asked, want)
    error = asked.misses(other, first, likelihood_scale(case))
    if error > allowed:
        shown = {"first": f"{first:.6g}", "other": f"{other:.6g}", "last": last}
        facts = localized(_LIKELIHOOD_FACTS["renamed"], **shown)
        mismatch = Mismatch(asked.name, (), first, want)
        raise Breach(
            "renamed", asked.misses(other, first, 1.0), mismatches=(mismatch,), facts=facts
        )
    return error


def judge_likelihood_state(
    subject: ContractSubject,
    case: LikelihoodCase,
    asked: Likelihood,
    allowed: float,
    between: Callable[[LikelihoodCase], LikelihoodCase],
) -> float:
    """Arguments stay as they are; the same call gives the same, whatever came between."""
    want = likelihood_wanted(case, asked, nats_by_loops)
    given = case.copies()
    result = _finite_number(call_candidate(subject.candidate, *given), asked, want)
    for name, before, after in zip(case.arguments(), case.copies(), given, strict=True):
        if before.shape != after.shape or not torch.equal(before, after):
            facts = localized(_LIKELIHOOD_FACTS["changed"], name=name)
            unchanged = localized(_LIKELIHOOD_FACTS["unchanged"])
            raise Breach(f"changed {name}", name, unchanged, facts=facts)
    first = call_likelihood(subject, case, asked, want)
    call_candidate(subject.candidate, *between(case).copies())
    again = call_likelihood(subject, case, asked, want)
    error = max(asked.misses(value, first, likelihood_scale(case)) for value in (result, again))
    if error > allowed:
        facts = localized(
            _LIKELIHOOD_FACTS["remembered"], first=f"{result:.6g}", again=f"{again:.6g}"
        )
        mismatch = Mismatch(asked.name, (), again, want)
        raise Breach("remembered", error, mismatches=(mismatch,), facts=facts)
    return error
