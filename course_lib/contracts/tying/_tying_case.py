"""Sizes of a tied model, a step of training on it, and the looks by which mistakes show."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.contracts.engine.candidate import ContractSubject
from course_lib.contracts.engine.diagnosis import Diagnosis, Probe, diagnose
from course_lib.contracts.tying.mistakes import TYING_MISTAKES, mistaken_tying, tie_rightly

TYING_RATE = 0.125


@dataclass(frozen=True)
class TyingCase:
    """One call of build."""

    vocab_size: int
    d_model: int

    def arguments(self) -> dict[str, Any]:
        """Name the arguments, for a message and for calling again."""
        return {"vocab_size": self.vocab_size, "d_model": self.d_model}

    def smaller(self) -> Iterator["TyingCase"]:
        """Halve a size, then take one away."""
        for name in ("vocab_size", "d_model"):
            size = getattr(self, name)
            if size > 1:
                yield from (replace(self, **{name: less}) for less in (size // 2, size - 1))


def tying_slopes(embedding: Tensor, head: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients that a step gives to either use: different, and they overlap."""
    first, second = (
        (torch.arange(weight.numel(), device=weight.device) % size - 1.0).reshape(weight.shape)
        for weight, size in ((embedding, 3), (head, 5))
    )
    return first.to(embedding.dtype), second.to(head.dtype)


def tying_backward(module: Any, slopes: tuple[Tensor, Tensor] | None = None) -> None:
    """Use both weights once, each with a gradient of its own."""
    embedding, head = module.embedding.weight, module.head.weight
    first, second = slopes or tying_slopes(embedding, head)
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


def tying_step(
    module: Any,
    rule: Callable[[nn.Parameter], None],
    slopes: tuple[Tensor, Tensor] | None = None,
) -> None:
    """One step of an optimiser, which has a list of what the module listed before."""
    listed = list(module.parameters())
    tying_backward(module, slopes)
    for parameter in listed:
        if parameter.grad is not None:
            rule(parameter)


def explain_tying(subject: ContractSubject) -> Diagnosis:
    """Name the catalogued mistakes that behave like the candidate on models of other sizes."""
    looks = (_tying_form, _tying_identity, _tying_listed, _tying_moves, _tying_twice)
    probes = [Probe(partial(_tying_looked, look=look)) for look in looks]
    later = (_tying_converted, _tying_copied, _tying_loaded, _tying_built_again)
    probes += [Probe(partial(_tying_looked, look=look), core=False) for look in later]
    return diagnose(subject.candidate, TYING_MISTAKES, probes, mistaken_tying(tie_rightly))


def _tying_looked(build: Callable[..., Any], look: Callable[..., Any]) -> Any:
    if look in (_tying_loaded, _tying_built_again):
        return look(build(6, 4), build(6, 4))
    return look(build(6, 4))


def _tying_form(module: Any) -> list:
    pair = (module.embedding.weight, module.head.weight)
    return [[isinstance(weight, nn.Parameter), list(weight.shape)] for weight in pair]


def _tying_identity(module: Any) -> list[bool]:
    embedding, head = module.embedding.weight, module.head.weight
    same = embedding.shape == head.shape and torch.equal(embedding, head)
    return [embedding is head, module.embedding.weight is embedding, same]


def _tying_listed(module: Any) -> list[int]:
    listed = [id(parameter) for parameter in module.parameters()]
    pair = (module.embedding.weight, module.head.weight)
    return [listed.count(id(weight)) for weight in pair] + [pair[0].requires_grad]


def _tying_moves(module: Any) -> list[list[int]]:
    """How far three numbers of either weight move when each use pushes two of them."""
    return _tying_pushed(module, sgd_step)


def _tying_twice(module: Any) -> list[list[int]]:
    """The same with AdamW, whose steps do not grow with the gradient: one step or two."""
    return _tying_pushed(module, adamw_step)


def _tying_pushed(module: Any, rule: Callable[[nn.Parameter], None]) -> list[list[int]]:
    before = [weight.detach().clone() for weight in (module.embedding.weight, module.head.weight)]
    slopes = tuple(torch.zeros_like(weight) for weight in before)
    for slope, places in zip(slopes, ((0, 2), (1, 2)), strict=True):
        for place in places:
            slope[place, place] = 1.0
    tying_step(module, rule, slopes)
    after = [weight.detach() for weight in (module.embedding.weight, module.head.weight)]
    return [
        [round(float(one[n, n] - other[n, n]) / TYING_RATE) for n in range(3)]
        for one, other in zip(before, after, strict=True)
    ]


def _tying_is_one(module: Any) -> bool:
    return module.embedding.weight is module.head.weight


def _tying_converted(module: Any) -> bool | str:
    """Whether what was one stays one; what was never one cannot be untied."""
    return _tying_is_one(module.to(torch.float64)) if _tying_is_one(module) else "never one"


def _tying_copied(module: Any) -> bool | str:
    return _tying_is_one(copy.deepcopy(module)) if _tying_is_one(module) else "never one"


def _tying_loaded(module: Any, other: Any) -> list[bool] | str:
    if not _tying_is_one(other):
        return "never one"
    other.load_state_dict(module.state_dict())
    return [_tying_is_one(other), torch.equal(other.embedding.weight, module.embedding.weight)]


def _tying_built_again(module: Any, other: Any) -> list[bool]:
    """Whether two modules of one size share anything."""
    pairs = [(module.embedding.weight, other.embedding.weight)]
    pairs.append((module.head.weight, other.head.weight))
    return [one is two or one.data_ptr() == two.data_ptr() for one, two in pairs]
