"""Calls of a layer norm, their right results and gradients, by two references each."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

NORM_EPS = 1e-5


@dataclass(frozen=True, eq=False)
class NormCase:
    """One call of a layer norm; `eps` None leaves the argument out, `by_name` names it."""

    x: Tensor
    gain: Tensor
    bias: Tensor
    eps: float | None = None
    by_name: bool = False

    def arguments(self) -> dict[str, Any]:
        """Name the arguments, for a message and for calling again."""
        named = {"x": self.x, "gain": self.gain, "bias": self.bias}
        return named if self.eps is None else {**named, "eps": self.eps}

    @property
    def positional(self) -> tuple[Any, ...]:
        """The arguments in their order."""
        named = () if self.eps is None or self.by_name else (self.eps,)
        return (self.x, self.gain, self.bias, *named)

    @property
    def keywords(self) -> dict[str, float]:
        """The arguments by name."""
        return {"eps": self.eps} if self.eps is not None and self.by_name else {}

    @property
    def real_eps(self) -> float:
        """The eps that holds in this call."""
        return NORM_EPS if self.eps is None else self.eps

    def smaller(self) -> Iterator["NormCase"]:
        """Take away items, tokens and columns; then make the numbers plainer."""
        for axis in range(self.x.dim() - 1):
            size = self.x.shape[axis]
            for less in {size // 2, size - 1} - {0}:
                yield replace(self, x=self.x.narrow(axis, 0, less).clone())
        d = self.x.shape[-1]
        for less in sorted({d // 2, d - 1} - {0}):
            gain, bias = self.gain[:less].clone(), self.bias[:less].clone()
            yield replace(self, x=self.x[..., :less].clone(), gain=gain, bias=bias)
        if self.x.dim() > 1:
            yield replace(self, x=self.x[0].clone())
        if (self.gain != 1).any():
            yield replace(self, gain=torch.ones_like(self.gain))
        if (self.bias != 0).any():
            yield replace(self, bias=torch.zeros_like(self.bias))
        yield from self._plainer()

    def _plainer(self) -> Iterator["NormCase"]:
        """Numbers of fewer digits."""
        for decimals in (0, 1):
            for name in ("x", "gain", "bias"):
                value = getattr(self, name)
                plain = value.round(decimals=decimals)
                if not torch.equal(plain, value):
                    yield replace(self, **{name: plain})


def norm_case(
    seed: int,
    *shape: int,
    eps: float | None = None,
    size: float = 1.0,
    offset: float = 0.5,
    by_name: bool = False,
    dtype: torch.dtype = torch.float64,
) -> NormCase:
    """Make a random call: numbers of a given spread around an offset."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*sizes: int) -> Tensor:
        return torch.randn(*sizes, generator=generator, dtype=torch.float64)

    x = offset + size * normal(*shape)
    gain, bias = 1 + 0.5 * normal(shape[-1]), normal(shape[-1])
    return NormCase(x.to(dtype), gain.to(dtype), bias.to(dtype), eps, by_name)


def norm_by_loops(case: NormCase) -> Tensor:
    """Row by row and number by number, with sums that do not round."""
    d = case.x.shape[-1]
    gain, bias = case.gain.tolist(), case.bias.tolist()
    rows = []
    for row in case.x.reshape(-1, d).tolist():
        mean = math.fsum(row) / d
        spread = math.sqrt(math.fsum((n - mean) ** 2 for n in row) / d + case.real_eps)
        rows.append([(row[i] - mean) / spread * gain[i] + bias[i] for i in range(d)])
    return torch.tensor(rows, dtype=torch.float64).reshape(case.x.shape)


def norm_by_library(case: NormCase) -> Tensor:
    """The library's own layer norm, in float64."""
    x, gain, bias = (tensor.double() for tensor in (case.x, case.gain, case.bias))
    return F.layer_norm(x, x.shape[-1:], gain, bias, case.real_eps)


def norm_truth(case: NormCase) -> Tensor:
    """The right result; both references must agree on it, and it must be finite."""
    plain, library = norm_by_loops(case), norm_by_library(case)
    if not ((plain - library).abs() <= 1e-8 * library.abs().clamp(min=1.0)).all():
        raise RuntimeError(f"the two references for layer norm disagree on {case}")
    return plain


def norm_direction(shape: torch.Size) -> Tensor:
    """What the gradients are of: the result times these numbers, summed."""
    generator = torch.Generator().manual_seed(7)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def norm_gradients(case: NormCase) -> tuple[Tensor, ...]:
    """The gradients of x, gain and bias: by formula and by the library, which must agree."""
    x = case.x.double()
    direction = norm_direction(x.shape)
    centred = x - x.mean(-1, keepdim=True)
    spread = (centred.square().mean(-1, keepdim=True) + case.real_eps).sqrt()
    pull = direction * case.gain.double()
    along = (pull * centred).mean(-1, keepdim=True) / spread.square()
    rows = tuple(range(x.dim() - 1))
    of_x = (pull - pull.mean(-1, keepdim=True) - centred * along) / spread
    of_gain = (direction * centred / spread).reshape(-1, x.shape[-1]).sum(0)
    of_bias = direction.sum(rows) if rows else direction
    by_formula = (of_x, of_gain, of_bias)
    leaves = [t.double().clone().requires_grad_() for t in (case.x, case.gain, case.bias)]
    result = F.layer_norm(leaves[0], x.shape[-1:], leaves[1], leaves[2], case.real_eps)
    by_library = torch.autograd.grad((result * direction).sum(), leaves)
    for mine, other in zip(by_formula, by_library, strict=True):
        if not ((mine - other).abs() <= 1e-8 * other.abs().clamp(min=1.0)).all():
            raise RuntimeError(f"the two references for the gradients disagree on {case}")
    return by_formula
