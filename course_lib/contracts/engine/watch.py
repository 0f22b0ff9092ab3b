"""Watch a candidate in a call: what it does there, and whether it does it every time."""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

UNSTEADY = ("depends on earlier calls", "depends on chance")


class Probe(NamedTuple):
    """A call to watch: `look` makes it on fresh arguments and returns what is worth comparing.

    Every right implementation must give the same there. `core` calls are the ordinary ones, on
    which two ways of making the same mistake agree, whatever else is odd about them.
    """

    look: Callable[[Any], Any]
    core: bool = True


def watch_all(candidate: Any, probes: Sequence[Probe]) -> list[Any]:
    """What a candidate does in every probe; one that is unsteady in some is so in all."""
    seen = [watch(candidate, probe) for probe in probes]
    for unsteady in UNSTEADY:
        if any(is_unsteady(each) and each == unsteady for each in seen):
            return [unsteady] * len(seen)
    return seen


def is_unsteady(answer: Any) -> bool:
    """Whether an answer says that there is none."""
    return isinstance(answer, str) and answer in UNSTEADY


def watch(candidate: Any, probe: Probe) -> Any:
    """Look three times, the last time without resetting chance, to see whether it is steady."""
    seen = [look_once(candidate, probe, reset=reset) for reset in (True, True, False)]
    if not alike(seen[0], seen[1]):
        return UNSTEADY[0]
    return seen[0] if alike(seen[1], seen[2]) else UNSTEADY[1]


def look_once(candidate: Any, probe: Probe, *, reset: bool = True) -> Any:
    """What comes of one look, be it an error; chance starts anew unless told otherwise."""
    if reset:
        random.seed(18)
        np.random.seed(18)
        torch.default_generator.manual_seed(18)
    torch.set_default_dtype(torch.float32)  # whoever was looked at before may have changed it
    try:
        with torch.set_grad_enabled(torch.is_grad_enabled()):  # as it is now, also afterwards
            return _as_it_is_now(probe.look(candidate))
    except Exception as error:
        return f"raised {type(error).__name__}"


def _as_it_is_now(value: Any) -> Any:
    """A copy that later calls cannot change."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, np.ndarray):
        return torch.tensor(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return [_as_it_is_now(part) for part in value]
    return value


def alike(one: Any, other: Any) -> bool:
    """Whether two observations are the same but for rounding; NaN equals NaN here."""
    if isinstance(one, Tensor) or isinstance(other, Tensor):
        if not (isinstance(one, Tensor) and isinstance(other, Tensor)):
            return False
        return one.shape == other.shape and torch.allclose(
            one.double(), other.double(), rtol=1e-6, atol=1e-9, equal_nan=True
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        both_nan = math.isnan(one) and math.isnan(other)
        return both_nan or math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)
    return type(one) is type(other) and one == other
