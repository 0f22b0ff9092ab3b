"""Judge one call of a block: its form, its result, its gradients, what its sublayers were given."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.block._block_case import (
    BLOCK_LAYERS,
    BlockCase,
    BlockLayer,
    BlockWatcher,
    block_case,
    block_direction,
    block_gradients,
    block_inputs,
    block_truth,
)
from course_lib.contracts.engine.candidate import (
    Breach,
    ContractSubject,
    call_candidate,
    finite_wanted,
)
from course_lib.report import Mismatch
from course_lib.text import localized

_BLOCK_FACTS = {
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
        "ru": "результат имеет тип {came}: он менее точен, чем тип x, или не вещественный",
    },
    "float_or_wider": {"en": "{given} or wider", "ru": "{given} или шире"},
    "not_finite": {
        "en": "{count} of {size} numbers are NaN or infinite",
        "ru": "NaN или бесконечности: {count} из {size} чисел",
    },
    "changed": {
        "en": "after the call x holds other numbers: the sum was written into it",
        "ru": "после вызова в x другие числа: сумма записана прямо в него",
    },
    "x_changed": {"en": "x changed", "ru": "x изменился"},
    "unchanged": {"en": "unchanged", "ru": "без изменений"},
    "never": {"en": "{name} was never called", "ru": "{name} ни разу не вызван"},
    "often": {"en": "{name} was called {count} times", "ru": "{name}: вызовов {count}"},
    "given": {"en": "{name} was not given {wanted}", "ru": "{name} получил не {wanted}"},
    "sum": {
        "en": "every sublayer was given the right input: what is returned is summed wrongly",
        "ru": "каждый подслой получил верный вход, но возвращаемое сложено неверно",
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
        "en": "the result is right, but the gradient of {name} is not: one of its ways is cut",
        "ru": "результат верен, а градиент {name} — нет: один из его путей оборван",
    },
}
_BLOCK_WANTED = ("x", "norm1(x)", "x + attend(norm1(x))", "norm2(x + attend(norm1(x)))")
_BLOCK_WIDTHS = {torch.float16: 1, torch.bfloat16: 1, torch.float32: 2, torch.float64: 3}


def block_call(subject: ContractSubject, case: BlockCase, layers: list[BlockWatcher]) -> Tensor:
    """Call the candidate; breach unless a tensor like x comes back and x is as it was."""
    before = case.x.clone()
    result = call_candidate(subject.candidate, case.x, *layers)
    if case.x.shape != before.shape or not torch.equal(case.x, before):
        if case.x.shape == before.shape:
            case.x.copy_(before)
        raise Breach(
            "changed",
            localized(_BLOCK_FACTS["x_changed"]),
            localized(_BLOCK_FACTS["unchanged"]),
            facts=localized(_BLOCK_FACTS["changed"]),
            clause="arguments_unchanged",
        )
    if not isinstance(result, Tensor):
        raise _block_malformed("not_tensor", came=type(result).__name__, wanted="torch.Tensor")
    if result.shape != case.x.shape:
        raise _block_malformed("shape", came=list(result.shape), wanted=list(case.x.shape))
    if _BLOCK_WIDTHS.get(result.dtype, 0) < _BLOCK_WIDTHS[case.x.dtype]:
        wanted = localized(_BLOCK_FACTS["float_or_wider"], given=case.x.dtype)
        raise _block_malformed("dtype", came=result.dtype, wanted=wanted)
    fine = torch.isfinite(result)
    if not fine.all():
        place, count = tuple((~fine).nonzero()[0].tolist()), int((~fine).sum())
        got = result[place].item()
        raise Breach(
            "not finite",
            str(got),
            finite_wanted(),
            mismatches=(Mismatch("result", place, got, finite_wanted()),),
            facts=localized(_BLOCK_FACTS["not_finite"], count=count, size=result.numel()),
            clause="result_form",
        )
    return result


def block_compare(
    name: str,
    got: Tensor,
    want: Tensor,
    tolerance: float,
    facts: str | Callable[[], str] = "",
    kind: str = "wrong",
) -> float:
    """Return the largest error, relative above 1; breach when it is over the tolerance."""
    got, want = got.detach().double(), want.double()
    error = (got - want).abs() / want.abs().clamp(min=1.0)
    worst = error.max().item()
    if worst <= tolerance:
        return worst
    places = [tuple(place) for place in (~(error <= tolerance)).nonzero()[:3].tolist()]
    mismatches = tuple(Mismatch(name, p, got[p].item(), want[p].item()) for p in places)
    raise Breach(f"{kind} {name}", worst, tolerance, mismatches=mismatches, facts=facts)


def _block_malformed(fact: str, **values: Any) -> Breach:
    text = localized(_BLOCK_FACTS[fact], **values)
    came, wanted = str(values["came"]), str(values["wanted"])
    return Breach(fact, came, wanted, facts=text, clause="result_form")


def _block_told(case: BlockCase, layers: list[BlockWatcher]) -> str:
    """What the sublayers saw: who was left out, called too often, or given something else."""
    told, lost = [], False
    wanted = zip(BLOCK_LAYERS, layers, block_inputs(case), _BLOCK_WANTED, strict=False)
    for name, layer, right, formula in wanted:
        if not layer.given:
            told.append(localized(_BLOCK_FACTS["never"], name=name))
        elif len(layer.given) > 1:
            told.append(localized(_BLOCK_FACTS["often"], name=name, count=len(layer.given)))
        elif not lost and not _block_alike(layer.given[0], right):
            lost = True  # and what comes after follows from it
            told.append(localized(_BLOCK_FACTS["given"], name=name, wanted=formula))
    return "; ".join(told or [localized(_BLOCK_FACTS["sum"])])


def _block_alike(given: Tensor, right: Tensor) -> bool:
    return given.shape == right.shape and torch.allclose(given.double(), right, 1e-5, 1e-7)


def judge_block_form(subject: ContractSubject, case: BlockCase) -> float:
    """The call returns what it must and leaves x alone."""
    block_call(subject, case, case.watched())
    return 0.0


def judge_block(subject: ContractSubject, case: BlockCase, *, tolerance: float) -> float:
    """Compare the result with the references, with gradients recorded and without."""
    want, layers = block_truth(case), case.watched()
    got = block_call(subject, case, layers)
    facts = partial(_block_told, case, layers)
    worst = block_compare("result", got, want, tolerance, facts)
    with torch.no_grad():
        got = block_call(subject, case, case.watched())
    facts = localized(_BLOCK_FACTS["untracked"])
    return max(worst, block_compare("result", got, want, tolerance, facts, "untracked"))


def judge_block_state(subject: ContractSubject, case: BlockCase) -> float:
    """The same call, then others in between, then the same call once more."""
    facts = localized(_BLOCK_FACTS["again"])
    held = block_call(subject, case, case.watched())
    first = held.detach().clone()
    again = block_call(subject, case, case.watched())
    worst = block_compare("result", again, first, 1e-12, facts, "again")
    block_call(subject, replace(case, x=case.x * 3 + 1), case.watched())
    other = block_case(97, *case.x.shape)
    block_call(subject, other, other.watched())
    other = block_case(98, 4, 2, case.x.shape[-1] + 1)
    block_call(subject, other, other.watched())
    worst = max(worst, block_compare("result", held, first, 1e-12, facts, "again"))
    again = block_call(subject, case, case.watched())
    return max(worst, block_compare("result", again, first, 1e-12, facts, "again"))


def judge_block_gradients(subject: ContractSubject, case: BlockCase) -> float:
    """The gradients of x and of what the sublayers hold, through both of their ways."""
    if any(layer.kind != "linear" for layer in case.layers):
        return 0.0
    wanted = block_gradients(case)
    leaves = [case.x.clone(), *(layer.matrix.clone() for layer in case.layers)]
    leaves = [leaf.requires_grad_() for leaf in leaves]
    layers = [BlockWatcher(BlockLayer("linear", leaf)) for leaf in leaves[1:]]
    result = call_candidate(subject.candidate, leaves[0], *layers)
    if not isinstance(result, Tensor) or result.shape != case.x.shape:
        came = list(result.shape) if isinstance(result, Tensor) else type(result).__name__
        raise _block_malformed("shape", came=came, wanted=list(case.x.shape))
    loss = (result.double() * block_direction(case.x.shape)).sum()
    found = [None] * len(leaves)
    if loss.requires_grad:
        try:
            found = torch.autograd.grad(loss, leaves, allow_unused=True)
        except RuntimeError as error:
            raise Breach("backward", "RuntimeError", "", facts=str(error)[:160]) from error
    worst = 0.0
    for name, got, want in zip(("x", *BLOCK_LAYERS), found, wanted, strict=True):
        if got is None:
            facts = localized(_BLOCK_FACTS["no_gradient"], name=name)
            raise Breach(f"no gradient {name}", "None", str(list(want.shape)), facts=facts)
        facts = localized(_BLOCK_FACTS["gradient"], name=name)
        worst = max(worst, block_compare(f"gradient of {name}", got, want, 1e-8, facts))
    return worst
