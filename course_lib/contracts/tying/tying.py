"""The contract of weight tying: one Parameter, two uses, whatever happens to the model."""

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.contracts.engine.candidate import (
    Breach,
    ContractSubject,
    call_candidate,
    finite_wanted,
    hold_clause,
    is_stub,
    quiet_globals,
)
from course_lib.contracts.engine.words import say
from course_lib.contracts.tying._tying_case import (
    TyingCase,
    adamw_step,
    explain_tying,
    sgd_step,
    tying_backward,
    tying_slopes,
    tying_step,
)
from course_lib.contracts.tying._tying_texts import TYING_FACTS, TYING_MEANINGS
from course_lib.report import ClauseResult, ContractReport, Mismatch


def check_tying_contract(build: Callable[..., Any]) -> ContractReport:
    """Hold a model's weight tying to one Parameter, at first and after everything that follows.

        build(vocab_size, d_model) -> module with .embedding.weight and .head.weight

    The module is never called: what counts is what its two weights are.

    Raises:  ContractViolation when a clause is broken: with small sizes and what was measured
    """
    if not callable(build):
        raise TypeError(f"build must be a function, got {type(build).__name__}")
    subject = ContractSubject("check_tying_contract", build, TYING_MEANINGS, explain_tying)
    with quiet_globals():
        if is_stub(build, 3, 2):
            return ContractReport(subject.contract, attempted=False)
        clauses = tuple(_tying_clauses(subject))
        module = _tied_module(subject, TyingCase(7, 4))
        listed = sum(parameter.numel() for parameter in module.parameters())
    figures = {"shared_numbers": 7 * 4, "listed_numbers": listed}
    return ContractReport(subject.contract, clauses, figures)


def _tying_clauses(subject: ContractSubject) -> Iterator[ClauseResult]:
    hold = partial(hold_clause, subject)
    cases = [
        TyingCase(*sizes) for sizes in ((7, 4), (3, 5), (4, 4), (1, 3), (5, 1), (33, 8), (130, 6))
    ]
    yield hold("result_form", None, _judge_tied_form, cases)
    yield hold("sizes", None, _judge_tied_sizes, cases)
    yield hold("one_parameter", None, _judge_tied_identity, cases)
    yield hold("gradient", None, _judge_tied_gradient, cases)
    yield hold("optimiser_step", None, _judge_tied_steps, cases[:3])
    yield hold("conversion", None, _judge_tied_conversion, cases[:3])
    yield hold("deep_copy", None, _judge_tied_copy, cases[:3])
    yield hold("loading", None, _judge_tied_loading, cases[:3])
    yield hold("independent_builds", None, _judge_tied_builds, cases[:3])


def _tied_module(subject: ContractSubject, case: TyingCase) -> Any:
    """Call build; breach unless a module with two weights comes back."""
    module = call_candidate(subject.candidate, case.vocab_size, case.d_model)
    if not isinstance(module, nn.Module):
        raise _tied_breach("not_module", type(module).__name__, "torch.nn.Module", "result_form")
    for name in ("embedding", "head"):
        weight = call_candidate(partial(_tied_weight, module, name))
        came = type(weight).__name__
        if not isinstance(weight, nn.Parameter):
            where = "one_parameter" if isinstance(weight, Tensor) else "result_form"
            raise _tied_breach("not_parameter", came, "Parameter", where, name=name)
        if not weight.is_floating_point():
            raise _tied_breach("not_float", str(weight.dtype), "float", "result_form", name=name)
        if not torch.isfinite(weight).all():
            raise _tied_breach("not_finite", "NaN, inf", finite_wanted(), "result_form", name=name)
    return module


def _tied_weight(module: Any, name: str) -> Any:
    return getattr(getattr(module, name), "weight", None)


def _tied_breach(
    fact: str,
    came: Any,
    wanted: Any,
    clause: str = "",
    shown: tuple[Mismatch, ...] = (),
    **values: Any,
) -> Breach:
    text = say(TYING_FACTS[fact], came=came, wanted=wanted, **values)
    return Breach(fact, str(came), str(wanted), mismatches=shown, facts=text, clause=clause)


def _judge_tied_form(subject: ContractSubject, case: TyingCase) -> float:
    _tied_module(subject, case)
    return 0.0


def _judge_tied_sizes(subject: ContractSubject, case: TyingCase) -> float:
    module, wanted = _tied_module(subject, case), [case.vocab_size, case.d_model]
    for name in ("embedding", "head"):
        came = list(_tied_weight(module, name).shape)
        if came != wanted:
            raise _tied_breach("size", came, wanted, "sizes", name=name)
    return 0.0


