"""The contract of the key-value cache: it changes the cost of the logits, never the logits."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from course_lib.contracts.cache._cache_case import (
    CacheCase,
    cache_cuts,
    cut_at_powers,
    cut_by_pattern,
)
from course_lib.contracts.cache._cache_judge import (
    CACHE_LEAK_SHARE,
    judge_cache_again,
    judge_cache_beyond,
    judge_cache_causal,
    judge_cache_edits,
    judge_cache_form,
    judge_cache_kindred,
    judge_cache_memory,
    judge_cache_rows,
)
from course_lib.contracts.cache._cache_observer import CacheObserver
from course_lib.contracts.cache._cache_relations import explain_cache
from course_lib.contracts.cache._logit_arrays import (
    LOGIT_TOLERANCES,
)
from course_lib.contracts.engine.candidate import (
    ContractSubject,
    hold_clause,
    quiet_globals,
)
from course_lib.integers import check_int_at_least
from course_lib.report import ClauseResult, ContractReport

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
    "prefixes": {
        "en": "a text that starts like the last one is read to its end",
        "ru": "текст, начатый как предыдущий, прочитан до конца",
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
            "exactly_full_error": clauses[7].measured,
            "tokens_that_matter": seen.reach(),
        }
    return ContractReport(subject.contract, clauses, figures)


def _cache_clauses(subject: ContractSubject, seen: CacheObserver) -> Iterator[ClauseResult]:
    hold, tolerance = partial(hold_clause, subject), LOGIT_TOLERANCES[seen.kind]
    texts, size, vocab = seen.texts(), seen.context_length, seen.vocab_size
    agree = partial(judge_cache_rows, seen=seen)
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
    yield hold("repeatable", tolerance, partial(judge_cache_again, seen=seen), [first])
    yield hold("result_form", None, partial(judge_cache_form, seen=seen), forms)
    kindred = partial(judge_cache_kindred, seen=seen)
    yield hold("prefixes", tolerance, kindred, _cache_kindred(seen))
    leaks = partial(judge_cache_causal, seen=seen)
    yield hold("full_causal", tolerance * CACHE_LEAK_SHARE, leaks, causal)
    chunks = [CacheCase(text, (len(text),)) for text in texts]
    yield hold("one_chunk", tolerance, agree, chunks)
    steps = [CacheCase(text, (1,) * len(text)) for text in texts]
    yield hold("single_tokens", tolerance, agree, steps)
    yield hold("chunkings", tolerance, agree, cuts)
    yield hold("exactly_full", tolerance, agree, edges)
    yield hold("beyond_full", None, partial(judge_cache_beyond, seen=seen), over)
    results = [CacheCase(text, cut) for text in texts[:2] for cut in ((len(text),), ())]
    yield hold("independent_results", tolerance, partial(judge_cache_memory, seen=seen), results)
    yield hold("arguments_unchanged", None, partial(judge_cache_edits, seen=seen), cuts[:3])


def _cache_kindred(seen: CacheObserver) -> list[CacheCase]:
    """Texts that begin like the first prompt: a cache that keeps prefixes must compare it all."""
    one, size = seen.one, seen.context_length
    texts = [seen.kin, (*one[:2], *seen.ids(size, 4)[2:5]), one[:1], (*one, *seen.kin[3:])]
    texts = [text[:size] for text in texts]
    return [CacheCase(text, (len(text),), fixed_length=True, between=one) for text in texts]
