"""Judge a batched sampler: its ids, how often each comes, what each row owes to chance."""

import random
from typing import Any

import numpy as np
import torch

from course_lib.contracts.engine.candidate import Breach, call_candidate
from course_lib.contracts.engine.read import malformed
from course_lib.contracts.engine.subject import Subject
from course_lib.contracts.sampling.chance import ALLOWED, agreements, surprises
from course_lib.contracts.sampling.sampler_calls import Draws
from course_lib.report import Mismatch
from course_lib.text import say

_NO_IDS = (
    "the result is a {came}, of which no array of ids can be made | "
    "результат имеет тип {came}, массива номеров из него не получается"
)
_DTYPE = "the ids are {came}; they must be integers | номера имеют тип {came}, а нужны целые"
_SHAPE = (
    "the ids have shape {came}; one id for each row is shape {wanted} | "
    "форма номеров {came}, а по одному на строку — это {wanted}"
)
_RANGE = "id {came} is no token: the last one is {last} | номера {came} нет: последний токен {last}"
_ONE_OF = "one of {kept} | один из {kept}"
# fmt: off
_FACTS = {
    "removed": "id {came} came {count} times in {draws} rows of the logits {row}, where only "
        "{kept} may come | номер {came} выпал в {count} из {draws} строк логитов {row}, а "
        "возможны только {kept}",
    "frequency": "in {draws} rows of the logits {row} token {token} came {count} times; right are "
        "about {wanted:.0f}: chance strays so far less than once in 10^{surprise:.0f} | "
        "токен {token} выпал в {count} из {draws} строк логитов {row}, а верно около {wanted:.0f}: "
        "случайно так бывает реже, чем один раз из 10^{surprise:.0f}",
    "greedy": "at temperature 0 the answer is the highest logit, the lowest id of equal ones | "
        "при температуре 0 ответ — наибольший логит, из равных младший номер",
    "agree": "rows {lag} apart hold the same token in {count} of {pairs} pairs; independent ones "
        "would in about {wanted:.0f} | строки через {lag} дали один и тот же токен в {count} из "
        "{pairs} пар, а независимые дали бы примерно в {wanted:.0f}",
    "two_rows": "in {pairs} calls the two equal rows held the same token {count} times; "
        "independent ones would about {wanted:.0f} times | две равные строки дали один и тот же "
        "токен в {count} из {pairs} вызовов, а независимые дали бы примерно в {wanted:.0f}",
    "other_source": "two generators with the same seed gave different ids: chance comes from "
        "elsewhere too, or something is kept between calls | два генератора с одним зерном дали "
        "разные номера: случайность не только из rng, или что-то хранится между вызовами",
    "repeats": "the next call with the same generator gave the same ids: it has not moved on | "
        "следующий вызов с тем же генератором дал те же номера: генератор не сдвинулся",
    "seedless": "generators with different seeds gave the same ids: rng is not drawn from | "
        "генераторы с разными зёрнами дали одни и те же номера: rng не используется",
    "global_state": "the call moved a global generator (random, numpy.random or torch) | "
        "вызов сдвинул глобальный генератор (random, numpy.random или torch)",
}
# fmt: on


def read_ids(result: Any, draws: Draws) -> np.ndarray:
    """One integer id in range for each row: a list, an array, a tensor."""
    tensor = isinstance(result, torch.Tensor)
    wanted, size = [len(draws.rows) * draws.repeats], len(draws.rows[0])
    try:
        ids = np.asarray(result.detach().cpu().numpy() if tensor else result)
    except Exception:
        raise malformed("no_ids", _NO_IDS, "[B]", came=type(result).__name__) from None
    if list(ids.shape) != wanted:
        if ids.dtype == object:
            raise malformed("no_ids", _NO_IDS, str(wanted), came=type(result).__name__)
        raise malformed("shape", _SHAPE, str(wanted), came=list(ids.shape), wanted=wanted)
    if ids.dtype.kind not in "iu":
        raise malformed("dtype", _DTYPE, "int", came=ids.dtype)
    wrong = np.flatnonzero((ids < 0) | (ids >= size))
    if len(wrong):
        came, allowed = int(ids[wrong[0]]), f"0…{size - 1}"
        breach = malformed("range", _RANGE, allowed, came=came, last=size - 1)
        breach.mismatches = (Mismatch("ids", (int(wrong[0]),), came, allowed),)
        raise breach
    return ids.astype(np.int64)


