"""The contract of layer norm: every token by its own mean and its own biased variance."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.call import Call
from course_lib.contracts.engine.clause import Clause, Contract, tracked
from course_lib.contracts.engine.diagnosis import by_catalogue
from course_lib.contracts.engine.judge import formed, right, slopes, steady, unless
from course_lib.contracts.engine.look import arguments_kept, gradients, outcome, probed
from course_lib.contracts.engine.read import tensor_like
from course_lib.contracts.engine.subject import Subject, Terms, wanted
from course_lib.contracts.engine.watch import Probe
from course_lib.contracts.norm.mistakes import LAYER_NORM_MISTAKES, mistaken_norm
from course_lib.contracts.norm.norms import (
    any_eps,
    any_shapes,
    between,
    by_hand,
    by_library,
    by_loops,
    direction,
    drawn,
    eps_of,
    right_gradients,
    rows_by_hand,
)
from course_lib.report import ContractReport
from course_lib.text import say

_LEAK = (
    "row {victim} was made 9, 10, … and row {row} answered: statistics mix tokens | "
    "строка {victim} заменена на 9, 10, …, а изменилась строка {row}: статистики смешивают токены"
)
_ALONE = (
    "row {row} given alone, as a vector [d], gives another result than inside the batch | "
    "строка {row}, поданная отдельно вектором [d], даёт не то, что внутри батча"
)
_MOMENTS = (
    "row {row}: (result - bias) / gain has mean {mean:.6g} and mean square {square:.6g}; they must "
    "be {want_mean:.6g} and {want_square:.6g} (x there: mean {at:.4g}, biased variance "
    "{variance:.6g}, eps {eps:g}) | "
    "строка {row}: у (результат - bias) / gain среднее {mean:.6g} и средний квадрат {square:.6g}; "
    "верно {want_mean:.6g} и {want_square:.6g} (x там: среднее {at:.4g}, смещённая дисперсия "
    "{variance:.6g}, eps {eps:g})"
)
_SLOPE = (
    "the result is right, but its gradient is not: the statistics depend on x too | "
    "результат верен, а его градиент — нет: статистики тоже зависят от x"
)
_FLAT = (
    "the gradient is not finite where all numbers of a token are equal: √0 has none | "
    "градиент не конечен там, где все числа токена равны: у √0 производной нет"
)


def _moments(call: Call, got: Tensor, want: Tensor, allowed: float) -> str:
    """What the first wrong row is like once gain and bias are taken off again."""
    d, gain, bias = call.x.shape[-1], call.gain.double(), call.bias.double()
    rows, true = got.double().reshape(-1, d), want.reshape(-1, d)
    wrong = ((rows - true).abs() > allowed * true.abs().clamp(min=1.0)).any(-1)
    row = int(wrong.int().argmax())
    if (gain == 0).any():
        return ""
    plain, right_one = ((each[row] - bias) / gain for each in (rows, true))
    x = call.x.double().reshape(-1, d)[row]
    return say(
        _MOMENTS,
        row=row,
        mean=plain.mean().item() + 0.0,
        square=plain.square().mean().item(),
        want_mean=round(right_one.mean().item(), 9) + 0.0,
        want_square=right_one.square().mean().item(),
        at=x.mean().item(),
        variance=x.var(correction=0).item(),
        eps=eps_of(call),
    )


def _alone(subject: Subject, call: Call, allowed: float) -> float:
    """Change one row: no other row may answer. A row alone gives what it gives in the batch."""
    d, worst = call.x.shape[-1], 0.0
    y = subject.value(call).reshape(-1, d)
    for victim in {0, len(y) - 1} if len(y) > 1 else ():
        x = call.x.clone().reshape(-1, d)
        x[victim] = 9 + torch.arange(d, dtype=x.dtype)
        keep = [row for row in range(len(y)) if row != victim]
        moved = subject.value(call.but(x=x.view_as(call.x))).reshape(-1, d)
        changed = ((moved - y)[keep].abs() > allowed).any(-1)
        told = say(_LEAK, victim=victim, row=keep[int(changed.int().argmax())])
        error = subject.compare(call, moved[keep], y[keep], allowed, kind="leaking", facts=told)
        worst = max(worst, error)
    row = len(y) // 2
    lonely = subject.value(call.but(x=call.x.reshape(-1, d)[row].clone()))
    told = say(_ALONE, row=row)
    return max(worst, subject.compare(call, lonely, y[row], allowed, kind="alone", facts=told))


def _declines(subject: Subject, call: Call) -> bool:
    """Whether it says, as some libraries do, that one number has no spread to divide by."""
    if call.x.shape[-1] > 1:
        return False
    try:
        outcome(call, subject.candidate)
    except ValueError:
        return True
    except Exception:
        return False
    return False


def _clauses(subject: Subject) -> list[Clause]:
    """What a layer norm must do, the clauses that tell most about a mistake first."""
    plain = [drawn(1, 2, 3, 5), drawn(2, 4, 6), drawn(3, 2, 2, 3, 4, eps=0.2)]
    equal = [drawn(4, 3, 3, 3), drawn(5, 4, 4)]
    scaled = [drawn(10, 2, 3, 5, eps=0.1), drawn(11, 3, 4, eps=1.0)]
    tiny = [drawn(40 + n, 2, 5, size=10.0**-n, offset=10.0**-n) for n in range(1, 7)]
    level = [drawn(80, 2, 6, size=0.0, offset=n) for n in (0.0, 7.0, -1000.0, 0.1)]
    huge = [drawn(70 + n, 2, 6, size=10.0**n, offset=0.0) for n in (-30, -8, 4, 9, 100)]
    far = [drawn(85, 2, 6, offset=1e6), drawn(86, 3, 5, offset=-3e6)]
    narrow = partial(drawn, dtype=torch.float32)
    single = [narrow(90, 2, 3, 5), narrow(91, 4, 8, size=30.0, eps=0.5), narrow(96, 2, 3, 70)]
    single += [narrow(94, 2, 6, size=1e15, offset=0.0), narrow(95, 2, 6, size=1e-9)]
    near = [narrow(92, 2, 6, offset=5000.0), narrow(93, 3, 16, offset=-6000.0)]
    flat = drawn(60, 3, 4)
    flat.x[1] = 2.0
    slanted = [plain[0], equal[0], plain[2], drawn(61, 2, 3, 4, size=1e-3), flat]
    valued = unless(_declines, right)
    sloped = slopes(right_gradients, direction, wrong=_SLOPE, infinite=_FLAT)
    # fmt: off
    return [
        Clause("result_form", "a finite tensor of x's shape, as wide as x or wider | "
               "конечный тензор формы x, не менее точный, чем x", formed, plain),
        Clause("arguments_unchanged", "the call leaves x, gain and bias as they were | "
               "x, gain и bias после вызова прежние", formed, [*plain, *equal]),
        Clause("repeatable", "the same call, the same result: nothing is remembered | "
               "тот же вызов — тот же результат: ничего не запоминается", steady, plain[:2], 1e-12),
        Clause("each_token_alone", "a token is normalised by its own numbers only | "
               "токен нормализуется только по своим числам", _alone, [*plain[:2], *equal], 1e-9),
        Clause("known_rows", "rows worked out by hand: variance over d, eps in the root | "
               "строки, посчитанные вручную: дисперсия по d, eps под корнем",
               valued, rows_by_hand(), 1e-9),
        Clause("gain_and_bias", "times gain, then plus bias, column by column | "
               "умножить на gain, затем прибавить bias, по столбцам", valued, scaled, 1e-9),
        Clause("default_eps", "without eps it is 1e-5 | если eps не задан, он равен 1e-5",
               valued, tiny, 1e-9),
        Clause("any_eps", "eps is what the caller says, tiny or large | "
               "eps такой, какой задан, хоть крошечный, хоть большой", valued, any_eps(), 1e-8),
        Clause("constant_rows", "a token of equal numbers gives the bias | "
               "токен из равных чисел даёт bias", valued, level, 1e-9),
        Clause("any_shape", "any leading axes, any d, also 1, and equal sizes | "
               "любые оси впереди, любой d (и 1), равные размеры", valued, any_shapes(), 1e-9),
        Clause("any_size", "numbers tiny and huge | числа крошечные и огромные",
               valued, huge, 1e-9),
        Clause("large_mean", "a mean far above the spread: subtract, then square | "
               "среднее много больше разброса: вычесть, потом в квадрат", valued, far, 1e-6),
        Clause("float32_inputs", "float32 in: right to float32 accuracy | "
               "вход float32: верно с точностью float32", valued, single, 2e-5),
        Clause("float32_large_mean", "the same in float32: no cancellation | "
               "то же в float32: без потери значащих цифр", valued, near, 2e-2),
        Clause("gradients", "the gradients of x, gain and bias are right | "
               "градиенты x, gain и bias верны", sloped, slanted, 1e-8, when=tracked),
    ]
    # fmt: on


def _flat_slope(call: Call, norm: Callable[..., Any]) -> str:
    """Whether the gradient is finite at a token of equal numbers, where it is right elsewhere."""
    flat = call.but(x=call.x.clone())
    flat.x[0] = 3.0
    try:
        usual, found = (gradients(direction)(each, norm)[0] for each in (call, flat))
        fine = torch.allclose(outcome(flat, norm), wanted(_TERMS, flat))
        if not fine or not torch.allclose(usual, right_gradients(call)["x"]):
            return "wrong elsewhere too"
    except Exception:
        return "wrong elsewhere too"
    return "finite" if found.isfinite().all() else "not finite"


def _far_mean(call: Call, norm: Callable[..., Any]) -> str:
    """Whether a large mean spoils the spread, and only that, where a small one does not."""
    near = call.but(x=call.x - call.x.mean())
    if not (outcome(near, norm) - wanted(_TERMS, near)).abs().max() <= 1e-9:
        return "wrong near too"
    got, want = outcome(call, norm), wanted(_TERMS, call)
    if torch.allclose(got, want, atol=1e-5):
        return "right"
    pull, right_pull = ((each - call.bias) / call.gain for each in (got, want))
    along = torch.cosine_similarity(pull, right_pull, dim=-1)
    times = pull.norm(dim=-1) / right_pull.norm(dim=-1)
    if (along < 1 - 1e-7).any() or times.max() - times.min() < 1e-4 * times.max():
        return "other numbers"  # rounding spoils each token in its own way
    return "another spread"


def _probes(subject: Subject) -> list[Probe]:
    ordinary = [drawn(201, 2, 3, 5, size=1.5, offset=0.7), drawn(202, 2, 4, 6, eps=0.3)]
    ordinary += [drawn(203, 2, 3, 4, size=2e-3), drawn(211, 2, 3, 5, size=1e-3, eps=0.5)]
    ordinary.insert(3, drawn(204, 3, 2, 7, size=5e-3, eps=1e-4, named=("eps",)))
    other = [drawn(205, 3, 6), drawn(206, 2, 3, 2, 4), drawn(207, 5)]
    return [
        *probed(*ordinary),
        *probed(*other, core=False),
        *probed(ordinary[0], look=gradients(direction), core=False),
        *probed(drawn(209, 2, 4), look=_flat_slope, core=False),
        *probed(drawn(210, 2, 3, 4), look=arguments_kept, core=False),
        *probed(drawn(208, 2, 8, offset=2e6), look=_far_mean, core=False),
    ]


_TERMS = Terms(
    "layer_norm",
    (by_loops, by_library, by_hand),
    tensor_like("x"),
    between=between,
    facts=_moments,
    agree=1e-8,
    differentiable=True,
)
LAYER_NORM = Contract(
    "layer_norm",
    _TERMS,
    _clauses,
    by_catalogue(LAYER_NORM_MISTAKES, _probes, mistaken_norm()),
    figures={
        "output_max_error": ("known_rows", "gain_and_bias", "any_shape"),
        "gradient_max_error": "gradients",
        "token_leak": "each_token_alone",
        "large_mean_max_error": "large_mean",
        "float32_max_error": "float32_inputs",
    },
)


def check_layer_norm_contract(layer_norm: Callable[..., Any]) -> ContractReport:
    """Hold a layer norm to its formula, its gradients and its numerics.

        layer_norm(x [..., d], gain [d], bias [d], eps=1e-5) -> [..., d]
        gain · (x - mean) / √(variance + eps) + bias,   both over the last axis, variance over d

    A function that computes outside torch is not asked for gradients.

    Raises:  ContractViolation when a clause is broken: with a small input and what was measured
    """
    return LAYER_NORM.check(layer_norm)
