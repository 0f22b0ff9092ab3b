"""The contract of the next-token loss: which prediction is scored against which token."""

from collections.abc import Callable
from typing import Any

import torch

from course_lib.contracts.engine.clause import Clause, Contract
from course_lib.contracts.engine.diagnosis import Probe, by_catalogue
from course_lib.contracts.engine.read import number
from course_lib.contracts.engine.subject import Subject, Terms, relative
from course_lib.contracts.likelihood.means import another, mean_clauses, mean_probes, told_count
from course_lib.contracts.likelihood.nll_mistakes import NLL_MISTAKES, mistaken_nll
from course_lib.contracts.likelihood.texts import following, mean, misses_in_nats, surprised
from course_lib.report import ContractReport


def _clauses(subject: Subject) -> list[Clause]:
    far = [surprised(1, 3, (30.0,)), surprised(2, 4, (-60.0, 60.0)), surprised(2, 3, (500.0, 30.0))]
    far += [surprised(1, 4, (10000.0, 0.0))]
    far += [surprised(2, 4, (2.0, 1.0), level) for level in (10000.0, -10000.0)]
    return mean_clauses(
        "logits[t] that are sure of token t+1 cost 0 nats | "
        "logits[t], уверенные в токене t+1, стоят 0 нат",
        "V equally likely tokens cost ln V nats each | V равновероятных токенов стоят по ln V нат",
        "mean nats per predicted token, by two references | "
        "среднее число нат на предсказание, по двум эталонам",
        "logits of 60, -500, 10000: the nats stay exact and finite | "
        "логиты 60, -500, 10000: число нат точно и не бесконечно",
        [*far, *(call.of_dtype(torch.float32) for call in far)],
    )


def _probes(subject: Subject) -> list[Probe]:
    return mean_probes(_TERMS, [surprised(2, 4, (9000.0,))])


_TERMS = Terms(
    "next_token_nll",
    following(mean),
    number,
    misses_in_nats,
    another,
    told_count,
    kept_by="independent_results",
    told=relative,
)
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
