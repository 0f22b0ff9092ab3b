"""The contract of perplexity: exp of one mean, whatever the batch."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.call import Call
from course_lib.contracts.engine.clause import Clause, Contract
from course_lib.contracts.engine.diagnosis import by_catalogue
from course_lib.contracts.engine.read import number
from course_lib.contracts.engine.subject import Subject, Terms, relative
from course_lib.contracts.engine.watch import Probe
from course_lib.contracts.likelihood.nll import mean_clauses, mean_probes, told_count
from course_lib.contracts.likelihood.perplexity_mistakes import (
    PERPLEXITY_MISTAKES,
    mistaken_perplexity,
)
from course_lib.contracts.likelihood.texts import (
    another,
    following,
    mean,
    misses_in_nats,
    surprised,
)
from course_lib.report import ContractReport


def _exp_of_mean(nats: Tensor) -> Tensor:
    """The perplexity; infinite, so that nothing is demanded, near the end of the floats."""
    nats = mean(nats)
    return torch.where(nats < 700, nats.exp(), math.inf)


def misses_in_logs(got: Tensor, want: Tensor, call: Call) -> Tensor:
    """The error in nats; a perplexity of 0 or less is infinitely wrong."""
    if not (got > 0 and want > 0):
        return torch.where(got == want, 0.0, math.inf)
    return misses_in_nats(got.log(), want.log(), call)


def _told_in_logs(got: Tensor, want: Tensor, call: Call) -> Tensor:
    """The same, but for the scale: a learner reads nats."""
    told = misses_in_logs(got, want, call)
    return told if told.isinf() else relative(got.log(), want.log(), call)


def _clauses(subject: Subject) -> list[Clause]:
    far = [surprised(1, 3, (30.0,)), surprised(2, 4, (-60.0, 60.0)), surprised(2, 3, (300.0,))]
    far += [surprised(1, 4, (600.0, 0.0)), surprised(1, 4, (0.0, 900.0, 0.0))]
    far += [surprised(2, 4, (2.0, 1.0), level) for level in (10000.0, -10000.0)]
    return mean_clauses(
        "logits[t] that are sure of token t+1: perplexity 1 | "
        "logits[t] уверены в токене t+1: перплексия 1",
        "V equally likely tokens: perplexity V | V равновероятных токенов: перплексия V",
        "exp of the mean nats per token, by two references | "
        "exp от среднего числа нат, по двум эталонам",
        "up to exp(300), and logits of 10000: exact and finite | "
        "до exp(300) и с логитами 10000: перплексия точна и конечна",
        far,
    )


def _probes(subject: Subject) -> list[Probe]:
    gaps = (250.0, *[0.0] * 49)
    dear = [surprised(2, 4, (250.0,)), surprised(1, 2, (250.0,)), surprised(1, 51, gaps)]
    return mean_probes(_TERMS, dear)


_TERMS = Terms(
    "perplexity",
    following(_exp_of_mean),
    number,
    misses_in_logs,
    another,
    told_count,
    kept_by="independent_results",
    told=_told_in_logs,
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
