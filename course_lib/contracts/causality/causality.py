"""The contract of causality: no logit depends on a later token, or on another text."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.contracts.causality import judges
from course_lib.contracts.causality.patterns import explain
from course_lib.contracts.causality.texts import (
    CausalityCase,
    CausalityTexts,
    causality_tolerance,
    ids_for,
)
from course_lib.contracts.engine.clause import Clause, Contract
from course_lib.contracts.engine.subject import Subject, Terms
from course_lib.integers import check_int_at_least
from course_lib.report import ContractReport
from course_lib.text import say

_EFFECTS = (
    "another first token moves the last logits by {past:.2g} of their spread (0: the past is not "
    "read); cutting later tokens off moves earlier logits by {cut:.2g} at most | "
    "другой первый токен сдвигает последние логиты на {past:.2g} их разброса (0: прошлое не "
    "читается); если поздние токены отрезать, ранние логиты сдвинутся не больше чем на {cut:.2g}"
)
_LEAKING = ("batch_items", "later_token", "every_token", "every_length")


@torch.no_grad()
def _observe(model: Callable[..., Any], options: Mapping[str, Any]) -> CausalityTexts:
    """The texts to ask, and the precision in which a first one is answered."""
    texts = CausalityTexts(options["vocab_size"], options["length"])
    try:
        texts.dtype = model(ids_for(model, ((0, 1),))).dtype
    except NotImplementedError:
        raise
    except Exception:  # the first clause will say what is wrong
        return texts
    return texts


def _clauses(subject: Subject) -> list[Clause]:
    texts, untracked = subject.seen, torch.no_grad()
    short = [texts.rows(1, length) * items for items, length in ((1, 2), (2, 3), (3, 5))]
    alike = [CausalityCase(rows, rows) for rows in short]
    allowed, unmoved = causality_tolerance(texts.dtype), untracked(judges.unmoved)
    loose = {torch.float64: 1e-7, torch.float32: 2e-3}.get(texts.dtype, 0.3)
    # fmt: off
    return [
        Clause("result_form", "finite floating-point logits [B, T, V] | "
               "конечные логиты [B, T, V] с плавающей точкой",
               untracked(judges.logits_form), _forms(texts)),
        Clause("no_dropout", "two equal calls give equal logits: dropout is off | "
               "два одинаковых вызова — равные логиты: dropout выключен",
               untracked(judges.repeated), alike),
        Clause("arguments_unchanged", "token_ids stay as they were | token_ids остаются прежними",
               untracked(judges.same_ids), alike),
        Clause("independent_calls", "other calls in between change nothing | "
               "другие вызовы между двумя одинаковыми ничего не меняют",
               untracked(judges.unremembered), alike),
        Clause("batch_items", "changing one item of the batch leaves the others | "
               "замена одного элемента батча не меняет остальные",
               unmoved, _batches(texts), allowed),
        Clause("item_alone", "an item alone gives what it gives in a batch | "
               "элемент отдельно даёт то же, что и в батче",
               untracked(judges.item_alone), _few_batches(texts), loose),
        Clause("later_token", "change later tokens, one or all: earlier logits stay | "
               "замените поздние токены, один или все: логиты до них те же",
               unmoved, _changes(texts), allowed),
        Clause("every_token", "whichever token comes later, and whatever came before | "
               "какой бы токен ни шёл позже и что бы ни было раньше",
               unmoved, _replacements(texts), allowed),
        # while gradients are recorded, as they are in an ordinary call
        Clause("every_length", "at every length, with one item and with several | "
               "при любой длине, с одним элементом и с несколькими",
               judges.unmoved, _lengths(texts), allowed),
    ]
    # fmt: on


def _forms(texts: CausalityTexts) -> Iterator[CausalityCase]:
    for length, items in ((2, 1), (1, 1), (1, 2), (3, 2), (texts.length, 1), (2, 3)):
        rows = texts.rows(items, length)
        yield CausalityCase(rows, rows)


def _batches(texts: CausalityTexts) -> Iterator[CausalityCase]:
    """All items but one are replaced: the one must stay as it is."""
    for items, length in ((2, 1), (2, 2), (3, 4), (4, 3), (5, 5), (2, texts.length)):
        if items > texts.rows_at_once(min(length, texts.length)):
            continue
        before = texts.rows(items, length)
        for kept in {0, items // 2, items - 1}:
            after = [texts.changed_from(row, 0) for row in before]
            after[kept] = before[kept]
            yield CausalityCase(before, tuple(after))


def _few_batches(texts: CausalityTexts) -> Iterator[CausalityCase]:
    """The first of them; all are drawn first, when it is their turn."""
    yield from list(_batches(texts))[:3]


def _changes(texts: CausalityTexts) -> Iterator[CausalityCase]:
    """Each later token alone, then each with all that follow."""
    for length in sorted({min(n, texts.length) for n in (2, 3, 5, 8, texts.length)}):
        for change in (texts.changed_at, texts.changed_at, texts.changed_from):
            text = texts.text(length)
            changed = [change(text, place) for place in texts.places(length)]
            yield from texts.in_batches(text, changed)


def _replacements(texts: CausalityTexts) -> Iterator[CausalityCase]:
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


def _lengths(texts: CausalityTexts) -> Iterator[CausalityCase]:
    for length in texts.lengths()[1:]:
        text = texts.text(length)
        for changed in (texts.changed_from(text, 1), texts.changed_at(text, length - 1)):
            yield CausalityCase((text,), (changed,))
        places = texts.places(length, most=15)
        yield from texts.in_batches(text, [texts.changed_at(text, place) for place in places])


def _figures(subject: Subject, measured: dict[str, Any]) -> dict[str, float]:
    leak = max(measured[name] for name in _LEAKING)
    subject.figures.update(leak=leak, **judges.measured_effects(subject))
    return subject.figures


def _notes(subject: Subject) -> list[str]:
    figures = subject.figures
    return [say(_EFFECTS, past=figures["past_effect"], cut=figures["cut_effect"])]


CAUSALITY = Contract("causality", Terms("model"), _clauses, explain, _figures, _notes, _observe)


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
    kept = _buffers(model)
    try:
        return CAUSALITY.check(model, vocab_size=int(vocab_size), length=int(length))
    finally:
        with torch.no_grad():
            for buffer, value in kept:
                buffer.copy_(value)


def _buffers(model: Callable[..., Any]) -> list[tuple[Tensor, Tensor]]:
    """A module's buffers and copies of them: running means must not learn from our texts."""
    if not isinstance(model, nn.Module):
        return []
    return [(buffer, buffer.clone()) for buffer in model.buffers()]
