"""Modules whose parameters are to be counted, and how mistakes show on them."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.contracts.engine.watch import Probe


class OneLine(nn.Module):
    """A module whose text is one line."""

    def __repr__(self) -> str:
        return " ".join(super().__repr__().split())


class Sample(OneLine):
    """A module put together from named Parameters, modules, buffers and plain tensors."""

    def __init__(
        self,
        owned: dict[str, Any],
        *,
        buffers: dict[str, Tensor] | None = None,
        persistent: bool = True,
        note: str = "",
    ) -> None:
        super().__init__()
        self.note = note
        for name, value in owned.items():
            setattr(self, name, value)
        for name, value in (buffers or {}).items():
            self.register_buffer(name, value, persistent=persistent)

    def extra_repr(self) -> str:
        """List what a module's own text leaves out."""
        own, buffers = self._parameters.items(), self._buffers.items()
        shapes = [f"{name}: {list(value.shape)}" for name, value in own if value is not None]
        shapes += [f"{name}: buffer {list(v.shape)}" for name, v in buffers if v is not None]
        return ", ".join(filter(None, [*shapes, self.note]))


class Chain(OneLine, nn.Sequential):
    """Modules in a row."""


def _weight(*shape: int, **options: Any) -> nn.Parameter:
    return nn.Parameter(torch.zeros(shape, **options))


def _nested(n: int) -> nn.Module:
    inner = nn.Sequential(nn.Linear(3 + n, 2), nn.Sequential(nn.LayerNorm(2)))
    return Chain(nn.Linear(2, 3 + n), nn.ReLU(), inner)


def _tied(n: int) -> nn.Module:
    embedding, head = nn.Embedding(7 + n, 4), nn.Linear(4, 7 + n, bias=False)
    head.weight = embedding.weight
    parts = {"embedding": embedding, "block": nn.Linear(4, 4), "head": head}
    return Sample(parts, note="head.weight is embedding.weight")


def _names(n: int) -> nn.Module:
    parts = {"token_embedding": nn.Embedding(5 + n, 2), "ln_1": nn.LayerNorm(2)}
    parts |= {"mlp": nn.Linear(2, 3), "norm": nn.LayerNorm(3), "lm_head": nn.Linear(3, 5 + n)}
    return Sample(parts)


def _module_twice(n: int) -> nn.Module:
    block = nn.Linear(3, 3 + n)
    return Chain(block, nn.Linear(3 + n, 3), nn.Sequential(block))


def _two_names(n: int) -> nn.Module:
    weight = _weight(2, 3 + n)
    owned = {"first": weight, "second": weight, "other": _weight(4)}
    return Sample(owned, note="second is first")


def _deep_share(n: int) -> nn.Module:
    gain = _weight(5 + n)
    inner = Sample({"gain": gain, "shift": _weight(2)})
    owned = {"gain": gain, "inner": inner, "again": nn.ParameterList([gain])}
    return Sample(owned, note="inner.gain and again[0] are gain")


def _equals(n: int) -> nn.Module:
    owned = {name: _weight(3, 2 + n) for name in ("left", "right", "third")}
    return Sample(owned, note="equal numbers, three Parameters")


def _views(n: int) -> nn.Module:
    flat = torch.arange(12.0 + 2 * n)
    owned = {"low": nn.Parameter(flat[: 6 + n]), "high": nn.Parameter(flat[6 + n :])}
    return Sample(owned, note="two halves of one storage")


def _with_grad(n: int) -> nn.Module:
    layer = nn.Linear(3, 4 + n)
    for parameter in layer.parameters():
        parameter.grad = torch.ones_like(parameter)
    return layer


def _buffers(n: int, persistent: bool) -> nn.Module:
    owned = {"gain": _weight(3), "plain": torch.zeros(9)}
    buffers = {"mask": torch.zeros(5 + n, 5), "steps": torch.tensor(3)}
    return Sample(owned, buffers=buffers, persistent=persistent)


def _mixed_types(n: int) -> nn.Module:
    kinds = {"narrow": torch.float16, "wide": torch.float64, "pair": torch.complex64}
    return Sample({name: _weight(3 + n, dtype=kind) for name, kind in kinds.items()})


def _large(*shapes: tuple[int, ...]) -> list[nn.Parameter]:
    return [nn.Parameter(torch.empty(shape, device="meta")) for shape in shapes]


def _large_tied(n: int) -> nn.Module:
    (weight,) = _large((70_001 + n, 40_000))
    return Sample({"embedding": weight, "head": weight}, note="head is embedding")


