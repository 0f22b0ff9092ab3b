"""Judge one call of multi-head attention: form, numbers, masks, memory, gradients."""

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.candidate import (
    Breach,
    ContractSubject,
    call_candidate,
    finite_wanted,
)
from course_lib.contracts.heads._multi_head_case import HeadsCase, heads_by_library
from course_lib.report import Mismatch
from course_lib.text import localized

_HEADS_FACTS = {
    "not_tensor": {
        "en": "the result is a {came}, not a torch.Tensor",
        "ru": "результат имеет тип {came}, а нужен torch.Tensor",
    },
    "shape": {
        "en": "the output has shape {came}, the input {wanted}",
        "ru": "у выхода форма {came}, у входа {wanted}",
    },
    "dtype": {
        "en": "the output is {came}, the input {wanted}",
        "ru": "выход имеет тип {came}, вход — {wanted}",
    },
    "not_finite": {
        "en": "rows {rows} of item {item} are not finite",
        "ru": "в строках {rows} элемента {item} есть NaN или бесконечности",
    },
    "changed_argument": {"en": "{name} changed", "ru": "изменён {name}"},
    "unchanged": {"en": "nothing changed", "ru": "без изменений"},
    "twice": {
        "en": "two calls in a row give different results",
        "ru": "два вызова подряд дают разные результаты",
    },
    "after_others": {
        "en": "after a call with other arguments the first call gives another result",
        "ru": "после вызова с другими аргументами повтор первого вызова даёт другой результат",
    },
    "overwritten": {
        "en": "a later call changed the tensor that an earlier call had returned",
        "ru": "следующий вызов изменил тензор, который вернул предыдущий",
    },
    "permuted": {
        "en": "the tokens were put in reverse order; the rows must follow",
        "ru": "токены взяты в обратном порядке; строки должны переставиться так же",
    },
    "future": {
        "en": "only the tokens after position {place} were changed",
        "ru": "изменены только токены после позиции {place}",
    },
    "content": {
        "en": "only the padding was changed",
        "ru": "изменено только дополнение",
    },
    "alone": {
        "en": "item {place}, given alone and without its padding, gives the expected numbers",
        "ru": "элемент {place}, взятый отдельно и без дополнения, даёт ожидаемые числа",
    },
    "detached": {
        "en": "the output is cut off from its inputs (detach, no_grad, .data)",
        "ru": "выход отрезан от входов (detach, no_grad, .data)",
    },
    "no_gradient": {
        "en": "no gradient reaches {name}",
        "ru": "градиент не доходит до {name}",
    },
}


def heads_takes(subject: ContractSubject, case: HeadsCase) -> bool:
    """Whether this is a call that the function knows; None and 16-bit numbers need not be."""
    try:
        subject.candidate(*case.positional, **case.keywords)
    except Exception:
        return False
    return True


def _heads_tracked(case: HeadsCase) -> HeadsCase:
    names = ("x", "w_q", "w_k", "w_v", "w_o")
    leaves = {name: getattr(case, name).detach().clone().requires_grad_() for name in names}
    return replace(case, **leaves)


def _heads_other(case: HeadsCase) -> HeadsCase:
    """Other numbers in a call of the same shape."""
    valid = None if case.token_valid is None else case.valid.flip(1)
    return replace(case, x=case.x.flip(1) + 1, w_v=-case.w_v, token_valid=valid)


def _heads_call(subject: ContractSubject, case: HeadsCase) -> Tensor:
    """Call the candidate; breach on a changed argument, a wrong form or a number not finite."""
    before = {n: v.clone() for n, v in case.arguments().items() if isinstance(v, Tensor)}
    output = call_candidate(subject.candidate, *case.positional, **case.keywords)
    for name, kept in before.items():
        value = getattr(case, name)
        if value.shape != kept.shape or not torch.equal(value, kept):
            if value.shape == kept.shape:
                value.copy_(kept)
            raise Breach(
                "changed",
                localized(_HEADS_FACTS["changed_argument"], name=name),
                localized(_HEADS_FACTS["unchanged"]),
                clause="arguments_unchanged",
            )
    _heads_check_form(case, output)
    return output.detach()


def _heads_check_form(case: HeadsCase, output: Any) -> None:
    if not isinstance(output, Tensor):
        raise _heads_malformed("not_tensor", came=type(output).__name__, wanted="torch.Tensor")
    if output.shape != case.x.shape:
        raise _heads_malformed("shape", came=list(output.shape), wanted=list(case.x.shape))
    if not output.is_floating_point() or output.dtype.itemsize < case.x.dtype.itemsize:
        raise _heads_malformed("dtype", came=output.dtype, wanted=case.x.dtype)
    broken = ~output.isfinite().all(-1)
    if broken.any():
        item = int(broken.any(-1).nonzero()[0])
        rows = broken[item].nonzero().flatten().tolist()
        text = localized(_HEADS_FACTS["not_finite"], rows=rows, item=item)
        index = (item, rows[0], 0)
        got = output[index].item()
        place = Mismatch("output", index, got, finite_wanted())
        raise Breach("not finite", str(got), finite_wanted(), mismatches=(place,), facts=text)


def _heads_malformed(fact: str, **values: Any) -> Breach:
    text = localized(_HEADS_FACTS[fact], **values)
    came, wanted = str(values["came"]), str(values["wanted"])
    return Breach(fact, came, wanted, facts=text, clause="result_form")


