"""The contract of a text's log-likelihood: a sum by the chain rule, nothing clamped."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from course_lib.contracts.engine.candidate import (
    ContractSubject,
    hold_clause,
    is_stub,
    quiet_globals,
)
from course_lib.contracts.engine.diagnosis import Diagnosis, Probe, diagnose
from course_lib.contracts.likelihood._likelihood_case import LOG_LIKELIHOOD, LikelihoodCase
from course_lib.contracts.likelihood._likelihood_clauses import (
    likelihood_categorised,
    likelihood_probed,
)
from course_lib.contracts.likelihood._likelihood_inputs import (
    certain_likelihood,
    even_likelihood,
    of_dtype,
    random_likelihood,
    surprised_likelihood,
)
from course_lib.contracts.likelihood._likelihood_judge import (
    judge_likelihood,
    judge_likelihood_form,
    judge_likelihood_state,
)
from course_lib.contracts.likelihood.log_likelihood_mistakes import (
    LOG_LIKELIHOOD_MISTAKES,
    mistaken_log_likelihood,
)
from course_lib.report import ClauseResult, ContractReport

_LOG_LIKELIHOOD_MEANINGS = {
    "result_form": {
        "en": "one finite number: a float, or a tensor with no axes",
        "ru": "одно конечное число: float или тензор без осей",
    },
    "certain_model": {
        "en": "logits[t] that are sure of token t+1: log 1 = 0",
        "ru": "logits[t] уверены в токене t+1: log 1 = 0",
    },
    "uniform_model": {
        "en": "V equally likely tokens: -(T - 1) ln V",
        "ru": "V равновероятных токенов: -(T - 1) ln V",
    },
    "values": {
        "en": "the sum of log p(token t) over t ≥ 1, by two references",
        "ru": "сумма log p(токен t) по t ≥ 1, по двум эталонам",
    },
    "nothing_clamped": {
        "en": "a log-probability of -500 or -5000 stays as it is",
        "ru": "логарифм вероятности -500 или -5000 таким и остаётся",
    },
    "long_text": {
        "en": "thousands of tokens: still the sum, to 9 digits",
        "ru": "тысячи токенов: по-прежнему сумма, верны 9 цифр",
    },
    "float32_logits": {
        "en": "float32 logits are right to their rounding",
        "ru": "логиты float32: верно с точностью до их округления",
    },
    "independent_results": {
        "en": "the same call, the same result; arguments unchanged",
        "ru": "тот же вызов — тот же результат; аргументы не изменены",
    },
}


def check_log_likelihood_contract(exact_log_likelihood: Callable[..., Any]) -> ContractReport:
    """Hold a log-likelihood to the chain rule: the sum of log p(token t | before) over t ≥ 1.

        exact_log_likelihood(logits [T, V], token_ids [T]) -> float

    logits[t] predict token t + 1. Not demanded: T = 1, non-finite logits, more digits than the
    logits' dtype has.

    Shapes:  logits in float64 or float32; token_ids long
    Raises:  ContractViolation when a clause is broken: with a small call and what was measured
    """
    if not callable(exact_log_likelihood):
        came = type(exact_log_likelihood).__name__
        raise TypeError(f"exact_log_likelihood must be a function, got {came}")
    subject = ContractSubject(
        "check_log_likelihood_contract",
        exact_log_likelihood,
        _LOG_LIKELIHOOD_MEANINGS,
        _explain_log_likelihood,
    )
    with quiet_globals():
        if is_stub(exact_log_likelihood, *_one_text(even_likelihood(1, 3, 2, 0.0)).copies()):
            return ContractReport(subject.contract, attempted=False)
        clauses = tuple(_log_likelihood_clauses(subject))
        figures = {
            f"{row.name}_max_error": row.measured
            for row in clauses
            if not isinstance(row.measured, str)
        }
    return ContractReport(subject.contract, clauses, figures)


def _one_text(case: LikelihoodCase) -> LikelihoodCase:
    """The first row of a batch, without the batch's axis."""
    return LikelihoodCase(case.logits[0], case.token_ids[0])


