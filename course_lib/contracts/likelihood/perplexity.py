"""The contract of perplexity: among how many equally likely tokens a model hesitates."""

from collections.abc import Callable
from functools import partial
from typing import Any

from course_lib.contracts.engine.candidate import ContractSubject, is_stub, quiet_globals
from course_lib.contracts.engine.diagnosis import Diagnosis
from course_lib.contracts.likelihood._likelihood_case import PERPLEXITY, LikelihoodCase
from course_lib.contracts.likelihood._likelihood_clauses import (
    LIKELIHOOD_MEANINGS,
    explain_likelihood,
    likelihood_clauses,
)
from course_lib.contracts.likelihood._likelihood_inputs import even_likelihood, surprised_likelihood
from course_lib.contracts.likelihood.perplexity_mistakes import (
    PERPLEXITY_MISTAKES,
    mistaken_perplexity,
)
from course_lib.report import ContractReport

_PERPLEXITY_MEANINGS = {
    **LIKELIHOOD_MEANINGS,
    "certain_model": {
        "en": "logits[t] that are sure of token t+1: perplexity 1",
        "ru": "logits[t] уверены в токене t+1: перплексия 1",
    },
    "uniform_model": {
        "en": "V equally likely tokens: perplexity V",
        "ru": "V равновероятных токенов: перплексия V",
    },
    "values": {
        "en": "exp of the mean nats per token, by two references",
        "ru": "exp от среднего числа нат, по двум эталонам",
    },
    "extreme_logits": {
        "en": "up to exp(300), and logits of 10000: exact and finite",
        "ru": "до exp(300) и с логитами 10000: перплексия точна и конечна",
    },
}


def check_perplexity_contract(perplexity: Callable[..., Any]) -> ContractReport:
    """Hold a perplexity to its definition: exp of the mean nats per valid predicted token.

        perplexity(logits [B, T, V], token_ids [B, T], valid=None) -> float

    logits[t] predict token t + 1; a prediction counts if that token is valid. Errors are measured
    in nats. Not demanded: what a prediction made *from* padding is worth, T = 1, nothing valid,
    more than exp(300), non-finite logits.

    Shapes:  logits in float64, float32 or half; token_ids long; valid bool, True = real token
    Raises:  ContractViolation when a clause is broken: with a small call and what was measured
    """
    if not callable(perplexity):
        raise TypeError(f"perplexity must be a function, got {type(perplexity).__name__}")
    subject = ContractSubject(
        "check_perplexity_contract", perplexity, _PERPLEXITY_MEANINGS, _explain_perplexity
    )
    with quiet_globals():
        if is_stub(perplexity, *even_likelihood(1, 3, 2, 0.0).copies()):
            return ContractReport(subject.contract, attempted=False)
        clauses = tuple(likelihood_clauses(subject, PERPLEXITY, _extreme_perplexity_cases()))
        figures = {
            f"{row.name}_max_error": row.measured
            for row in clauses
            if not isinstance(row.measured, str)
        }
    return ContractReport(subject.contract, clauses, figures)


def _extreme_perplexity_cases() -> list[LikelihoodCase]:
    return [
        surprised_likelihood(1, 3, (30.0,)),
        surprised_likelihood(2, 4, (-60.0, 60.0)),
        surprised_likelihood(2, 3, (300.0,)),
        surprised_likelihood(1, 4, (600.0, 0.0)),
        surprised_likelihood(1, 4, (0.0, 900.0, 0.0)),
        surprised_likelihood(2, 4, (2.0, 1.0), level=10000.0),
        surprised_likelihood(2, 4, (2.0, 1.0), level=-10000.0),
    ]


def _explain_perplexity(subject: ContractSubject) -> Diagnosis:
    explain = partial(
        explain_likelihood,
        asked=PERPLEXITY,
        catalogue=PERPLEXITY_MISTAKES,
        reference=mistaken_perplexity(),
        surprises=((2, 4, (250.0,)), (1, 2, (250.0,)), (1, 51, (250.0, *[0.0] * 49))),
    )
    return explain(subject)
