"""The contract of layer norm: every token by its own mean and its own biased variance."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from course_lib.contracts.engine.candidate import (
    ContractSubject,
    hold_clause,
    is_forward_only,
    is_stub,
    quiet_globals,
)
from course_lib.contracts.norm._layer_norm_behaviour import explain_norm
from course_lib.contracts.norm._layer_norm_case import NormCase, norm_case
from course_lib.contracts.norm._layer_norm_judge import (
    judge_norm,
    judge_norm_alone,
    judge_norm_by_hand,
    judge_norm_form,
    judge_norm_gradients,
    judge_norm_state,
    norm_by_hand,
)
from course_lib.report import ClauseResult, ContractReport

_NORM_MEANINGS = {
    "result_form": {
        "en": "a finite tensor of x's shape, as wide as x or wider",
        "ru": "конечный тензор формы x, не менее точный, чем x",
    },
    "arguments_unchanged": {
        "en": "the call leaves x, gain and bias as they were",
        "ru": "x, gain и bias после вызова прежние",
    },
    "repeatable": {
        "en": "the same call, the same result: nothing is remembered",
        "ru": "тот же вызов — тот же результат: ничего не запоминается",
    },
    "each_token_alone": {
        "en": "a token is normalised by its own numbers only",
        "ru": "токен нормализуется только по своим числам",
    },
    "known_rows": {
        "en": "rows worked out by hand: variance over d, eps in the root",
        "ru": "строки, посчитанные вручную: дисперсия по d, eps под корнем",
    },
    "gain_and_bias": {
        "en": "times gain, then plus bias, column by column",
        "ru": "умножить на gain, затем прибавить bias, по столбцам",
    },
    "default_eps": {
        "en": "without eps it is 1e-5",
        "ru": "если eps не задан, он равен 1e-5",
    },
    "any_eps": {
        "en": "eps is what the caller says, tiny or large",
        "ru": "eps такой, какой задан, хоть крошечный, хоть большой",
    },
    "constant_rows": {
        "en": "a token of equal numbers gives the bias",
        "ru": "токен из равных чисел даёт bias",
    },
    "any_shape": {
        "en": "any leading axes, any d, also 1, and equal sizes",
        "ru": "любые оси впереди, любой d (и 1), равные размеры",
    },
    "any_size": {
        "en": "numbers tiny and huge",
        "ru": "числа крошечные и огромные",
    },
    "large_mean": {
        "en": "a mean far above the spread: subtract, then square",
        "ru": "среднее много больше разброса: вычесть, потом в квадрат",
    },
    "float32_inputs": {
        "en": "float32 in: right to float32 accuracy",
        "ru": "вход float32: верно с точностью float32",
    },
    "float32_large_mean": {
        "en": "the same in float32: no cancellation",
        "ru": "то же в float32: без потери значащих цифр",
    },
    "gradients": {
        "en": "the gradients of x, gain and bias are right",
        "ru": "градиенты x, gain и bias верны",
    },
}


def check_layer_norm_contract(layer_norm: Callable[..., Any]) -> ContractReport:
    """Hold a layer norm to its formula, its gradients and its numerics.

        layer_norm(x [..., d], gain [d], bias [d], eps=1e-5) -> [..., d]
        gain · (x - mean) / √(variance + eps) + bias,   both over the last axis, variance over d

    A function that computes outside torch is not asked for gradients.

    Raises:  ContractViolation when a clause is broken: with a small input and what was measured
    """
    if not callable(layer_norm):
        raise TypeError(f"layer_norm must be a function, got {type(layer_norm).__name__}")
    subject = ContractSubject("check_layer_norm_contract", layer_norm, _NORM_MEANINGS, explain_norm)
    with quiet_globals():
        if is_stub(layer_norm, *norm_case(0, 2, 3).positional):
            return ContractReport(subject.contract, attempted=False)
        clauses = tuple(_norm_clauses(subject))
    errors = {clause.name: clause.measured for clause in clauses}
    figures = {
        "output_max_error": max(errors[n] for n in ("known_rows", "gain_and_bias", "any_shape")),
        "gradient_max_error": errors.get("gradients", float("nan")),
        "token_leak": errors["each_token_alone"],
        "large_mean_max_error": errors["large_mean"],
        "float32_max_error": errors["float32_inputs"],
    }
    unchecked = () if "gradients" in errors else ("gradients",)
    return ContractReport(subject.contract, clauses, figures, unchecked=unchecked)


def _norm_clauses(subject: ContractSubject) -> Iterator[ClauseResult]:
    """Run the clauses one by one, the ones that tell most about a mistake first."""
    hold = partial(hold_clause, subject)
    plain = [norm_case(1, 2, 3, 5), norm_case(2, 4, 6), norm_case(3, 2, 2, 3, 4, eps=0.2)]
    equal = [norm_case(4, 3, 3, 3), norm_case(5, 4, 4)]
    yield hold("result_form", None, judge_norm_form, plain)
    yield hold("arguments_unchanged", None, judge_norm_form, [*plain, *equal])
    yield hold("repeatable", 1e-12, judge_norm_state, plain[:2])
    yield hold("each_token_alone", 1e-9, judge_norm_alone, [*plain[:2], *equal])
    yield hold("known_rows", 1e-9, judge_norm_by_hand, norm_by_hand())
    for name, tolerance, cases in _norm_compared():
        yield hold(name, tolerance, partial(judge_norm, tolerance=tolerance), cases)
    if not is_forward_only(subject.candidate, *plain[0].positional):
        flat = norm_case(60, 3, 4)
        flat.x[1] = 2.0
        tracked = [plain[0], equal[0], plain[2], norm_case(61, 2, 3, 4, size=1e-3), flat]
        yield hold("gradients", 1e-8, judge_norm_gradients, tracked)


def _norm_compared() -> Iterator[tuple[str, float, list[NormCase]]]:
    """The clauses that compare results: name, tolerance, calls."""
    narrow = partial(norm_case, dtype=torch.float32)
    yield "gain_and_bias", 1e-9, [norm_case(10, 2, 3, 5, eps=0.1), norm_case(11, 3, 4, eps=1.0)]
    shapes = ((4,), (3, 2), (2, 3, 7), (2, 1, 3, 6), (3, 3, 3), (1, 1, 5), (5, 1), (2, 4, 1), (1,))
    shapes += ((70, 64), (1, 300), (1, 3, 4), (3, 50, 4), (2, 1, 2, 1, 3), (2, 1100))
    shaped = [norm_case(20 + n, *shape) for n, shape in enumerate(shapes)]
    shaped[-1].x[:, 700] = 900.0  # a spike is √d deviations high
    strided = replace(shaped[2], x=shaped[2].x.transpose(0, 1))
    yield (
        "default_eps",
        1e-9,
        [norm_case(40 + n, 2, 5, size=10.0**-n, offset=10.0**-n) for n in range(1, 7)],
    )
    sizes = ((1e-12, 1e-5), (1e-3, 0.01), (0.5, 1.0), (10.0, 0.3), (1e-7, 1.0), (1e-9, 1e-4))
    tuned = [
        norm_case(50 + n, 3, 4 + n, eps=eps, size=size, offset=size, by_name=n % 2 == 0)
        for n, (eps, size) in enumerate(sizes)
    ]
    yield "any_eps", 1e-8, tuned
    levels = (0.0, 7.0, -1000.0, 0.1)
    yield "constant_rows", 1e-9, [norm_case(80, 2, 6, size=0.0, offset=n) for n in levels]
    yield "any_shape", 1e-9, [*shaped, strided]
    huge = [norm_case(70 + n, 2, 6, size=10.0**n, offset=0.0) for n in (-30, -8, 4, 9, 100)]
    yield "any_size", 1e-9, huge
    far = [norm_case(85, 2, 6, offset=1e6), norm_case(86, 3, 5, offset=-3e6)]
    yield "large_mean", 1e-6, far
    single = [narrow(90, 2, 3, 5), narrow(91, 4, 8, size=30.0, eps=0.5)]
    single += [narrow(94, 2, 6, size=1e15, offset=0.0), narrow(95, 2, 6, size=1e-9)]
    single.append(narrow(96, 2, 3, 70))
    yield "float32_inputs", 2e-5, single
    near = [narrow(92, 2, 6, offset=5000.0), narrow(93, 3, 16, offset=-6000.0)]
    yield "float32_large_mean", 2e-2, near
