"""The contract of the key-value cache: it changes the cost of the logits, never the logits."""

from collections.abc import Callable
from typing import Any

from course_lib.contracts.cache import judges
from course_lib.contracts.cache.logits import LOGIT_TOLERANCES, sizes_at_the_door
from course_lib.contracts.cache.observer import CacheObserver
from course_lib.contracts.cache.relations import explain_cache
from course_lib.contracts.cache.texts import CacheCase, cache_cuts, cut_at_powers, cut_by_pattern
from course_lib.contracts.engine.clause import Clause, Contract
from course_lib.contracts.engine.subject import Subject, Terms
from course_lib.report import ContractReport


def _clauses(subject: Subject) -> list[Clause]:
    seen = subject.seen
    texts, size, allowed = seen.texts(), seen.context_length, LOGIT_TOLERANCES[seen.kind]
    first = CacheCase(seen.one, (len(seen.one),), fixed_length=True, between=seen.other)
    forms = [CacheCase(text[:n], (n,)) for n in (1, 2) for text in texts[:1] if n <= size]
    causal = [
        CacheCase(text, vocab_size=seen.vocab_size, changed_from=start)
        for text in texts
        for start in range(1, len(text))
        if seen.vocab_size > 1
    ]
    whole = [CacheCase(text, (len(text),)) for text in texts]
    steps = [CacheCase(text, (1,) * len(text)) for text in texts]
    cuts = [
        CacheCase(text, cut)
        for place, text in enumerate(texts)
        for cut in cache_cuts(len(text))[: None if place in (1, 2) else 3]
    ]
    results = [CacheCase(text, cut) for text in texts[:2] for cut in ((len(text),), ())]
    # fmt: off
    return [
        Clause("repeatable", "a prompt gives the same logits, whatever came before | "
               "промпт даёт одни и те же логиты, что бы ни было до него",
               judges.repeated, [first], allowed),
        Clause("result_form", "finite numbers of shape [T, vocab_size] from both | "
               "конечные числа формы [T, vocab_size] от обеих функций", judges.formed, forms),
        Clause("prefixes", "a text that starts like the last one is read to its end | "
               "текст с тем же началом, что у предыдущего, прочитан до конца",
               judges.kindred, _kindred(seen), allowed),
        Clause("full_causal", "without a cache, no row depends on later tokens | "
               "без кэша ни одна строка не зависит от будущих токенов",
               judges.causal, causal, allowed * judges.LEAK_SHARE),
        Clause("one_chunk", "prefill in one chunk equals the full pass | "
               "предзаполнение одним куском равно полному проходу",
               judges.rows_equal, whole, allowed),
        Clause("single_tokens", "one token at a time equals the full pass | "
               "по одному токену — то же, что полный проход", judges.rows_equal, steps, allowed),
        Clause("chunkings", "however the text is cut, the logits are the same | "
               "как ни режь текст, логиты те же", judges.rows_equal, cuts, allowed),
        Clause("exactly_full", "right up to exactly context_length tokens | "
               "верно вплоть до context_length токенов включительно",
               judges.rows_equal, _full(seen), allowed),
        Clause("beyond_full", "more than context_length tokens: an exception | "
               "токенов больше context_length — исключение", judges.refused, _beyond(seen)),
        Clause("independent_results", "results stay as they were; writing into one is harmless | "
               "результаты не меняются; запись в них безвредна",
               judges.results_kept, results, allowed),
        Clause("arguments_unchanged", "ids and chunks are left as they were | "
               "ids и chunks остаются прежними", judges.arguments_kept, cuts[:3]),
    ]
    # fmt: on


def _full(seen: CacheObserver) -> list[CacheCase]:
    """A text that fills the context, cut where buffers grow and tables end."""
    size = seen.context_length
    cuts = [(size,), (size - 1, 1), (size // 2, size - size // 2), cut_at_powers(size)]
    cuts += [(1,) * size, cut_by_pattern(size, (3, 2, 4))] if size <= 256 else []
    return [CacheCase(seen.ids(size, 6), cut, fixed_length=True) for cut in cuts if all(cut)]


def _beyond(seen: CacheObserver) -> list[CacheCase]:
    """Texts that are too long, for the full pass and then in one chunk and in two."""
    size = seen.context_length
    texts = [seen.ids(n) for n in (size + 1, size + 3)]
    cuts = [
        (text, cut)
        for text in texts
        for cut in ((len(text),), (size, len(text) - size), (1, len(text) - 1))
    ]
    asked = [*((text, ()) for text in texts), *cuts]
    return [CacheCase(text, cut, fixed_length=True) for text, cut in asked]


def _kindred(seen: CacheObserver) -> list[CacheCase]:
    """Texts that begin like the first prompt: a cache that keeps prefixes must compare it all."""
    one, size = seen.one, seen.context_length
    texts = [seen.kin, (*one[:2], *seen.ids(size, 4)[2:5]), one[:1], (*one, *seen.kin[3:])]
    texts = [text[:size] for text in texts]
    return [CacheCase(text, (len(text),), fixed_length=True, between=one) for text in texts]


def _figures(subject: Subject, measured: dict[str, Any]) -> dict[str, float]:
    errors = [error for error in measured.values() if isinstance(error, float)]
    return {
        "max_error": max(errors),
        "exactly_full_error": measured["exactly_full"],
        "tokens_that_matter": subject.seen.reach(),
    }


CACHE = Contract(
    "cache",
    Terms("cached_logits"),
    _clauses,
    lambda subject: explain_cache(subject.seen),
    figures=_figures,
    observe=lambda cached, options: CacheObserver(cached=cached, **options),
)


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
    sizes = sizes_at_the_door("full_logits", full_logits, vocab_size, context_length)
    return CACHE.check(cached_logits, full=full_logits, **sizes)
