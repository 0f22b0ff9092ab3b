"""Calls of multi-head self-attention, with the right answer from loops and from the library."""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.call import Call, Given
from course_lib.contracts.engine.form import Form

WEIGHTS = ("w_q", "w_k", "w_v", "w_o")
TENSORS = ("x", *WEIGHTS)
_FORM = Form.read(
    "x [B,T,d], w_q [d,d], w_k [d,d], w_v [d,d], w_o [d,d], n_heads, *, causal, token_valid [B,T]"
)


class HeadsCall(Call):
    """One call of multi-head self-attention; the weights [d_model, d_model] act as x @ w.

    token_valid is passed in any call, be it None. The columns of a head go together, so that the
    axes alone do not say how a call is cut down.
    """

    @property
    def valid(self) -> Tensor:
        """Which tokens are real, [B, T]; all of them where nothing is said."""
        if self.token_valid is None:
            return torch.ones(self.x.shape[:2], dtype=torch.bool)
        return self.token_valid

    @property
    def d_head(self) -> int:
        """The width of one head."""
        return self.x.shape[-1] // self.n_heads

    @property
    def positions(self) -> tuple[Tensor, Tensor]:
        """The position of a query as a column, of a key as a row."""
        i = torch.arange(self.x.shape[1])
        return i.unsqueeze(-1), i

    def arguments(self) -> dict[str, Any]:
        """Name the arguments, for a message and for calling again; the short ones first."""
        short = {name: self.args.get(name) for name in ("n_heads", "causal", "token_valid")}
        return short | {name: self.args[name] for name in TENSORS}

    def fresh(self) -> Given:
        """Copies of the arguments for one call."""
        given = super().fresh()
        return Given({**given.values, "token_valid": given.values.get("token_valid")}, given.named)

    def smaller(self) -> Iterator["HeadsCall"]:
        """Leave out items, tokens and columns, make weights the identity, round the numbers."""
        yield from _fewer_rows(self)
        yield from _fewer_columns(self)
        identity = torch.eye(self.x.shape[-1], dtype=self.x.dtype)
        for name in reversed(WEIGHTS):
            if not torch.equal(self.args[name], identity):
                yield self.but(**{name: identity})
        for digits in (0, 1):
            rounded = {name: self.args[name].round(decimals=digits) for name in TENSORS}
            if not all(torch.equal(rounded[name], self.args[name]) for name in rounded):
                yield self.but(**rounded)


def ask(*values: Any) -> HeadsCall:
    """A call with these arguments, in their order; token_valid may be None."""
    given = zip(_FORM.axes, values, strict=True)
    args = {name: value for name, value in given if value is not None}
    return HeadsCall(_FORM, args, _FORM.named)


def drawn(
    seed: int,
    items: int,
    tokens: int,
    n_heads: int,
    d_head: int,
    *,
    causal: bool = False,
    valid: list[list[int]] | None = None,
) -> HeadsCall:
    """Draw a call of these sizes; without `valid` every token is real."""
    width = n_heads * d_head
    chance = torch.Generator().manual_seed(seed)
    shapes = [(items, tokens, width)] + [(width, width)] * 4
    x, *weights = (torch.randn(s, generator=chance, dtype=torch.float64) for s in shapes)
    real = torch.ones(items, tokens, dtype=torch.bool) if valid is None else torch.tensor(valid) > 0
    return ask(x, *(w / math.sqrt(width) for w in weights), n_heads, causal, real)


def padding() -> list[HeadsCall]:
    """Padding on the right, on the left and in the middle; as many items as heads, and not."""
    right = [[1, 1, 1, 1], [1, 1, 0, 0]]
    left, middle = [[0, 0, 1, 1], [0, 1, 1, 1]], [[1, 0, 1, 1], [1, 1, 0, 1], [1, 0, 0, 1]]
    lengths = [[1, 1, 1], [1, 0, 0], [1, 1, 0]]
    return [
        drawn(40, 2, 4, 2, 3, valid=right),
        drawn(41, 2, 4, 3, 2, valid=right),
        drawn(42, 2, 4, 2, 3, valid=left, causal=True),
        drawn(43, 3, 4, 2, 2, valid=middle),
        drawn(44, 3, 3, 3, 2, valid=lengths, causal=True),
        drawn(45, 2, 4, 2, 3, valid=left),
        drawn(46, 2, 4, 1, 5, valid=right[::-1]),
    ]


def long() -> list[HeadsCall]:
    """Past blocks of 64 and of 512; whole blocks are padding, first or last, or scattered."""
    valid = torch.ones(2, 131, dtype=torch.int64)
    valid[0, :70], valid[1, 64:] = 0, 0
    return [
        drawn(50, 2, 131, 1, 1, valid=valid.tolist()),
        drawn(51, 1, 131, 2, 1, causal=True),
        drawn(52, 1, 521, 1, 1, valid=[[n % 5 == 0 for n in range(521)]]),
    ]


def extreme(many: HeadsCall, padded: list[HeadsCall]) -> list[HeadsCall]:
    """Scores in the thousands; then similar tokens and opposite projections: all about -size."""
    high = [call.but(w_q=call.w_q * 60, w_k=call.w_k * 60) for call in (many, *padded)]
    low = [
        call.but(x=1 + 0.1 * call.x, w_k=-size * call.w_q)
        for call in padded
        for size in (1e3, 1e6, 1e12)
    ]
    return high + low