def _log_likelihood_clauses(subject: ContractSubject) -> Iterator[ClauseResult]:
    hold = partial(hold_clause, subject)
    exactly = partial(judge_likelihood, asked=LOG_LIKELIHOOD, allowed=1e-6)
    certain = [_one_text(certain_likelihood(3, 1, *size)) for size in ((4, 5), (2, 3), (9, 7))]
    even = [
        _one_text(even_likelihood(1, *size)) for size in ((5, 3, 0.0), (2, 7, -3.0), (8, 2, 4.0))
    ]
    sizes = ((2, 2), (3, 5), (5, 3), (6, 6), (40, 11), (7, 1), (4, 300))
    plain = [_one_text(random_likelihood(n, 1, *size)) for n, size in enumerate(sizes)]
    extreme = [
        _one_text(surprised_likelihood(1, length, gaps, level))
        for length, gaps, level in (
            (3, (30.0, 0.0), 0.0),
            (2, (500.0,), 0.0),
            (4, (500.0, 2.0), 0.0),
            (3, (5000.0,), 0.0),
            (4, (60.0, -60.0, 1e5), 0.0),
            (4, (2.0, 1.0), 1e4),
            (4, (2.0, 1.0), -1e4),
        )
    ]
    long = [
        _one_text(random_likelihood(71, 1, 3000, 3)),
        _one_text(random_likelihood(72, 1, 5001, 5)),
    ]
    rounded = [of_dtype(case, torch.float32) for case in (*plain[:5], *extreme, long[0])]
    form = partial(judge_likelihood_form, asked=LOG_LIKELIHOOD)
    yield hold("result_form", None, form, plain[1:4])
    yield hold("certain_model", 1e-6, exactly, certain)
    yield hold("uniform_model", 1e-6, exactly, even)
    yield hold("values", 1e-6, exactly, plain)
    yield hold("nothing_clamped", 1e-6, exactly, extreme)
    yield hold("long_text", 1e-9, partial(exactly, allowed=1e-9), long)
    coarsely = partial(judge_likelihood, asked=LOG_LIKELIHOOD, allowed=2e-3)
    yield hold("float32_logits", 2e-3, coarsely, rounded)
    state = partial(
        judge_likelihood_state, asked=LOG_LIKELIHOOD, allowed=1e-9, between=_another_text
    )
    yield hold("independent_results", 1e-9, state, [plain[2], plain[4]])


def _another_text(case: LikelihoodCase) -> LikelihoodCase:
    return LikelihoodCase(-case.logits, case.token_ids.flip(-1))


def _explain_log_likelihood(subject: ContractSubject) -> Diagnosis:
    """Name the catalogued mistakes that give the candidate's numbers on fresh calls."""
    ordinary = [
        _one_text(case)
        for case in (
            random_likelihood(81, 1, 4, 5),
            random_likelihood(82, 1, 7, 3),
            random_likelihood(83, 1, 12, 6),
        )
    ]
    special = [
        _one_text(surprised_likelihood(1, 4, (6000.0,))),
        _one_text(surprised_likelihood(1, 51, (20.0,))),
        _one_text(surprised_likelihood(1, 4, (10.0,), level=5000.0)),
        *(_one_text(even_likelihood(1, 4, 5, level)) for level in (5000.0, -5000.0)),
    ]
    probes = [Probe(partial(likelihood_probed, case=case)) for case in ordinary]
    probes += [
        Probe(
            partial(likelihood_categorised, case=case, asked=LOG_LIKELIHOOD, plain=ordinary[0]),
            core=False,
        )
        for case in special
    ]
    long = _one_text(random_likelihood(84, 1, 4000, 4))
    close = partial(
        likelihood_categorised, case=long, asked=LOG_LIKELIHOOD, plain=ordinary[0], near=1e-9
    )
    probes.append(Probe(close, core=False))
    return diagnose(subject.candidate, LOG_LIKELIHOOD_MISTAKES, probes, mistaken_log_likelihood())
