"""One call by the names of its arguments: made again on copies, changed, and cut down."""

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_lib.contracts.engine.form import Axis, Form, axes_of


@dataclass(frozen=True)
class Each:
    """An argument that is made anew for every call: a generator, a model that is watched."""

    make: Callable[[], Any]


@dataclass(frozen=True)
class Given:
    """What one call is given: copies, which a candidate may spoil, by their names."""

    values: dict[str, Any]
    named: frozenset[str]

    @property
    def positional(self) -> list[Any]:
        """The arguments by position."""
        return [value for name, value in self.values.items() if name not in self.named]

    @property
    def keywords(self) -> dict[str, Any]:
        """The arguments by name."""
        return {name: value for name, value in self.values.items() if name in self.named}

    def to(self, function: Callable[..., Any]) -> Any:
        """Call a function with them; what it raises, it raises."""
        return function(*self.positional, **self.keywords)


@dataclass(frozen=True, eq=False)
class Call:
    """One call; an argument that is left out is not in `args`, and reading it gives None.

    `legal` says of a smaller call whether the contract covers it; `shorter` gives smaller calls
    that the axes alone do not suggest, tried before all others.
    """

    form: Form
    args: dict[str, Any]
    named: frozenset[str] = frozenset()
    legal: Callable[["Call"], bool] = lambda call: True
    shorter: Callable[["Call"], Iterable["Call"]] = lambda call: ()
    kept: dict[str, Any] = field(default_factory=dict, init=False)  # worked out of this call once

    def __getattr__(self, name: str) -> Any:
        if name in ("form", "args") or name not in self.form.axes:
            raise AttributeError(name)
        return self.args.get(name)

    def __str__(self) -> str:
        return str(self.arguments())

    def arguments(self) -> dict[str, Any]:
        """Name the arguments, for a message and for calling again."""
        return {n: v.make() if isinstance(v, Each) else v for n, v in self.args.items()}

    def fresh(self) -> Given:
        """Copies of the arguments for one call."""
        return Given({name: copied(value) for name, value in self.args.items()}, self.named)

    def tracked(self, names: Iterable[str]) -> tuple[Given, list[Tensor]]:
        """Copies of the arguments for one call; those of these names ask for a gradient."""
        given = self.fresh()
        return given, [given.values[name].requires_grad_() for name in names]

    def but(self, **changes: Any) -> "Call":
        """The same call with other arguments; None leaves one out."""
        merged = {name: changes.get(name, self.args.get(name)) for name in self.form.axes}
        return replace(self, args={n: v for n, v in merged.items() if v is not None})

    def whole(self) -> "Call":
        """The same call, not to be cut down: small already, or wrong on purpose."""
        return replace(self, legal=lambda call: False)

    def of_dtype(self, dtype: torch.dtype) -> "Call":
        """The same call with its floats rounded to another dtype."""
        floats = {n: v.to(dtype) for n, v in self.args.items() if is_float(v)}
        return self.but(**floats)

    def smaller(self) -> Iterator["Call"]:
        """Shorter axes, fewer arguments, plainer numbers: whatever is still a legal call."""
        return (call for call in self._smaller() if self.legal(call))

    def _smaller(self) -> Iterator["Call"]:
        yield from self.shorter(self)
        for axis in self.form.shared_axes(self.args):
            for keep in _cuts(axis.size):
                yield self._keeping(axis, keep)
        yield from self._without_front()
        for name in filter(self.form.optional.__contains__, self.args):  # in their order
            yield self.but(**{name: None})
        for name, value in self.args.items():
            for plain in _plainer(value):
                yield self.but(**{name: plain})

    def _keeping(self, axis: Axis, keep: list[int]) -> "Call":
        args = dict(self.args)
        for name, place in axis.holders:
            args[name] = _entries(args[name], place, keep)
        return replace(self, args=args)

    def _without_front(self) -> Iterator["Call"]:
        """The first item alone, without the axis of the items."""
        free = {
            name: axes_of(self.args[name]) - len(letters) + 1
            for name, letters in self.form.axes.items()
            if letters[:1] == ("...",) and name in self.args
        }
        most = max(free.values(), default=0)
        if most:
            yield self.but(**{n: self.args[n][0] for n, count in free.items() if count == most})


