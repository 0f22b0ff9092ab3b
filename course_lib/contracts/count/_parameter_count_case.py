"""Modules whose parameters are to be counted, their right counts, and how mistakes show."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.contracts.count.mistakes import PARAMETER_COUNT_MISTAKES
from course_lib.contracts.engine.candidate import ContractSubject
from course_lib.contracts.engine.diagnosis import Diagnosis, Probe, diagnose


class CountSample(nn.Module):
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
        own = [f"{name}: {list(value.shape)}" for name, value in self._parameters.items()]
        buffers = [f"{name}: buffer {list(value.shape)}" for name, value in self._buffers.items()]
        return ", ".join([*own, *buffers, *([self.note] if self.note else [])])

    def __repr__(self) -> str:
        return " ".join(super().__repr__().split())


class CountChain(nn.Sequential):
    """Modules in a row whose text is one line."""

    def __repr__(self) -> str:
        return " ".join(super().__repr__().split())


def _count_weight(*shape: int, **options: Any) -> nn.Parameter:
    return nn.Parameter(torch.zeros(shape, **options))


def _count_nested(n: int) -> nn.Module:
    inner = nn.Sequential(nn.Linear(3 + n, 2), nn.Sequential(nn.LayerNorm(2)))
    return CountChain(nn.Linear(2, 3 + n), nn.ReLU(), inner)


def _count_tied(n: int) -> nn.Module:
    embedding, head = nn.Embedding(7 + n, 4), nn.Linear(4, 7 + n, bias=False)
    head.weight = embedding.weight
    parts = {"embedding": embedding, "block": nn.Linear(4, 4), "head": head}
    return CountSample(parts, note="head.weight is embedding.weight")


def _count_names(n: int) -> nn.Module:
    parts = {"token_embedding": nn.Embedding(5 + n, 2), "ln_1": nn.LayerNorm(2)}
    parts |= {"mlp": nn.Linear(2, 3), "norm": nn.LayerNorm(3), "lm_head": nn.Linear(3, 5 + n)}
    return CountSample(parts)


def _count_module_twice(n: int) -> nn.Module:
    block = nn.Linear(3, 3 + n)
    return CountChain(block, nn.Linear(3 + n, 3), nn.Sequential(block))


def _count_two_names(n: int) -> nn.Module:
    weight = _count_weight(2, 3 + n)
    owned = {"first": weight, "second": weight, "other": _count_weight(4)}
    return CountSample(owned, note="second is first")


def _count_deep_share(n: int) -> nn.Module:
    gain = _count_weight(5 + n)
    inner = CountSample({"gain": gain, "shift": _count_weight(2)})
    owned = {"gain": gain, "inner": inner, "again": nn.ParameterList([gain])}
    return CountSample(owned, note="inner.gain and again[0] are gain")


def _count_equals(n: int) -> nn.Module:
    owned = {name: _count_weight(3, 2 + n) for name in ("left", "right", "third")}
    return CountSample(owned, note="equal numbers, three Parameters")


def _count_views(n: int) -> nn.Module:
    flat = torch.arange(12.0 + 2 * n)
    owned = {"low": nn.Parameter(flat[: 6 + n]), "high": nn.Parameter(flat[6 + n :])}
    return CountSample(owned, note="two halves of one storage")


def _count_with_grad(n: int) -> nn.Module:
    layer = nn.Linear(3, 4 + n)
    for parameter in layer.parameters():
        parameter.grad = torch.ones_like(parameter)
    return layer


def _count_buffers(n: int, persistent: bool) -> nn.Module:
    owned = {"gain": _count_weight(3), "plain": torch.zeros(9)}
    buffers = {"mask": torch.zeros(5 + n, 5), "steps": torch.tensor(3)}
    return CountSample(owned, buffers=buffers, persistent=persistent)


def _count_mixed_types(n: int) -> nn.Module:
    kinds = {"narrow": torch.float16, "wide": torch.float64, "pair": torch.complex64}
    return CountSample({name: _count_weight(3 + n, dtype=kind) for name, kind in kinds.items()})


def _count_large(*shapes: tuple[int, ...]) -> list[nn.Parameter]:
    return [nn.Parameter(torch.empty(shape, device="meta")) for shape in shapes]


def _count_large_tied(n: int) -> nn.Module:
    (weight,) = _count_large((70_001 + n, 40_000))
    return CountSample({"embedding": weight, "head": weight}, note="head is embedding")


COUNT_PARTS = {
    "linear": lambda n: nn.Linear(3 + n, 5),
    "no_bias": lambda n: nn.Linear(4, 7 + n, bias=False),
    "embedding": lambda n: nn.Embedding(11 + n, 3),
    "norm": lambda n: nn.LayerNorm(6 + n),
    "conv": lambda n: nn.Conv1d(2, 3 + n, 5),
    "attention": lambda n: nn.MultiheadAttention(6, 2, add_bias_kv=n > 0),
    "nested": _count_nested,
    "scalar": lambda n: CountSample({"scale": _count_weight(), "gain": _count_weight(3 + n)}),
    "list": lambda n: nn.ParameterList([_count_weight(3 + n), _count_weight(2, 2, 2)]),
    "dict": lambda n: nn.ParameterDict({"a": _count_weight(2, 3 + n), "b": _count_weight(1, 1)}),
    "types": _count_mixed_types,
    "empty": lambda n: CountSample({"none": _count_weight(0, 4 + n), "one": _count_weight(1)}),
    "names": _count_names,
    "own": lambda n: CountSample({"gain": _count_weight(2 + n), "inner": nn.Linear(2, 2)}),
    "gradient": _count_with_grad,
    "nothing": lambda n: CountChain(nn.ReLU(), nn.Identity()),
    "tied": _count_tied,
    "untied": lambda n: CountChain(nn.Embedding(7 + n, 4), nn.Linear(4, 7 + n, bias=False)),
    "module_twice": _count_module_twice,
    "two_names": _count_two_names,
    "deep_share": _count_deep_share,
    "equals": _count_equals,
    "views": _count_views,
    "batch_norm": lambda n: nn.BatchNorm1d(5 + n),
    "buffers": partial(_count_buffers, persistent=True),
    "hidden_buffers": partial(_count_buffers, persistent=False),
    "large": lambda n: nn.ParameterList(_count_large((65_536, 65_536 + n), (65_536 + n,))),
    "large_tied": _count_large_tied,
    "large_two": lambda n: nn.ParameterList(_count_large((9, 9 + n), (9, 9 + n), (9 + n,))),
}


@dataclass(frozen=True)
class CountCase:
    """A module by the names of its parts; `more` makes it a little larger."""

    parts: tuple[str, ...]
    more: int = 0

    def module(self) -> nn.Module:
        """Build it, always anew."""
        modules = [COUNT_PARTS[part](self.more) for part in self.parts]
        return modules[0] if len(modules) == 1 else CountChain(*modules)

    def arguments(self) -> dict[str, Any]:
        """Name the argument, for a message and for calling again."""
        return {"module": self.module()}

    def smaller(self) -> Iterator["CountCase"]:
        """Leave one part out."""
        if len(self.parts) > 1:
            for place in range(len(self.parts)):
                yield CountCase(self.parts[:place] + self.parts[place + 1 :], self.more)


def count_by_walking(module: nn.Module) -> int:
    """Walk the tree of modules and multiply the sizes, with a list of what was seen."""
    seen, total, waiting = set(), 0, [module]
    while waiting:
        found = waiting.pop()
        for parameter in found._parameters.values():
            if parameter is not None and id(parameter) not in seen:
                seen.add(id(parameter))
                product = 1
                for size in parameter.shape:
                    product *= int(size)
                total += product
        waiting += [child for child in found._modules.values() if child is not None]
    return total


def count_by_library(module: nn.Module) -> int:
    """Let torch list the parameters and count each one's elements."""
    return sum(parameter.numel() for parameter in module.parameters())


