"""The clauses that a mean loss and a perplexity share, and the calls on which they are named."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from course_lib.contracts.engine.candidate import ContractSubject, hold_clause
from course_lib.contracts.engine.diagnosis import Diagnosis, Probe, diagnose
from course_lib.contracts.engine.mistake import Mistake
from course_lib.contracts.likelihood._likelihood_case import (
    Likelihood,
    LikelihoodCase,
    likelihood_scale,
    likelihood_wanted,
    nats_by_loops,
)
from course_lib.contracts.likelihood._likelihood_inputs import (
    certain_likelihood,
    even_likelihood,
    masked_anywhere,
    of_dtype,
    random_likelihood,
    surprised_likelihood,
    zeros_likelihood,
)
from course_lib.contracts.likelihood._likelihood_judge import (
    judge_likelihood,
    judge_likelihood_form,
    judge_likelihood_state,
    judge_padding,
    judge_renaming,
    likelihood_number,
)
from course_lib.report import ClauseResult

LIKELIHOOD_MEANINGS = {
    "result_form": {
        "en": "one finite number: a float, or a tensor with no axes",
        "ru": "одно конечное число: float или тензор без осей",
    },
    "token_zero": {
        "en": "token 0 is like any other: renaming tokens changes nothing",
        "ru": "токен 0 такой же, как все: перенумерация ничего не меняет",
    },
    "padding": {
        "en": "what stands in the padding, and how much, changes nothing",
        "ru": "ни содержимое дополнения, ни его длина ничего не меняют",
    },
    "unequal_lengths": {
        "en": "every token weighs the same, in short rows and in long",
        "ru": "все токены весят одинаково в строках любой длины",
    },
    "padding_anywhere": {
        "en": "valid says what is padding, on the left and inside too",
        "ru": "дополнение указано в valid, даже слева или внутри",
    },
    "half_precision": {
        "en": "half-precision logits: finite, right to their rounding",
        "ru": "половинная точность: ответ конечен, верен до округления",
    },
    "independent_results": {
        "en": "the same call, the same result; arguments unchanged",
        "ru": "тот же вызов — тот же результат; аргументы не изменены",
    },
}


def likelihood_clauses(
    subject: ContractSubject, asked: Likelihood, extreme: Sequence[LikelihoodCase]
) -> Iterator[ClauseResult]:
    """Hold a mean over tokens to its clauses, simplest first."""
    hold = partial(hold_clause, subject)
    exactly = partial(judge_likelihood, asked=asked, allowed=1e-6)
    certain = [certain_likelihood(3, *size) for size in ((1, 5, 7), (2, 4, 5), (3, 3, 4))]
    even = [even_likelihood(*size) for size in ((1, 6, 5, 0.0), (2, 4, 7, -3.0), (3, 2, 3, 2.5))]
    sizes = ((1, 2, 2), (1, 6, 3), (2, 5, 7), (5, 2, 3), (4, 4, 4), (3, 40, 11), (2, 9, 1))
    sizes = (*sizes, (17, 3, 5), (1, 14, 300))
    plain = [random_likelihood(seed, *size) for seed, size in enumerate(sizes)]
    plain += [of_dtype(case, torch.float32) for case in plain[1:4]]
    padded = [
        random_likelihood(21, 1, 6, 5, (4,)),
        random_likelihood(22, 3, 7, 4, (5, 5, 5)),
        random_likelihood(23, 2, 5, 6, (2, 2)),
        random_likelihood(24, 2, 30, 3, (3, 3)),
        random_likelihood(25, 2, 4, 5, (4, 4)),
    ]
    unequal = [
        random_likelihood(31, 2, 5, 4, (5, 2)),
        random_likelihood(32, 3, 8, 5, (2, 8, 5)),
        random_likelihood(33, 3, 6, 4, (6, 1, 3)),
        of_dtype(random_likelihood(34, 4, 9, 6, (3, 9, 2, 7)), torch.float32),
    ]
    zeros = [zeros_likelihood(51, None), zeros_likelihood(52, (5, 5))]
    anywhere = [
        masked_anywhere([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]], 4),
        masked_anywhere([[0, 1, 1, 1], [0, 0, 1, 1], [1, 1, 1, 1]], 5),
        masked_anywhere([[1, 1, 0, 0, 1, 1], [0, 1, 1, 1, 1, 0]], 3),
        masked_anywhere([[0, 0, 0, 1, 1, 0], [0, 0, 1, 1, 0, 0]], 4),
        masked_anywhere([[1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 1]], 5),
    ]
    rounded = [
        of_dtype(case, torch.float16)
        for case in (plain[2], unequal[0], surprised_likelihood(2, 4, (30.0, 200.0)))
    ]
    yield hold("result_form", None, partial(judge_likelihood_form, asked=asked), plain[1:3])
    yield hold("certain_model", 1e-6, exactly, certain)
    yield hold("uniform_model", 1e-6, exactly, even)
    renamed = partial(judge_renaming, asked=asked, allowed=1e-6)
    yield hold("token_zero", 1e-6, renamed, zeros)
    yield hold("values", 1e-6, exactly, plain)
    yield hold("padding", 1e-6, partial(judge_padding, asked=asked, allowed=1e-6), padded)
    yield hold("unequal_lengths", 1e-6, exactly, unequal)
    yield hold("padding_anywhere", 1e-6, exactly, anywhere)
    yield hold("extreme_logits", 1e-6, exactly, extreme)
    coarse = partial(judge_likelihood, asked=asked, allowed=0.02)
    yield hold("half_precision", 0.02, coarse, rounded)
    state = partial(judge_likelihood_state, asked=asked, allowed=1e-6, between=_another_likelihood)
    yield hold("independent_results", 1e-6, state, [plain[2], padded[1], unequal[0]])


def _another_likelihood(case: LikelihoodCase) -> LikelihoodCase:
    """A call of the same sizes with other tokens, other logits and another mask."""
    valid = torch.ones_like(case.token_ids, dtype=torch.bool)
    if case.valid is None or bool(case.valid[..., -1].all()):
        valid[..., -1] = False
    if not bool(valid[..., 1:].any()):
        valid[..., -1] = True
    return LikelihoodCase(-case.logits, case.token_ids.flip(-1), valid)


def explain_likelihood(
    subject: ContractSubject,
    asked: Likelihood,
    catalogue: Sequence[Mistake],
    reference: Callable[..., float],
    surprises: Sequence[tuple[Any, ...]],
) -> Diagnosis:
    """Name the catalogued mistakes that give the candidate's numbers on fresh calls."""
    ordinary = [
        random_likelihood(61, 3, 6, 5),
        random_likelihood(62, 2, 9, 4),
        random_likelihood(63, 1, 5, 6),
        random_likelihood(64, 3, 8, 5, (8, 3, 5)),
        random_likelihood(65, 2, 7, 4, (4, 4)),
        zeros_likelihood(66, None),
    ]
    anywhere = masked_anywhere([[0, 0, 1, 1, 1, 1], [1, 1, 0, 1, 1, 1]], 5)
    probes = [Probe(partial(likelihood_probed, case=case)) for case in ordinary]
    probes += [
        Probe(partial(likelihood_probed, case=case), core=False)
        for case in (anywhere, even_likelihood(2, 5, 3, 1.0), zeros_likelihood(67, (5, 4)))
    ]
    probes += [
        Probe(
            partial(likelihood_categorised, case=case, asked=asked, plain=ordinary[2]), core=False
        )
        for case in (
            *(surprised_likelihood(*size, gaps) for *size, gaps in surprises),
            even_likelihood(2, 4, 5, 5000.0),
            even_likelihood(2, 4, 5, -5000.0),
            surprised_likelihood(2, 4, (10.0,), level=5000.0),
        )
    ]
    probes.append(Probe(partial(_likelihood_overwrites, case=ordinary[3]), core=False))
    probes.append(Probe(partial(_likelihood_between, case=ordinary[3]), core=False))
    return diagnose(subject.candidate, catalogue, probes, reference)


