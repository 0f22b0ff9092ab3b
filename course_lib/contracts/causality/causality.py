"""The contract of causality: no logit depends on a later token, or on another text."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.contracts.causality._causality_case import (
    CausalityCase,
    CausalityTexts,
    causality_tolerance,
    ids_for,
)
from course_lib.contracts.causality._causality_judge import (
    judge_item_alone,
    judge_logits_form,
    judge_repeated,
    judge_same_ids,
    judge_unmoved,
    judge_unmoved_tracked,
    judge_unremembered,
    measured_effects,
)
from course_lib.contracts.causality._causality_patterns import explain_causality
from course_lib.contracts.engine.candidate import (
    ContractSubject,
    call_candidate,
    hold_clause,
    is_stub,
    quiet_globals,
)
from course_lib.integers import check_int_at_least
from course_lib.report import ClauseResult, ContractReport
from course_lib.text import localized

_CAUSALITY_MEANINGS = {
    "result_form": {
        "en": "finite floating-point logits [B, T, V]",
        "ru": "конечные логиты [B, T, V] с плавающей точкой",
    },
    "no_dropout": {
        "en": "two equal calls give equal logits: dropout is off",
        "ru": "два одинаковых вызова — равные логиты: dropout выключен",
    },
    "arguments_unchanged": {
        "en": "token_ids stay as they were",
        "ru": "token_ids остаются прежними",
    },
    "independent_calls": {
        "en": "other calls in between change nothing",
        "ru": "другие вызовы между двумя одинаковыми ничего не меняют",
    },
    "batch_items": {
        "en": "changing one item of the batch leaves the others",
        "ru": "замена одного элемента пакета не меняет остальные",
    },
    "item_alone": {
        "en": "an item alone gives what it gives in a batch",
        "ru": "элемент отдельно даёт то же, что и в пакете",
    },
    "later_token": {
        "en": "change later tokens, one or all: earlier logits stay",
        "ru": "замените поздние токены, один или все: логиты до них те же",
    },
    "every_token": {
        "en": "whichever token comes later, and whatever came before",
        "ru": "какой бы токен ни шёл позже и что бы ни было раньше",
    },
    "every_length": {
        "en": "at every length, with one item and with several",
        "ru": "при любой длине, с одним элементом и с несколькими",
    },
}

_CAUSALITY_NOTES = {
    "effects": {
        "en": "another first token moves the last logits by {past:.2g} of their spread (0: the "
        "past is not read); cutting later tokens off moves earlier logits by {cut:.2g} at most",
        "ru": "другой первый токен сдвигает последние логиты на {past:.2g} их разброса (0: прошлое "
        "не читается); если поздние токены отрезать, ранние логиты сдвинутся не больше чем на "
        "{cut:.2g}",
    },
}


def check_causality_contract(
    model: Callable[..., Any], *, vocab_size: int, length: int
) -> ContractReport:
    """Hold a language model to causality: perturb every later token, every earlier logit stays.

        model(token_ids [B, T] long) -> logits [B, T, V], for every T up to length

    Any callable will do, a module is called in the mode it is in. A model that ignores its past is
    causal too; how much it reads of it is among the report's figures.

    Raises:  ContractViolation when a clause is broken: with two short texts and what was measured
    """
    if not callable(model):
        raise TypeError(f"model must be a function or a module, got {type(model).__name__}")
    check_int_at_least("vocab_size", vocab_size, 2)
    check_int_at_least("length", length, 2)
    texts = CausalityTexts(int(vocab_size), int(length))
    subject = ContractSubject(
        "check_causality_contract",
        model,
        _CAUSALITY_MEANINGS,
        partial(explain_causality, texts=texts),
        figures={"vocab_size": int(vocab_size)},
    )
    with quiet_globals(), torch.no_grad():
        kept = _causality_buffers(model)
        try:
            if is_stub(model, ids_for(model, ((0, 1),))):
                return ContractReport(subject.contract, attempted=False)
            clauses = tuple(_causality_clauses(subject, texts))
            effects = measured_effects(subject, texts)
        finally:
            for buffer, value in kept:
                buffer.copy_(value)
    note = localized(_CAUSALITY_NOTES["effects"], past=effects["past"], cut=effects["cut"])
    figures = {"past_effect": effects["past"], "cut_effect": effects["cut"]}
    leaks = {clause.name: clause.measured for clause in clauses if clause.name in _LEAKING}
    return ContractReport(
        subject.contract, clauses, {"leak": max(leaks.values()), **figures}, notes=(note,)
    )


_LEAKING = ("batch_items", "later_token", "every_token", "every_length")


def _causality_buffers(model: Callable[..., Any]) -> list[tuple[Tensor, Tensor]]:
    """A module's buffers and copies of them: running means must not learn from our texts."""
    if not isinstance(model, nn.Module):
        return []
    return [(buffer, buffer.clone()) for buffer in model.buffers()]