def _one_tied(module: Any, after: str = "built") -> nn.Parameter:
    """The one Parameter; breach if there are two, or if it is not listed once."""
    embedding, head = module.embedding.weight, module.head.weight
    when = say(TYING_FACTS[after])
    if embedding is not head:
        if embedding.shape != head.shape or not torch.equal(embedding, head):
            key = "two_unequal"
        elif embedding.data_ptr() != head.data_ptr():
            key = "two_equal"
        else:
            learning = embedding.requires_grad and head.requires_grad
            key = "two_sharing" if learning else "two_frozen"
        shown = (Mismatch("head.weight is embedding.weight", (), False, True),)
        raise _tied_breach(key, 2, 1, "", shown, when=when)
    listed = sum(parameter is embedding for parameter in module.parameters())
    if listed != 1:
        raise _tied_breach("listed", listed, 1, "one_parameter", when=when)
    return embedding


def _judge_tied_identity(subject: ContractSubject, case: TyingCase) -> float:
    """Reading the weights again, or changing the mode, changes nothing."""
    module = _tied_module(subject, case)
    weight = _one_tied(module)
    for mode in (False, True):
        module.train(mode)
        if _one_tied(module, "mode") is not weight:
            raise _tied_breach("replaced", 2, 1, when=say(TYING_FACTS["mode"]))
    return 0.0


def _judge_tied_gradient(subject: ContractSubject, case: TyingCase) -> float:
    """The gradient is the sum of what either use gives."""
    module = _tied_module(subject, case)
    weight = _one_tied(module)
    if not weight.requires_grad:
        raise _tied_breach("frozen", "requires_grad=False", "requires_grad=True")
    call_candidate(partial(tying_backward, module))
    wanted = sum(tying_slopes(weight, weight))
    _compare_tied("grad", weight.grad, wanted, "gradient")
    return 0.0


def _compare_tied(name: str, got: Tensor | None, wanted: Tensor, fact: str) -> None:
    if got is None:
        raise _tied_breach("no_gradient", "None", "a gradient")
    apart = (got.double() - wanted.double()).abs()
    far = apart > 1e-5 * (1 + wanted.double().abs())
    if not far.any():
        return
    places = [tuple(place) for place in far.nonzero()[:3].tolist()]
    shown = tuple(
        Mismatch(name, place, got[place].item(), wanted[place].item()) for place in places
    )
    raise _tied_breach(fact, f"{float(apart.max()):.2g}", "1e-05", "", shown)


def _judge_tied_steps(subject: ContractSubject, case: TyingCase) -> float:
    """Steps move it as they would move a lone Parameter: by both gradients, once."""
    for rule in (sgd_step, adamw_step):
        module = _tied_module(subject, case)
        weight = _one_tied(module)
        lone = nn.Parameter(weight.detach().clone())
        lone.grad = sum(tying_slopes(lone, lone))
        for _ in range(2):
            rule(lone)
            call_candidate(partial(tying_step, module, rule))
            if _one_tied(module, "step") is not weight:
                raise _tied_breach("replaced", 2, 1, when=say(TYING_FACTS["step"]))
            _compare_tied("weight", weight.detach(), lone.detach(), "moved")
    return 0.0


def _judge_tied_conversion(subject: ContractSubject, case: TyingCase) -> float:
    """Other types of numbers, there and back."""
    module = _tied_module(subject, case)
    for dtype in (torch.float64, torch.bfloat16, torch.float32):
        call_candidate(partial(module.to, dtype))
        came = _one_tied(module, "conversion").dtype
        if came != dtype:
            raise _tied_breach("not_converted", came, dtype)
    return 0.0


def _judge_tied_copy(subject: ContractSubject, case: TyingCase) -> float:
    """A deep copy is tied too, and it is another model."""
    module = _tied_module(subject, case)
    twin = call_candidate(partial(copy.deepcopy, module))
    if _one_tied(twin, "copy") is _one_tied(module):
        raise _tied_breach("copy_shared", 1, 2)
    _compare_tied("weight", twin.head.weight.detach(), module.head.weight.detach(), "copied")
    return 0.0


def _judge_tied_loading(subject: ContractSubject, case: TyingCase) -> float:
    """A fresh model that loads the numbers of another stays tied and has them."""
    module, fresh = (_tied_module(subject, case) for _ in range(2))
    with torch.no_grad():
        module.embedding.weight.add_(1.0)
    state = {name: value.clone() for name, value in module.state_dict().items()}
    call_candidate(partial(fresh.load_state_dict, state))
    weight = _one_tied(fresh, "loading")
    _compare_tied("weight", weight.detach(), module.embedding.weight.detach(), "loaded")
    return 0.0


def _judge_tied_builds(subject: ContractSubject, case: TyingCase) -> float:
    """Another build shares nothing with the first, and other sizes in between are not kept."""
    module = _tied_module(subject, case)
    kept = _one_tied(module).detach().clone()
    _tied_module(subject, TyingCase(case.vocab_size + 1, case.d_model + 2))
    other = _tied_module(subject, case)
    if _one_tied(other) is _one_tied(module):
        raise _tied_breach("builds_shared", 1, 2)
    with torch.no_grad():
        other.embedding.weight.add_(1.0)
    _compare_tied("weight", module.embedding.weight.detach(), kept, "builds_moved")
    return _judge_tied_sizes(subject, case)