def _heads_compare(
    got: Tensor,
    want: Tensor,
    rows: Tensor,
    tolerance: float,
    facts: str = "",
    kind: str = "wrong",
    name: str = "output",
) -> float:
    """The largest error over the given rows [B, T]; breach when it is over the tolerance."""
    wide, want = got.double(), want.double()
    error = (wide - want).abs() / want.abs().clamp(min=1.0)
    error = torch.where(rows.unsqueeze(-1), error.nan_to_num(math.inf, math.inf), 0.0)
    worst = error.max().item()
    if worst <= tolerance:
        return worst
    places = [tuple(place) for place in (error > tolerance).nonzero()[:3].tolist()]
    mismatches = tuple(Mismatch(name, p, wide[p].item(), want[p].item()) for p in places)
    raise Breach(f"{kind} {name}", worst, tolerance, mismatches=mismatches, facts=facts)


def judge_heads_form(subject: ContractSubject, case: HeadsCase) -> float:
    """The call returns what it must, finite, and leaves its arguments alone."""
    _heads_call(subject, case)
    return 0.0


def judge_heads(subject: ContractSubject, case: HeadsCase, tolerance: float = 1e-10) -> float:
    """The rows of the real tokens equal both references."""
    return _heads_compare(_heads_call(subject, case), case.truth, case.valid, tolerance)


def judge_heads_state(subject: ContractSubject, case: HeadsCase) -> float:
    """A, A, B, A: same numbers each time, and nothing overwritten."""
    rows = torch.ones_like(case.valid)
    facts = {
        name: localized(_HEADS_FACTS[name]) for name in ("twice", "overwritten", "after_others")
    }

    def agree(got: Tensor, kind: str) -> float:
        return _heads_compare(got, kept, rows, 1e-12, facts[kind], kind)

    first = _heads_call(subject, case)
    kept = first.clone()
    agree(_heads_call(subject, case), "twice")
    _heads_call(subject, _heads_other(case))
    agree(first, "overwritten")
    return agree(_heads_call(subject, case), "after_others")


def judge_heads_order(subject: ContractSubject, case: HeadsCase) -> float:
    """Tokens in reverse order give rows in reverse order."""
    base = _heads_call(subject, case)
    turned = _heads_call(subject, replace(case, x=case.x.flip(1)))
    facts = localized(_HEADS_FACTS["permuted"])
    return _heads_compare(turned, base.flip(1), case.valid, 1e-6, facts)


def judge_heads_future(subject: ContractSubject, case: HeadsCase) -> float:
    """Changing the tokens after each position must leave the rows up to it as they were."""
    base, worst = _heads_call(subject, case), 0.0
    for place in range(case.x.shape[1] - 1):
        later = torch.arange(case.x.shape[1]) > place
        changed = torch.where(later[:, None], 3 - 2 * case.x, case.x)
        got = _heads_call(subject, replace(case, x=changed))
        facts = localized(_HEADS_FACTS["future"], place=place)
        worst = max(worst, _heads_compare(got, base, case.valid & ~later, 1e-6, facts))
    return worst


def judge_heads_content(subject: ContractSubject, case: HeadsCase) -> float:
    """Small, huge and swapped contents of the padding must give the same real rows."""
    base, worst = _heads_call(subject, case), 0.0
    facts = localized(_HEADS_FACTS["content"])
    for content in (torch.zeros_like(case.x), 50 * case.x.flip(1), 1e4 + 0 * case.x):
        changed = torch.where(case.valid.unsqueeze(-1), case.x, content)
        got = _heads_call(subject, replace(case, x=changed))
        worst = max(worst, _heads_compare(got, base, case.valid, 1e-6, facts))
    return worst


def judge_heads_alone(subject: ContractSubject, case: HeadsCase) -> float:
    """Each item alone, its padding cut off, against the same item in the batch."""
    together, worst = _heads_call(subject, case), 0.0
    for item, real in enumerate(case.valid):
        alone = replace(case, x=case.x[item : item + 1, real], token_valid=real[real].unsqueeze(0))
        expected = torch.zeros_like(together)
        expected[item, real] = _heads_call(subject, alone)[0].to(together.dtype)
        rows = torch.zeros_like(case.valid)
        rows[item] = real
        facts = localized(_HEADS_FACTS["alone"], place=item)
        worst = max(worst, _heads_compare(together, expected, rows, 1e-6, facts))
    return worst


def judge_heads_gradients(subject: ContractSubject, case: HeadsCase) -> float:
    """Gradients of the real rows; weights that the function copied away are left out."""
    names = ("x", "w_q", "w_k", "w_v", "w_o")
    given, library = _heads_tracked(case), _heads_tracked(case)
    output = call_candidate(subject.candidate, *given.positional, **given.keywords)
    _heads_check_form(case, output)
    if not output.requires_grad:
        text = localized(_HEADS_FACTS["detached"])
        raise Breach("detached", "requires_grad=False", "requires_grad=True", facts=text)
    weight = torch.linspace(-1, 1, output.numel(), dtype=torch.float64).reshape(output.shape)
    weight = weight * case.valid.unsqueeze(-1)
    leaves = [getattr(given, name) for name in names]
    got = call_candidate(torch.autograd.grad, (output * weight).sum(), leaves, allow_unused=True)
    truth = heads_by_library(library)
    want = torch.autograd.grad((truth * weight).sum(), [getattr(library, name) for name in names])
    full = {
        name: torch.zeros_like(right) if gradient is None else gradient
        for name, gradient, right in zip(names, got, want, strict=True)
    }
    if all(gradient is None for gradient in got[1:]):
        full = {"x": full["x"]}
    worst = 0.0
    for name in sorted(full, key=lambda name: bool(full[name].any())):
        facts = "" if full[name].any() else localized(_HEADS_FACTS["no_gradient"], name=name)
        right = want[names.index(name)]
        every = torch.ones(right.shape[:-1], dtype=torch.bool)
        error = _heads_compare(full[name], right, every, 1e-8, facts, name=f"{name}.grad")
        worst = max(worst, error)
    return worst
