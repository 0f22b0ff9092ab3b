"""The contract of a parameter count: every number once, whoever shares it."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from course_lib.contracts.count.mistakes import PARAMETER_COUNT_MISTAKES
from course_lib.contracts.count.modules import ModuleCall, probes
from course_lib.contracts.engine.candidate import Breach, call_candidate, is_stub
from course_lib.contracts.engine.clause import Clause, Contract
from course_lib.contracts.engine.diagnosis import by_catalogue
from course_lib.contracts.engine.subject import Subject, Terms
from course_lib.report import ContractReport, Mismatch
from course_lib.text import say

# fmt: off
_FACTS = {
    "not_integer":
        "the result is a {came}, not an integer | результат имеет тип {came}, а нужно целое число",
    "wrong": "{came} counted where {wanted} are right: {difference:+d} | "
    "сосчитано {came}, а верно {wanted}: {difference:+d}",
    "remembered": "after another module was counted, this one gives {came} instead of {wanted} | "
    "после подсчёта другого модуля этот даёт {came} вместо {wanted}",
    "grown": "the module got one more Parameter, of 2 numbers: {came} counted, {wanted} are right "
    "| в модуль добавлен ещё один параметр из 2 чисел: сосчитано {came}, а верно {wanted}",
    "changed": "counting changed the module: {part} | подсчёт изменил модуль: {part}",
    "kept": "unchanged | без изменений",
    "frozen_in":
        "frozen parameters (requires_grad=False) are counted; counting them or not is up to you | "
        "замороженные параметры (requires_grad=False) сосчитаны; считать их или нет, решаете вы",
    "frozen_out":
        "frozen parameters (requires_grad=False) are left out; counting them or not is up to you | "
        "замороженные параметры (requires_grad=False) не сосчитаны; считать их или нет, решаете вы",
}
# fmt: on


def count_by_walking(module: nn.Module) -> int:
    """Walk the tree of modules and multiply the sizes, with a list of what was seen."""
    seen, total, waiting = set(), 0, [module]
    while waiting:
        found = waiting.pop()
        for parameter in found._parameters.values():
            if parameter is not None and id(parameter) not in seen:
                seen.add(id(parameter))
                product = 1
                for size in parameter.shape:
                    product *= int(size)
                total += product
        waiting += [child for child in found._modules.values() if child is not None]
    return total


def count_by_library(module: nn.Module) -> int:
    """Let torch list the parameters and count each one's elements."""
    return sum(parameter.numel() for parameter in module.parameters())


def _count(subject: Subject, module: nn.Module) -> int:
    """Call the candidate; breach unless an integer comes back."""
    count = call_candidate(subject.candidate, module)
    try:
        if not isinstance(count, bool):
            return count.__index__()
    except (AttributeError, TypeError):
        pass  # a float has no __index__, a tensor of floats has one that refuses
    came = type(count).__name__
    facts = say(_FACTS["not_integer"], came=came)
    raise Breach("not integer", came, "int", facts=facts, clause="result_form")


def _right(module: nn.Module) -> int:
    """Both references must agree with each other."""
    right = count_by_walking(module)
    if right != count_by_library(module):
        raise RuntimeError(f"the two references for the parameter count disagree on {module}")
    return right


def _compare(came: int, wanted: int, fact: str) -> None:
    if came != wanted:
        text = say(_FACTS[fact], came=came, wanted=wanted, difference=came - wanted)
        wrong = (Mismatch("count", (), came, wanted),)
        raise Breach(fact, str(came), str(wanted), mismatches=wrong, facts=text)


def _formed(subject: Subject, call: ModuleCall, allowed: float) -> None:
    _count(subject, call.module())


def _counted(subject: Subject, call: ModuleCall, allowed: float) -> None:
    module = call.module()
    wanted = _right(module)
    _compare(_count(subject, module), wanted, "wrong")


def _again(subject: Subject, call: ModuleCall, allowed: float) -> None:
    """Another module in between changes nothing, and counting leaves the module as it was."""
    module = call.module()
    for number, part in enumerate(module.modules()):
        part.training = number % 2 == 0
    before = copy.deepcopy(_state(module))
    wanted = _right(module)
    _compare(_count(subject, module), wanted, "wrong")
    other = ModuleCall((*call.parts, "linear"), 2).module()
    _compare(_count(subject, other), _right(other), "wrong")
    larger = ModuleCall(call.parts, 3).module()
    _compare(_count(subject, larger), _right(larger), "remembered")
    _compare(_count(subject, module), wanted, "remembered")
    _compare_state(module, before)
    module.register_parameter("later", nn.Parameter(torch.zeros(2)))
    _compare(_count(subject, module), wanted + 2, "grown")
    frozen = call.module().requires_grad_(False)
    before = copy.deepcopy(_state(frozen))
    _count(subject, frozen)
    _compare_state(frozen, before)


