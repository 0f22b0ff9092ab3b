"""What is worth seeing in a call when a mistake is to be named: the looks of a Probe."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.call import Call, changed, is_float
from course_lib.contracts.engine.watch import Probe

Look = Callable[[Any, Any], Any]  # of a call, or what is as fresh as one, and a candidate


def probed(*calls: Any, look: Look | None = None, core: bool = True) -> list[Probe]:
    """A probe for each call, looked at in one way."""
    return [Probe(partial(look or outcome, call), core) for call in calls]


def outcome(call: Any, candidate: Any) -> Any:
    """Whatever comes back."""
    return call.fresh().to(candidate)


def outcome_read(read: Callable[[Any, Call], Any]) -> Look:
    """A look: what comes back, read as the contract does: 1.5 and tensor(1.5) are the same."""
    return lambda call, candidate: read(outcome(call, candidate), call)


def arguments_kept(call: Call, candidate: Any) -> list[bool]:
    """Which arguments are still the same afterwards."""
    given = call.fresh()
    given.to(candidate)
    lost = changed(call, given)
    return [name not in lost for name in call.args]


def written_into(write: Callable[[Tensor], object]) -> Look:
    """A look: whether a caller who writes into one result finds that in the next."""

    def look(call: Call, candidate: Any) -> bool:
        first = outcome(call, candidate)
        kept = first.clone()
        write(first)
        return torch.equal(outcome(call, candidate), kept)

    return look


def between(calls: Callable[[Call], Iterable[Call]], look: Look = outcome) -> Look:
    """A look: the same call before and after others."""
    return lambda call, candidate: [look(each, candidate) for each in (call, *calls(call), call)]


def gradients(direction: Callable[[Tensor], Tensor]) -> Look:
    """A look: the gradients of (result · direction).sum(); none where arguments are changed."""

    def look(call: Call, candidate: Any) -> Any:
        if not all(arguments_kept(call, candidate)):
            return "arguments changed"
        given, leaves = call.tracked(name for name, value in call.args.items() if is_float(value))
        result = given.to(candidate)
        if not result.requires_grad:
            return "no gradient"
        loss = (result.double() * direction(result)).sum()
        found = torch.autograd.grad(loss, leaves, allow_unused=True)
        return ["none" if slope is None else slope for slope in found]

    return look
