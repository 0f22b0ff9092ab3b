"""Judge a batched sampler: its ids, how often each comes, what each row owes to chance."""

import random
from typing import Any

import numpy as np
import torch

from course_lib.contracts.engine.candidate import Breach, ContractSubject, call_candidate
from course_lib.contracts.engine.words import say
from course_lib.contracts.sampling._sampler_case import SamplerCase
from course_lib.contracts.sampling._sampler_chance import (
    SAMPLER_ALLOWED,
    sampler_agreements,
    sampler_surprise,
)
from course_lib.contracts.sampling._sampler_facts import SAMPLER_FACTS
from course_lib.report import Mismatch


def judge_sampler_form(subject: ContractSubject, case: SamplerCase) -> float:
    """One integer id a row comes back, and the logits are as they were."""
    sampler_ids(subject, case, case.generator())
    return 0.0


def judge_sampler_greedy(subject: ContractSubject, case: SamplerCase) -> float:
    """At temperature 0 every row holds its likeliest token."""
    ids, want = sampler_ids(subject, case, case.generator()), case.greedy()
    wrong = [b for b, token in enumerate(ids) if token != want[b % len(want)]]
    if wrong:
        shown = [Mismatch("ids", (b,), int(ids[b]), want[b % len(want)]) for b in wrong[:3]]
        facts = say(SAMPLER_FACTS["greedy"])
        count = f"{len(wrong)}/{len(ids)}"
        raise Breach("greedy", count, "0", mismatches=tuple(shown), facts=facts)
    return 0.0


def judge_sampler(subject: ContractSubject, case: SamplerCase) -> float:
    """No removed id, and each of the others about as often as its probability says."""
    ids, worst = sampler_ids(subject, case, case.generator()), 0.0
    for place, probs in enumerate(case.distributions()):
        mine = ids[place :: len(case.rows)]
        _sampler_kept(mine, probs, case, place)
        counts = np.bincount(mine, minlength=len(probs)).tolist()
        surprises = [
            sampler_surprise(count, len(mine), prob)
            for count, prob in zip(counts, probs, strict=True)
        ]
        worst = max(worst, *surprises)
        if max(surprises) > SAMPLER_ALLOWED:
            token = surprises.index(max(surprises))
            raise _sampler_strayed(case, place, token, counts[token], len(mine), probs[token])
    return worst


def judge_sampler_ends(subject: ContractSubject, case: SamplerCase) -> float:
    """When a draw lies at the very end of its range, still no removed id."""
    try:
        ids = sampler_ids(subject, case, case.generator())
    except Breach as breach:
        breach.clause = ""  # it is the draw, not the form, that is wrong
        raise
    for place, probs in enumerate(case.distributions()):
        _sampler_kept(ids[place :: len(case.rows)], probs, case, place)
    return 0.0


