"""The contract of the key-value cache: it changes the cost of the logits, never the logits."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from course_lib.arguments import check_int_at_least
from course_lib.contracts._cache_case import (
    CacheCase,
    cache_cuts,
    cache_fact,
    cut_at_powers,
    cut_by_pattern,
)
from course_lib.contracts._cache_observer import CacheObserver
from course_lib.contracts._cache_relations import explain_cache
from course_lib.contracts._candidate import (
    Breach,
    ContractSubject,
    call_candidate,
    hold_clause,
    quiet_globals,
)
from course_lib.contracts._logit_arrays import (
    LOGIT_TOLERANCES,
    logit_error,
    logit_mismatches,
    read_logits,
    scribble_over,
)
from course_lib.report import ClauseResult, ContractReport
from course_lib.text import localized

_CACHE_LEAK_SHARE = 0.05  # two calls of one shape round alike: a leak shows earlier

_CACHE_MEANINGS = {
    "repeatable": {
        "en": "a prompt gives the same logits, whatever came before",
        "ru": "затравка даёт одни и те же логиты, что бы ни было до неё",
    },
    "result_form": {
        "en": "finite numbers of shape [T, vocab_size] from both",
        "ru": "конечные числа формы [T, vocab_size] от обеих функций",
    },
    "full_causal": {
        "en": "without a cache, no row depends on later tokens",
        "ru": "без кэша ни одна строка не зависит от будущих токенов",
    },
    "one_chunk": {
        "en": "prefill in one chunk equals the full pass",
        "ru": "предзаполнение одним куском равно полному проходу",
    },
    "single_tokens": {
        "en": "one token at a time equals the full pass",
        "ru": "по одному токену — то же, что полный проход",
    },
    "chunkings": {
        "en": "however the text is cut, the logits are the same",
        "ru": "как ни режь текст, логиты те же",
    },
    "exactly_full": {
        "en": "right up to exactly context_length tokens",
        "ru": "верно вплоть до context_length токенов включительно",
    },
    "beyond_full": {
        "en": "more than context_length tokens: an exception",
        "ru": "токенов больше context_length — исключение",
    },
    "independent_results": {
        "en": "results stay as they were; writing into one is harmless",
        "ru": "результаты не меняются; запись в них безвредна",
    },
    "arguments_unchanged": {
        "en": "ids and chunks are left as they were",
        "ru": "ids и chunks остаются прежними",
    },
}


def check_cache_contract(
    full_logits: Callable[..., Any],
    cached_logits: Callable[..., Any],
    *,
    vocab_size: int,
    context_length: int,
) -> ContractReport:
    """Hold a cached forward pass to the full one: equal logits, however the text is cut.

        full_logits(ids) -> [T, V];  cached_logits(ids, chunks) -> [T, V], from an empty cache

    Args:
        full_logits: takes a list of int; any framework's array may come back
        cached_logits: takes ids and a list of widths that sum to len(ids)

    Rounding is allowed for as the numbers show it: of the largest logit 1e-9 in float64, 1e-4 in
    float32, 2e-2 in float16, 5e-2 in bfloat16.

    Raises:  ContractViolation when a clause is broken: with a small text and what was measured
    """
    for name, function in (("full_logits", full_logits), ("cached_logits", cached_logits)):
        if not callable(function):
            raise TypeError(f"{name} must be a function, got {type(function).__name__}")
    check_int_at_least("vocab_size", vocab_size, 1)
    check_int_at_least("context_length", context_length, 1)
    with quiet_globals():
        seen = CacheObserver(full_logits, cached_logits, vocab_size, context_length)
        subject = ContractSubject(
            "check_cache_contract", cached_logits, _CACHE_MEANINGS, lambda _: explain_cache(seen)
        )
        if not seen.attempted:
            return ContractReport(subject.contract, attempted=False)
        clauses = tuple(_cache_clauses(subject, seen))
        errors = [clause.measured for clause in clauses if isinstance(clause.measured, float)]
        figures = {
            "max_error": max(errors),
            "exactly_full_error": clauses[6].measured,
            "tokens_that_matter": seen.reach(),
        }
    return ContractReport(subject.contract, clauses, figures)


def _cache_clauses(subject: ContractSubject, seen: CacheObserver) -> Iterator[ClauseResult]:
    hold, tolerance = partial(hold_clause, subject), LOGIT_TOLERANCES[seen.kind]
    texts, size, vocab = seen.texts(), seen.context_length, seen.vocab_size
    agree = partial(_judge_cache_rows, seen=seen)
    full = seen.ids(size, 6)
    whole = [(size,), (size - 1, 1), (size // 2, size - size // 2), cut_at_powers(size)]
    whole += [(1,) * size, cut_by_pattern(size, (3, 2, 4))] if size <= 256 else []
    edges = [CacheCase(full, cut, fixed_length=True) for cut in whole if all(cut)]
    over = [CacheCase(seen.ids(n), fixed_length=True) for n in (size + 1, size + 3)]
    over += [
        CacheCase(case.ids, cut, fixed_length=True)
        for case in over
        for cut in ((len(case.ids),), (size, len(case.ids) - size), (1, len(case.ids) - 1))
    ]
    causal = [
        CacheCase(text, vocab_size=vocab, changed_from=start)
        for text in texts
        for start in range(1, len(text))
        if vocab > 1
    ]
    cuts = [
        CacheCase(text, cut)
        for place, text in enumerate(texts)
        for cut in cache_cuts(len(text))[: None if place in (1, 2) else 3]
    ]
    first = CacheCase(seen.one, (len(seen.one),), fixed_length=True, between=seen.other)
    forms = [CacheCase(text[:n], (n,)) for n in (1, 2) for text in texts[:1] if n <= size]
    yield hold("repeatable", tolerance, partial(_judge_cache_again, seen=seen), [first])
    yield hold("result_form", None, partial(_judge_cache_form, seen=seen), forms)
    leaks = partial(_judge_cache_causal, seen=seen)
    yield hold("full_causal", tolerance * _CACHE_LEAK_SHARE, leaks, causal)
    chunks = [CacheCase(text, (len(text),)) for text in texts]
    yield hold("one_chunk", tolerance, agree, chunks)
    steps = [CacheCase(text, (1,) * len(text)) for text in texts]
    yield hold("single_tokens", tolerance, agree, steps)
    yield hold("chunkings", tolerance, agree, cuts)
    yield hold("exactly_full", tolerance, agree, edges)
    yield hold("beyond_full", None, partial(_judge_cache_beyond, seen=seen), over)
    results = [CacheCase(text, cut) for text in texts[:2] for cut in ((len(text),), ())]
    yield hold("independent_results", tolerance, partial(_judge_cache_memory, seen=seen), results)
    yield hold("arguments_unchanged", None, partial(_judge_cache_edits, seen=seen), cuts[:3])


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


def _judge_cache_form(subject: ContractSubject, case: CacheCase, seen: CacheObserver) -> float:
    _cache_call(seen, case.ids)
    _cache_call(seen, case.ids, case.chunks)
    return 0.0


def _judge_cache_rows(subject: ContractSubject, case: CacheCase, seen: CacheObserver) -> float:
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


def _judge_cache_causal(subject: ContractSubject, case: CacheCase, seen: CacheObserver) -> float:
    """Other tokens from some place on must leave the rows before it alone."""
    before = _cache_full_once(seen, case.ids)
    after, _ = _cache_call(seen, case.changed_ids)
    start = case.changed_from
    row = int(np.abs(after[:start] - before[:start]).max(-1).argmax())
    scale = max(float(np.abs(before).max()), 1e-30)
    error = float(np.abs(after[:start] - before[:start]).max()) / scale
    if error <= LOGIT_TOLERANCES[seen.kind] * _CACHE_LEAK_SHARE:
        return error
    places = logit_mismatches(after[:start], before[:start], "full_logits")
    facts = cache_fact("future", j=start, row=row)
    raise Breach("future", error, mismatches=places, facts=facts)


def _judge_cache_again(subject: ContractSubject, case: CacheCase, seen: CacheObserver) -> float:
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


def _cache_trace(seen: CacheObserver) -> str:
    state = seen.state()
    if state[0] is True:
        return cache_fact("goes_on" if state[1] == "goes on" else "trace")
    return cache_fact("unsteady")


def _judge_cache_beyond(subject: ContractSubject, case: CacheCase, seen: CacheObserver) -> float:
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


def _judge_cache_memory(subject: ContractSubject, case: CacheCase, seen: CacheObserver) -> float:
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


def _judge_cache_edits(subject: ContractSubject, case: CacheCase, seen: CacheObserver) -> float:
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
