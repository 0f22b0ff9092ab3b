"""Calls of a block with sublayers that show what they are given; the right results, twice."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.contracts.engine.call import Call, Given, copied
from course_lib.contracts.engine.form import Form

NAMES = ("norm1", "attend", "norm2", "feed")
_FORM = Form.read(
    "x [...,T,d], norm1 [d,d], attend [d,d], norm2 [d,d], feed [d,d], kinds, counting"
)
_PLAINER = {"bend": "linear", "past": "linear", "norm": "linear", "linear": "same"}


@dataclass(frozen=True, eq=False, repr=False)
class Layer:
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
            return [_normed(row, matrix[0]) for row in rows]
        if self.kind == "past":
            rows = [
                [math.fsum(row[j] for row in rows[: t + 1]) / (t + 1) for j in range(d)]
                for t in range(len(rows))
            ]
        made = [[math.fsum(r[i] * matrix[i][j] for i in range(d)) for j in range(d)] for r in rows]
        return [[math.tanh(n) for n in row] for row in made] if self.kind == "bend" else made


def _normed(row: list[float], gain: list[float]) -> list[float]:
    mean = math.fsum(row) / len(row)
    root = math.sqrt(math.fsum((n - mean) ** 2 for n in row) / len(row) + 1e-5)
    return [(n - mean) / root * g for n, g in zip(row, gain, strict=True)]


class Watcher(nn.Module):
    """A sublayer that keeps what it was given; told how many tokens there are, it counts rounds.

    In round n, which begins when all the tokens have passed n - 1 times, it gives n times the
    result; so a block may take the items one by one, but no token twice.
    """

    def __init__(self, layer: Layer, tokens: int = 0) -> None:
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


class BlockCall(Call):
    """A call that holds the matrices of its sublayers, so that they are cut with x.

    What the block is given are fresh watchers, made of the matrices and of their kinds.
    """

    @property
    def layers(self) -> list[Layer]:
        """The four sublayers."""
        return [Layer(kind, self.args[n]) for n, kind in zip(NAMES, self.kinds, strict=True)]

    def watched(self) -> list[Watcher]:
        """Fresh sublayers that keep what they are given."""
        tokens = self.x[..., 0].numel() if self.counting else 0
        return [Watcher(layer, tokens) for layer in self.layers]

    def tracked(self, names: Iterable[str]) -> tuple[Given, list[Tensor]]:
        """Copies of x and of the matrices that ask for a gradient; linear sublayers with these."""
        leaves = {name: self.args[name].clone().requires_grad_() for name in names}
        layers = {name: Watcher(Layer("linear", leaves[name])) for name in NAMES}
        return Given({"x": leaves["x"], **layers}, frozenset()), list(leaves.values())

    def arguments(self) -> dict[str, Any]:
        """Name the arguments, for a message and for calling again."""
        return {"x": self.x, **dict(zip(NAMES, self.watched(), strict=True))}

    def fresh(self) -> Given:
        """Copies of the arguments for one call; the sublayers are kept, to be asked afterwards."""
        self.kept["watched"] = layers = self.watched()
        named = dict(zip(NAMES, layers, strict=True))
        return Given({"x": copied(self.x), **named}, frozenset())


def _shorter(call: Any) -> Iterator[Call]:
    """Plainer sublayers, then a stream of ones, in which sums are read off at a glance."""
    for place, kind in enumerate(call.kinds):
        if kind in _PLAINER:
            yield call.but(kinds=(*call.kinds[:place], _PLAINER[kind], *call.kinds[place + 1 :]))
    if (call.x != 1).any():
        yield call.but(x=torch.ones_like(call.x))


def drawn(
    seed: int,
    *shape: int,
    kinds: str = "linear linear linear linear",
    size: float = 1.0,
    counting: bool = False,
    dtype: torch.dtype = torch.float64,
) -> BlockCall:
    """Make a random call; matrices that do not commute, each far from the identity."""
    chance = torch.Generator().manual_seed(seed)
    x = 0.3 + size * torch.randn(shape, generator=chance, dtype=torch.float64)
    matrices = {
        name: 0.5 + torch.randn(shape[-1], shape[-1], generator=chance, dtype=torch.float64)
        for name in NAMES
    }
    args = {"x": x.to(dtype), **matrices, "kinds": tuple(kinds.split()), "counting": counting}
    return BlockCall(_FORM, args, shorter=_shorter)


def inputs(call: BlockCall) -> list[Tensor]:
    """What each sublayer must be given, and at the end the result."""
    return _inputs(call.x.double(), *call.layers)


def _inputs(x: Tensor, norm1: Any, attend: Any, norm2: Any, feed: Any) -> list[Tensor]:
    first = norm1(x)
    middle = x + attend(first)
    second = norm2(middle)
    return [x, first, middle, second, middle + feed(second)]


def by_loops(call: BlockCall) -> Tensor:
    """The result, item by item and number by number."""
    norm1, attend, norm2, feed = call.layers
    items = []
    for item in call.x.double().reshape(-1, *call.x.shape[-2:]).tolist():
        for norm, sublayer in ((norm1, attend), (norm2, feed)):
            read = sublayer.by_loops(norm.by_loops(item))
            item = [
                [a + b for a, b in zip(*rows, strict=True)] for rows in zip(item, read, strict=True)
            ]
        items.append(item)
    return torch.tensor(items, dtype=torch.float64).reshape(call.x.shape)


def direction(result: Tensor) -> Tensor:
    """What the gradients are of: the result times these numbers, summed."""
    chance = torch.Generator().manual_seed(9)
    return torch.randn(result.shape, generator=chance, dtype=torch.float64)


def gradients(call: BlockCall) -> dict[str, Tensor]:
    """Of x and of the four matrices, where all is linear: by formula and by the library."""
    x, norm1, attend, norm2, feed = (call.args[name].double() for name in ("x", *NAMES))
    pull = direction(x)
    middle = x + x @ norm1 @ attend
    pull_middle = pull + pull @ feed.T @ norm2.T
    by_formula = [
        pull_middle + pull_middle @ attend.T @ norm1.T,
        _outer(x, pull_middle @ attend.T),
        _outer(x @ norm1, pull_middle),
        _outer(middle, pull @ feed.T),
        _outer(middle @ norm2, pull),
    ]
    given, leaves = call.tracked(("x", *NAMES))
    by_library = torch.autograd.grad((_inputs(*given.values.values())[-1] * pull).sum(), leaves)
    for mine, other in zip(by_formula, by_library, strict=True):
        if not ((mine - other).abs() <= 1e-8 * other.abs().clamp(min=1.0)).all():
            raise RuntimeError(f"the two references for a block's gradients disagree on {call}")
    return dict(zip(("x", *NAMES), by_formula, strict=True))


def _outer(left: Tensor, right: Tensor) -> Tensor:
    """Summed over all tokens: left[t, i] * right[t, j]."""
    d = left.shape[-1]
    return left.reshape(-1, d).T @ right.reshape(-1, d)
