"""The contract of a parameter count: every number once, whoever shares it."""

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import nn

from course_lib.contracts.count._parameter_count_case import (
    CountCase,
    count_by_library,
    count_by_walking,
    explain_count,
)
from course_lib.contracts.engine.candidate import (
    Breach,
    ContractSubject,
    call_candidate,
    hold_clause,
    is_stub,
    quiet_globals,
)
from course_lib.contracts.engine.words import say
from course_lib.report import ClauseResult, ContractReport, Mismatch

_COUNT_MEANINGS = {
    "result_form": {"en": "an integer", "ru": "целое число"},
    "every_parameter": {
        "en": "every number of every Parameter, at any depth",
        "ru": "каждое число каждого параметра на любой глубине",
    },
    "shared_once": {
        "en": "a Parameter used in several places counts once",
        "ru": "параметр, стоящий в нескольких местах, считается один раз",
    },
    "equal_apart": {
        "en": "two Parameters are two, however alike they are",
        "ru": "два параметра — это два, как бы они ни были похожи",
    },
    "no_buffers": {
        "en": "buffers and plain tensors are not parameters",
        "ru": "буферы и простые тензоры — не параметры",
    },
    "large_modules": {
        "en": "right beyond 32 bits and without memory (device meta)",
        "ru": "верно за пределами 32 бит и без памяти (устройство meta)",
    },
    "independent_results": {
        "en": "the same module, the same count; the module unchanged",
        "ru": "тот же модуль — то же число; сам модуль не изменён",
    },
}