PARTS: dict[str, Callable[[int], nn.Module]] = {
    "linear": lambda n: nn.Linear(3 + n, 5),
    "no_bias": lambda n: nn.Linear(4, 7 + n, bias=False),
    "embedding": lambda n: nn.Embedding(11 + n, 3),
    "norm": lambda n: nn.LayerNorm(6 + n),
    "conv": lambda n: nn.Conv1d(2, 3 + n, 5),
    "attention": lambda n: nn.MultiheadAttention(6, 2, add_bias_kv=n > 0),
    "nested": _nested,
    "scalar": lambda n: Sample({"scale": _weight(), "gain": _weight(3 + n)}),
    "list": lambda n: nn.ParameterList([_weight(3 + n), _weight(2, 2, 2)]),
    "dict": lambda n: nn.ParameterDict({"a": _weight(2, 3 + n), "b": _weight(1, 1)}),
    "types": _mixed_types,
    "empty": lambda n: Sample({"none": _weight(0, 4 + n), "one": _weight(1)}),
    "names": _names,
    "own": lambda n: Sample({"gain": _weight(2 + n), "inner": nn.Linear(2, 2)}),
    "gradient": _with_grad,
    "nothing": lambda n: Chain(nn.ReLU(), nn.Identity()),
    "tied": _tied,
    "untied": lambda n: Chain(nn.Embedding(7 + n, 4), nn.Linear(4, 7 + n, bias=False)),
    "module_twice": _module_twice,
    "two_names": _two_names,
    "deep_share": _deep_share,
    "equals": _equals,
    "views": _views,
    "batch_norm": lambda n: nn.BatchNorm1d(5 + n),
    "buffers": partial(_buffers, persistent=True),
    "hidden_buffers": partial(_buffers, persistent=False),
    "large": lambda n: nn.ParameterList(_large((65_536, 65_536 + n), (65_536 + n,))),
    "large_tied": _large_tied,
    "large_two": lambda n: nn.ParameterList(_large((9, 9 + n), (9, 9 + n), (9 + n,))),
}


@dataclass(frozen=True)
class ModuleCall:
    """A module by the names of its parts; `more` makes it a little larger."""

    parts: tuple[str, ...]
    more: int = 0

    def module(self) -> nn.Module:
        """Build it, always anew."""
        modules = [PARTS[part](self.more) for part in self.parts]
        return modules[0] if len(modules) == 1 else Chain(*modules)

    def arguments(self) -> dict[str, Any]:
        """Name the argument, for a message and for calling again."""
        return {"module": self.module()}

    def smaller(self) -> Iterator["ModuleCall"]:
        """Leave one part out."""
        if len(self.parts) > 1:
            for place in range(len(self.parts)):
                yield ModuleCall(self.parts[:place] + self.parts[place + 1 :], self.more)


def probes(subject: Any) -> list[Probe]:
    """Modules of other sizes than the clauses take."""
    ordinary = ("linear", "conv", "norm", "embedding", "nested", "batch_norm")
    together = (("own", "conv", "list"), ("tied", "names"))  # what sets two rules apart
    named = {*ordinary, *itertools.chain(*together)}
    unusual = [name for name in PARTS if name not in named]
    return [
        *(Probe(partial(_probed, parts=(part,))) for part in ordinary),
        *(Probe(partial(_probed, parts=parts)) for parts in together),
        *(Probe(partial(_probed, parts=(part,)), core=False) for part in unusual),
        Probe(_changes, core=False),
        Probe(partial(_memory, looks=itertools.count()), core=False),
    ]


def _probed(count_parameters: Callable[..., Any], parts: tuple[str, ...]) -> list[Any]:
    """The counts of modules whose classes were never seen before: a memory of classes is mute."""
    modules = [ModuleCall((part,), 1).module() for part in parts]
    for module in modules:
        module.__class__ = type(type(module).__name__, (type(module),), {})
    counts = [count_parameters(module) for module in modules]
    return [float(n) if not hasattr(n, "__index__") else n.__index__() for n in counts]


def _changes(count_parameters: Callable[..., Any]) -> bool:
    """Whether counting changes the module."""
    module: Any = ModuleCall(("tied",), 1).module()
    count_parameters(module)
    trained = all(parameter.requires_grad for parameter in module.parameters())
    return trained and module.head.weight is module.embedding.weight


def _memory(count_parameters: Callable[..., Any], looks: Iterator[int]) -> str | int:
    """Whether the count of a class comes back for its next module; else all looks differ."""
    first, other = (type("Layer", (nn.Linear,), {}) for _ in range(2))
    kept = count_parameters(first(9, 9))
    again, fresh = count_parameters(first(3, 2)), count_parameters(other(3, 2))
    if again == fresh:
        return "steady"
    return "the earlier count" if again == kept else next(looks)
