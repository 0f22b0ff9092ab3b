"""Steps of training on a tied model, and the looks by which mistakes in the tie show."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.contracts.engine.watch import Probe

TYING_RATE = 0.125  # a power of two: steps are then exact


def slopes(embedding: Tensor, head: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients that a step gives to either use: different, and they overlap."""
    first, second = (
        (torch.arange(weight.numel(), device=weight.device) % size - 1.0).reshape(weight.shape)
        for weight, size in ((embedding, 3), (head, 5))
    )
    return first.to(embedding.dtype), second.to(head.dtype)


def backward(module: Any, pushes: tuple[Tensor, Tensor] | None = None) -> None:
    """Use both weights once, each with a gradient of its own."""
    embedding, head = module.embedding.weight, module.head.weight
    first, second = pushes or slopes(embedding, head)
    module.zero_grad()
    ((embedding * first).sum() + (head * second).sum()).backward()


def sgd_step(parameter: nn.Parameter) -> None:
    """One step of plain gradient descent; torch.optim takes seconds to import for as much."""
    with torch.no_grad():
        parameter.sub_(TYING_RATE * parameter.grad)


def adamw_step(parameter: nn.Parameter) -> None:
    """The first step of AdamW: decay, then the gradient over its own size."""
    with torch.no_grad():
        parameter.mul_(1 - TYING_RATE * 0.1)
        parameter.sub_(TYING_RATE * parameter.grad / (parameter.grad.abs() + 1e-8))


def step(
    module: Any,
    rule: Callable[[nn.Parameter], None],
    pushes: tuple[Tensor, Tensor] | None = None,
) -> None:
    """One step of an optimiser, which has a list of what the module listed before."""
    listed = list(module.parameters())
    backward(module, pushes)
    for parameter in listed:
        if parameter.grad is not None:
            rule(parameter)


def probes(subject: Any) -> list[Probe]:
    """What is looked at in models of another size than the clauses take."""
    core = (_form, _identity, _listed, _moves, _twice)
    later = (_converted, _copied, _loaded, _built_again)
    return [Probe(look) for look in core] + [Probe(look, core=False) for look in later]


def _built(build: Callable[..., Any]) -> Any:
    return build(6, 4)


def _form(build: Callable[..., Any]) -> list:
    module = _built(build)
    pair = (module.embedding.weight, module.head.weight)
    return [[isinstance(weight, nn.Parameter), list(weight.shape)] for weight in pair]


def _identity(build: Callable[..., Any]) -> list[bool]:
    module = _built(build)
    embedding, head = module.embedding.weight, module.head.weight
    same = embedding.shape == head.shape and torch.equal(embedding, head)
    return [embedding is head, module.embedding.weight is embedding, same]


def _listed(build: Callable[..., Any]) -> list[int]:
    module = _built(build)
    listed = [id(parameter) for parameter in module.parameters()]
    pair = (module.embedding.weight, module.head.weight)
    return [listed.count(id(weight)) for weight in pair] + [pair[0].requires_grad]


def _moves(build: Callable[..., Any]) -> list[list[int]]:
    """How far three numbers of either weight move when each use pushes two of them."""
    return _pushed(_built(build), sgd_step)


def _twice(build: Callable[..., Any]) -> list[list[int]]:
    """The same with AdamW, whose steps do not grow with the gradient: one step or two."""
    return _pushed(_built(build), adamw_step)


def _pushed(module: Any, rule: Callable[[nn.Parameter], None]) -> list[list[int]]:
    before = [weight.detach().clone() for weight in (module.embedding.weight, module.head.weight)]
    pushes = tuple(torch.zeros_like(weight) for weight in before)
    for push, places in zip(pushes, ((0, 2), (1, 2)), strict=True):
        for place in places:
            push[place, place] = 1.0
    step(module, rule, pushes)
    after = [weight.detach() for weight in (module.embedding.weight, module.head.weight)]
    return [
        [round(float(one[n, n] - other[n, n]) / TYING_RATE) for n in range(3)]
        for one, other in zip(before, after, strict=True)
    ]


def _is_one(module: Any) -> bool:
    return module.embedding.weight is module.head.weight


def _converted(build: Callable[..., Any]) -> bool | str:
    """Whether what was one stays one; what was never one cannot be untied."""
    module = _built(build)
    return _is_one(module.to(torch.float64)) if _is_one(module) else "never one"


def _copied(build: Callable[..., Any]) -> bool | str:
    module = _built(build)
    return _is_one(copy.deepcopy(module)) if _is_one(module) else "never one"


def _loaded(build: Callable[..., Any]) -> list[bool] | str:
    module, other = _built(build), _built(build)
    if not _is_one(other):
        return "never one"
    other.load_state_dict(module.state_dict())
    return [_is_one(other), torch.equal(other.embedding.weight, module.embedding.weight)]


def _built_again(build: Callable[..., Any]) -> list[bool]:
    """Whether two modules of one size share anything."""
    module, other = _built(build), _built(build)
    pairs = [(module.embedding.weight, other.embedding.weight)]
    pairs.append((module.head.weight, other.head.weight))
    return [one is two or one.data_ptr() == two.data_ptr() for one, two in pairs]
