"""Judge the calls of a cached model: its rows, its traces, its refusals, its arguments."""

from functools import partial
from typing import Any

import numpy as np

from course_lib.contracts.cache.logits import (
    LOGIT_TOLERANCES,
    logit_mismatches,
    read_logits,
    scribble_over,
)
from course_lib.contracts.cache.observer import CacheObserver
from course_lib.contracts.cache.texts import CacheCase
from course_lib.contracts.engine.candidate import Breach, call_candidate
from course_lib.contracts.engine.subject import Subject
from course_lib.text import say

# fmt: off
_FACTS = {
    "rows": "rows that differ from the full pass (of {total}): {rows} | "
    "строки, расходящиеся с полным проходом (из {total}): {rows}",
    "first_right": "the first chunk is right, what comes after it is not | "
    "первый кусок верен, а то, что после него, — нет",
    "goes_on":
        "the first prompt was right; the second equals the end of full_logits(both joined) | "
        "ответ на первый промпт верен, а на второй — равен концу full_logits(первый + второй)",
    "trace": "the first call of all was right, the same call later was not | "
    "самый первый вызов верен, а такой же вызов позднее — нет",
    "unsteady": "the same call gives different logits | один и тот же вызов даёт разные логиты",
    "future": "changing tokens from {j} on changed row {row} of full_logits | "
    "замена токенов начиная с {j} изменила строку {row} в full_logits",
    "after_refusal": "after a text that was too long, a short one is answered differently | "
    "после слишком длинного текста ответ на короткий стал другим",
    "answered":
        "{function} answered {n} tokens where {context} fit: it has to raise an exception | "
        "{function}: токенов {n}, а помещается {context}; нужно исключение, а не ответ",
    "overwritten": "a later call changed an earlier result of {function} | "
    "{function}: следующий вызов изменил прежний результат",
    "came_back": "the caller wrote into a result of {function}, and it came back | "
    "{function}: то, что записали в прежний результат, оказалось в новом",
    "starts_alike":
        "after a text that starts alike, ids_between, the same call gives other logits | "
        "после текста с тем же началом, ids_between, тот же вызов даёт другие логиты",
    "edited": "the call changed {name}: {before} became {after} | "
    "вызов изменил {name}: было {before}, стало {after}",
}
# fmt: on

LEAK_SHARE = 0.05  # two calls of one shape round alike: a leak shows earlier


def _call(
    seen: CacheObserver, ids: tuple[int, ...], chunks: tuple[int, ...] = ()
) -> tuple[np.ndarray, Any]:
    """Call the full pass, or the cached one if there are chunks; numbers and the raw result."""
    function, widths = (seen.cached, [list(chunks)]) if chunks else (seen.full, [])
    raw = call_candidate(function, list(ids), *widths)
    return read_logits(raw, (len(ids), seen.vocab_size)).values.copy(), raw


def _full_once(seen: CacheObserver, ids: tuple[int, ...]) -> np.ndarray:
    """The full pass of a text, made once; what is wrong with it is told."""
    kept = seen.run(ids)
    good = kept is not None and kept.shape == (len(ids), seen.vocab_size)
    return kept if good and np.isfinite(kept).all() else _call(seen, ids)[0]


def formed(subject: Subject, case: CacheCase, allowed: float) -> float:
    """Both functions return [T, V] of finite numbers."""
    seen = subject.seen
    _call(seen, case.ids)
    _call(seen, case.ids, case.chunks)
    return 0.0


def rows_equal(subject: Subject, case: CacheCase, allowed: float) -> float:
    """The cached rows must equal those of the full pass, which is made once a text."""
    seen = subject.seen
    want = _full_once(seen, case.ids)
    got, _ = _call(seen, case.ids, case.chunks)
    wrong = [row for row, same in enumerate(seen.rows_equal(got, want)) if not same]

    def facts() -> str:
        shown = ", ".join(map(str, wrong[:6])) + (" …" if len(wrong) > 6 else "")
        told = say(_FACTS["rows"], rows=shown, total=len(case.ids))
        after = bool(wrong) and wrong[0] >= case.chunks[0]
        return f"{told}; {say(_FACTS['first_right'])}" if after else told

    return seen.compared(got, want, "wrong", facts)


