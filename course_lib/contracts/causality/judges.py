"""Judge a language model on pairs of texts: which logits moved, and what moved them."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.contracts.causality.texts import (
    CausalityCase,
    Rows,
    causality_tolerance,
    differing,
    ids_for,
    logits_apart,
    reseed,
)
from course_lib.contracts.engine.candidate import Breach, call_candidate
from course_lib.contracts.engine.subject import Subject, first_places
from course_lib.report import Mismatch
from course_lib.text import say

# fmt: off
_FACTS = {
    "not_tensor": "the result is a {came}, not a torch.Tensor | "
    "результат имеет тип {came}, а нужен torch.Tensor",
    "dtype": "the logits are {came}, not floating-point numbers | "
    "логиты имеют тип {came}, а нужны числа с плавающей точкой",
    "shape": "the logits have shape {came}, the call asks for {wanted} | "
    "у логитов форма {came}, а вызов требует {wanted}",
    "not_finite": "not finite: {came} of {wanted} logits, the first at {place} | "
    "NaN или бесконечности: {came} из {wanted} логитов, первый — {place}",
    "finite": "all finite | все конечны",
    "equal": "equal | равны",
    "future": "the logits at position {place} change with token {later}, which comes {steps} later "
    "| логиты на позиции {place} меняются вместе с токеном {later}, а он на {steps} дальше",
    "futures": "the logits at position {place} change when {count} later tokens do, the first of "
    "them {later} | логиты на позиции {place} меняются вместе с токенами после неё (их {count}, "
    "первый — {later})",
    "item": "item {item} is the same in both calls, and its logits change with other items | "
    "элемент {item} в обоих вызовах тот же, а его логиты меняются вместе с другими",
    "alone": "item {item} alone gives other logits than in its batch of {count} | "
    "элемент {item} отдельно даёт не те логиты, что в батче из {count}",
    "training": "the module is in training mode, where dropout is active: call model.eval() first "
    "| модуль в режиме обучения, и dropout действует: сначала вызовите model.eval()",
    "chance": "equal calls differ by chance: if this is dropout, call model.eval() first | "
    "одинаковые вызовы случайно различаются: если это dropout, вызовите model.eval()",
    "memory": "the second of two equal calls gives other logits: something is kept from the first "
    "| второй из двух одинаковых вызовов даёт другие логиты: от первого что-то осталось",
    "between": "after calls with other texts the same call gives other logits | "
    "после вызовов с другими текстами тот же вызов даёт другие логиты",
    "overwritten": "later calls wrote into logits that were handed out before | "
    "более поздние вызовы изменили уже отданные логиты",
    "ids": "the call wrote into its token_ids | вызов изменил свой аргумент token_ids",
}
# fmt: on
_UNEQUAL = ("training", "chance", "memory", "between", "overwritten")


def logits_of(subject: Subject, rows: Rows) -> Tensor:
    """Call the candidate; breach unless finite logits of the right shape come back."""
    wanted = [len(rows), len(rows[0]), subject.seen.vocab_size]
    logits = call_candidate(subject.candidate, ids_for(subject.candidate, rows))
    if not isinstance(logits, Tensor):
        raise _logits_malformed("not_tensor", type(logits).__name__, "torch.Tensor")
    if not logits.is_floating_point():
        raise _logits_malformed("dtype", str(logits.dtype), "float")
    if list(logits.shape) != wanted:
        raise _logits_malformed("shape", list(logits.shape), wanted)
    wrong = ~torch.isfinite(logits)
    if wrong.any():
        finite, places = say(_FACTS["finite"]), list(map(tuple, wrong.nonzero()[:3].tolist()))
        shown = [Mismatch("logits", place, logits[place].item(), finite) for place in places]
        came, at = int(wrong.sum()), list(places[0])
        raise _logits_malformed(
            "not_finite", came, logits.numel(), *shown, allowed=finite, place=at
        )
    return logits.detach()


def _logits_malformed(
    fact: str, came: Any, wanted: Any, *shown: Mismatch, allowed: str = "", **values: Any
) -> Breach:
    text, right = say(_FACTS[fact], came=came, wanted=wanted, **values), allowed or str(wanted)
    return Breach(fact, str(came), right, mismatches=shown, facts=text, clause="result_form")


def _logits_breach(
    fact: str, apart: Tensor, got: Tensor, wanted: Tensor, clause: str = "", **values: Any
) -> Breach:
    """The breach with the first logits that are too far apart; some must be equal."""
    shown = first_places("logits", apart > causality_tolerance(wanted.dtype), got, wanted)
    allowed = say(_FACTS["equal"]) if fact in _UNEQUAL else None
    text, worst = say(_FACTS[fact], **values), float(apart.max())
    return Breach(fact, worst, allowed, mismatches=shown, facts=text, clause=clause)


def logits_form(subject: Subject, case: CausalityCase, allowed: float) -> None:
    """The shape, the dtype and the finiteness of the logits."""
    logits_of(subject, case.before)


def repeated(subject: Subject, case: CausalityCase, allowed: float) -> None:
    """Two equal calls; what differs by chance is told from what is remembered."""
    first, again = (logits_of(subject, case.before).clone() for _ in range(2))
    apart = logits_apart(first, again)
    if apart.max() <= causality_tolerance(first.dtype):
        return
    same = (logits_of(subject, case.before), *_logits_reseeded(subject, case.before))
    if _are_equal(again, same[0]) or not _are_equal(*same[1:]):
        raise _logits_breach("memory", apart, again, first, "independent_calls")
    model = subject.candidate
    training = isinstance(model, nn.Module) and any(part.training for part in model.modules())
    fact = "training" if training else "chance"
    raise _logits_breach(fact, apart, again, first, "no_dropout")


def _are_equal(one: Tensor, other: Tensor) -> bool:
    return bool(logits_apart(one, other).max() <= causality_tolerance(one.dtype))


def _logits_reseeded(subject: Subject, rows: Rows) -> Iterator[Tensor]:
    for _ in range(2):
        reseed(5)
        yield logits_of(subject, rows).clone()


def same_ids(subject: Subject, case: CausalityCase, allowed: float) -> None:
    """The caller's ids are only read."""
    ids = ids_for(subject.candidate, case.before)
    kept = ids.clone()
    call_candidate(subject.candidate, ids)
    if not torch.equal(ids, kept):
        shown = first_places("token_ids", ids != kept, ids, kept)
        equal, text = (say(_FACTS[name]) for name in ("equal", "ids"))
        raise Breach("ids", int((ids != kept).sum()), equal, mismatches=shown, facts=text)


