"""Judge a strided loss by what its score was asked and by what its number reveals."""

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from course_lib.contracts.engine.candidate import Breach, ContractSubject, call_candidate
from course_lib.contracts.engine.diagnosis import Diagnosis, Probe, diagnose
from course_lib.contracts.likelihood._likelihood_judge import likelihood_number
from course_lib.contracts.likelihood._strided_nll_case import (
    StridedCase,
    WindowScore,
    nats_of_token,
    strided_by_places,
)
from course_lib.contracts.likelihood._strided_steps import mistaken_strided_nll
from course_lib.contracts.likelihood.strided_nll_mistakes import STRIDED_NLL_MISTAKES
from course_lib.report import Mismatch
from course_lib.text import localized

_STRIDED_FACTS = {
    "not_number": {
        "en": "the result is {came}, not one finite number of nats",
        "ru": "результат — {came}, а нужно одно конечное число нат",
    },
    "weights": {
        "en": "how often each predicted token is counted (once is right): {shown}",
        "ru": "сколько раз учтён каждый предсказанный токен (верно: 1): {shown}",
    },
    "weight": {"en": "ids[{place}]: {weight}", "ru": "ids[{place}]: {weight}"},
    "off": {
        "en": "predicted tokens: {count}; their mean is {want}",
        "ru": "предсказанных токенов: {count}; их среднее {want}",
    },
    "too_long": {
        "en": "tokens in one call of score: {came}; the model reads {most}",
        "ru": "токенов в одном вызове score: {came}, а модель читает {most}",
    },
    "context": {
        "en": "tokens before ids[{place}] in its window: {came}, although {least} fit",
        "ru": "токенов перед ids[{place}] в окне: {came}, хотя помещается {least}",
    },
    "stale": {
        "en": "another score gives 1 nat to each token of the same ids, and the result is {fresh}",
        "ru": "другая score даёт каждому токену тех же ids по 1 нату, а результат {fresh}",
    },
    "unchanged": {"en": "ids unchanged", "ru": "ids не изменены"},
    "changed": {"en": "the function writes into ids", "ru": "функция пишет в ids"},
    "remembered": {
        "en": "the same call gave {first} before another call and {again} after it",
        "ru": "один и тот же вызов дал {first} до другого вызова и {again} после него",
    },
}


def call_strided(
    candidate: Callable[..., Any], case: StridedCase, nats: Callable[[int, int], float]
) -> tuple[float, WindowScore]:
    """Call the candidate with a score; breach unless one finite number comes back."""
    score = WindowScore(nats)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.tensor(tensor) is not what we are looking for
        result = call_candidate(
            candidate, score, torch.tensor(case.ids), case.max_length, case.stride
        )
    got = likelihood_number(result)
    if got is None or not math.isfinite(got):
        shape = getattr(result, "shape", ())
        came = type(result).__name__ if got is None else str(got)
        came += f" {list(shape)}" if tuple(shape) else ""
        facts = localized(_STRIDED_FACTS["not_number"], came=came)
        raise Breach("not a number", came, "float", facts=facts, clause="result_form")
    return got, score


def by_token(token: int, before: int) -> float:
    """Nats that depend on the token alone."""
    return nats_of_token(token)


def judge_strided_form(subject: ContractSubject, case: StridedCase) -> float:
    """One finite number must come back."""
    call_strided(subject.candidate, case, by_token)
    return 0.0


def judge_counts(subject: ContractSubject, case: StridedCase, windows: Any) -> float:
    """Every token but the first counts once: then the mean is known without any windows."""
    want, again = strided_by_places(case), windows(case)
    if not math.isclose(want, again, rel_tol=1e-12):
        raise RuntimeError(f"the two references for the strided loss disagree on {case}")
    got, _ = call_strided(subject.candidate, case, by_token)
    error = abs(got - want) / want
    if error > 1e-6:
        facts = partial(_counts_in_words, subject.candidate, case, want)
        mismatch = Mismatch("strided_nll", (), got, want)
        raise Breach("wrong", error, mismatches=(mismatch,), facts=facts)
    return error


def counted_weights(candidate: Callable[..., Any], case: StridedCase) -> list[float]:
    """How often each place counts, by making its token alone dearer (a linear mean tells)."""
    usual, _ = call_strided(candidate, case, by_token)
    weights = []
    for chosen in case.ids:
        dearer, _ = call_strided(
            candidate,
            case,
            lambda token, before, chosen=chosen: by_token(token, 0) + (token == chosen),
        )
        weights.append((dearer - usual) * (case.length - 1))
    return weights


def _counts_in_words(candidate: Callable[..., Any], case: StridedCase, want: float) -> str:
    count = case.length - 1
    off = localized(_STRIDED_FACTS["off"], count=count, want=f"{want:.6g}")
    if case.repeated or case.length > 12:
        return off
    try:
        weights = counted_weights(candidate, case)
    except Breach:
        return off
    shown = ", ".join(
        localized(_STRIDED_FACTS["weight"], place=place, weight=f"{weight + 0.0:.3g}")
        for place, weight in enumerate(weights)
        if place
    )
    return localized(_STRIDED_FACTS["weights"], shown=shown)


