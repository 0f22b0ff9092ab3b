"""Judge the calls of a cached model: its rows, its traces, its refusals, its arguments."""

from functools import partial
from typing import Any

import numpy as np

from course_lib.contracts.cache._cache_case import CacheCase, cache_fact
from course_lib.contracts.cache._cache_observer import CacheObserver
from course_lib.contracts.cache._logit_arrays import (
    LOGIT_TOLERANCES,
    logit_error,
    logit_mismatches,
    read_logits,
    scribble_over,
)
from course_lib.contracts.engine.candidate import Breach, ContractSubject, call_candidate
from course_lib.text import localized

CACHE_LEAK_SHARE = 0.05  # two calls of one shape round alike: a leak shows earlier


def _cache_call(
    seen: CacheObserver, ids: tuple[int, ...], chunks: tuple[int, ...] = ()
) -> tuple[np.ndarray, Any]:
    """Call the full pass, or the cached one if there are chunks; numbers and the raw result."""
    raw = (
        call_candidate(seen.cached, list(ids), list(chunks))
        if chunks
        else call_candidate(seen.full, list(ids))
    )
    return read_logits(raw, (len(ids), seen.vocab_size)).values.copy(), raw


def _cache_full_once(seen: CacheObserver, ids: tuple[int, ...]) -> np.ndarray:
    """The full pass of a text, made once; what is wrong with it is told."""
    kept = seen.run(ids)
    good = kept is not None and kept.shape == (len(ids), seen.vocab_size)
    return kept if good and np.isfinite(kept).all() else _cache_call(seen, ids)[0]


def _cache_compare(
    seen: CacheObserver, got: np.ndarray, want: np.ndarray, kind: str, facts: Any
) -> float:
    error = logit_error(got, want)
    if error <= LOGIT_TOLERANCES[seen.kind]:
        return error
    raise Breach(kind, error, mismatches=logit_mismatches(got, want), facts=facts)


def judge_cache_form(subject: ContractSubject, case: CacheCase, seen: CacheObserver) -> float:
    """Both functions return [T, V] of finite numbers."""
    _cache_call(seen, case.ids)
    _cache_call(seen, case.ids, case.chunks)
    return 0.0


def judge_cache_rows(subject: ContractSubject, case: CacheCase, seen: CacheObserver) -> float:
    """The cached rows must equal those of the full pass, which is made once a text."""
    want = _cache_full_once(seen, case.ids)
    got, _ = _cache_call(seen, case.ids, case.chunks)
    wrong = [row for row, same in enumerate(seen.rows_equal(got, want)) if not same]

    def facts() -> str:
        shown = ", ".join(map(str, wrong[:6])) + (" …" if len(wrong) > 6 else "")
        told = cache_fact("rows", rows=shown, total=len(case.ids))
        after = bool(wrong) and wrong[0] >= case.chunks[0]
        return f"{told}; {cache_fact('first_right')}" if after else told

    return _cache_compare(seen, got, want, "wrong", facts)


def judge_cache_causal(subject: ContractSubject, case: CacheCase, seen: CacheObserver) -> float:
    """Other tokens from some place on must leave the rows before it alone."""
    before = _cache_full_once(seen, case.ids)
    after, _ = _cache_call(seen, case.changed_ids)
    start = case.changed_from
    row = int(np.abs(after[:start] - before[:start]).max(-1).argmax())
    scale = max(float(np.abs(before).max()), 1e-30)
    error = float(np.abs(after[:start] - before[:start]).max()) / scale
    if error <= LOGIT_TOLERANCES[seen.kind] * CACHE_LEAK_SHARE:
        return error
    places = logit_mismatches(after[:start], before[:start], "full_logits")
    facts = cache_fact("future", j=start, row=row)
    raise Breach("future", error, mismatches=places, facts=facts)


def judge_cache_again(subject: ContractSubject, case: CacheCase, seen: CacheObserver) -> float:
    """The first prompt of all, again and again, with others in between."""
    kept, worst = seen.first["one"], 0.0
    longer = seen.ids(min(9, seen.context_length), 7)
    between = [seen.other, longer, longer[:1], longer, seen.one]
    for other in between:
        got, _ = _cache_call(seen, case.ids, case.chunks)
        if kept is None:
            return 0.0  # what the first call was will be said by another clause
        worst = max(worst, _cache_compare(seen, got, kept, "trace", partial(_cache_trace, seen)))
        _cache_call(seen, other, (len(other),))
        _cache_call(seen, other)
    return worst


def judge_cache_kindred(subject: ContractSubject, case: CacheCase, seen: CacheObserver) -> float:
    """After a text that starts alike the answer is that after one which starts otherwise."""
    _cache_call(seen, seen.other, (len(seen.other),))
    alone, _ = _cache_call(seen, case.ids, case.chunks)
    for before in (seen.other, case.between):
        _cache_call(seen, before, (len(before),))
    got, _ = _cache_call(seen, case.ids, case.chunks)
    return _cache_compare(seen, got, alone, "kindred", cache_fact("starts_alike"))


def _cache_trace(seen: CacheObserver) -> str:
    state = seen.state()
    if state[0] is True:
        return cache_fact("goes_on" if state[1] == "goes on" else "trace")
    return cache_fact("unsteady")


def judge_cache_beyond(subject: ContractSubject, case: CacheCase, seen: CacheObserver) -> float:
    """Too long a text must be refused, and must leave nothing behind."""
    name = "cached_logits" if case.chunks else "full_logits"
    before, _ = _cache_call(seen, seen.one, (len(seen.one),))
    try:
        seen.cached(list(case.ids), list(case.chunks)) if case.chunks else seen.full(list(case.ids))
    except Exception:
        got, _ = _cache_call(seen, seen.one, (len(seen.one),))
        return _cache_compare(seen, got, before, "half done", cache_fact("after_refusal"))
    facts = cache_fact("answered", function=name, n=len(case.ids), context=seen.context_length)
    wanted = localized({"en": "an exception", "ru": "исключение"})
    returned = localized({"en": "no error, a result", "ru": "не ошибка, а результат"})
    raise Breach(f"{name} answered", returned, wanted, facts=facts)


def judge_cache_memory(subject: ContractSubject, case: CacheCase, seen: CacheObserver) -> float:
    """Later calls leave earlier results alone, and what is written into one does not return."""
    name = "cached_logits" if case.chunks else "full_logits"
    kept, raw = _cache_call(seen, case.ids, case.chunks)
    other = seen.ids(len(case.ids), 8)
    _cache_call(seen, other, case.chunks)
    shape = (len(case.ids), seen.vocab_size)
    facts = cache_fact("overwritten", function=name)
    _cache_compare(seen, read_logits(raw, shape).values, kept, "overwritten", facts)
    scribble_over(raw)
    got, _ = _cache_call(seen, case.ids, case.chunks)
    return _cache_compare(seen, got, kept, "came back", cache_fact("came_back", function=name))


def judge_cache_edits(subject: ContractSubject, case: CacheCase, seen: CacheObserver) -> float:
    """Neither list may be changed, by neither function."""
    for function, arguments in (
        (seen.cached, {"ids": list(case.ids), "chunks": list(case.chunks)}),
        (seen.full, {"ids": list(case.ids)}),
    ):
        call_candidate(function, *arguments.values())
        for name, after in arguments.items():
            before = list(getattr(case, name))
            if after != before:
                facts = cache_fact("edited", name=name, before=before, after=after)
                raise Breach(f"{name} edited", str(after), str(before), facts=facts)
    return 0.0
