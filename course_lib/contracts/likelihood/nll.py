"""The contract of the next-token loss: which prediction is scored against which token."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from course_lib.contracts.engine.candidate import ContractSubject, is_stub, quiet_globals
from course_lib.contracts.likelihood._likelihood import mistaken_nll
from course_lib.contracts.likelihood._likelihood_case import MEAN_NLL
from course_lib.contracts.likelihood._likelihood_clauses import (
    LIKELIHOOD_MEANINGS,
    explain_likelihood,
    likelihood_clauses,
)
from course_lib.contracts.likelihood._likelihood_inputs import (
    even_likelihood,
    of_dtype,
    surprised_likelihood,
)
from course_lib.contracts.likelihood.nll_mistakes import NLL_MISTAKES
from course_lib.report import ContractReport

_NLL_MEANINGS = {
    **LIKELIHOOD_MEANINGS,
    "certain_model": {
        "en": "logits[t] that are sure of token t+1 cost 0 nats",
        "ru": "logits[t], уверенные в токене t+1, стоят 0 нат",
    },
    "uniform_model": {
        "en": "V equally likely tokens cost ln V nats each",
        "ru": "V равновероятных токенов стоят по ln V нат",
    },
    "values": {
        "en": "mean nats per predicted token, by two references",
        "ru": "среднее число нат на предсказание, по двум эталонам",
    },
    "extreme_logits": {
        "en": "logits of 60, -500, 10000: the nats stay exact and finite",
        "ru": "логиты 60, -500, 10000: число нат точно и не бесконечно",
    },
}


def check_nll_contract(next_token_nll: Callable[..., Any]) -> ContractReport:
    """Hold a next-token loss to its definition: mean nats per valid predicted token.

        next_token_nll(logits [B, T, V], token_ids [B, T], valid=None) -> float

    logits[t] predict token t + 1; a prediction counts if that token is valid. Not demanded: what
    a prediction made *from* padding is worth (after left padding nothing depends on it here),
    T = 1, nothing valid, non-finite logits, gradients.

    Shapes:  logits in float64, float32 or half; token_ids long; valid bool, True = real token
    Raises:  ContractViolation when a clause is broken: with a small call and what was measured
    """
    if not callable(next_token_nll):
        raise TypeError(f"next_token_nll must be a function, got {type(next_token_nll).__name__}")
    subject = ContractSubject("check_nll_contract", next_token_nll, _NLL_MEANINGS, _explain_nll)
    with quiet_globals():
        if is_stub(next_token_nll, *even_likelihood(1, 3, 2, 0.0).copies()):
            return ContractReport(subject.contract, attempted=False)
        clauses = tuple(likelihood_clauses(subject, MEAN_NLL, _extreme_nll_cases()))
        figures = {
            f"{row.name}_max_error": row.measured
            for row in clauses
            if not isinstance(row.measured, str)
        }
    return ContractReport(subject.contract, clauses, figures)


def _extreme_nll_cases() -> list[Any]:
    cases = [
        surprised_likelihood(1, 3, (30.0,)),
        surprised_likelihood(2, 4, (-60.0, 60.0)),
        surprised_likelihood(2, 3, (500.0, 30.0)),
        surprised_likelihood(1, 4, (10000.0, 0.0)),
        surprised_likelihood(2, 4, (2.0, 1.0), level=10000.0),
        surprised_likelihood(2, 4, (2.0, 1.0), level=-10000.0),
    ]
    return [*cases, *(of_dtype(case, torch.float32) for case in cases)]


def _explain_nll(subject: ContractSubject) -> Any:
    return partial(
        explain_likelihood,
        asked=MEAN_NLL,
        catalogue=NLL_MISTAKES,
        reference=mistaken_nll(),
        surprises=((2, 4, (9000.0,)),),
    )(subject)
