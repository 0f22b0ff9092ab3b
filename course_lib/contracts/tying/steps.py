"""Steps of training on a tied model: each use of the weight gives a gradient of its own."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

RATE = 0.125  # a power of two: steps are then exact


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


def sgd_step(parameter: nn.Parameter) -> None:
    """One step of plain gradient descent; torch.optim takes seconds to import for as much."""
    with torch.no_grad():
        parameter.sub_(RATE * parameter.grad)


def adamw_step(parameter: nn.Parameter) -> None:
    """The first step of AdamW: decay, then the gradient over its own size."""
    with torch.no_grad():
        parameter.mul_(1 - RATE * 0.1)
        parameter.sub_(RATE * parameter.grad / (parameter.grad.abs() + 1e-8))


def step(module: Any, rule: Callable[[nn.Parameter], None]) -> None:
    """One step of an optimiser, which has a list of what the module listed before."""
    listed = list(module.parameters())
    backward(module)
    for parameter in listed:
        if parameter.grad is not None:
            rule(parameter)