def explain_count(subject: ContractSubject) -> Diagnosis:
    """Name the catalogued mistakes that count like the candidate, on modules of other sizes."""
    ordinary = ("linear", "conv", "norm", "embedding", "nested", "batch_norm")
    together = (("own", "conv", "list"), ("tied", "names"))  # what sets two rules apart
    named = {*ordinary, *itertools.chain(*together)}
    unusual = [name for name in COUNT_PARTS if name not in named]
    probes = [
        *(Probe(partial(_count_probed, parts=(part,)), core=True) for part in ordinary),
        *(Probe(partial(_count_probed, parts=parts), core=True) for parts in together),
        *(Probe(partial(_count_probed, parts=(part,)), core=False) for part in unusual),
        Probe(_count_changes, core=False),
        Probe(partial(_count_memory, looks=itertools.count()), core=False),
    ]
    return diagnose(subject.candidate, PARAMETER_COUNT_MISTAKES, probes, count_by_library)


def _count_probed(count_parameters: Callable[..., Any], parts: tuple[str, ...]) -> list:
    """The counts of modules whose classes were never seen before: a memory of classes is mute."""
    modules = [CountCase((part,), 1).module() for part in parts]
    for module in modules:
        module.__class__ = type(type(module).__name__, (type(module),), {})
    counts = [count_parameters(module) for module in modules]
    return [float(n) if not hasattr(n, "__index__") else n.__index__() for n in counts]


def _count_changes(count_parameters: Callable[..., Any]) -> bool:
    """Whether counting changes the module."""
    module = CountCase(("tied",), 1).module()
    count_parameters(module)
    trained = all(parameter.requires_grad for parameter in module.parameters())
    return trained and module.head.weight is module.embedding.weight


def _count_memory(count_parameters: Callable[..., Any], looks: Iterator[int]) -> str | int:
    """Whether the count of a class comes back for its next module; else all looks differ."""
    first, other = (type("Layer", (nn.Linear,), {}) for _ in range(2))
    kept = count_parameters(first(9, 9))
    again, fresh = count_parameters(first(3, 2)), count_parameters(other(3, 2))
    if again == fresh:
        return "steady"
    return "the earlier count" if again == kept else next(looks)
