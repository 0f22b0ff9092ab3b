"""Steps of training on a tied model, and what is seen of its two weights before and after."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

RATE = 0.125  # a power of two: steps are then exact
Rule = Callable[[nn.Parameter, Tensor], None]


def slopes(embedding: Tensor, head: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients that a step gives to either use: different, and they overlap."""
    first, second = (
        (torch.arange(weight.numel(), device=weight.device) % size - 1.0).reshape(weight.shape)
        for weight, size in ((embedding, 3), (head, 5))
    )
    return first.to(embedding.dtype), second.to(head.dtype)


def backward(module: Any) -> None:
    """Use both weights once, each with a gradient of its own."""
    pair = module.embedding.weight, module.head.weight
    module.zero_grad()
    pushes = zip(pair, slopes(*pair), strict=True)
    sum((weight * slope).sum() for weight, slope in pushes).backward()


def sgd_step(parameter: nn.Parameter, grad: Tensor) -> None:
    """One step of plain gradient descent; torch.optim takes seconds to import for as much."""
    with torch.no_grad():
        parameter.sub_(RATE * grad)


def adamw_step(parameter: nn.Parameter, grad: Tensor) -> None:
    """The first step of AdamW: decay, then the gradient over its own size."""
    with torch.no_grad():
        parameter.mul_(1 - RATE * 0.1)
        parameter.sub_(RATE * grad / (grad.abs() + 1e-8))


def step(module: Any, rule: Rule) -> None:
    """One step of an optimiser, which has a list of what the module listed before."""
    listed = list(module.parameters())
    backward(module)
    for parameter in listed:
        if parameter.grad is not None:
            rule(parameter, parameter.grad)


def state(build: Callable[..., Any]) -> list[Any]:
    """What the two weights of a model are, of another size than the clauses take."""
    module = build(6, 4)
    one, other = module.embedding.weight, module.head.weight
    listed = [id(parameter) for parameter in module.parameters()]
    same = one.shape == other.shape and torch.equal(one, other)
    return [
        [one is other, module.embedding.weight is one, same, one.requires_grad],
        *([isinstance(w, nn.Parameter), list(w.shape), listed.count(id(w))] for w in (one, other)),
    ]


def moves(rule: Rule, build: Callable[..., Any]) -> list[Tensor]:
    """How far a step moves either weight, in whole units, whatever the first numbers were."""
    module = build(6, 4)
    before = [part.weight.detach().clone() for part in (module.embedding, module.head)]
    step(module, rule)
    after = [part.weight.detach() for part in (module.embedding, module.head)]
    pairs = zip(before, after, strict=True)
    return [((one - other) / RATE).round() for one, other in pairs]