def judge_sampler_halves(subject: ContractSubject, case: SamplerCase) -> float:
    """Of very many tokens, together as likely as the first, every part comes its share."""
    ids = sampler_ids(subject, case, case.generator())
    (probs,) = case.distributions()
    worst = 0.0
    for start, stop in ((0, 1), (1, len(probs)), (len(probs) // 2, len(probs)), (256, len(probs))):
        count = int(((ids >= start) & (ids < stop)).sum())
        share = float(np.sum(probs[start:stop]))
        surprise = sampler_surprise(count, len(ids), share)
        worst = max(worst, surprise)
        if surprise > SAMPLER_ALLOWED:
            name = f"{start}…{stop - 1}"
            raise _sampler_strayed(case, 0, name, count, len(ids), share)
    return worst


def judge_sampler_rows(subject: ContractSubject, case: SamplerCase) -> float:
    """Equal rows agree as often as independent ones, next to one another and far apart."""
    ids = sampler_ids(subject, case, case.generator())
    (probs,) = case.distributions()
    same, worst = sum(prob * prob for prob in probs), 0.0
    for lag in (1, len(ids) // 2):
        count, pairs = sampler_agreements(ids, lag)
        worst = max(worst, _sampler_agree("agree", count, pairs, same, lag))
    return worst


def judge_sampler_calls(subject: ContractSubject, case: SamplerCase) -> float:
    """The same in a batch of two, from call to call of one generator."""
    rng, calls = case.generator(), 80
    seen = np.array([sampler_ids(subject, case, rng) for _ in range(calls)])
    probs = case.distributions()[0]
    for ids in seen.T:
        _sampler_kept(ids, probs, case, 0)
    same = sum(prob * prob for prob in probs)
    count = int((seen[:, 0] == seen[:, 1]).sum())
    worst = _sampler_agree("two_rows", count, calls, same)
    count = int((seen[::2, 0] == seen[1::2, 0]).sum())
    return max(worst, _sampler_agree("agree", count, calls // 2, same, 1))


def judge_sampler_source(subject: ContractSubject, case: SamplerCase) -> float:
    """All chance comes from rng, which moves on; the global generators stay as they are."""
    rng = case.generator()
    _sampler_globals(7)
    before = _sampler_global_state()
    first = sampler_ids(subject, case, rng)
    _sampler_same(_sampler_global_state() == before, "global_state")
    second = sampler_ids(subject, case, rng)
    _sampler_same(not np.array_equal(first, second), "repeats")
    _sampler_globals(8)
    again = sampler_ids(subject, case, case.generator())
    _sampler_same(np.array_equal(first, again), "other_source")
    other = sampler_ids(subject, case, np.random.default_rng(case.seed + 1))
    _sampler_same(not np.array_equal(first, other), "seedless")
    return 0.0


def sampler_ids(
    subject: ContractSubject, case: SamplerCase, rng: np.random.Generator
) -> np.ndarray:
    """Call the sampler; breach unless an id in range comes back for each row."""
    logits = case.logits()
    result = call_candidate(subject.candidate, logits, *case.settings(), rng)
    if logits.dtype != case.dtype or not np.array_equal(logits, case.logits()):
        measured, allowed = (say(SAMPLER_FACTS[key]) for key in ("logits_changed", "unchanged"))
        facts = say(SAMPLER_FACTS["changed"])
        raise Breach("changed", measured, allowed, facts=facts, clause="arguments_unchanged")
    try:
        ids = np.asarray(
            result.detach().cpu().numpy() if isinstance(result, torch.Tensor) else result
        )
    except Exception:
        raise _sampler_malformed("no_ids", type(result).__name__, "[B]") from None
    if ids.shape != (len(logits),):
        kind = "no_ids" if ids.dtype == object else "shape"
        came = type(result).__name__ if kind == "no_ids" else str(list(ids.shape))
        raise _sampler_malformed(kind, came, str([len(logits)]))
    if ids.dtype.kind not in "iu":
        raise _sampler_malformed("dtype", str(ids.dtype), "int")
    wrong = np.flatnonzero((ids < 0) | (ids >= logits.shape[1]))
    if len(wrong):
        came, last = int(ids[wrong[0]]), logits.shape[1] - 1
        shown = (Mismatch("ids", (int(wrong[0]),), came, f"0…{last}"),)
        facts = say(SAMPLER_FACTS["range"], came=came, last=last)
        raise Breach(
            "range", str(came), f"0…{last}", mismatches=shown, facts=facts, clause="result_form"
        )
    return ids.astype(np.int64)


def _sampler_malformed(fact: str, came: str, wanted: str) -> Breach:
    text = say(SAMPLER_FACTS[fact], came=came, wanted=wanted)
    return Breach(fact, came, wanted, facts=text, clause="result_form")


def _sampler_kept(ids: np.ndarray, probs: list[float], case: SamplerCase, place: int) -> None:
    """Breach if an id came that the filters removed."""
    removed = [b for b, token in enumerate(ids) if probs[token] == 0]
    if not removed:
        return
    kept = [token for token, prob in enumerate(probs) if prob]
    kept = kept if len(kept) <= 8 else f"{kept[0]}…{kept[-1]}"
    rows = [place + b * len(case.rows) for b in removed[:3]]
    one_of = say(SAMPLER_FACTS["one_of"], kept=kept)
    shown = tuple(
        Mismatch("ids", (row,), int(ids[b]), one_of)
        for row, b in zip(rows, removed[:3], strict=True)
    )
    token = int(ids[removed[0]])
    facts = say(
        SAMPLER_FACTS["removed"],
        came=token,
        count=int((ids == token).sum()),
        draws=len(ids),
        row=_sampler_row(case, place),
        kept=kept,
    )
    raise Breach("removed", str(len(removed)), "0", mismatches=shown, facts=facts)


def _sampler_strayed(
    case: SamplerCase, place: int, token: Any, count: int, draws: int, prob: float
) -> Breach:
    surprise = min(sampler_surprise(count, draws, prob), 999.0)
    facts = say(
        SAMPLER_FACTS["frequency"],
        token=token,
        count=count,
        draws=draws,
        row=_sampler_row(case, place),
        wanted=draws * prob,
        surprise=surprise,
    )
    return Breach("frequency", surprise, SAMPLER_ALLOWED, facts=facts)


def _sampler_row(case: SamplerCase, place: int) -> str:
    row = [round(logit, 3) for logit in case.rows[place]]
    return str(row if len(row) <= 8 else [*row[:3], ...]).replace("Ellipsis", "…")


def _sampler_agree(fact: str, count: int, pairs: int, same: float, lag: int = 0) -> float:
    surprise = min(sampler_surprise(count, pairs, same), 999.0)
    if surprise > SAMPLER_ALLOWED:
        numbers = {"count": count, "pairs": pairs, "wanted": pairs * same, "lag": lag}
        facts = say(SAMPLER_FACTS[fact], **numbers)
        raise Breach(fact, surprise, SAMPLER_ALLOWED, facts=facts)
    return surprise


def _sampler_same(right: bool, fact: str) -> None:
    if not right:
        words = say(SAMPLER_FACTS[fact])
        raise Breach(fact, words.split(":")[0], "rng", facts=words)


def _sampler_globals(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.default_generator.manual_seed(seed)


def _sampler_global_state() -> tuple[Any, ...]:
    numpy_state = np.random.get_state()
    torch_state = torch.default_generator.get_state().numpy().tobytes()
    return random.getstate(), numpy_state[1].tobytes(), numpy_state[2], torch_state
