"""Calls of a block with sublayers that show what they are given; the right results, twice."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BLOCK_LAYERS = ("norm1", "attend", "norm2", "feed")


@dataclass(frozen=True, eq=False, repr=False)
class BlockLayer:
    """A sublayer plain enough to be worked out by hand.

    "zero" gives 0, "same" its very input, "linear" v @ matrix, "bend" tanh(v @ matrix),
    "norm" the tokens at mean 0 and variance 1, times the first row of the matrix, "past" the mean
    of each token and those before it, @ matrix.
    """

    kind: str
    matrix: Tensor

    def __call__(self, v: Tensor) -> Tensor:
        if self.kind == "same":
            return v
        if self.kind == "zero":
            return 0.0 * v
        matrix = self.matrix.to(v.dtype)
        if self.kind == "norm":
            return F.layer_norm(v, v.shape[-1:], eps=1e-5) * matrix[0]
        if self.kind == "past":
            count = torch.arange(1, v.shape[-2] + 1, dtype=v.dtype).unsqueeze(-1)
            return (v.cumsum(-2) / count) @ matrix
        return torch.tanh(v @ matrix) if self.kind == "bend" else v @ matrix

    def __repr__(self) -> str:
        shown = [[round(n, 4) + 0.0 for n in row] for row in self.matrix.tolist()]
        numbers = "[" + ", ".join("[" + ", ".join(f"{n:g}" for n in r) + "]" for r in shown) + "]"
        return {
            "same": "v -> v",
            "zero": "v -> 0 * v",
            "linear": f"v -> v @ {numbers}",
            "bend": f"v -> tanh(v @ {numbers})",
            "norm": f"v -> (v - mean) / std * {numbers.partition(']')[0][1:]}]",
            "past": f"v -> mean of v[: t + 1] @ {numbers}",
        }[self.kind]

    def by_loops(self, rows: list[list[float]]) -> list[list[float]]:
        """The same for one item [T, d], number by number."""
        if self.kind in ("same", "zero"):
            return [[n if self.kind == "same" else 0.0 for n in row] for row in rows]
        matrix, d = self.matrix.tolist(), len(rows[0])
        if self.kind == "norm":
            return [_block_normed(row, matrix[0]) for row in rows]
        if self.kind == "past":
            rows = [
                [math.fsum(row[j] for row in rows[: t + 1]) / (t + 1) for j in range(d)]
                for t in range(len(rows))
            ]
        made = [[math.fsum(r[i] * matrix[i][j] for i in range(d)) for j in range(d)] for r in rows]
        return [[math.tanh(n) for n in row] for row in made] if self.kind == "bend" else made

    def cut(self, d: int) -> "BlockLayer":
        """For tokens of fewer numbers."""
        return replace(self, matrix=self.matrix[:d, :d].clone())


def _block_normed(row: list[float], gain: list[float]) -> list[float]:
    mean = math.fsum(row) / len(row)
    root = math.sqrt(math.fsum((n - mean) ** 2 for n in row) / len(row) + 1e-5)
    return [(n - mean) / root * g for n, g in zip(row, gain, strict=True)]


class BlockWatcher(nn.Module):
    """A sublayer that keeps what it was given; told how many tokens there are, it counts rounds.

    In round n, which begins when all the tokens have passed n - 1 times, it gives n times the
    result; so a block may take the items one by one, but no token twice.
    """

    def __init__(self, layer: BlockLayer, tokens: int = 0) -> None:
        super().__init__()
        self.layer, self.tokens, self.passed = layer, tokens, 0
        self.given: list[Tensor] = []

    def forward(self, v: Tensor) -> Tensor:
        self.given.append(v.detach().clone())
        self.passed += v[..., 0].numel()
        made = self.layer(v)
        return made * math.ceil(self.passed / self.tokens) if self.tokens else made

    def __repr__(self) -> str:
        return f"{self.layer}" + (" * number of the round" if self.tokens else "")


@dataclass(frozen=True, eq=False)
class BlockCase:
    """One call of a block: the stream and the four sublayers, which may count their calls."""

    x: Tensor
    layers: tuple[BlockLayer, ...]
    counting: bool = False

    def arguments(self) -> dict[str, Any]:
        """Name the arguments, for a message and for calling again."""
        return {"x": self.x, **dict(zip(BLOCK_LAYERS, self.watched(), strict=True))}

    def watched(self) -> list[BlockWatcher]:
        """Fresh sublayers that keep what they are given."""
        tokens = self.x[..., 0].numel() if self.counting else 0
        return [BlockWatcher(layer, tokens) for layer in self.layers]

    def smaller(self) -> Iterator["BlockCase"]:
        """Take away items, tokens and columns; then make the sublayers and the numbers plainer."""
        if self.x.dim() > 2:
            yield replace(self, x=self.x[0].clone())
        for axis in range(self.x.dim() - 1):
            size = self.x.shape[axis]
            for less in {size // 2, size - 1} - {0}:
                yield replace(self, x=self.x.narrow(axis, 0, less).clone())
        d = self.x.shape[-1]
        for less in sorted({d // 2, d - 1} - {0}):
            layers = tuple(layer.cut(less) for layer in self.layers)
            yield replace(self, x=self.x[..., :less].clone(), layers=layers)
        for place, layer in enumerate(self.layers):
            plainer = {"bend": "linear", "past": "linear", "norm": "linear", "linear": "same"}
            if layer.kind in plainer:
                yield self.with_layer(place, replace(layer, kind=plainer[layer.kind]))
        if (self.x != 1).any():
            yield replace(self, x=torch.ones_like(self.x))
        if not torch.equal(self.x, self.x.round()):
            yield replace(self, x=self.x.round())
        for place, layer in enumerate(self.layers):
            if not torch.equal(layer.matrix, layer.matrix.round()):
                yield self.with_layer(place, replace(layer, matrix=layer.matrix.round()))

    def with_layer(self, place: int, layer: BlockLayer) -> "BlockCase":
        """The same call with one sublayer replaced."""
        return replace(self, layers=(*self.layers[:place], layer, *self.layers[place + 1 :]))


def block_case(
    seed: int,
    *shape: int,
    kinds: str = "linear linear linear linear",
    size: float = 1.0,
    counting: bool = False,
    dtype: torch.dtype = torch.float64,
) -> BlockCase:
    """Make a random call; matrices that do not commute, each far from the identity."""
    generator = torch.Generator().manual_seed(seed)
    d = shape[-1]

    def normal(*sizes: int) -> Tensor:
        return torch.randn(*sizes, generator=generator, dtype=torch.float64)

    x = 0.3 + size * normal(*shape)
    layers = tuple(BlockLayer(kind, 0.5 + normal(d, d)) for kind in kinds.split())
    return BlockCase(x.to(dtype), layers, counting)


def block_inputs(case: BlockCase) -> list[Tensor]:
    """What each sublayer must be given, and at the end the result."""
    norm1, attend, norm2, feed = case.layers
    x = case.x.double()
    first = norm1(x)
    middle = x + attend(first)
    second = norm2(middle)
    return [x, first, middle, second, middle + feed(second)]


def block_by_loops(case: BlockCase) -> Tensor:
    """The result, item by item and number by number."""
    norm1, attend, norm2, feed = case.layers
    items = []
    for item in case.x.double().reshape(-1, *case.x.shape[-2:]).tolist():
        for norm, sublayer in ((norm1, attend), (norm2, feed)):
            read = sublayer.by_loops(norm.by_loops(item))
            item = [
                [a + b for a, b in zip(*rows, strict=True)] for rows in zip(item, read, strict=True)
            ]
        items.append(item)
    return torch.tensor(items, dtype=torch.float64).reshape(case.x.shape)


def block_truth(case: BlockCase) -> Tensor:
    """The right result; both references must agree on it."""
    plain, library = block_by_loops(case), block_inputs(case)[-1]
    if not ((plain - library).abs() <= 1e-9 * plain.abs().clamp(min=1.0)).all():
        raise RuntimeError(f"the two references for a block disagree on {case}")
    return plain


def block_direction(shape: torch.Size) -> Tensor:
    """What the gradients are of: the result times these numbers, summed."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(9), dtype=torch.float64)