class Calls:
    """Makes the calls of one contract from the values of their arguments, in order.

        make = Calls("x [...,d], gain [d], bias [d], eps?", legal=...)
        make(x, gain, bias)     make(x, gain, bias, 0.1, named=["eps"])

    What is None is left out of the call; `named` passes by name what could be passed by position.
    """

    def __init__(
        self,
        form: str,
        *,
        legal: Callable[[Call], bool] = lambda call: True,
        shorter: Callable[[Call], Iterable[Call]] = lambda call: (),
    ) -> None:
        self.form, self.legal, self.shorter = Form.read(form), legal, shorter

    def __call__(self, *values: Any, named: Iterable[str] = (), **more: Any) -> Call:
        given = {**dict(zip(self.form.axes, values, strict=False)), **more}
        args = {n: given[n] for n in self.form.axes if given.get(n) is not None}
        by_name = self.form.named | frozenset(named)
        return Call(self.form, args, by_name, self.legal, self.shorter)


def copied(value: Any) -> Any:
    """A copy of an argument; a tensor keeps its strides, also where they overlap."""
    if isinstance(value, Each):
        return value.make()
    if not isinstance(value, Tensor):
        return copy.copy(value) if isinstance(value, (list, np.ndarray)) else value
    if value.is_contiguous() or value.numel() == 0:
        return value.clone()
    extent = 1 + sum((n - 1) * s for n, s in zip(value.shape, value.stride(), strict=True))
    flat = value.as_strided((extent,), (1,)).clone()
    return flat.as_strided(value.shape, value.stride(), 0)


def changed(call: Any, given: Given) -> list[str]:
    """Which tensors and lists a call was given hold something else than the call does."""
    pairs = [(name, before, given.values.get(name)) for name, before in call.args.items()]
    writable = (Tensor, list, np.ndarray)
    return [
        name
        for name, before, now in pairs
        if isinstance(before, writable) and isinstance(now, writable)
        if not same_values(before, now)
    ]


def is_float(value: Any) -> bool:
    """Whether a value is a tensor of floats."""
    return isinstance(value, Tensor) and value.is_floating_point()


def same_values(one: Any, other: Any) -> bool:
    """Whether two tensors, arrays or lists hold the same; NaN is the same as NaN here."""
    if isinstance(one, Tensor):
        if one.shape != other.shape:
            return False
        one, other = one.detach(), other.detach()
        alike = (one == other) | ((one != one) & (other != other))
        return bool(alike.all())
    if isinstance(one, list):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(a is b or np.array_equal(a, b) for a, b in pairs)
    floats = isinstance(one, np.ndarray) and one.dtype.kind == "f"
    return np.array_equal(one, other, equal_nan=floats)


def _cuts(size: int) -> Iterator[list[int]]:
    """Which entries of an axis to keep: one half, the other, all but one."""
    everything = list(range(size))
    if size > 3:
        yield from (everything[: size // 2], everything[size // 2 :])
    ends = everything if size <= 8 else (0, size - 1)
    yield from ([i for i in everything if i != left] for left in reversed(ends) if size > 1)


def _entries(value: Any, place: int, keep: Sequence[int]) -> Any:
    if isinstance(value, Tensor):
        return value.index_select(place, torch.tensor(keep))
    if isinstance(value, np.ndarray):
        return value.take(keep, axis=place)
    return type(value)(value[i] for i in keep)


def _plainer(value: Any) -> Iterator[Any]:
    """The same value with numbers of fewer digits; whole ones no larger than 1."""
    if isinstance(value, list) and any(isinstance(n, float) for n in value):
        rounded = [float(round(n)) if math.isfinite(n) else n for n in value]
        yield from [rounded] if rounded != value else []
    if isinstance(value, Tensor) and value.dtype != torch.bool:
        wide = value.double()
        plain = [wide.round(), wide.round(decimals=1)] if is_float(value) else [value.clamp(max=1)]
        same_kind = (each.to(value.dtype) for each in plain)
        yield from (each for each in same_kind if not same_values(each, value))