def _compare_state(module: nn.Module, before: dict[str, Any]) -> None:
    after = _state(module)
    for part, value in before.items():
        if after[part] != value:
            facts = say(_FACTS["changed"], part=part)
            raise Breach("changed", part, say(_FACTS["kept"]), facts=facts)


def _state(module: nn.Module) -> dict[str, Any]:
    """What counting must not touch, by name."""
    named = dict(module.named_parameters(remove_duplicate=False))
    owners = {name: id(parameter) for name, parameter in named.items()}
    return {
        "Parameters": owners,
        "dtypes": {name: str(parameter.dtype) for name, parameter in named.items()},
        "shapes": {name: list(parameter.shape) for name, parameter in named.items()},
        "requires_grad": {name: parameter.requires_grad for name, parameter in named.items()},
        "grad": {name: parameter.grad is None for name, parameter in named.items()},
        "training": [found.training for found in module.modules()],
        "state_dict": {name: value.tolist() for name, value in module.state_dict().items()},
    }


def _frozen_counted(subject: Subject) -> bool:
    frozen = nn.Linear(3, 2, bias=False).requires_grad_(False)
    try:
        return _count(subject, frozen) == 6
    except Breach:  # a count may refuse what is frozen
        return False


def _figures(subject: Subject, measured: dict[str, Any]) -> dict[str, float]:
    """The tied and the untied count of one model, and whether frozen numbers count."""
    return {
        "tied_count": _count(subject, ModuleCall(("tied",)).module()),
        "large_count": _count(subject, ModuleCall(("large",)).module()),
        "frozen_counted": float(_frozen_counted(subject)),
    }


def _notes(subject: Subject) -> list[str]:
    return [say(_FACTS["frozen_in" if _frozen_counted(subject) else "frozen_out"])]


def _observe(count_parameters: Callable[..., Any], options: Mapping[str, Any]) -> None:
    if is_stub(count_parameters, nn.Linear(2, 2)):
        raise NotImplementedError


def _each(*parts: str) -> list[ModuleCall]:
    return [ModuleCall((part,)) for part in parts]


def _clauses(subject: Subject) -> list[Clause]:
    simple = ("linear", "no_bias", "embedding", "norm", "conv", "attention", "nested")
    ordinary = (*simple, "own", "names")
    unusual = ("scalar", "list", "dict", "types", "empty", "gradient", "nothing", "untied")
    shared = ("tied", "module_twice", "two_names", "deep_share")
    buffered = ("batch_norm", "buffers", "hidden_buffers")
    every = [*_each(*ordinary, *unusual), ModuleCall(ordinary), ModuleCall(ordinary + unusual)]
    again = _each("nested", "tied", "buffers", "gradient")
    # fmt: off
    return [
        Clause("result_form", "an integer | целое число",
               _formed, _each("linear", "nothing", "norm")),
        Clause("every_parameter", "every number of every Parameter, at any depth | "
               "каждое число каждого параметра на любой глубине", _counted, every),
        Clause("shared_once", "a Parameter used in several places counts once | "
               "параметр, стоящий в нескольких местах, считается один раз",
               _counted, [*_each(*shared), ModuleCall(shared)]),
        Clause("equal_apart", "two Parameters are two, however alike they are | "
               "два параметра — это два, как бы они ни были похожи",
               _counted, _each("equals", "views")),
        Clause("no_buffers", "buffers and plain tensors are not parameters | "
               "буферы и простые тензоры — не параметры",
               _counted, [*_each(*buffered), ModuleCall(buffered)]),
        Clause("large_modules", "right beyond 32 bits and without memory (device meta) | "
               "верно за пределами 32 бит и без памяти (устройство meta)",
               _counted, _each("large", "large_tied", "large_two")),
        Clause("independent_results", "the same module, the same count; the module unchanged | "
               "тот же модуль — то же число; сам модуль не изменён", _again, again),
    ]
    # fmt: on


PARAMETER_COUNT = Contract(
    "parameter_count",
    Terms("count_parameters"),
    _clauses,
    by_catalogue(PARAMETER_COUNT_MISTAKES, probes, count_by_library),
    figures=_figures,
    notes=_notes,
    observe=_observe,
)


def check_parameter_count_contract(count_parameters: Callable[..., Any]) -> ContractReport:
    """Hold a count of parameters to what it must count, and how often.

        count_parameters(module) -> int, a Parameter in several places counts once

    Whether frozen parameters count is left open: the report says what was found.

    Raises:  ContractViolation when a clause is broken: with a small module and what was measured
    """
    return PARAMETER_COUNT.check(count_parameters)