def block_gradients(case: BlockCase) -> list[Tensor]:
    """Of x and of the four matrices, where all is linear: by formula and by the library."""
    x, pull = case.x.double(), block_direction(case.x.shape)
    norm1, attend, norm2, feed = (layer.matrix for layer in case.layers)
    middle = x + x @ norm1 @ attend
    pull_middle = pull + pull @ feed.T @ norm2.T
    by_formula = [
        pull_middle + pull_middle @ attend.T @ norm1.T,
        _block_outer(x, pull_middle @ attend.T),
        _block_outer(x @ norm1, pull_middle),
        _block_outer(middle, pull @ feed.T),
        _block_outer(middle @ norm2, pull),
    ]
    leaves = [t.clone().requires_grad_() for t in (x, norm1, attend, norm2, feed)]
    layers = tuple(BlockLayer("linear", leaf) for leaf in leaves[1:])
    result = block_inputs(BlockCase(leaves[0], layers))[-1]
    by_library = torch.autograd.grad((result * pull).sum(), leaves)
    for mine, other in zip(by_formula, by_library, strict=True):
        if not ((mine - other).abs() <= 1e-8 * other.abs().clamp(min=1.0)).all():
            raise RuntimeError(f"the two references for a block's gradients disagree on {case}")
    return by_formula


def _block_outer(left: Tensor, right: Tensor) -> Tensor:
    """Summed over all tokens: left[t, i] * right[t, j]."""
    d = left.shape[-1]
    return left.reshape(-1, d).T @ right.reshape(-1, d)