def _causality_clauses(subject: ContractSubject, texts: CausalityTexts) -> Iterator[ClauseResult]:
    hold = partial(hold_clause, subject)
    short = [texts.text(min(n, texts.length)) for n in (2, 3, 5)]
    alike = [
        CausalityCase((text,) * items, (text,) * items)
        for text, items in zip(short, (1, 2, 3), strict=True)
    ]
    yield hold("result_form", None, judge_logits_form, _causality_forms(texts))
    logits = call_candidate(subject.candidate, ids_for(subject.candidate, (short[0],)))
    allowed = causality_tolerance(logits.dtype)
    yield hold("no_dropout", None, judge_repeated, alike)
    yield hold("arguments_unchanged", None, judge_same_ids, alike)
    yield hold("independent_calls", None, judge_unremembered, alike)
    yield hold("batch_items", allowed, judge_unmoved, _causality_batches(texts))
    loose = {torch.float64: 1e-7, torch.float32: 2e-3}.get(logits.dtype, 0.3)
    yield hold("item_alone", loose, judge_item_alone, list(_causality_batches(texts))[:3])
    yield hold("later_token", allowed, judge_unmoved, _causality_changes(texts))
    yield hold("every_token", allowed, judge_unmoved, _causality_replacements(texts))
    yield hold("every_length", allowed, judge_unmoved_tracked, _causality_lengths(texts))


def _causality_forms(texts: CausalityTexts) -> Iterator[CausalityCase]:
    for length, items in ((2, 1), (1, 1), (1, 2), (3, 2), (texts.length, 1), (2, 3)):
        rows = tuple(texts.text(min(length, texts.length)) for _ in range(items))
        yield CausalityCase(rows, rows)


def _causality_batches(texts: CausalityTexts) -> Iterator[CausalityCase]:
    """All items but one are replaced: the one must stay as it is."""
    for items, length in ((2, 1), (2, 2), (3, 4), (4, 3), (5, 5), (2, texts.length)):
        if items > texts.rows_at_once(min(length, texts.length)):
            continue
        before = tuple(texts.text(min(length, texts.length)) for _ in range(items))
        for kept in {0, items // 2, items - 1}:
            changed = (texts.changed_from(row, 0) for row in before)
            after = tuple(
                row if n == kept else new
                for n, (row, new) in enumerate(zip(before, changed, strict=True))
            )
            yield CausalityCase(before, after)


def _causality_changes(texts: CausalityTexts) -> Iterator[CausalityCase]:
    """Each later token alone, then each with all that follow."""
    for length in sorted({min(n, texts.length) for n in (2, 3, 5, 8, texts.length)}):
        for _ in range(2):
            text = texts.text(length)
            changed = [
                texts.changed_at(text, place, texts.other(text[place]))
                for place in texts.places(length)
            ]
            yield from texts.in_batches(text, changed)
        text = texts.text(length)
        changed = [texts.changed_from(text, place) for place in texts.places(length)]
        yield from texts.in_batches(text, changed)


def _causality_replacements(texts: CausalityTexts) -> Iterator[CausalityCase]:
    """The last token takes many values; the text before is random, one token, or without 0."""
    length = min(4, texts.length)
    size = texts.vocab_size
    tokens = range(size) if size <= 24 else sorted({0, 1, 2, 3, size - 1, *texts.text(16)})
    few = tuple(token % size for token in (1, 2, 1, 3))[:length]
    for text in (texts.text(length), (0,) * length, (size - 1,) * length, few):
        changed = [
            texts.changed_at(text, place, token)
            for place in {length - 1, length // 2}
            for token in tokens
            if token != text[place]
        ]
        yield from texts.in_batches(text, changed)


def _causality_lengths(texts: CausalityTexts) -> Iterator[CausalityCase]:
    for length in texts.lengths()[1:]:
        text = texts.text(length)
        yield CausalityCase((text,), (texts.changed_from(text, 1),))
        last = texts.changed_at(text, length - 1, texts.other(text[-1]))
        yield CausalityCase((text,), (last,))
        changed = [
            texts.changed_at(text, place, texts.other(text[place]))
            for place in texts.places(length, most=15)
        ]
        yield from texts.in_batches(text, changed)
