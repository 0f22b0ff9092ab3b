"""The contract of a long text's loss: overlapping windows, every token counted once."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.call import Call
from course_lib.contracts.engine.candidate import Breach, call_candidate
from course_lib.contracts.engine.clause import Clause, Contract
from course_lib.contracts.engine.diagnosis import by_catalogue
from course_lib.contracts.engine.look import probed
from course_lib.contracts.engine.subject import Subject, Terms
from course_lib.contracts.engine.watch import Probe
from course_lib.contracts.likelihood.strided_nll_mistakes import (
    STRIDED_NLL_MISTAKES,
    mistaken_strided_nll,
)
from course_lib.contracts.likelihood.windows import (
    asked,
    counted_weights,
    is_repeated,
    least_context,
    mean_by_places,
    mean_by_windows,
    nats_of_token,
    strided,
)
from course_lib.report import ContractReport, Mismatch
from course_lib.text import say

# fmt: off
_WEIGHTS = ("how often each predicted token is counted (once is right): {shown} | "
            "сколько раз учтён каждый предсказанный токен (верно: 1): {shown}")
_OFF = ("predicted tokens: {count}; their mean is {want:.6g} | "
        "предсказанных токенов: {count}; их среднее {want:.6g}")
_TOO_LONG = ("tokens in one call of score: {came}; the model reads {most} | "
             "токенов в одном вызове score: {came}, а модель читает {most}")
_CONTEXT = ("tokens before ids[{place}] in its window: {came:.3g}, although {least} fit | "
            "токенов перед ids[{place}] в окне: {came:.3g}, хотя помещается {least}")
_STALE = ("another score gives 1 nat to each token of the same ids, and the result is {fresh:.6g} "
          "| другая score даёт каждому токену тех же ids по 1 нату, а результат {fresh:.6g}")
_CHANGED = "the function writes into ids | функция пишет в ids"
_UNCHANGED = "ids unchanged | ids не изменены"
_REMEMBERED = ("the same call gave {first:.6g} before another call and {again:.6g} after it | "
               "один и тот же вызов дал {first:.6g} до другого вызова и {again:.6g} после него")
_REFUSED = ("outside the contract: no number for stride = max_length, but {error} | "
            "вне контракта: при stride = max_length вместо числа {error}")
_LOST = ("outside the contract: with stride = max_length {lost} of {count} tokens are never "
         "counted; refuse such a stride, or let the windows overlap by one token | "
         "вне контракта: при stride = max_length не учтено токенов: {lost} из {count}; "
         "откажитесь от такого шага или оставьте перекрытие в один токен")
# fmt: on


# ---------------------------------------------------------------- judges


def _form(subject: Subject, call: Call, allowed: float) -> None:
    asked(subject.candidate, call)


def _counts(subject: Subject, call: Call, allowed: float) -> float:
    """Every token but the first counts once: then the mean is known without any windows."""
    want, (got, _) = subject.wanted(call), asked(subject.candidate, call)
    return subject.compare(call, got, want, allowed, facts=partial(_told, subject.candidate, call))


def _told(candidate: Any, call: Call) -> str:
    off = say(_OFF, count=len(call.ids) - 1, want=mean_by_places(call).item())
    if is_repeated(call) or len(call.ids) > 12:
        return off
    try:
        weights = counted_weights(candidate, call)
    except Breach:
        return off
    shown = [f"ids[{place}]: {weight + 0.0:.3g}" for place, weight in enumerate(weights) if place]
    return say(_WEIGHTS, shown=", ".join(shown))


def _window_length(subject: Subject, call: Call, allowed: float) -> None:
    """No call of score may hold more tokens than the model reads."""
    _, score = asked(subject.candidate, call)
    longest = max(map(len, score.windows), default=0)
    if longest > call.max_length:
        facts = say(_TOO_LONG, came=longest, most=call.max_length)
        raise Breach("too long", str(longest), f"≤ {call.max_length}", facts=facts)


def _context(subject: Subject, call: Call, allowed: float) -> float:
    """A token predicted from less context than fits costs a surcharge: there must be none."""
    least = least_context(call)

    def with_surcharge(token: int, before: int) -> float:
        return nats_of_token(token) + max(least(token) - before, 0)

    want, (got, _) = mean_by_places(call), asked(subject.candidate, call, with_surcharge)
    if (got - want).abs() > 1e-6 * want:
        place, came = _shortest_context(subject.candidate, call)
        fits = least(call.ids[place].item())
        if came >= fits:  # the number is not a mean of the nats that score gave
            return subject.compare(call, got, want, 1e-6)
        facts = say(_CONTEXT, place=place, came=came, least=fits)
        wrong = (Mismatch("context", (place,), came, fits),)
        raise Breach("short", f"{came:.3g}", f"≥ {fits}", mismatches=wrong, facts=facts)
    return 0.0


def _shortest_context(candidate: Any, call: Call) -> tuple[int, float]:
    """The place that lacks the most context, and what it has: a score that counts the context."""
    found, ids, least = [], call.ids.tolist(), least_context(call)
    for place, chosen in enumerate(ids):
        count = partial(lambda token, before, chosen: before * (token == chosen), chosen=chosen)
        context = asked(candidate, call, count)[0].item() * (len(ids) - 1)
        found.append((context - least(chosen), place, round(context, 6)))
    return min(found[1:])[1:]


def _state(subject: Subject, call: Call, allowed: float) -> float:
    """ids stay as they are; the same call gives the same, whatever came between."""
    given = call.fresh()
    call_candidate(subject.candidate, *given.positional)
    if not torch.equal(given.values["ids"], call.ids):
        raise Breach("changed", "ids", say(_UNCHANGED), facts=say(_CHANGED))
    first, _ = asked(subject.candidate, call)
    fresh, _ = asked(subject.candidate, call, lambda token, before: 1.0)
    if (fresh - 1.0).abs() > 1e-6:
        facts = say(_STALE, fresh=fresh.item())
        raise Breach("stale", (fresh - 1.0).abs().item(), facts=facts)
    again, _ = asked(subject.candidate, call)
    told = partial(say, _REMEMBERED, first=first.item(), again=again.item())
    truth = mean_by_places(call)
    return subject.compare(call, again, first, allowed, kind="remembered", facts=told, truth=truth)


# ---------------------------------------------------------------- the contract


def _clauses(subject: Subject) -> list[Clause]:
    fits = [strided(*size) for size in ((2, 4, 2), (5, 8, 4), (8, 8, 4), (3, 3, 1), (7, 30, 5))]
    sizes = [(22, 8, 4), (9, 8, 4), (12, 8, 4), (13, 8, 4), (22, 8, 3), (23, 8, 5), (17, 6, 2)]
    sizes += [(10, 5, 1), (13, 5, 4), (9, 2, 1), (6, 3, 2), (16, 7, 6), (21, 10, 7)]
    sizes += [(n, m, s) for n in range(2, 12) for m in range(2, 7) for s in range(1, m)]
    calls = [strided(*size) for size in sizes]
    repeated = [strided(length, 6, 3, repeated=True) for length in (5, 6, 14)]
    long = [strided(301, 7, 3), strided(700, 64, 32), strided(257, 128, 127)]
    # fmt: off
    return [
        Clause("result_form", "one finite number: a float, or a tensor with no axes | "
               "одно конечное число: float или тензор без осей", _form, [fits[1], calls[0]]),
        Clause("one_window", "a text that fits: the mean of score(ids), nothing else | "
               "текст помещается: среднее score(ids), и только", _counts, fits, 1e-6),
        Clause("window_length", "no call of score holds more than max_length tokens | "
               "в каждом вызове score не больше max_length токенов",
               _window_length, [*fits, *calls]),
        Clause("every_token_once", "the mean of T - 1 tokens, each counted exactly once | "
               "среднее по T - 1 токенам, каждый учтён ровно раз", _counts, calls, 1e-6),
        Clause("context", "no token is predicted from less context than fits | "
               "ни один токен не лишён контекста, который помещается", _context, [*fits, *calls]),
        Clause("repeated_tokens", "tokens that occur again are counted again | "
               "повторяющиеся токены учтены каждый раз", _counts, repeated, 1e-6),
        Clause("long_text", "hundreds of windows: still every token once | "
               "сотни окон: по-прежнему каждый токен один раз", _counts, long, 1e-6),
        Clause("independent_results", "the same call, the same result; ids unchanged | "
               "тот же вызов — тот же результат; ids не изменены",
               _state, [fits[1], *calls[:3]], 1e-9),
    ]
    # fmt: on


def _figures(subject: Subject, measured: dict[str, Any]) -> dict[str, int]:
    """How much is read of one text."""
    _, score = asked(subject.candidate, strided(22, 8, 4))
    read = sum(map(len, score.windows))
    return {"windows_22_8_4": len(score.windows), "tokens_read_22_8_4": read}


def _notes(subject: Subject) -> Iterator[str]:
    """What becomes of the tokens at the borders when the windows do not overlap."""
    try:
        weights = counted_weights(subject.candidate, strided(9, 4, 4))[1:]
    except Breach as breach:
        yield say(_REFUSED, error=breach.measured)
        return
    lost = sum(weight < 1e-6 for weight in weights)
    if lost:
        yield say(_LOST, lost=lost, count=len(weights))


def _number_seen(call: Call, candidate: Any) -> Tensor:
    return asked(candidate, call)[0]


def _context_seen(call: Call, candidate: Any) -> Tensor:
    """The context of every token as far as it is demanded, each with a weight of its own."""
    least = least_context(call)

    def context(token: int, before: int) -> float:
        return min(before, least(token)) * nats_of_token(token)

    return asked(candidate, call, context)[0]


def _longest_seen(call: Call, candidate: Any) -> str:
    """Whether some window is longer than the model reads, or even the whole text."""
    longest = max(map(len, asked(candidate, call)[1].windows), default=0)
    if longest == len(call.ids):
        return "whole text"
    return "too long" if longest > call.max_length else "fits"


def _probes(subject: Subject) -> list[Probe]:
    sizes = ((14, 6, 2), (21, 9, 5), (10, 5, 4), (17, 4, 1), (5, 8, 3), (19, 8, 6))
    calls = [strided(*size) for size in sizes]
    return [
        *probed(*calls, look=_number_seen),
        *probed(*calls[:4], look=_context_seen),
        *probed(calls[0], calls[2], look=_longest_seen, core=False),
    ]


_TERMS = Terms(
    "strided_nll",
    (mean_by_places, mean_by_windows),
    misses=lambda got, want, call: (got - want).abs() / want.abs(),
    agree=1e-12,
)
STRIDED_NLL = Contract(
    "strided_nll",
    _TERMS,
    _clauses,
    by_catalogue(STRIDED_NLL_MISTAKES, _probes, mistaken_strided_nll()),
    figures=_figures,
    notes=_notes,
)


def check_strided_nll_contract(strided_nll: Callable[..., Any]) -> ContractReport:
    """Hold a strided loss to its definition: mean nats of every token but the first, once each.

        strided_nll(score, ids, max_length, stride) -> float

    score takes a window of ids (tensor or list) of at most max_length tokens and returns the nats
    of its tokens but the first, a float64 tensor. Windows may begin at the multiples of stride or
    end there, the last may be shorter or moved back: demanded is that a token has min(t,
    max_length - stride) tokens of context or more, and all of them if the whole text fits. Legal
    calls have 1 ≤ stride < max_length; what stride = max_length does is only told in a note.

    Shapes:  ids [T] long, T of at least 2
    Raises:  ContractViolation when a clause is broken: with a small call and what was measured
    """
    return STRIDED_NLL.check(strided_nll)