def judge_window_length(subject: ContractSubject, case: StridedCase) -> float:
    """No call of score may hold more tokens than the model reads."""
    _, score = call_strided(subject.candidate, case, by_token)
    longest = max(map(len, score.windows), default=0)
    if longest > case.max_length:
        facts = localized(_STRIDED_FACTS["too_long"], came=longest, most=case.max_length)
        raise Breach("too long", str(longest), f"≤ {case.max_length}", facts=facts)
    return 0.0


def judge_context(subject: ContractSubject, case: StridedCase) -> float:
    """A token predicted from less context than fits costs a surcharge: there must be none."""
    places = {token: place for place, token in enumerate(case.ids)}

    def with_surcharge(token: int, before: int) -> float:
        least = case.least_context(places.get(token, 0))
        return by_token(token, before) + max(least - before, 0)

    want = strided_by_places(case)
    got, _ = call_strided(subject.candidate, case, with_surcharge)
    error = abs(got - want) / want
    if error > 1e-6:
        place, came = _shortest_context(subject.candidate, case)
        least = case.least_context(place)
        if came >= least:  # the number is not a mean of the nats that score gave
            raise Breach("wrong", error, 1e-6, mismatches=(Mismatch("strided_nll", (), got, want),))
        facts = localized(_STRIDED_FACTS["context"], place=place, came=f"{came:.3g}", least=least)
        mismatch = Mismatch("context", (place,), came, least)
        raise Breach("short", f"{came:.3g}", f"≥ {least}", mismatches=(mismatch,), facts=facts)
    return 0.0


def _shortest_context(candidate: Callable[..., Any], case: StridedCase) -> tuple[int, float]:
    """The place that lacks the most context, and what it has: a score that counts the context."""
    found = []
    for place, chosen in enumerate(case.ids):
        got, _ = call_strided(
            candidate, case, lambda token, before, chosen=chosen: before * (token == chosen)
        )
        context = got * (case.length - 1)
        found.append((context - case.least_context(place), place, round(context, 6)))
    _, place, context = min(found[1:])
    return place, context


def judge_strided_state(subject: ContractSubject, case: StridedCase) -> float:
    """ids stay as they are; the same call gives the same, whatever came between."""
    ids = torch.tensor(case.ids)
    call_candidate(subject.candidate, WindowScore(by_token), ids, case.max_length, case.stride)
    if ids.tolist() != case.ids:
        unchanged = localized(_STRIDED_FACTS["unchanged"])
        raise Breach("changed", "ids", unchanged, facts=localized(_STRIDED_FACTS["changed"]))
    first, _ = call_strided(subject.candidate, case, by_token)
    fresh, _ = call_strided(subject.candidate, case, lambda token, before: 1.0)
    if abs(fresh - 1.0) > 1e-6:
        facts = localized(_STRIDED_FACTS["stale"], fresh=f"{fresh:.6g}")
        raise Breach("stale", abs(fresh - 1.0), facts=facts)
    again, _ = call_strided(subject.candidate, case, by_token)
    error = abs(again - first) / abs(first) if first else abs(again)
    if error > 1e-9:
        shown = {"first": f"{first:.6g}", "again": f"{again:.6g}"}
        facts = localized(_STRIDED_FACTS["remembered"], **shown)
        mismatch = Mismatch("strided_nll", (), again, strided_by_places(case))
        raise Breach("remembered", error, mismatches=(mismatch,), facts=facts)
    return error


def explain_strided(subject: ContractSubject) -> Diagnosis:
    """Name the catalogued mistakes that count the same tokens from the same context."""
    sizes = ((14, 6, 2), (21, 9, 5), (10, 5, 4), (17, 4, 1), (5, 8, 3), (19, 8, 6))
    cases = [StridedCase(*size) for size in sizes]
    probes = [Probe(partial(_strided_probed, case=case)) for case in cases]
    probes += [Probe(partial(_context_probed, case=case)) for case in cases[:4]]
    probes += [
        Probe(partial(_longest_probed, case=case), core=False) for case in (cases[0], cases[2])
    ]
    return diagnose(subject.candidate, STRIDED_NLL_MISTAKES, probes, mistaken_strided_nll())


def _strided_probed(candidate: Callable[..., Any], case: StridedCase) -> float:
    return call_strided(candidate, case, by_token)[0]


def _context_probed(candidate: Callable[..., Any], case: StridedCase) -> float:
    """The context of every token as far as it is demanded, each with a weight of its own."""
    places = {token: place for place, token in enumerate(case.ids)}

    def context(token: int, before: int) -> float:
        least = case.least_context(places.get(token, 0))
        return min(before, least) * by_token(token, before)

    return call_strided(candidate, case, context)[0]


def _longest_probed(candidate: Callable[..., Any], case: StridedCase) -> str:
    """Whether some window is longer than the model reads, or even the whole text."""
    _, score = call_strided(candidate, case, by_token)
    longest = max(map(len, score.windows), default=0)
    if longest == case.length:
        return "whole text"
    return "too long" if longest > case.max_length else "fits"