def ids_of(subject: Subject, draws: Draws, rng: np.random.Generator | None = None) -> np.ndarray:
    """Call the sampler; breach unless an id in range comes back for each row."""
    given = draws.fresh(rng)
    result = call_candidate(subject.candidate, *given.positional)
    subject.check_unchanged(draws, given)
    return read_ids(result, draws)


def well_formed(subject: Subject, draws: Draws, allowed: float) -> float:
    """One integer id a row comes back, and the logits are as they were."""
    ids_of(subject, draws)
    return 0.0


def greedy(subject: Subject, draws: Draws, allowed: float) -> float:
    """At temperature 0 every row holds its likeliest token."""
    ids = ids_of(subject, draws)
    want = np.tile(subject.wanted(draws).argmax(-1).numpy(), draws.repeats)
    wrong = np.flatnonzero(ids != want)
    if len(wrong):
        shown = tuple(Mismatch("ids", (int(b),), int(ids[b]), int(want[b])) for b in wrong[:3])
        count, facts = f"{len(wrong)}/{len(ids)}", say(_FACTS["greedy"])
        raise Breach("greedy", count, "0", mismatches=shown, facts=facts)
    return 0.0


def counted(subject: Subject, draws: Draws, allowed: float) -> float:
    """No removed id, and each of the others about as often as its probability says."""
    ids, worst = ids_of(subject, draws), 0.0
    for place, probs in enumerate(subject.wanted(draws).numpy()):
        mine = ids[place :: len(draws.rows)]
        _check_kept(mine, probs, draws, place)
        counts = np.bincount(mine, minlength=len(probs))
        found = surprises(counts, len(mine), probs)
        token = int(found.argmax())
        worst = max(worst, float(found[token]))
        if found[token] > allowed:
            raise _strayed(draws, place, token, int(counts[token]), len(mine), probs[token])
    return worst


def at_the_ends(subject: Subject, draws: Draws, allowed: float) -> float:
    """When a draw lies at the very end of its range, still no removed id."""
    try:
        ids = ids_of(subject, draws)
    except Breach as breach:
        breach.clause = ""  # it is the draw, not the form, that is wrong
        raise
    for place, probs in enumerate(subject.wanted(draws).numpy()):
        _check_kept(ids[place :: len(draws.rows)], probs, draws, place)
    return 0.0


