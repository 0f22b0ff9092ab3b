"""Judges: what a clause asks of one call. Each gives the largest error, or raises a Breach.

One that measures nothing, and only raises, may return nothing.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.call import Call
from course_lib.contracts.engine.candidate import Breach, call_candidate, must_raise
from course_lib.contracts.engine.subject import Subject, parts
from course_lib.text import say

_UNTRACKED = (
    "right while gradients are recorded, but another result under torch.no_grad() | верно, пока "
    "записываются градиенты, а под torch.no_grad() результат другой"
)
_CUT = (
    "no gradient reaches {name}: the graph is cut (detach, no_grad, .data, a new tensor) | "
    "градиент не доходит до {name}: граф разорван (detach, no_grad, .data, новый тензор)"
)
_SHARED = (
    "the caller wrote into an earlier result, and it came back: copy the stored table | "
    "записанное в прежний результат оказалось в новом: отдавайте копию хранимой таблицы"
)
_SLOPE = "the result is right, but its gradient is not | результат верен, а его градиент — нет"

Judge = Callable[[Subject, Any, float], float | None]


def formed(subject: Subject, call: Call, allowed: float) -> float:
    """The call returns what it must, finite, and leaves its arguments alone."""
    subject.value(call)
    return 0.0


def right(subject: Subject, call: Call, allowed: float) -> float:
    """The references' answer; of what is differentiable, without recording gradients too."""
    want = subject.wanted(call)
    if not all(part.isfinite().all() for part in parts(want, "").values()):
        return 0.0  # nothing is demanded there
    got = subject.value(call, want)
    facts = partial(subject.terms.facts, call, got, want, allowed)
    worst = subject.compare(call, got, want, allowed, facts=facts)
    if not subject.terms.differentiable:
        return worst
    with torch.no_grad():
        got = subject.value(call, want)
    told = partial(say, _UNTRACKED)
    return max(worst, subject.compare(call, got, want, allowed, kind="untracked", facts=told))


def same(change: Callable[[Call], Call], fact: str) -> Judge:
    """A judge: another call, with other arguments, must give the same; `fact` says what came.

    The fields of the fact are {first} and {other}.
    """

    def judge(subject: Subject, call: Call, allowed: float) -> float:
        want = subject.wanted(call)
        first, other = (subject.value(each, want) for each in (call, change(call)))
        told = partial(say, fact, first=shown(first), other=shown(other))
        shows = {"truth": want, "came": first}  # the call that is shown is the first
        return subject.compare(call, other, first, allowed, kind="other", facts=told, **shows)

    return judge


def steady(subject: Subject, call: Call, allowed: float) -> float:
    """A, B, A: the same call gives the same, whatever came between; nothing is overwritten."""
    terms, held = subject.terms, subject.result(call)
    copies = {name: part.clone() for name, part in parts(terms.read(held, call), "").items()}
    first = copies.get("", copies)
    for other in terms.between(call):
        subject.value(other)
    worst = 0.0
    for look in (partial(terms.read, held, call), partial(subject.value, call)):
        again = look()
        told = partial(say, terms.again, first=shown(first), again=shown(again))
        error = subject.compare(call, again, first, allowed, kind="again", facts=told)
        worst = max(worst, error)
    return worst


def exactly(
    subject: Subject, call: Call, got: Tensor, want: Tensor, kind: str, facts: str = ""
) -> float:
    """Breach where a result is not, digit by digit, what it must be."""
    return subject.compare(call, got, want, 0.0, kind=kind, facts=facts)


def independent(
    write: Callable[[Tensor], object], compare: Callable[..., float] = exactly
) -> Judge:
    """A judge: other calls in between, and a caller who writes into a result, change nothing."""

    def judge(subject: Subject, call: Call, allowed: float) -> float:
        first, told = subject.value(call), say(subject.terms.again)
        kept, same = first.clone(), partial(compare, subject, call)
        for other in subject.terms.between(call):
            subject.value(other)
        same(first, kept, "overwritten", told)
        same(subject.value(call), kept, "remembered", told)
        try:
            write(first)
        except RuntimeError:
            return 0.0  # an expanded view cannot be written into
        return same(subject.value(call), kept, "shared", say(_SHARED))

    return judge


def refuses(wanted: type[Exception] | Callable[[Call], type[Exception]], fact: str = "") -> Judge:
    """A judge: the call must raise an error of this type; `fact` says why."""

    def judge(subject: Subject, call: Call, allowed: float) -> float:
        given, error = call.fresh(), wanted if isinstance(wanted, type) else wanted(call)
        told = fact and say(fact)
        must_raise(error, subject.candidate, *given.positional, facts=told, **given.keywords)
        return 0.0

    return judge


def every(*judges: Judge) -> Judge:
    """A judge: one after the other."""
    return lambda subject, call, allowed: max(
        judge(subject, call, allowed) or 0.0 for judge in judges
    )


def unless(excused: Callable[[Subject, Any], bool], judge: Judge) -> Judge:
    """A judge: a candidate that has an excuse for this call is not judged by it."""
    return lambda subject, call, allowed: (
        0.0 if excused(subject, call) else judge(subject, call, allowed)
    )


def slopes(
    gradients: Callable[[Any], dict[str, Tensor]],
    direction: Callable[[Tensor], Tensor],
    *,
    wrong: str = _SLOPE,
    infinite: str = "",
) -> Judge:
    """A judge: the gradients of (result · direction).sum(), whose right ones `gradients` gives."""

    def judge(subject: Subject, call: Call, allowed: float) -> float:
        worst, wants = 0.0, gradients(call)
        found = _gradients(subject, call, list(wants), direction)
        for name, want in wants.items():
            if (got := found[name]) is None:
                lost, cut = str(list(want.shape)), say(_CUT, name=name)
                raise Breach(f"no gradient {name}", "None", lost, facts=cut)
            label = f"gradient of {name}"
            subject.check_finite(got, label=label, facts=infinite and say(infinite))
            told = partial(say, wrong, name=name)
            worst = max(worst, subject.compare(call, got, want, allowed, facts=told, label=label))
        return worst

    return judge


def _gradients(
    subject: Subject, call: Call, names: list[str], direction: Callable[[Tensor], Tensor]
) -> dict[str, Tensor | None]:
    given, leaves = call.tracked(names)
    result = call_candidate(subject.candidate, *given.positional, **given.keywords)
    subject.terms.read(result, call)
    loss = (result.double() * direction(result)).sum()
    if not loss.requires_grad:
        return dict.fromkeys(names)
    found = call_candidate(torch.autograd.grad, loss, leaves, allow_unused=True)
    return dict(zip(names, found, strict=True))


def shown(result: Any) -> str:
    """A result in a few numbers, for a sentence."""
    value = next(iter(parts(result, "").values()))
    return f"{value.item():.6g}" if value.dim() == 0 else str(value.flatten()[:3].tolist())
