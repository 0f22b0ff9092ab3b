"""The contract of the next-token loss, and what every mean over tokens must do as it must."""

import math
from collections.abc import Callable
from typing import Any

import torch

from course_lib.contracts.engine.call import Call
from course_lib.contracts.engine.clause import Clause, Contract
from course_lib.contracts.engine.diagnosis import by_catalogue
from course_lib.contracts.engine.judge import every, formed, right, same, steady
from course_lib.contracts.engine.look import Look, arguments_kept, between, outcome_read, probed
from course_lib.contracts.engine.read import number
from course_lib.contracts.engine.subject import Subject, Terms, relative, wanted
from course_lib.contracts.engine.watch import Probe
from course_lib.contracts.likelihood import texts
from course_lib.contracts.likelihood.nll_mistakes import NLL_MISTAKES, mistaken_nll
from course_lib.report import ContractReport

# fmt: off
_PADDING_READ = ("with other numbers in the padding it gives {other} instead of {first} | "
                 "при других числах в паддинге получается {other} вместо {first}")
_RENAMED = ("with tokens 0 and the last renamed into each other it gives {other}, not {first} | "
            "если поменять номера токена 0 и последнего местами, получается {other}, а не {first}")
# fmt: on


def other_padding(call: Call) -> Call:
    """Other ids and logits where valid is False."""
    if call.valid is None:
        return call
    ids = torch.where(call.valid, call.token_ids, (call.token_ids + 1) % call.logits.shape[-1])
    logits = torch.where(call.valid.unsqueeze(-1), call.logits, call.logits.flip(-1) * 3 - 2)
    return call.but(token_ids=ids, logits=logits)


def renamed(call: Call) -> Call:
    """Tokens 0 and V - 1 renamed into each other, in the ids and in the logits."""
    names = torch.arange(call.logits.shape[-1])
    names[[0, -1]] = names[[-1, 0]]
    return call.but(logits=call.logits[..., names], token_ids=names[call.token_ids])


def _with_padding() -> tuple[list[Call], list[Call], list[Call]]:
    """Rows padded alike, rows of unequal lengths, padding on the left, inside, on both sides."""
    even_rows = ((21, 1, 6, 5, (4,)), (22, 3, 7, 4, (5, 5, 5)), (23, 2, 5, 6, (2, 2)))
    padded = [texts.drawn(*row) for row in even_rows]
    padded += [texts.drawn(24, 2, 30, 3, (3, 3)), texts.drawn(25, 2, 4, 5, (4, 4))]
    rows = ((31, 2, 5, 4, (5, 2)), (32, 3, 8, 5, (2, 8, 5)), (33, 3, 6, 4, (6, 1, 3)))
    unequal = [texts.drawn(*row) for row in rows]
    unequal += [texts.drawn(34, 4, 9, 6, (3, 9, 2, 7)).of_dtype(torch.float32)]
    anywhere = [texts.masked(4, "..xxx", "xxxxx"), texts.masked(5, ".xxx", "..xx", "xxxx")]
    anywhere += [texts.masked(3, "xx..xx", ".xxxx."), texts.masked(4, "...xx.", "..xx..")]
    anywhere += [texts.masked(5, "x.xx", "xx.x", "xxxx")]
    return padded, unequal, anywhere


def mean_clauses(
    certainly: str, evenly: str, by_value: str, far: str, far_calls: list[Call]
) -> list[Clause]:
    """What a mean over tokens must do, simplest first; the four sentences are the caller's own."""
    sizes = [(1, 2, 2), (1, 6, 3), (2, 5, 7), (5, 2, 3), (4, 4, 4), (3, 40, 11), (2, 9, 1)]
    plain = [texts.drawn(n, *size) for n, size in enumerate([*sizes, (17, 3, 5), (1, 14, 300)])]
    plain += [call.of_dtype(torch.float32) for call in plain[1:4]]
    padded, unequal, anywhere = _with_padding()
    coarse = [plain[2], unequal[0], texts.surprised(2, 4, (30.0, 200.0))]
    coarse = [call.of_dtype(torch.float16) for call in coarse]
    sure = [texts.certain(3, 1, 5, 7), texts.certain(3, 2, 4, 5), texts.certain(3, 3, 3, 4)]
    level = [texts.even(1, 6, 5, 0.0), texts.even(2, 4, 7, -3.0), texts.even(3, 2, 3, 2.5)]
    alike = same(renamed, _RENAMED)
    unread = every(same(other_padding, _PADDING_READ), right)
    # fmt: off
    return [
        Clause("result_form", "one finite number: a float, or a tensor with no axes | "
               "одно конечное число: float или тензор без осей", formed, plain[1:3]),
        Clause("certain_model", certainly, right, sure, 1e-6),
        Clause("uniform_model", evenly, right, level, 1e-6),
        Clause("token_zero", "token 0 is like any other: renaming tokens changes nothing | "
               "токен 0 такой же, как все: перенумерация ничего не меняет",
               alike, [texts.dear_zeros(51), texts.dear_zeros(52, (5, 5))], 1e-6),
        Clause("values", by_value, right, plain, 1e-6),
        Clause("padding", "what stands in the padding, and how much, changes nothing | "
               "ни содержимое паддинга, ни его длина ничего не меняют", unread, padded, 1e-6),
        Clause("unequal_lengths", "every token weighs the same, in short rows and in long | "
               "все токены весят одинаково в строках любой длины", right, unequal, 1e-6),
        Clause("padding_anywhere", "valid says what is padding, on the left and inside too | "
               "паддинг указан в valid, даже слева или внутри", right, anywhere, 1e-6),
        Clause("extreme_logits", far, right, far_calls, 1e-6),
        Clause("half_precision", "half-precision logits: finite, right to their rounding | "
               "половинная точность: ответ конечен, верен до округления", right, coarse, 0.02),
        Clause("independent_results", "the same call, the same result; arguments unchanged | "
               "тот же вызов — тот же результат; аргументы не изменены",
               steady, [plain[2], padded[1], unequal[0]], 1e-6),
    ]
    # fmt: on


