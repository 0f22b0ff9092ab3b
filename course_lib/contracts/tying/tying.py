"""The contract of weight tying: one Parameter, two uses, whatever happens to the model."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.contracts.engine.call import Call, Calls
from course_lib.contracts.engine.candidate import Breach, call_candidate, finite_wanted
from course_lib.contracts.engine.clause import Clause, Contract
from course_lib.contracts.engine.diagnosis import by_catalogue
from course_lib.contracts.engine.judge import Judge
from course_lib.contracts.engine.subject import Subject, Terms
from course_lib.contracts.engine.watch import Probe
from course_lib.contracts.tying import steps
from course_lib.contracts.tying.facts import FACTS, breach, compare
from course_lib.contracts.tying.mistakes import TYING_MISTAKES, mistaken_tying
from course_lib.report import ContractReport, Mismatch
from course_lib.text import say


def _halved(call: Call) -> Iterator[Call]:
    """Halve a size, then take one away."""
    for name, size in call.args.items():
        if size > 1:
            yield from (call.but(**{name: less}) for less in (size // 2, size - 1))


make = Calls("vocab_size, d_model", shorter=_halved)


def _built(subject: Subject, call: Call) -> Any:
    """Call build; breach unless a module with two weights comes back."""
    module = call_candidate(subject.candidate, call.vocab_size, call.d_model)
    if not isinstance(module, nn.Module):
        raise breach("not_module", type(module).__name__, "torch.nn.Module", "result_form")
    for name in ("embedding", "head"):
        weight = call_candidate(partial(_weight, module, name))
        came = type(weight).__name__
        if not isinstance(weight, nn.Parameter):
            where = "one_parameter" if isinstance(weight, Tensor) else "result_form"
            raise breach("not_parameter", came, "Parameter", where, name=name)
        if not weight.is_floating_point():
            raise breach("not_float", str(weight.dtype), "float", "result_form", name=name)
        if not torch.isfinite(weight).all():
            raise breach("not_finite", "NaN, inf", finite_wanted(), "result_form", name=name)
    return module


def _weight(module: Any, name: str) -> Any:
    return getattr(getattr(module, name), "weight", None)


def _tied_form(subject: Subject, call: Call, allowed: float) -> None:
    _built(subject, call)


def _sizes(subject: Subject, call: Call, allowed: float) -> None:
    module, wanted = _built(subject, call), [call.vocab_size, call.d_model]
    for name in ("embedding", "head"):
        came = list(_weight(module, name).shape)
        if came != wanted:
            raise breach("size", came, wanted, "sizes", name=name)


def _one(module: Any, after: str = "built", before: nn.Parameter | None = None) -> nn.Parameter:
    """The one Parameter; breach if there are two, if it is not listed once, or not that before."""
    embedding, head = module.embedding.weight, module.head.weight
    when = say(FACTS[after])
    if embedding is not head:
        if embedding.shape != head.shape or not torch.equal(embedding, head):
            key = "two_unequal"
        elif embedding.data_ptr() != head.data_ptr():
            key = "two_equal"
        else:
            learning = embedding.requires_grad and head.requires_grad
            key = "two_sharing" if learning else "two_frozen"
        shown = Mismatch("head.weight is embedding.weight", (), False, True)
        raise breach(key, 2, 1, "", shown, when=when)
    listed = sum(parameter is embedding for parameter in module.parameters())
    if listed != 1:
        raise breach("listed", listed, 1, "one_parameter", when=when)
    if before is not None and embedding is not before:
        raise breach("replaced", 2, 1, when=when)
    return embedding


def _identity(subject: Subject, call: Call, allowed: float) -> None:
    """Reading the weights again, or changing the mode, changes nothing."""
    module = _built(subject, call)
    weight = _one(module)
    for mode in (False, True):
        module.train(mode)
        _one(module, "mode", weight)


def _gradient(subject: Subject, call: Call, allowed: float) -> None:
    """The gradient is the sum of what either use gives."""
    module = _built(subject, call)
    weight = _one(module)
    if not weight.requires_grad:
        raise breach("frozen", "requires_grad=False", "requires_grad=True")
    call_candidate(partial(steps.backward, module))
    compare("grad", weight.grad, torch.add(*steps.slopes(weight, weight)), "gradient")


def _steps(subject: Subject, call: Call, allowed: float) -> None:
    """Steps move it as they would move a lone Parameter: by both gradients, once."""
    for rule in (steps.sgd_step, steps.adamw_step):
        module = _built(subject, call)
        weight = _one(module)
        lone = nn.Parameter(weight.detach().clone())
        grad = torch.add(*steps.slopes(lone, lone))
        for _ in range(2):
            rule(lone, grad)
            call_candidate(partial(steps.step, module, rule))
            moved = _one(module, "step", weight)
            compare("weight", moved.detach(), lone.detach(), "moved")


def _conversion(subject: Subject, call: Call, allowed: float) -> None:
    """Other types of numbers, there and back."""
    module = _built(subject, call)
    for dtype in (torch.float64, torch.bfloat16, torch.float32):
        call_candidate(partial(module.to, dtype))
        came = _one(module, "conversion").dtype
        if came != dtype:
            raise breach("not_converted", came, dtype)


def _copy(subject: Subject, call: Call, allowed: float) -> None:
    """A deep copy is tied too, and it is another model."""
    module = _built(subject, call)
    twin = call_candidate(partial(copy.deepcopy, module))
    if _one(twin, "copy") is _one(module):
        raise breach("copy_shared", 1, 2)
    compare("weight", twin.head.weight.detach(), module.head.weight.detach(), "copied")


def _loading(subject: Subject, call: Call, allowed: float) -> None:
    """A fresh model that loads the numbers of another stays tied and has them."""
    module, fresh = (_built(subject, call) for _ in range(2))
    with torch.no_grad():
        module.embedding.weight.add_(1.0)
    state = {name: value.clone() for name, value in module.state_dict().items()}
    call_candidate(partial(fresh.load_state_dict, state))
    weight = _one(fresh, "loading")
    compare("weight", weight.detach(), module.embedding.weight.detach(), "loaded")


def _builds(subject: Subject, call: Call, allowed: float) -> None:
    """Another build shares nothing with the first, and other sizes in between are not kept."""
    module = _built(subject, call)
    kept = _one(module).detach().clone()
    _built(subject, make(call.vocab_size + 1, call.d_model + 2))
    other = _built(subject, call)
    if _one(other) is _one(module):
        raise breach("builds_shared", 1, 2)
    with torch.no_grad():
        other.embedding.weight.add_(1.0)
    compare("weight", module.embedding.weight.detach(), kept, "builds_moved")
    _sizes(subject, call, allowed)


def _clauses(subject: Subject) -> list[Clause]:
    sizes = [(7, 4), (3, 5), (4, 4), (1, 3), (5, 1), (33, 8), (130, 6)]
    calls = [make(*pair) for pair in sizes]
    few = calls[:3]  # what follows does not depend on the sizes
    # fmt: off
    return [
        Clause("result_form", "a module with .embedding.weight and .head.weight | "
               "модуль с .embedding.weight и .head.weight", _tied_form, calls),
        Clause("sizes", "both weights are [vocab_size, d_model] | "
               "оба веса имеют форму [vocab_size, d_model]", _sizes, calls),
        Clause("one_parameter", "head.weight is embedding.weight: one Parameter, listed once | "
               "head.weight is embedding.weight: один параметр, учтён 1 раз", _identity, calls),
        Clause("gradient", "its gradient is the sum of what both uses give | "
               "его градиент — сумма того, что дают оба применения", _gradient, calls),
        Clause("optimiser_step", "after a step still one, moved once (SGD, AdamW) | "
               "после шага (SGD, AdamW) он всё так же один и сдвинут один раз", _steps, few),
        Clause("conversion", "another dtype, and still one Parameter | "
               "другой тип чисел — и по-прежнему один параметр", _conversion, few),
        Clause("deep_copy", "a deep copy is tied too, and shares nothing | "
               "глубокая копия тоже связана, но общего с исходной нет", _copy, few),
        Clause("loading", "a state_dict comes back, and there is still one | "
               "state_dict загружается, и параметр по-прежнему один", _loading, few),
        Clause("independent_builds", "two builds share nothing; sizes are those asked for | "
               "у двух моделей нет ничего общего; размеры те, что заданы", _builds, few),
    ]
    # fmt: on


def _kept(subject: Subject, judge: Judge, build: Callable[..., Any]) -> str:
    """How a judge finds that what was one is one no more; what was never one cannot be untied."""
    module = build(6, 4)
    if module.embedding.weight is not module.head.weight:
        return "never one"
    try:
        judge(replace(subject, candidate=build), make(6, 4), 0.0)
    except Breach as breach:
        if not breach.clause:  # one of another clause is not about what this judge did
            return breach.kind.split("_")[0]
    return "kept"


def _probes(subject: Subject) -> list[Probe]:
    core = (
        steps.state,
        partial(steps.moves, steps.sgd_step),
        partial(steps.moves, steps.adamw_step),
    )
    later = (partial(_kept, subject, judge) for judge in (_conversion, _copy, _loading, _builds))
    return [Probe(look) for look in core] + [Probe(look, core=False) for look in later]


def _figures(subject: Subject, measured: dict[str, Any]) -> dict[str, int]:
    module = _built(subject, make(7, 4))
    listed = sum(parameter.numel() for parameter in module.parameters())
    return {"shared_numbers": 7 * 4, "listed_numbers": listed}


TYING = Contract(
    "tying",
    Terms("build"),
    _clauses,
    by_catalogue(TYING_MISTAKES, _probes, mistaken_tying()),
    figures=_figures,
)


def check_tying_contract(build: Callable[..., Any]) -> ContractReport:
    """Hold a model's weight tying to one Parameter, at first and after everything that follows.

        build(vocab_size, d_model) -> module with .embedding.weight and .head.weight

    The module is never called: what counts is what its two weights are.

    Raises:  ContractViolation when a clause is broken: with small sizes and what was measured
    """
    return TYING.check(build)
