"""Say in which ways a wrong sampling distribution differs, if it equals a wrong rule."""

import math
from collections.abc import Callable
from typing import Any

from course_lib.contracts._candidate import (
    ContractSubject,
)
from course_lib.contracts._deviations import describe_deviations, matching_deviations
from course_lib.contracts._sampling_case import SamplingCase

_SAMPLING_DEVIATIONS = {
    "temperature": ("ignored", "multiplied", "twice", "after_cut", "only_for_cut"),
    "top_k": ("one_more", "ties_kept", "higher_ids", "k_ignored"),
    "top_p": ("crossing_dropped", "one_past", "p_ignored", "whole_mass", "p_first"),
    "end": ("not_renormalised", "softmax_again", "sorted_order"),
}

_SAMPLING_WAYS = {
    "ignored": {
        "en": "the temperature were ignored",
        "ru": "температура не учитывалась",
    },
    "multiplied": {
        "en": "the logits were multiplied by the temperature instead of divided",
        "ru": "логиты умножались на температуру, а не делились",
    },
    "twice": {
        "en": "the logits were divided by the temperature twice",
        "ru": "логиты делились на температуру дважды",
    },
    "after_cut": {
        "en": "the temperature came after top-p: the nucleus was chosen at temperature 1",
        "ru": "температура применялась после top-p: ядро выбиралось при температуре 1",
    },
    "only_for_cut": {
        "en": "the temperature chose the nucleus, but the result was made at temperature 1",
        "ru": "температура выбирала ядро, но результат считался при температуре 1",
    },
    "one_more": {
        "en": "k + 1 tokens were kept instead of k",
        "ru": "оставалось k + 1 токенов вместо k",
    },
    "ties_kept": {
        "en": "every token that ties with the k-th were kept (exactly k must survive)",
        "ru": "оставались все токены, равные k-му (должно остаться ровно k)",
    },
    "higher_ids": {
        "en": "of equal logits the higher ids were kept (keep the lower ones)",
        "ru": "из равных логитов оставались старшие номера (нужны младшие)",
    },
    "k_ignored": {
        "en": "top_k were ignored",
        "ru": "top_k не учитывался",
    },
    "crossing_dropped": {
        "en": "the token that crosses top_p were dropped (it belongs to the nucleus)",
        "ru": "токен, пересекающий top_p, отбрасывался (он входит в ядро)",
    },
    "one_past": {
        "en": "one token more were kept when the sum equals top_p exactly",
        "ru": "при сумме, в точности равной top_p, оставался лишний токен",
    },
    "p_ignored": {
        "en": "top_p were ignored",
        "ru": "top_p не учитывался",
    },
    "whole_mass": {
        "en": "top_p were measured on the whole distribution, as when top-p comes before top-k; "
        "it must measure what top-k left, renormalised",
        "ru": "top_p отмерялся по всему распределению, как бывает, когда top-p идёт до top-k; "
        "нужно отмерять оставшееся после top-k, с перенормировкой",
    },
    "p_first": {
        "en": "the tokens were taken in the order of their ids, not of their probability",
        "ru": "токены брались по порядку номеров, а не по убыванию вероятности",
    },
    "not_renormalised": {
        "en": "the survivors were not renormalised",
        "ru": "оставшиеся вероятности не перенормировались",
    },
    "softmax_again": {
        "en": "a second softmax were taken over the probabilities",
        "ru": "по вероятностям ещё раз брался softmax",
    },
    "sorted_order": {
        "en": "the probabilities came back sorted instead of in the order of the ids",
        "ru": "вероятности возвращались отсортированными, а не по номерам токенов",
    },
}


def explain_sampling(subject: ContractSubject) -> str:
    """Name the deviations from the rules that reproduce the candidate on fresh inputs."""
    probes = _sampling_probes()
    given = [_sampling_answer(subject.candidate, probe) for probe in probes]

    def imitates(deviation: dict[str, str]) -> bool:
        ways = set(deviation.values())
        pairs = zip(given, (_sampling_imitation(ways, probe) for probe in probes), strict=True)
        return all(got is not None and _sampling_same(got, want) for got, want in pairs)

    if imitates({}):
        return ""
    return describe_deviations(matching_deviations(_SAMPLING_DEVIATIONS, imitates), _SAMPLING_WAYS)