def mean_probes(terms: Terms, surprises: list[Call]) -> list[Probe]:
    """Fresh calls on which mistakes show."""
    sizes = ((61, 3, 6, 5), (62, 2, 9, 4), (63, 1, 5, 6), (64, 3, 8, 5, (8, 3, 5)))
    ordinary = [texts.drawn(*size) for size in (*sizes, (65, 2, 7, 4, (4, 4)))]
    ordinary += [texts.dear_zeros(66)]
    special = [texts.masked(5, "..xxxx", "xx.xxx"), texts.even(2, 5, 3, 1.0)]
    special += [texts.dear_zeros(67, (5, 4))]
    extreme = [*surprises, *(texts.even(2, 4, 5, level) for level in (5000.0, -5000.0))]
    extreme += [texts.surprised(2, 4, (10.0,), 5000.0)]
    look = outcome_read(number)
    return [
        *probed(*ordinary, look=look),
        *probed(*special, look=look, core=False),
        *probed(*extreme, look=way_of_failing(terms, ordinary[2]), core=False),
        *probed(ordinary[3], look=arguments_kept, core=False),
        *probed(ordinary[3], look=between(texts.another, look), core=False),
    ]


def way_of_failing(terms: Terms, plain: Call, near: float = 1e-4) -> Look:
    """A look: how an extreme answer fails; which floor or ceiling people choose does not matter.

    Of a candidate that is wrong in a plain call too, or in one with the same tokens and other
    logits, the number itself is what is seen.
    """

    def answer(call: Call, candidate: Any) -> tuple[float, float]:
        try:
            got = number(call.fresh().to(candidate), call)
        except (ArithmeticError, ValueError):  # Python's own exp and log do not give infinities
            got = torch.tensor(math.nan, dtype=torch.float64)
        error = terms.misses(got, wanted(terms, call), call).item()
        return got.item(), error if math.isfinite(got) else math.inf

    def look(call: Call, candidate: Any) -> Any:
        logits = torch.linspace(0, 1, call.logits.numel()).view_as(call.logits)
        (got, error), *usual = (
            answer(c, candidate) for c in (call, plain, call.but(logits=logits))
        )
        if error < near:
            return "right"
        if any(misses > 1e-5 for _, misses in usual):
            return ["wrong anyway", got]
        if not math.isfinite(got):
            return "not finite"
        if error < 1e-4:
            return "not precise"
        return "too small" if got < wanted(terms, call) else "too large"

    return look


def _clauses(subject: Subject) -> list[Clause]:
    far = [(1, 3, (30.0,)), (2, 4, (-60.0, 60.0)), (2, 3, (500.0, 30.0)), (1, 4, (10000.0, 0.0))]
    calls = [texts.surprised(*each) for each in far]
    calls += [texts.surprised(2, 4, (2.0, 1.0), level) for level in (10000.0, -10000.0)]
    return mean_clauses(
        "logits[t] that are sure of token t+1 cost 0 nats | "
        "logits[t], уверенные в токене t+1, стоят 0 нат",
        "V equally likely tokens cost ln V nats each | V равновероятных токенов стоят по ln V нат",
        "mean nats per predicted token, by two references | "
        "среднее число нат на предсказание, по двум эталонам",
        "logits of 60, -500, 10000: the nats stay exact and finite | "
        "логиты 60, -500, 10000: число нат точно и не бесконечно",
        [*calls, *(call.of_dtype(torch.float32) for call in calls)],
    )


def _probes(subject: Subject) -> list[Probe]:
    return mean_probes(_TERMS, [texts.surprised(2, 4, (9000.0,))])


_TERMS = texts.terms_of("next_token_nll", texts.mean, misses=texts.misses_in_nats, told=relative)
NLL = Contract("nll", _TERMS, _clauses, by_catalogue(NLL_MISTAKES, _probes, mistaken_nll()))


def check_nll_contract(next_token_nll: Callable[..., Any]) -> ContractReport:
    """Hold a next-token loss to its definition: mean nats per valid predicted token.

        next_token_nll(logits [B, T, V], token_ids [B, T], valid=None) -> float

    logits[t] predict token t + 1; a prediction counts if that token is valid. Not demanded: what
    a prediction made *from* padding is worth (after left padding nothing depends on it here),
    T = 1, nothing valid, non-finite logits, gradients.

    Shapes:  logits in float64, float32 or half; token_ids long; valid bool, True = real token
    Raises:  ContractViolation when a clause is broken: with a small call and what was measured
    """
    return NLL.check(next_token_nll)
