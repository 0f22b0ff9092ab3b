"""Judge one call of a layer norm: its form, its numbers, its gradients, what it leaves alone."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.candidate import (
    Breach,
    ContractSubject,
    call_candidate,
    finite_wanted,
)
from course_lib.contracts.norm._layer_norm_case import (
    NormCase,
    norm_case,
    norm_direction,
    norm_gradients,
    norm_truth,
)
from course_lib.report import Mismatch
from course_lib.text import localized

_NORM_FACTS = {
    "not_tensor": {
        "en": "the result is a {came}, not a torch.Tensor",
        "ru": "результат имеет тип {came}, а нужен torch.Tensor",
    },
    "shape": {
        "en": "the result has shape {came}, x has {wanted}",
        "ru": "у результата форма {came}, а у x — {wanted}",
    },
    "dtype": {
        "en": "the result is {came}, narrower than x or not a float",
        "ru": "результат имеет тип {came}: он менее точен, чем тип x, или не с плавающей точкой",
    },
    "float_or_wider": {"en": "{given} or wider", "ru": "{given} или шире"},
    "not_finite": {
        "en": "{count} of {size} numbers are NaN or infinite",
        "ru": "NaN или бесконечности: {count} из {size} чисел",
    },
    "changed": {
        "en": "after the call `{name}` holds other numbers than before",
        "ru": "после вызова в `{name}` другие числа, чем до него",
    },
    "changed_argument": {"en": "{name} changed", "ru": "изменился {name}"},
    "unchanged": {"en": "unchanged", "ru": "без изменений"},
    "moments": {
        "en": "row {row}: (result - bias) / gain has mean {mean:.6g} and mean square {square:.6g}; "
        "they must be {want_mean:.6g} and {want_square:.6g} (x there: mean {at:.4g}, biased "
        "variance {variance:.6g}, eps {eps:g})",
        "ru": "строка {row}: у (результат - bias) / gain среднее {mean:.6g} и средний квадрат "
        "{square:.6g}; верно {want_mean:.6g} и {want_square:.6g} (x там: среднее {at:.4g}, "
        "смещённая дисперсия {variance:.6g}, eps {eps:g})",
    },
    "leak": {
        "en": "row {victim} was made 9, 10, … and row {row} answered: statistics mix tokens",
        "ru": (
            "строка {victim} заменена на 9, 10, …, а изменилась строка {row}: статистики "
            "смешивают токены"
        ),
    },
    "alone": {
        "en": "row {row} given alone, as a vector [d], gives another result than inside the batch",
        "ru": "строка {row}, поданная отдельно вектором [d], даёт не то, что внутри пакета",
    },
    "again": {
        "en": "the same call gave another result after other calls",
        "ru": "тот же вызов после других вызовов дал другой результат",
    },
    "untracked": {
        "en": "right while gradients are recorded, but another result under torch.no_grad()",
        "ru": "верно, пока записываются градиенты, а под torch.no_grad() результат другой",
    },
    "no_gradient": {
        "en": "no gradient reaches {name}: the graph is cut (detach, no_grad, .data, a new tensor)",
        "ru": "градиент не доходит до {name}: граф разорван (detach, no_grad, .data, новый тензор)",
    },
    "gradient": {
        "en": "the result is right, but its gradient is not: the statistics depend on x too",
        "ru": "результат верен, а его градиент — нет: статистики тоже зависят от x",
    },
    "flat_gradient": {
        "en": "the gradient is not finite where all numbers of a token are equal: √0 has none",
        "ru": "градиент не конечен там, где все числа токена равны: у √0 производной нет",
    },
}

# x, eps and the result without gain and bias: means, variances and roots that come out even.
_NORM_BY_HAND = (
    ((1.0, -1.0), 3.0, (0.5, -0.5)),
    ((3.0, 1.0, 1.0, -1.0), 2.0, (1.0, 0.0, 0.0, -1.0)),
    ((5.0, 5.0, -1.0), 1.0, (2 / 3, 2 / 3, -4 / 3)),
)
_NORM_WIDTHS = {torch.float16: 1, torch.bfloat16: 1, torch.float32: 2, torch.float64: 3}


def norm_by_hand() -> list[NormCase]:
    """The calls whose results were worked out by hand."""
    return [
        NormCase(
            torch.tensor(x, dtype=torch.float64),
            torch.ones(len(x), dtype=torch.float64),
            torch.zeros(len(x), dtype=torch.float64),
            eps,
        )
        for x, eps, _ in _NORM_BY_HAND
    ]


def norm_call(subject: ContractSubject, case: NormCase) -> Tensor:
    """Call the candidate; breach unless a finite tensor like x comes back and nothing changed."""
    before = [tensor.clone() for tensor in case.positional[:3]]
    result = call_candidate(subject.candidate, *case.positional, **case.keywords)
    for name, now, then in zip(("x", "gain", "bias"), case.positional, before, strict=False):
        if now.shape != then.shape or not torch.equal(now, then):
            if now.shape == then.shape:
                now.copy_(then)
            raise Breach(
                "changed",
                localized(_NORM_FACTS["changed_argument"], name=name),
                localized(_NORM_FACTS["unchanged"]),
                facts=localized(_NORM_FACTS["changed"], name=name),
                clause="arguments_unchanged",
            )
    if not isinstance(result, Tensor):
        raise _norm_malformed("not_tensor", came=type(result).__name__, wanted="torch.Tensor")
    if result.shape != case.x.shape:
        raise _norm_malformed("shape", came=list(result.shape), wanted=list(case.x.shape))
    if _NORM_WIDTHS.get(result.dtype, 0) < _NORM_WIDTHS[case.x.dtype]:
        wanted = localized(_NORM_FACTS["float_or_wider"], given=case.x.dtype)
        raise _norm_malformed("dtype", came=result.dtype, wanted=wanted)
    return result


def norm_finite(name: str, value: Tensor, clause: str = "", fact: str = "") -> Tensor:
    """Breach on NaN and infinities."""
    fine = torch.isfinite(value)
    if fine.all():
        return value.detach()
    place, count = tuple((~fine).nonzero()[0].tolist()), int((~fine).sum())
    text = localized(_NORM_FACTS["not_finite"], count=count, size=value.numel())
    facts = "; ".join([text, localized(_NORM_FACTS[fact])] if fact else [text])
    got, wanted = value[place].item(), finite_wanted()
    places = (Mismatch(name, place, got, wanted),)
    raise Breach("not finite", str(got), wanted, mismatches=places, facts=facts, clause=clause)


def norm_compare(
    name: str,
    got: Tensor,
    want: Tensor,
    tolerance: float,
    facts: str | Callable[[], str] = "",
    kind: str = "wrong",
) -> float:
    """Return the largest error, relative above 1; breach when it is over the tolerance."""
    got, want = got.double(), want.double()
    error = (got - want).abs() / want.abs().clamp(min=1.0)
    worst = error.max().item()
    if worst <= tolerance:
        return worst
    places = [tuple(place) for place in (error > tolerance).nonzero()[:3].tolist()]
    mismatches = tuple(Mismatch(name, p, got[p].item(), want[p].item()) for p in places)
    raise Breach(f"{kind} {name}", worst, tolerance, mismatches=mismatches, facts=facts)


def _norm_malformed(fact: str, **values: Any) -> Breach:
    text = localized(_NORM_FACTS[fact], **values)
    came, wanted = str(values["came"]), str(values["wanted"])
    return Breach(fact, came, wanted, facts=text, clause="result_form")


def _norm_moments(case: NormCase, got: Tensor, want: Tensor, tolerance: float) -> str:
    """What the first wrong row is like once gain and bias are taken off again."""
    d = case.x.shape[-1]
    rows, right = got.double().reshape(-1, d), want.reshape(-1, d)
    wrong = ((rows - right).abs() > tolerance * right.abs().clamp(min=1.0)).any(-1)
    row = int(wrong.nonzero()[0]) if wrong.any() else 0
    gain, bias = case.gain.double(), case.bias.double()
    if (gain == 0).any():
        return ""
    plain, true = (rows[row] - bias) / gain, (right[row] - bias) / gain
    x = case.x.double().reshape(-1, d)[row]
    return localized(
        _NORM_FACTS["moments"],
        row=row,
        mean=plain.mean().item() + 0.0,
        square=plain.square().mean().item(),
        want_mean=round(true.mean().item(), 9) + 0.0,
        want_square=true.square().mean().item(),
        at=x.mean().item(),
        variance=x.var(unbiased=False).item(),
        eps=case.real_eps,
    )


def judge_norm_form(subject: ContractSubject, case: NormCase) -> float:
    """The call returns what it must and leaves its arguments alone."""
    norm_finite("result", norm_call(subject, case), "result_form")
    return 0.0


def judge_norm(subject: ContractSubject, case: NormCase, *, tolerance: float) -> float:
    """Compare the result with the references, with gradients recorded and without."""
    if case.x.shape[-1] == 1 and _norm_declines(subject, case):
        return 0.0
    want = norm_truth(case)
    got = norm_finite("result", norm_call(subject, case))
    facts = partial(_norm_moments, case, got, want, tolerance)
    worst = norm_compare("result", got, want, tolerance, facts)
    with torch.no_grad():
        got = norm_finite("result", norm_call(subject, case))
    facts = localized(_NORM_FACTS["untracked"])
    return max(worst, norm_compare("result", got, want, tolerance, facts, "untracked"))


def _norm_declines(subject: ContractSubject, case: NormCase) -> bool:
    """Tell whether it says, as some libraries do, that one number has no spread to divide by."""
    try:
        subject.candidate(*case.positional, **case.keywords)
    except ValueError:
        return True
    except Exception:
        return False
    return False


def judge_norm_by_hand(subject: ContractSubject, case: NormCase) -> float:
    """The references must give the rows done by hand, and the candidate what they give."""
    for known, (_, _, y) in zip(norm_by_hand(), _NORM_BY_HAND, strict=True):
        if not (norm_truth(known) - torch.tensor(y, dtype=torch.float64)).abs().max() <= 1e-12:
            raise RuntimeError("the references for layer norm disagree with the rows by hand")
    return judge_norm(subject, case, tolerance=1e-9)


def judge_norm_alone(subject: ContractSubject, case: NormCase) -> float:
    """Change one row: no other row may answer. A row alone gives what it gives in the batch."""
    d, worst = case.x.shape[-1], 0.0
    y = norm_finite("result", norm_call(subject, case)).reshape(-1, d)
    for victim in {0, len(y) - 1} if len(y) > 1 else ():
        other = case.x.clone().reshape(-1, d)
        other[victim] = 9 + torch.arange(d, dtype=other.dtype)
        moved = norm_call(subject, replace(case, x=other.reshape(case.x.shape)))
        moved = norm_finite("result", moved).reshape(-1, d)
        keep = [row for row in range(len(y)) if row != victim]
        changed = ((moved - y)[keep].abs() > 1e-9).any(-1)
        row = keep[int(changed.nonzero()[0])] if changed.any() else 0
        facts = localized(_NORM_FACTS["leak"], victim=victim, row=row)
        error = norm_compare("result", moved[keep], y[keep], 1e-9, facts, "leaking")
        worst = max(worst, error)
    row = len(y) // 2
    alone = norm_call(subject, replace(case, x=case.x.reshape(-1, d)[row].clone()))
    facts = localized(_NORM_FACTS["alone"], row=row)
    return max(worst, norm_compare("result", alone.detach(), y[row], 1e-9, facts, "alone"))


def judge_norm_state(subject: ContractSubject, case: NormCase) -> float:
    """The same call, then others in between, then the same call once more."""
    first = norm_finite("result", norm_call(subject, case)).clone()
    held = norm_call(subject, case)
    facts = localized(_NORM_FACTS["again"])
    worst = norm_compare("result", held.detach(), first, 1e-12, facts, "again")
    norm_call(subject, norm_case(97, *case.x.shape, size=20.0, offset=5.0))
    norm_call(subject, norm_case(98, 4, case.x.shape[-1] + 1, eps=0.7))
    norm_call(subject, replace(case, eps=2.0))
    worst = max(worst, norm_compare("result", held.detach(), first, 1e-12, facts, "again"))
    again = norm_call(subject, case)
    return max(worst, norm_compare("result", again.detach(), first, 1e-12, facts, "again"))


def judge_norm_gradients(subject: ContractSubject, case: NormCase) -> float:
    """The gradients of x, gain and bias, also where a token's numbers are all equal."""
    wanted = norm_gradients(case)
    leaves = [tensor.clone().requires_grad_() for tensor in case.positional[:3]]
    values = (*leaves, *case.positional[3:])
    result = call_candidate(subject.candidate, *values, **case.keywords)
    if not isinstance(result, Tensor) or result.shape != case.x.shape:
        came = list(result.shape) if isinstance(result, Tensor) else type(result).__name__
        raise _norm_malformed("shape", came=came, wanted=list(case.x.shape))
    loss = (result.double() * norm_direction(case.x.shape)).sum()
    found = [None] * 3
    if loss.requires_grad:
        try:
            found = torch.autograd.grad(loss, leaves, allow_unused=True)
        except RuntimeError as error:
            raise Breach("backward", "RuntimeError", "", facts=str(error)[:160]) from error
    worst = 0.0
    for name, got, want in zip(("x", "gain", "bias"), found, wanted, strict=True):
        if got is None:
            facts = localized(_NORM_FACTS["no_gradient"], name=name)
            raise Breach(f"no gradient {name}", "None", str(list(want.shape)), facts=facts)
        norm_finite(f"gradient of {name}", got, fact="flat_gradient")
        facts = localized(_NORM_FACTS["gradient"])
        worst = max(worst, norm_compare(f"gradient of {name}", got, want, 1e-8, facts))
    return worst
