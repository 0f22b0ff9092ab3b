"""The contract of batching: a row of a batch says what its prompt says alone."""

from collections.abc import Callable
from typing import Any

from course_lib.contracts.batching import judges
from course_lib.contracts.batching.judges import BatchCase
from course_lib.contracts.batching.observer import BatchObserver
from course_lib.contracts.batching.relations import explain_batching
from course_lib.contracts.cache.logits import LOGIT_TOLERANCES, sizes_at_the_door
from course_lib.contracts.engine.clause import Clause, Contract
from course_lib.contracts.engine.subject import Subject, Terms
from course_lib.report import ContractReport


def _clauses(subject: Subject) -> list[Clause]:
    seen = subject.seen
    size, allowed = seen.context_length, LOGIT_TOLERANCES[seen.kind]

    def batch(*lengths: int, salt: int = 1) -> BatchCase:
        sizes = [min(n, size) for n in lengths]
        return BatchCase(tuple(seen.prompt(n, salt + n + m) for m, n in enumerate(sizes)))

    first = BatchCase(seen.mixed(), between=seen.mixed(8)[::-1])
    equal = [
        BatchCase(tuple(seen.prompt(min(n, size), salt) for salt in range(1, count + 1)))
        for n, count in ((4, 3), (1, 2), (3, 2), (5, 5), (7, 2))
    ]
    falling = [batch(5, 2), batch(5, 3, 1), batch(6, 6, 2), batch(2, 1), batch(9, 7, 5, 4, 3, 1)]
    orders = [(2, 5), (1, 3), (3, 1, 5), (2, 7, 4), (1, 1, 4), (4, 1, 6, 2, 3, 7, 5, 1, 8)]
    mixed = [batch(*lengths, salt=2) for lengths in orders]
    pair = batch(2, 5, salt=4).prompts
    twice = [(0, 1, 0), (1, 1, 0), (0, 0, 1), (1, 0, 0, 1)]
    mixed += [BatchCase(tuple(pair[n] for n in places)) for places in twice]
    full = [batch(size, 2), batch(1, size), batch(size, size - 1, 1), batch(size, size, salt=3)]
    full = [case for case in full if all(case.prompts)]
    # fmt: off
    return [
        Clause("repeatable", "a batch gives the same logits, whatever came before | "
               "батч даёт одни и те же логиты, что бы ни было до него",
               judges.repeated, [first], allowed),
        Clause("result_form", "finite numbers: [vocab_size] for one, [B, vocab_size] for B | "
               "конечные числа: [vocab_size], а для батча [B, vocab_size]",
               judges.formed, [batch(2), batch(2, 2), batch(3, 1, 2)]),
        Clause("batch_of_one", "a batch of one prompt equals the prompt alone | "
               "батч из одного промпта даёт то же, что он один",
               judges.rows_alone, [batch(n) for n in (1, 2, 5, 7)], allowed),
        Clause("equal_lengths", "prompts of one length: each row as if alone | "
               "промпты одной длины: каждая строка как в одиночку",
               judges.rows_alone, equal, allowed),
        Clause("different_lengths", "prompts of different lengths: each row as if alone | "
               "промпты разной длины: каждая строка как в одиночку",
               judges.rows_alone, falling, allowed),
        Clause("order", "in any order, and with the same prompt twice | "
               "в любом порядке и с повтором одного и того же промпта",
               judges.rows_alone, mixed, allowed),
        Clause("exactly_full", "next to a prompt that fills the context | "
               "рядом с промптом во весь контекст", judges.rows_alone, full, allowed),
        Clause("every_token", "no token id is taken for padding | "
               "ни один номер токена не принят за паддинг",
               judges.rows_alone, _token_cases(seen.vocab_size, size), allowed),
        Clause("independent_results", "results stay as they were; writing into one is harmless | "
               "результаты не меняются; запись в них безвредна",
               judges.results_kept, [batch(3, 3), batch(4, 2)], allowed),
        Clause("arguments_unchanged", "the prompts are left as they were | "
               "промпты остаются прежними",
               judges.prompts_kept, [batch(4, 1, 2), batch(2, 2), batch(3)]),
    ]
    # fmt: on


def _token_cases(vocab_size: int, context_length: int) -> list[BatchCase]:
    """Every id (of a large vocabulary, the ends) first, inside and last, in a shorter prompt."""
    ids = list(range(vocab_size))
    ids = ids if vocab_size <= 64 else [*ids[:32], *ids[-32:]]
    size = min(context_length, 4)
    prompts = []
    for token in ids:
        other = (token + 1) % vocab_size
        forms = ((token, other, other), (other, token, other), (other, other, token), (token,) * 2)
        prompts += [form[:size] for form in forms]
    top = (ids[-1], *((ids[0],) * 4))[:size]
    return [BatchCase((top, *prompts[n : n + 8])) for n in range(0, len(prompts), 8)]


def _figures(subject: Subject, measured: dict[str, Any]) -> dict[str, float]:
    errors = [error for error in measured.values() if isinstance(error, float)]
    return {"max_error": max(errors), "exactly_full_error": measured["exactly_full"]}


BATCHING = Contract(
    "batching",
    Terms("last_logits_batch"),
    _clauses,
    lambda subject: explain_batching(subject.seen),
    figures=_figures,
    observe=lambda batch, options: BatchObserver(batch=batch, **options),
)


def check_batching_contract(
    last_logits_one: Callable[..., Any],
    last_logits_batch: Callable[..., Any],
    *,
    vocab_size: int,
    context_length: int,
) -> ContractReport:
    """Hold a batch to its prompts one by one: the same last logits, whatever the neighbours.

        last_logits_one(prompt) -> [V];  last_logits_batch(prompts) -> [B, V]

    Args:
        last_logits_one: takes a list of int; any framework's array may come back
        last_logits_batch: takes a list of such lists, of different lengths

    Rounding is allowed for as in the contract of the cache: by the precision of the numbers.

    Raises:  ContractViolation when a clause is broken: with a small batch and what was measured
    """
    sizes = sizes_at_the_door("last_logits_one", last_logits_one, vocab_size, context_length)
    return BATCHING.check(last_logits_batch, one=last_logits_one, **sizes)