def strided(call: HeadsCall) -> Call:
    """The same numbers, laid out in memory with their first two axes exchanged."""
    turned = {name: call.args[name].transpose(0, 1).contiguous() for name in TENSORS}
    return call.but(**{name: tensor.transpose(0, 1) for name, tensor in turned.items()})


def by_loops(call: HeadsCall) -> Tensor:
    """Compute every head of every token one number at a time, in Python floats."""
    w_q, w_k, w_v, w_o = (
        list(zip(*call.args[name].double().tolist(), strict=True)) for name in WEIGHTS
    )
    d_head, output = call.d_head, []
    for rows, valid in zip(call.x.double().tolist(), call.valid.tolist(), strict=True):
        q, k, v = ([_project(row, w) for row in rows] for w in (w_q, w_k, w_v))
        merged = [[] for _ in rows]
        for head in range(call.n_heads):
            part = slice(head * d_head, (head + 1) * d_head)
            for i, query in enumerate(q):
                seen = range(i + 1 if call.causal else len(rows))
                reads = [j for j in seen if valid[i] and valid[j]]
                scores = [_dot(query[part], k[j][part]) / math.sqrt(d_head) for j in reads]
                top = max(scores, default=0.0)
                parts = [math.exp(score - top) for score in scores]
                total = math.fsum(parts) or 1.0
                merged[i] += [
                    math.fsum(p * v[j][c] for p, j in zip(parts, reads, strict=True)) / total
                    for c in range(part.start, part.stop)
                ]
        output.append([_project(row, w_o) for row in merged])
    return torch.tensor(output, dtype=torch.float64)


def by_library(call: HeadsCall) -> Tensor:
    """Compute the same with torch's own function; rows of padding read all, then are zeroed."""
    x, w_q, w_k, w_v, w_o = (call.args[name].double() for name in TENSORS)
    tokens, width = x.shape[1:]
    hidden = ~call.valid[:, None, :].expand(-1, tokens, -1)
    if call.causal:
        hidden = hidden | torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    hidden = hidden & call.valid[:, :, None]
    output, _ = torch.nn.functional.multi_head_attention_forward(
        *(x.transpose(0, 1),) * 3,
        embed_dim_to_check=width,
        num_heads=call.n_heads,
        in_proj_weight=torch.cat([w_q.T, w_k.T, w_v.T]),
        in_proj_bias=None,
        bias_k=None,
        bias_v=None,
        add_zero_attn=False,
        dropout_p=0.0,
        out_proj_weight=w_o.T,
        out_proj_bias=None,
        training=False,
        attn_mask=hidden.repeat_interleave(call.n_heads, dim=0),
        need_weights=False,
    )
    return output.transpose(0, 1).masked_fill(~call.valid.unsqueeze(-1), 0.0)


def direction(call: HeadsCall) -> Tensor:
    """What the gradients are of: the output times these numbers, summed; padding counts nothing."""
    weight = torch.linspace(-1, 1, call.x.numel(), dtype=torch.float64).reshape(call.x.shape)
    return weight * call.valid.unsqueeze(-1)


def gradients(call: HeadsCall) -> dict[str, Tensor]:
    """The right gradients of x and of every weight."""
    leaves = {name: call.args[name].clone().requires_grad_() for name in TENSORS}
    loss = (by_library(call.but(**leaves)) * direction(call)).sum()
    return dict(zip(TENSORS, torch.autograd.grad(loss, list(leaves.values())), strict=True))


def _dot(one: list[float], other: list[float]) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


def _project(row: list[float], columns: list[tuple[float, ...]]) -> list[float]:
    return [_dot(row, column) for column in columns]


def _fewer_rows(call: HeadsCall) -> Iterator[HeadsCall]:
    """Fewer items or tokens, as long as every item keeps a real token."""
    for axis, size in enumerate(call.x.shape[:2]):
        for keep in _keeping(size):
            cut = call.but(x=call.x.index_select(axis, keep))
            if call.token_valid is not None:
                cut = cut.but(token_valid=call.valid.index_select(axis, keep))
            if cut.valid.any(-1).all():
                yield cut


def _fewer_columns(call: HeadsCall) -> Iterator[HeadsCall]:
    """Fewer heads, or fewer columns in every head."""
    size = call.d_head
    every_head, every_column = range(call.n_heads), range(size)
    kept = [(range(len(heads)), every_column) for heads in _keeping(call.n_heads)]
    kept += [(every_head, range(len(columns))) for columns in _keeping(size)]
    for heads, columns in kept:
        keep = torch.tensor([head * size + column for head in heads for column in columns])
        weights = {name: call.args[name][keep][:, keep] for name in WEIGHTS}
        yield call.but(x=call.x[..., keep], n_heads=len(heads), **weights)


def _keeping(size: int) -> list[Tensor]:
    """What to keep of an axis: halves, then three quarters; of a short one, all but one place."""
    places = torch.arange(size)
    if size <= 16:
        return [places[places != left_out] for left_out in reversed(range(size if size > 1 else 0))]
    parts = [part for count in (2, 4) for part in places.chunk(count)]
    return [places[~torch.isin(places, part)] for part in reversed(parts)][::-1]