def halves(subject: Subject, draws: Draws, allowed: float) -> float:
    """Of very many tokens, together as likely as the first, every part comes its share."""
    ids, (probs,), worst = ids_of(subject, draws), subject.wanted(draws).numpy(), 0.0
    for start, stop in ((0, 1), (1, len(probs)), (len(probs) // 2, len(probs)), (256, len(probs))):
        count = int(((ids >= start) & (ids < stop)).sum())
        share = float(probs[start:stop].sum())
        worst = max(worst, float(surprises(count, len(ids), share)))
        if worst > allowed:
            raise _strayed(draws, 0, f"{start}…{stop - 1}", count, len(ids), share)
    return worst


def equal_rows(subject: Subject, draws: Draws, allowed: float) -> float:
    """Equal rows agree as often as independent ones, next to one another and far apart."""
    ids = ids_of(subject, draws)
    same, lags = _by_chance(subject, draws), (1, len(ids) // 2)
    return max(_agree("agree", *agreements(ids, lag), same, lag) for lag in lags)


def pairs_of_rows(subject: Subject, draws: Draws, allowed: float) -> float:
    """The same in a batch of two, from call to call of one generator."""
    rng, calls = draws.generator(), 80
    seen = np.array([ids_of(subject, draws, rng) for _ in range(calls)])
    for ids in seen.T:
        _check_kept(ids, subject.wanted(draws).numpy()[0], draws, 0)
    same = _by_chance(subject, draws)
    count = int((seen[:, 0] == seen[:, 1]).sum())
    worst = _agree("two_rows", count, calls, same)
    count = int((seen[::2, 0] == seen[1::2, 0]).sum())
    return max(worst, _agree("agree", count, calls // 2, same, 1))


def from_rng_alone(subject: Subject, draws: Draws, allowed: float) -> float:
    """All chance comes from rng, which moves on; the global generators stay as they are."""
    rng = draws.generator()
    seed_globals(7)
    before = _global_state()
    first = ids_of(subject, draws, rng)
    _must(_global_state() == before, "global_state")
    second = ids_of(subject, draws, rng)
    _must(not np.array_equal(first, second), "repeats")
    seed_globals(8)
    _must(np.array_equal(first, ids_of(subject, draws)), "other_source")
    other = ids_of(subject, draws, np.random.default_rng(draws.seed + 1))
    _must(not np.array_equal(first, other), "seedless")
    return 0.0


def _check_kept(ids: np.ndarray, probs: np.ndarray, draws: Draws, place: int) -> None:
    """Breach if an id came that the filters removed."""
    removed = np.flatnonzero(probs[ids] == 0).tolist()
    if not removed:
        return
    kept = np.flatnonzero(probs).tolist()
    told = kept if len(kept) <= 8 else f"{kept[0]}…{kept[-1]}"
    one_of, token = say(_ONE_OF, kept=told), int(ids[removed[0]])
    shown = tuple(
        Mismatch("ids", (place + b * len(draws.rows),), int(ids[b]), one_of) for b in removed[:3]
    )
    numbers = {"came": token, "count": int((ids == token).sum()), "draws": len(ids), "kept": told}
    facts = say(_FACTS["removed"], row=_shown_row(draws, place), **numbers)
    raise Breach("removed", str(len(removed)), "0", mismatches=shown, facts=facts)


def _strayed(
    draws: Draws, place: int, token: int | str, count: int, rows: int, prob: float
) -> Breach:
    surprise = min(float(surprises(count, rows, prob)), 999.0)
    numbers = {"token": token, "count": count, "draws": rows, "wanted": rows * prob}
    row = _shown_row(draws, place)
    facts = say(_FACTS["frequency"], row=row, surprise=surprise, **numbers)
    return Breach("frequency", surprise, ALLOWED, facts=facts)


def _shown_row(draws: Draws, place: int) -> str:
    row = [round(logit, 3) for logit in draws.rows[place]]
    return str(row if len(row) <= 8 else [*row[:3], ...]).replace("Ellipsis", "…")


def _by_chance(subject: Subject, draws: Draws) -> float:
    """How often two independent draws from the same row agree."""
    return float((subject.wanted(draws)[0] ** 2).sum())


def _agree(fact: str, count: int, pairs: int, same: float, lag: int = 0) -> float:
    surprise = min(float(surprises(count, pairs, same)), 999.0)
    if surprise > ALLOWED:
        numbers = {"count": count, "pairs": pairs, "wanted": pairs * same, "lag": lag}
        raise Breach(fact, surprise, ALLOWED, facts=say(_FACTS[fact], **numbers))
    return surprise


def _must(right: bool, fact: str) -> None:
    if not right:
        words = say(_FACTS[fact])
        raise Breach(fact, words.split(":")[0], "rng", facts=words)


def seed_globals(seed: int) -> None:
    """Start the generators that a sampler must leave alone."""
    random.seed(seed)
    np.random.seed(seed)
    torch.default_generator.manual_seed(seed)


def _global_state() -> tuple[Any, ...]:
    numpy_state = np.random.get_state()
    torch_state = torch.default_generator.get_state().numpy().tobytes()
    return random.getstate(), numpy_state[1].tobytes(), numpy_state[2], torch_state
