"""The contract of a text's log-likelihood: a sum by the chain rule, nothing clamped."""

import math
from collections.abc import Callable
from typing import Any

import torch

from course_lib.contracts.engine.call import Call
from course_lib.contracts.engine.clause import Clause, Contract
from course_lib.contracts.engine.diagnosis import by_catalogue
from course_lib.contracts.engine.judge import formed, right, steady
from course_lib.contracts.engine.look import outcome_read, probed
from course_lib.contracts.engine.read import number
from course_lib.contracts.engine.subject import Subject
from course_lib.contracts.engine.watch import Probe
from course_lib.contracts.likelihood import texts
from course_lib.contracts.likelihood.log_likelihood_mistakes import (
    LOG_LIKELIHOOD_MISTAKES,
    mistaken_log_likelihood,
)
from course_lib.contracts.likelihood.nll import way_of_failing
from course_lib.report import ContractReport

_one_text = texts.calls_of("logits [T,V], token_ids [T]")


def _alone(call: Call) -> Call:
    """The first row of a batch, without the batch's axis."""
    return _one_text(call.logits[0], call.token_ids[0])


def _clauses(subject: Subject) -> list[Clause]:
    sure = [_alone(texts.certain(3, 1, *size)) for size in ((4, 5), (2, 3), (9, 7))]
    level = [_alone(texts.even(1, *size)) for size in ((5, 3, 0.0), (2, 7, -3.0), (8, 2, 4.0))]
    sizes = ((2, 2), (3, 5), (5, 3), (6, 6), (40, 11), (7, 1), (4, 300))
    plain = [_alone(texts.drawn(n, 1, *size)) for n, size in enumerate(sizes)]
    gaps = [(3, (30.0, 0.0)), (2, (500.0,)), (4, (500.0, 2.0)), (3, (5000.0,))]
    far = [_alone(texts.surprised(1, *each)) for each in [*gaps, (4, (60.0, -60.0, 1e5))]]
    far += [_alone(texts.surprised(1, 4, (2.0, 1.0), level)) for level in (1e4, -1e4)]
    long = [_alone(texts.drawn(71, 1, 3000, 3)), _alone(texts.drawn(72, 1, 5001, 5))]
    narrow = [call.of_dtype(torch.float32) for call in (*plain[:5], *far, long[0])]
    # fmt: off
    return [
        Clause("result_form", "one finite number: a float, or a tensor with no axes | "
               "одно конечное число: float или тензор без осей", formed, plain[1:4]),
        Clause("certain_model", "logits[t] that are sure of token t+1: log 1 = 0 | "
               "logits[t] уверены в токене t+1: log 1 = 0", right, sure, 1e-6),
        Clause("uniform_model", "V equally likely tokens: -(T - 1) ln V | "
               "V равновероятных токенов: -(T - 1) ln V", right, level, 1e-6),
        Clause("values", "the sum of log p(token t) over t ≥ 1, by two references | "
               "сумма log p(токен t) по t ≥ 1, по двум эталонам", right, plain, 1e-6),
        Clause("nothing_clamped", "a log-probability of -500 or -5000 stays as it is | "
               "логарифм вероятности -500 или -5000 таким и остаётся", right, far, 1e-6),
        Clause("long_text", "thousands of tokens: still the sum, to 9 digits | "
               "тысячи токенов: по-прежнему сумма, верны 9 цифр", right, long, 1e-9),
        Clause("float32_logits", "float32 logits are right to their rounding | "
               "логиты float32: верно с точностью до их округления", right, narrow, 2e-3),
        Clause("independent_results", "the same call, the same result; arguments unchanged | "
               "тот же вызов — тот же результат; аргументы не изменены",
               steady, [plain[2], plain[4]], 1e-9),
    ]
    # fmt: on


def _probes(subject: Subject) -> list[Probe]:
    sizes = ((81, 1, 4, 5), (82, 1, 7, 3), (83, 1, 12, 6))
    ordinary = [_alone(texts.drawn(*each)) for each in sizes]
    gaps = ((4, (6000.0,)), (51, (20.0,)), (4, (10.0,), 5000.0))
    special = [texts.surprised(1, *each) for each in gaps]
    special += [texts.even(1, 4, 5, level) for level in (5000.0, -5000.0)]
    close, near = (way_of_failing(_TERMS, ordinary[0], near) for near in (1e-4, 1e-9))
    return [
        *probed(*ordinary, look=outcome_read(number)),
        *probed(*map(_alone, special), look=close, core=False),
        *probed(_alone(texts.drawn(84, 1, 4000, 4)), look=near, core=False),
    ]


_TERMS = texts.terms_of(
    "exact_log_likelihood", lambda nats: nats.new_tensor(-math.fsum(nats.tolist()))
)
LOG_LIKELIHOOD = Contract(
    "log_likelihood",
    _TERMS,
    _clauses,
    by_catalogue(LOG_LIKELIHOOD_MISTAKES, _probes, mistaken_log_likelihood()),
)


def check_log_likelihood_contract(exact_log_likelihood: Callable[..., Any]) -> ContractReport:
    """Hold a log-likelihood to the chain rule: the sum of log p(token t | before) over t ≥ 1.

        exact_log_likelihood(logits [T, V], token_ids [T]) -> float

    logits[t] predict token t + 1. Not demanded: T = 1, non-finite logits, more digits than the
    logits' dtype has.

    Shapes:  logits in float64 or float32; token_ids long
    Raises:  ContractViolation when a clause is broken: with a small call and what was measured
    """
    return LOG_LIKELIHOOD.check(exact_log_likelihood)
