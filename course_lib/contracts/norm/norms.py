"""Calls of a layer norm, with the right results and gradients by references that must agree."""

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.contracts.engine.call import Call, Calls


def _plainer(call: Call) -> list[Call]:
    """Without gain, without bias."""
    plain = {"gain": torch.ones_like(call.gain), "bias": torch.zeros_like(call.bias)}
    return [
        call.but(**{name: value})
        for name, value in plain.items()
        if not torch.equal(call.args[name], value)
    ]


make = Calls("x [...,d], gain [d], bias [d], eps", shorter=_plainer)

# ---------------------------------------------------------------- what is right, twice


def eps_of(call: Call) -> float:
    """The eps that holds in this call."""
    return 1e-5 if call.eps is None else call.eps


def by_loops(call: Call) -> Tensor:
    """Row by row and number by number, with sums that do not round."""
    d, gain, bias, rows = call.x.shape[-1], call.gain.tolist(), call.bias.tolist(), []
    for row in call.x.reshape(-1, d).tolist():
        mean = math.fsum(row) / d
        spread = math.sqrt(math.fsum((n - mean) ** 2 for n in row) / d + eps_of(call))
        rows.append([(row[i] - mean) / spread * gain[i] + bias[i] for i in range(d)])
    return torch.tensor(rows, dtype=torch.float64).reshape(call.x.shape)


def by_library(call: Call) -> Tensor:
    """By torch's own function, in float64."""
    x, gain, bias = (tensor.double() for tensor in (call.x, call.gain, call.bias))
    return F.layer_norm(x, x.shape[-1:], gain, bias, eps_of(call))


_BY_HAND = {  # eps and x: means, variances and roots that come out even
    (3.0, (1.0, -1.0)): (0.5, -0.5),
    (2.0, (3.0, 1.0, 1.0, -1.0)): (1.0, 0.0, 0.0, -1.0),
    (1.0, (5.0, 5.0, -1.0)): (2 / 3, 2 / 3, -4 / 3),
}


def by_hand(call: Call) -> Tensor | None:
    """The rows that were worked out by hand, without gain and bias."""
    row = tuple(call.x.tolist()) if call.x.dim() == 1 else ()
    plain = call.gain.eq(1).all() and call.bias.eq(0).all()
    y = _BY_HAND.get((eps_of(call), row)) if plain else None
    return None if y is None else torch.tensor(y, dtype=torch.float64)


def direction(y: Tensor) -> Tensor:
    """What the gradients are of: the result times these numbers, summed."""
    chance = torch.Generator().manual_seed(7)
    return torch.randn(*y.shape, generator=chance, dtype=torch.float64)


def right_gradients(call: Call) -> dict[str, Tensor]:
    """The gradients of x, gain and bias: by formula and by the library, which must agree."""
    x, way = call.x.double(), direction(call.x)
    centred = x - x.mean(-1, keepdim=True)
    spread = (centred.square().mean(-1, keepdim=True) + eps_of(call)).sqrt()
    pull = way * call.gain.double()
    along = (pull * centred).mean(-1, keepdim=True) / spread.square()
    of_x = (pull - pull.mean(-1, keepdim=True) - centred * along) / spread
    of_gain, of_bias = ((way * p).reshape(-1, x.shape[-1]).sum(0) for p in (centred / spread, 1.0))
    leaves = [t.double().clone().requires_grad_() for t in (call.x, call.gain, call.bias)]
    y = F.layer_norm(leaves[0], x.shape[-1:], leaves[1], leaves[2], eps_of(call))
    by_formula = {"x": of_x, "gain": of_gain, "bias": of_bias}
    found = torch.autograd.grad((y * way).sum(), leaves)
    for mine, other in zip(by_formula.values(), found, strict=True):
        if not torch.allclose(mine, other, rtol=1e-8, atol=1e-8):
            raise RuntimeError(f"the two references for the gradients disagree on {call}")
    return by_formula


# ---------------------------------------------------------------- calls


def drawn(
    seed: int,
    *shape: int,
    eps: float | None = None,
    size: float = 1.0,
    offset: float = 0.5,
    dtype: torch.dtype = torch.float64,
    named: tuple[str, ...] = (),
) -> Call:
    """Random numbers of a given spread around an offset."""
    chance = torch.Generator().manual_seed(seed)
    normal = partial(torch.randn, generator=chance, dtype=torch.float64)
    x, gain, bias = offset + size * normal(shape), 1 + 0.5 * normal(shape[-1]), normal(shape[-1])
    return make(x.to(dtype), gain.to(dtype), bias.to(dtype), eps, named=named)


def rows_by_hand() -> list[Call]:
    """The calls whose results were worked out by hand."""
    rows = [(eps, torch.tensor(row, dtype=torch.float64)) for eps, row in _BY_HAND]
    return [make(row, torch.ones_like(row), torch.zeros_like(row), eps) for eps, row in rows]


def any_shapes() -> list[Call]:
    """All numbers of axes, widths of 1, equal sizes, past any block, a spike, a transposed x."""
    shapes = [(4,), (3, 2), (2, 3, 7), (2, 1, 3, 6), (3, 3, 3), (1, 1, 5), (5, 1), (2, 4, 1), (1,)]
    shapes += [(70, 64), (1, 300), (1, 3, 4), (3, 50, 4), (2, 1, 2, 1, 3), (2, 1100)]
    calls = [drawn(20 + n, *shape) for n, shape in enumerate(shapes)]
    calls[-1].x[:, 700] = 900.0  # a spike is √d deviations high
    return [*calls, calls[2].but(x=calls[2].x.transpose(0, 1))]


def any_eps() -> list[Call]:
    """Tiny and large eps with numbers of that size, by position and by name."""
    sizes = [(1e-12, 1e-5), (1e-3, 0.01), (0.5, 1.0), (10.0, 0.3), (1e-7, 1.0), (1e-9, 1e-4)]
    named = [("eps",), ()]
    return [
        drawn(50 + n, 3, 4 + n, eps=eps, size=size, offset=size, named=named[n % 2])
        for n, (eps, size) in enumerate(sizes)
    ]


def between(call: Call) -> list[Call]:
    """Calls of the same and of other sizes, with other numbers and another eps."""
    others = [drawn(97, *call.x.shape, size=20.0, offset=5.0), drawn(98, 4, call.x.shape[-1] + 1)]
    return [others[0], others[1].but(eps=0.7), call.but(eps=2.0)]