def likelihood_probed(candidate: Callable[..., Any], case: LikelihoodCase) -> Any:
    """The number itself."""
    number = likelihood_number(candidate(*case.copies()))
    return "no number" if number is None else number


def likelihood_categorised(
    candidate: Callable[..., Any],
    case: LikelihoodCase,
    asked: Likelihood,
    plain: LikelihoodCase,
    near: float = 1e-4,
) -> Any:
    """How an extreme answer fails; which floor or ceiling people choose does not matter.

    Of a candidate that is wrong in a plain call too, or in one with the same tokens and other
    logits, the number itself is what is observed.
    """
    try:
        got = likelihood_number(candidate(*case.copies()))
    except (ArithmeticError, ValueError):  # Python's own exp and log do not give infinities
        got = math.nan
    usual = likelihood_number(candidate(*plain.copies()))
    tame = replace(case, logits=torch.linspace(0, 1, case.logits.numel()).view_as(case.logits))
    again = likelihood_number(candidate(*tame.copies()))
    want = likelihood_wanted(case, asked, nats_by_loops)
    error = _error_of(got, case, asked) if got is not None and math.isfinite(got) else math.inf
    if error < near:
        return "right"
    known = usual is not None and again is not None and got is not None
    if not (known and max(_error_of(usual, plain, asked), _error_of(again, tame, asked)) < 1e-5):
        return ["wrong anyway", got]
    if not math.isfinite(got):
        return "not finite"
    if error < 1e-4:
        return "not precise"
    return "too small" if got < want else "too large"


def _error_of(got: float, case: LikelihoodCase, asked: Likelihood) -> float:
    want = likelihood_wanted(case, asked, nats_by_loops)
    return asked.misses(got, want, likelihood_scale(case))


def _likelihood_overwrites(candidate: Callable[..., Any], case: LikelihoodCase) -> list[bool]:
    """Whether each argument is still the same afterwards."""
    given = case.copies()
    candidate(*given)
    return [torch.equal(*pair) for pair in zip(given, case.copies(), strict=True)]


def _likelihood_between(candidate: Callable[..., Any], case: LikelihoodCase) -> list[Any]:
    """The same call before and after another one of the same sizes."""
    calls = (case, _another_likelihood(case), case)
    return [likelihood_number(candidate(*call.copies())) for call in calls]