def causal(subject: Subject, case: CacheCase, allowed: float) -> float:
    """Other tokens from some place on must leave the rows before it alone."""
    seen = subject.seen
    before = _full_once(seen, case.ids)
    after, _ = _call(seen, case.changed_ids)
    start = case.changed_from
    row = int(np.abs(after[:start] - before[:start]).max(-1).argmax())
    scale = max(float(np.abs(before).max()), 1e-30)
    error = float(np.abs(after[:start] - before[:start]).max()) / scale
    if error <= LOGIT_TOLERANCES[seen.kind] * LEAK_SHARE:
        return error
    places = logit_mismatches(after[:start], before[:start], "full_logits")
    facts = say(_FACTS["future"], j=start, row=row)
    raise Breach("future", error, mismatches=places, facts=facts)


def repeated(subject: Subject, case: CacheCase, allowed: float) -> float:
    """The first prompt of all, again and again, with others in between."""
    seen = subject.seen
    kept, worst = seen.first["one"], 0.0
    longer = seen.ids(min(9, seen.context_length), 7)
    between = [seen.other, longer, longer[:1], longer, seen.one]
    for other in between:
        got, _ = _call(seen, case.ids, case.chunks)
        if kept is None:
            return 0.0  # what the first call was will be said by another clause
        worst = max(worst, seen.compared(got, kept, "trace", partial(_trace, seen)))
        _call(seen, other, (len(other),))
        _call(seen, other)
    return worst


def kindred(subject: Subject, case: CacheCase, allowed: float) -> float:
    """After a text that starts alike the answer is that after one which starts otherwise."""
    seen = subject.seen
    _call(seen, seen.other, (len(seen.other),))
    alone, _ = _call(seen, case.ids, case.chunks)
    for before in (seen.other, case.between):
        _call(seen, before, (len(before),))
    got, _ = _call(seen, case.ids, case.chunks)
    return seen.compared(got, alone, "kindred", say(_FACTS["starts_alike"]))


def _trace(seen: CacheObserver) -> str:
    state = seen.state()
    if state[0] is True:
        return say(_FACTS["goes_on" if state[1] == "goes on" else "trace"])
    return say(_FACTS["unsteady"])


def refused(subject: Subject, case: CacheCase, allowed: float) -> float:
    """Too long a text must be refused, and must leave nothing behind."""
    seen = subject.seen
    name = "cached_logits" if case.chunks else "full_logits"
    before, _ = _call(seen, seen.one, (len(seen.one),))
    try:
        seen.cached(list(case.ids), list(case.chunks)) if case.chunks else seen.full(list(case.ids))
    except Exception:
        got, _ = _call(seen, seen.one, (len(seen.one),))
        return seen.compared(got, before, "half done", say(_FACTS["after_refusal"]))
    facts = say(_FACTS["answered"], function=name, n=len(case.ids), context=seen.context_length)
    wanted = say("an exception | исключение")
    returned = say("no error, a result | не ошибка, а результат")
    raise Breach(f"{name} answered", returned, wanted, facts=facts)


def results_kept(subject: Subject, case: CacheCase, allowed: float) -> float:
    """Later calls leave earlier results alone, and what is written into one does not return."""
    seen = subject.seen
    name = "cached_logits" if case.chunks else "full_logits"
    kept, raw = _call(seen, case.ids, case.chunks)
    other = seen.ids(len(case.ids), 8)
    _call(seen, other, case.chunks)
    shape = (len(case.ids), seen.vocab_size)
    facts = say(_FACTS["overwritten"], function=name)
    seen.compared(read_logits(raw, shape).values, kept, "overwritten", facts)
    scribble_over(raw)
    got, _ = _call(seen, case.ids, case.chunks)
    return seen.compared(got, kept, "came back", say(_FACTS["came_back"], function=name))


def arguments_kept(subject: Subject, case: CacheCase, allowed: float) -> float:
    """Neither list may be changed, by neither function."""
    seen = subject.seen
    for function, arguments in (
        (seen.cached, {"ids": list(case.ids), "chunks": list(case.chunks)}),
        (seen.full, {"ids": list(case.ids)}),
    ):
        call_candidate(function, *arguments.values())
        for name, after in arguments.items():
            before = list(getattr(case, name))
            if after != before:
                facts = say(_FACTS["edited"], name=name, before=before, after=after)
                raise Breach(f"{name} edited", str(after), str(before), facts=facts)
    return 0.0