# fmt: off
_COUNT_FACTS = {
    "not_integer":
        "the result is a {came}, not an integer | результат имеет тип {came}, а нужно целое число",
    "wrong": "{came} counted where {wanted} are right: {difference:+d} | "
    "сосчитано {came}, а верно {wanted}: {difference:+d}",
    "remembered": "after another module was counted, this one gives {came} instead of {wanted} | "
    "после подсчёта другого модуля этот даёт {came} вместо {wanted}",
    "grown":
        "the module got one more Parameter, of 2 numbers: {came} counted, {wanted} are right | "
        "в модуль добавлен ещё один параметр из 2 чисел: сосчитано {came}, а верно {wanted}",
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


def check_parameter_count_contract(count_parameters: Callable[..., Any]) -> ContractReport:
    """Hold a count of parameters to what it must count, and how often.

        count_parameters(module) -> int, a Parameter in several places counts once

    Whether frozen parameters count is left open: the report says what was found.

    Raises:  ContractViolation when a clause is broken: with a small module and what was measured
    """
    if not callable(count_parameters):
        kind = type(count_parameters).__name__
        raise TypeError(f"count_parameters must be a function, got {kind}")
    subject = ContractSubject(
        "check_parameter_count_contract", count_parameters, _COUNT_MEANINGS, explain_count
    )
    with quiet_globals():
        if is_stub(count_parameters, nn.Linear(2, 2)):
            return ContractReport(subject.contract, attempted=False)
        clauses = tuple(_count_clauses(subject))
        figures = _count_figures(subject)
    key = "frozen_in" if figures["frozen_counted"] else "frozen_out"
    return ContractReport(subject.contract, clauses, figures, notes=(say(_COUNT_FACTS[key]),))


def _count_clauses(subject: ContractSubject) -> Iterator[ClauseResult]:
    hold = partial(hold_clause, subject)
    ordinary = (
        "linear",
        "no_bias",
        "embedding",
        "norm",
        "conv",
        "attention",
        "nested",
        "own",
        "names",
    )
    unusual = ("scalar", "list", "dict", "types", "empty", "gradient", "nothing", "untied")
    shared = ("tied", "module_twice", "two_names", "deep_share")
    buffered = ("batch_norm", "buffers", "hidden_buffers")
    large = ("large", "large_tied", "large_two")
    every = [*_count_cases(ordinary + unusual), CountCase(ordinary), CountCase(ordinary + unusual)]
    yield hold("result_form", None, _judge_count_form, _count_cases(("linear", "nothing", "norm")))
    yield hold("every_parameter", None, _judge_count, every)
    yield hold("shared_once", None, _judge_count, [*_count_cases(shared), CountCase(shared)])
    yield hold("equal_apart", None, _judge_count, _count_cases(("equals", "views")))
    yield hold("no_buffers", None, _judge_count, [*_count_cases(buffered), CountCase(buffered)])
    yield hold("large_modules", None, _judge_count, _count_cases(large))
    again = _count_cases(("nested", "tied", "buffers", "gradient"))
    yield hold("independent_results", None, _judge_count_again, again)


def _count_cases(parts: tuple[str, ...]) -> list[CountCase]:
    return [CountCase((part,)) for part in parts]


def _count_call(subject: ContractSubject, module: nn.Module) -> int:
    """Call the candidate; breach unless an integer comes back."""
    count = call_candidate(subject.candidate, module)
    try:
        if not isinstance(count, bool):
            return count.__index__()
    except (AttributeError, TypeError):
        pass  # a float has no __index__, a tensor of floats has one that refuses
    came = type(count).__name__
    facts = say(_COUNT_FACTS["not_integer"], came=came)
    raise Breach("not integer", came, "int", facts=facts, clause="result_form")


def _count_right(module: nn.Module) -> int:
    """Both references must agree with each other."""
    right = count_by_walking(module)
    if right != count_by_library(module):
        raise RuntimeError(f"the two references for the parameter count disagree on {module}")
    return right


def _count_compare(came: int, wanted: int, fact: str) -> None:
    if came == wanted:
        return
    text = say(_COUNT_FACTS[fact], came=came, wanted=wanted, difference=came - wanted)
    mismatch = Mismatch("count", (), came, wanted)
    raise Breach(fact, str(came), str(wanted), mismatches=(mismatch,), facts=text)


def _judge_count_form(subject: ContractSubject, case: CountCase) -> float:
    _count_call(subject, case.module())
    return 0.0


def _judge_count(subject: ContractSubject, case: CountCase) -> float:
    module = case.module()
    wanted = _count_right(module)
    _count_compare(_count_call(subject, module), wanted, "wrong")
    return 0.0


def _judge_count_again(subject: ContractSubject, case: CountCase) -> float:
    """Another module in between changes nothing, and counting leaves the module as it was."""
    module = case.module()
    for number, part in enumerate(module.modules()):
        part.training = number % 2 == 0
    before = copy.deepcopy(_count_state(module))
    wanted = _count_right(module)
    _count_compare(_count_call(subject, module), wanted, "wrong")
    other = CountCase((*case.parts, "linear"), 2).module()
    _count_compare(_count_call(subject, other), _count_right(other), "wrong")
    larger = CountCase(case.parts, 3).module()
    _count_compare(_count_call(subject, larger), _count_right(larger), "remembered")
    _count_compare(_count_call(subject, module), wanted, "remembered")
    _count_compare_state(module, before)
    module.register_parameter("later", nn.Parameter(torch.zeros(2)))
    _count_compare(_count_call(subject, module), wanted + 2, "grown")
    frozen = case.module().requires_grad_(False)
    before = copy.deepcopy(_count_state(frozen))
    _count_call(subject, frozen)
    _count_compare_state(frozen, before)
    return 0.0


def _count_compare_state(module: nn.Module, before: dict[str, Any]) -> None:
    after = _count_state(module)
    for part, value in before.items():
        if after[part] != value:
            facts = say(_COUNT_FACTS["changed"], part=part)
            raise Breach("changed", part, say(_COUNT_FACTS["kept"]), facts=facts)


def _count_state(module: nn.Module) -> dict[str, Any]:
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


def _count_figures(subject: ContractSubject) -> dict[str, float]:
    """The tied and the untied count of one model, and whether frozen numbers count."""
    tied = _count_call(subject, CountCase(("tied",)).module())
    large = _count_call(subject, CountCase(("large",)).module())
    frozen = nn.Linear(3, 2, bias=False)
    frozen.weight.requires_grad_(False)
    try:
        counted = float(_count_call(subject, frozen) == 6)
    except Breach:
        counted = 0.0
    return {"tied_count": tied, "large_count": large, "frozen_counted": counted}