def _sampling_probes() -> list[SamplingCase]:
    mixed, ties, halves = (0.5, 3.0, -1.0, 2.0), (1.0, 3.0, 3.0, 3.0, 2.0), (0.0, 0.0, 0.0, 0.0)
    return [
        SamplingCase(mixed),
        SamplingCase(mixed, temperature=2.0),
        SamplingCase(mixed, temperature=0.5),
        SamplingCase(mixed, top_k=2),
        SamplingCase(ties, top_k=2),
        SamplingCase(mixed, top_p=0.8),
        SamplingCase(halves, top_p=0.5),
        SamplingCase((1.0, 3.0, 2.0), temperature=0.5, top_p=0.8),
        SamplingCase((1.0, 3.0, 2.0, 2.5), top_k=3, top_p=0.8),
        SamplingCase((3.0, 2.9, 2.8, 2.7), top_k=2, top_p=0.5),
        SamplingCase((1.0, 1.2, 1.1, 0.9), top_k=2, top_p=0.55),
    ]


def _sampling_answer(distribution: Callable[..., Any], probe: SamplingCase) -> list[float] | None:
    try:
        result = distribution(list(probe.logits), **probe.keywords)
        values = [float(value) for value in result]
    except Exception:
        return None
    return values if all(math.isfinite(value) for value in values) else None


def _sampling_same(one: list[float], other: list[float]) -> bool:
    return len(one) == len(other) and all(
        abs(a - b) <= 1e-6 for a, b in zip(one, other, strict=True)
    )


def _sampling_imitation(ways: set[str], case: SamplingCase) -> list[float]:
    """The distribution by the rules, wrong in the given ways."""
    warmth = 1.0 if case.temperature is None else case.temperature
    choosing = {"ignored": 1.0, "multiplied": 1 / warmth, "twice": warmth**2, "after_cut": 1.0}
    ending = {"ignored": 1.0, "multiplied": 1 / warmth, "twice": warmth**2, "only_for_cut": 1.0}
    chosen_at = next((choosing[way] for way in ways if way in choosing), warmth)
    made_at = next((ending[way] for way in ways if way in ending), warmth)
    whole = _sampling_softmax(case.logits, chosen_at)
    ranked = sorted(range(len(whole)), key=lambda token: (-case.logits[token], token))
    if "higher_ids" in ways:
        ranked = sorted(range(len(whole)), key=lambda token: (-case.logits[token], -token))
    kept = _sampling_wrong_p(ways, case, _sampling_wrong_k(ways, case, ranked), whole)
    final = _sampling_softmax(case.logits, made_at)
    total = 1.0 if "not_renormalised" in ways else sum(final[token] for token in kept) or 1.0
    probs = [final[token] / total if token in kept else 0.0 for token in range(len(final))]
    if "softmax_again" in ways:
        probs = _sampling_softmax(probs, 1.0)
    return sorted(probs, reverse=True) if "sorted_order" in ways else probs


def _sampling_softmax(logits: Any, temperature: float) -> list[float]:
    top = max(logits)
    parts = [math.exp((logit - top) / temperature) for logit in logits]
    total = sum(parts)
    return [part / total for part in parts]


def _sampling_wrong_k(ways: set[str], case: SamplingCase, ranked: list[int]) -> list[int]:
    k = case.top_k
    if k is None or "k_ignored" in ways:
        return ranked
    if "ties_kept" in ways:
        least = case.logits[ranked[min(k, len(ranked)) - 1]]
        return [token for token in ranked if case.logits[token] >= least]
    return ranked[: k + 1] if "one_more" in ways else ranked[:k]


def _sampling_wrong_p(
    ways: set[str], case: SamplingCase, ranked: list[int], whole: list[float]
) -> list[int]:
    if case.top_p is None or case.top_p == 1 or "p_ignored" in ways:
        return ranked
    total = 1.0 if "whole_mass" in ways else sum(whole[token] for token in ranked)
    kept, mass = [], 0.0
    for token in sorted(ranked) if "p_first" in ways else ranked:
        share = whole[token] / total
        past = mass > case.top_p if "one_past" in ways else mass >= case.top_p
        if past or ("crossing_dropped" in ways and kept and mass + share > case.top_p):
            break
        kept.append(token)
        mass += share
    return kept
