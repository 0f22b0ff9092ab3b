"""The contract of batching: a row of a batch says what its prompt says alone."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from course_lib.contracts.batching._batching_case import (
    BatchCase,
    judge_batch_edits,
    judge_batch_form,
    judge_batch_memory,
    judge_batch_repeats,
    judge_batch_rows,
)
from course_lib.contracts.batching._batching_observer import BatchObserver
from course_lib.contracts.batching._batching_relations import explain_batching
from course_lib.contracts.cache._logit_arrays import LOGIT_TOLERANCES
from course_lib.contracts.engine.candidate import ContractSubject, hold_clause, quiet_globals
from course_lib.integers import check_int_at_least
from course_lib.report import ClauseResult, ContractReport

_BATCHING_MEANINGS = {
    "repeatable": {
        "en": "a batch gives the same logits, whatever came before",
        "ru": "пакет даёт одни и те же логиты, что бы ни было до него",
    },
    "result_form": {
        "en": "finite numbers: [vocab_size] for one, [B, vocab_size] for B",
        "ru": "конечные числа: [vocab_size], а для пакета [B, vocab_size]",
    },
    "batch_of_one": {
        "en": "a batch of one prompt equals the prompt alone",
        "ru": "пакет из одной затравки даёт то же, что она одна",
    },
    "equal_lengths": {
        "en": "prompts of one length: each row as if alone",
        "ru": "затравки одной длины: каждая строка как в одиночку",
    },
    "different_lengths": {
        "en": "prompts of different lengths: each row as if alone",
        "ru": "затравки разной длины: каждая строка как в одиночку",
    },
    "order": {
        "en": "in any order, and with the same prompt twice",
        "ru": "в любом порядке и с повтором одной и той же затравки",
    },
    "exactly_full": {
        "en": "next to a prompt that fills the context",
        "ru": "рядом с затравкой во весь контекст",
    },
    "every_token": {
        "en": "no token id is taken for padding",
        "ru": "ни один номер токена не принят за дополнение",
    },
    "independent_results": {
        "en": "results stay as they were; writing into one is harmless",
        "ru": "результаты не меняются; запись в них безвредна",
    },
    "arguments_unchanged": {
        "en": "the prompts are left as they were",
        "ru": "затравки остаются прежними",
    },
}


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
    functions = ("last_logits_one", last_logits_one), ("last_logits_batch", last_logits_batch)
    for name, function in functions:
        if not callable(function):
            raise TypeError(f"{name} must be a function, got {type(function).__name__}")
    check_int_at_least("vocab_size", vocab_size, 1)
    check_int_at_least("context_length", context_length, 1)
    with quiet_globals():
        seen = BatchObserver(last_logits_one, last_logits_batch, vocab_size, context_length)
        subject = ContractSubject(
            "check_batching_contract",
            last_logits_batch,
            _BATCHING_MEANINGS,
            lambda _: explain_batching(seen),
        )
        if not seen.attempted:
            return ContractReport(subject.contract, attempted=False)
        clauses = tuple(_batching_clauses(subject, seen))
        errors = [clause.measured for clause in clauses if isinstance(clause.measured, float)]
        figures = {"max_error": max(errors), "exactly_full_error": clauses[6].measured}
    return ContractReport(subject.contract, clauses, figures)


def _batching_clauses(subject: ContractSubject, seen: BatchObserver) -> Iterator[ClauseResult]:
    hold, tolerance = partial(hold_clause, subject), LOGIT_TOLERANCES[seen.kind]
    size, vocab = seen.context_length, seen.vocab_size
    rows = partial(judge_batch_rows, seen=seen)

    def batch(*lengths: int, salt: int = 1) -> BatchCase:
        sizes = [min(n, size) for n in lengths]
        return BatchCase(tuple(seen.prompt(n, salt + n + m) for m, n in enumerate(sizes)))

    first = BatchCase(seen.mixed(), between=seen.mixed(8)[::-1])
    yield hold("repeatable", tolerance, partial(judge_batch_repeats, seen=seen), [first])
    forms = [batch(2), batch(2, 2), batch(3, 1, 2)]
    yield hold("result_form", None, partial(judge_batch_form, seen=seen), forms)
    ones = [batch(n) for n in (1, 2, 5, 7)]
    yield hold("batch_of_one", tolerance, rows, ones)
    equal = [
        BatchCase(tuple(seen.prompt(min(n, size), salt) for salt in range(1, count + 1)))
        for n, count in ((4, 3), (1, 2), (3, 2), (5, 5), (7, 2))
    ]
    yield hold("equal_lengths", tolerance, rows, equal)
    falling = [batch(5, 2), batch(5, 3, 1), batch(6, 6, 2), batch(2, 1), batch(9, 7, 5, 4, 3, 1)]
    yield hold("different_lengths", tolerance, rows, falling)
    orders = [(2, 5), (1, 3), (3, 1, 5), (2, 7, 4), (1, 1, 4), (4, 1, 6, 2, 3, 7, 5, 1, 8)]
    mixed = [batch(*lengths, salt=2) for lengths in orders]
    twice = [(0, 1, 0), (1, 1, 0), (0, 0, 1), (1, 0, 0, 1)]
    pair = batch(2, 5, salt=4).prompts
    mixed += [BatchCase(tuple(pair[n] for n in places)) for places in twice]
    yield hold("order", tolerance, rows, mixed)
    full = [batch(size, 2), batch(1, size), batch(size, size - 1, 1), batch(size, size, salt=3)]
    full = [case for case in full if all(case.prompts)]
    yield hold("exactly_full", tolerance, rows, full)
    yield hold("every_token", tolerance, rows, _batching_token_cases(vocab, size))
    memory = partial(judge_batch_memory, seen=seen)
    yield hold("independent_results", tolerance, memory, [batch(3, 3), batch(4, 2)])
    edits = [batch(4, 1, 2), batch(2, 2), batch(3)]
    yield hold("arguments_unchanged", None, partial(judge_batch_edits, seen=seen), edits)


def _batching_token_cases(vocab_size: int, context_length: int) -> list[BatchCase]:
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