def unremembered(subject: Subject, case: CausalityCase, allowed: float) -> None:
    """Calls with other texts, shorter ones and more of them, change nothing."""
    size = subject.seen.vocab_size
    first = logits_of(subject, case.before)
    kept = first.clone()
    other = tuple(tuple((token + 1) % size for token in row) for row in case.before)
    for rows in (other, tuple(row[:1] for row in other), other + case.before):
        logits_of(subject, rows)
    for fact in ("overwritten", "between"):
        got = first if fact == "overwritten" else logits_of(subject, case.before)
        if not _are_equal(kept, got):
            raise _logits_breach(fact, logits_apart(kept, got), got, kept)


def unmoved(subject: Subject, case: CausalityCase, allowed: float) -> float:
    """Up to the first change of an item, its logits must be those of the unchanged text."""
    before = logits_of(subject, case.before).clone()
    after = logits_of(subject, case.after)
    apart = logits_apart(before, after)
    kept = case.kept()
    for item, places in enumerate(kept):
        apart[item, places:] = 0.0
    worst = float(apart.max())
    if worst <= causality_tolerance(before.dtype):
        return worst
    item, place = divmod(int(apart.amax(-1).argmax()), apart.shape[1])
    if kept[item] == len(case.before[item]):
        raise _logits_breach("item", apart, after, before, "batch_items", item=item)
    changed = differing(case.before[item], case.after[item])
    values: dict[str, Any] = {"place": place, "later": changed[0], "count": len(changed)}
    if len(changed) > 1:
        raise _logits_breach("futures", apart, after, before, **values)
    raise _logits_breach("future", apart, after, before, steps=changed[0] - place, **values)


def item_alone(subject: Subject, case: CausalityCase, allowed: float) -> float:
    """Every item alone against itself in the batch; another shape may round differently."""
    together = logits_of(subject, case.before).clone()
    worst = 0.0
    for item, row in enumerate(case.before):
        alone = logits_of(subject, (row,))
        apart = logits_apart(together[item : item + 1], alone, 64.0)
        worst = max(worst, float(apart.max()))
        if worst > allowed:
            values: dict[str, Any] = {"item": item, "count": len(case.before)}
            raise _logits_breach("alone", apart, alone, together[item : item + 1], **values)
    return worst


@torch.no_grad()
def measured_effects(subject: Subject) -> dict[str, float]:
    """How far the last logits move with the first token, and all of them when the text is cut."""
    texts = subject.seen
    text = texts.text()
    whole = logits_of(subject, (text,)).clone()
    changed = texts.changed_at(text, 0)
    past = logits_apart(whole, logits_of(subject, (changed,)), 0.0)[0, -1].max()
    cut = 0.0
    for length in {1, texts.length // 2, texts.length - 1} - {0}:
        part = logits_of(subject, (text[:length],))
        cut = max(cut, float(logits_apart(whole[:, :length], part, 64.0).max()))
    return {"past_effect": float(past), "cut_effect": cut}
