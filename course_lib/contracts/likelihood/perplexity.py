"""The contract of perplexity: exp of one mean, whatever the batch."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.call import Call
from course_lib.contracts.engine.clause import Clause, Contract
from course_lib.contracts.engine.diagnosis import by_catalogue
from course_lib.contracts.engine.subject import Subject, relative
from course_lib.contracts.engine.watch import Probe
from course_lib.contracts.likelihood import texts
from course_lib.contracts.likelihood.nll import mean_clauses, mean_probes
from course_lib.contracts.likelihood.perplexity_mistakes import (
    PERPLEXITY_MISTAKES,
    mistaken_perplexity,
)
from course_lib.report import ContractReport


def _exp_of_mean(nats: Tensor) -> Tensor:
    """The perplexity; infinite, so that nothing is demanded, near the end of the floats."""
    nats = texts.mean(nats)
    return torch.where(nats < 700, nats.exp(), math.inf)


def misses_in_logs(
    got: Tensor, want: Tensor, call: Call, nats: Callable[..., Tensor] = texts.misses_in_nats
) -> Tensor:
    """The error in nats; a perplexity of 0 or less is infinitely wrong."""
    if not (got > 0 and want > 0):
        return torch.where(got == want, 0.0, math.inf)
    return nats(got.log(), want.log(), call)


def _clauses(subject: Subject) -> list[Clause]:
    far = [(1, 3, (30.0,)), (2, 4, (-60.0, 60.0)), (2, 3, (300.0,)), (1, 4, (600.0, 0.0))]
    calls = [texts.surprised(*each) for each in [*far, (1, 4, (0.0, 900.0, 0.0))]]
    calls += [texts.surprised(2, 4, (2.0, 1.0), level) for level in (10000.0, -10000.0)]
    return mean_clauses(
        "logits[t] that are sure of token t+1: perplexity 1 | "
        "logits[t] уверены в токене t+1: перплексия 1",
        "V equally likely tokens: perplexity V | V равновероятных токенов: перплексия V",
        "exp of the mean nats per token, by two references | "
        "exp от среднего числа нат, по двум эталонам",
        "up to exp(300), and logits of 10000: exact and finite | "
        "до exp(300) и с логитами 10000: перплексия точна и конечна",
        calls,
    )


def _probes(subject: Subject) -> list[Probe]:
    dear = [(2, 4, (250.0,)), (1, 2, (250.0,)), (1, 51, (250.0, *[0.0] * 49))]
    return mean_probes(_TERMS, [texts.surprised(*each) for each in dear])


_TERMS = texts.terms_of(
    "perplexity", _exp_of_mean, misses=misses_in_logs, told=partial(misses_in_logs, nats=relative)
)
PERPLEXITY = Contract(
    "perplexity",
    _TERMS,
    _clauses,
    by_catalogue(PERPLEXITY_MISTAKES, _probes, mistaken_perplexity()),
)


def check_perplexity_contract(perplexity: Callable[..., Any]) -> ContractReport:
    """Hold a perplexity to its definition: exp of the mean nats per valid predicted token.

        perplexity(logits [B, T, V], token_ids [B, T], valid=None) -> float

    logits[t] predict token t + 1; a prediction counts if that token is valid. Errors are measured
    in nats. Not demanded: what a prediction made *from* padding is worth, T = 1, nothing valid,
    more than exp(300), non-finite logits.

    Shapes:  logits in float64, float32 or half; token_ids long; valid bool, True = real token
    Raises:  ContractViolation when a clause is broken: with a small call and what was measured
    """
    return PERPLEXITY.check(perplexity)
