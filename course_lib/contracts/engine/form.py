"""The form of a call: which arguments there are, in which order, and which axes they share."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

# A star, as in a signature, or a name with its axes in brackets and a mark.
_ARGUMENT = re.compile(r"(\*)|(\w+)\s*(?:\[([^\]]*)\])?(\?)?")


class Axis(NamedTuple):
    """One axis of a call: how long it is, and at which places of which arguments it is found."""

    size: int
    holders: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Form:
    """The arguments of a function, each with the letters of its axes.

    Form.read("logits [B,T,V], token_ids [B,T], valid [B,T]?, *, scale?"): the same letter is the
    same length, "..." stands for any axes in front that broadcast, what follows the star is passed
    by name. A name without brackets is a plain value: a number, a function, a model. Any argument
    may be missing in a call; what "?" marks is also left out where a failing call is cut down.
    """

    axes: dict[str, tuple[str, ...]]
    optional: frozenset[str]
    named: frozenset[str]

    @classmethod
    def read(cls, text: str) -> "Form":
        """Read a form from its notation."""
        axes: dict[str, tuple[str, ...]] = {}
        optional, named, after_star = set(), set(), False
        for star, name, letters, may_lack in _ARGUMENT.findall(text):
            after_star = after_star or bool(star)
            if name:
                axes[name] = tuple(filter(None, letters.replace(" ", "").split(",")))
                optional |= {name} if may_lack else set()
                named |= {name} if after_star else set()
        return cls(axes, frozenset(optional), frozenset(named))

    def shared_axes(self, args: dict[str, Any]) -> list[Axis]:
        """Each axis with the arguments that have it in full; those it is broadcast to are left."""
        found: dict[str, list[tuple[str, int]]] = {}
        for name, value in args.items():
            for letter, place in self._places(name, axes_of(value)):
                found.setdefault(letter, []).append((name, place))
        return [_in_full(holders, args) for holders in found.values()]

    def _places(self, name: str, dim: int) -> Iterator[tuple[str, int]]:
        """The axes of one argument by their letters, each with its place from the end."""
        letters = [letter for letter in self.axes[name] if letter != "..."]
        for place in range(dim, 0, -1):
            if place <= len(letters):
                yield letters[-place], -place
            elif len(letters) < len(self.axes[name]):
                yield f"...{place - len(letters)}", -place


def _in_full(holders: list[tuple[str, int]], args: dict[str, Any]) -> Axis:
    size = max(length_of(args[name], place) for name, place in holders)
    full = tuple((n, place) for n, place in holders if length_of(args[n], place) == size)
    return Axis(size, full)


def axes_of(value: Any) -> int:
    """How many axes a value has: a list has one, a number none."""
    if isinstance(value, (list, tuple)):
        return 1
    return value.ndim if isinstance(value, (Tensor, np.ndarray)) else 0


def length_of(value: Any, place: int) -> int:
    """How long an axis is."""
    return len(value) if isinstance(value, (list, tuple)) else value.shape[place]
