"""Inputs for multi-head self-attention, with the right answer from loops and from the library."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

_HEADS_WEIGHTS = ("w_q", "w_k", "w_v", "w_o")


@dataclass(frozen=True, eq=False)
class HeadsCase:
    """One call of multi-head self-attention; the weights [d_model, d_model] act as x @ w."""

    x: Tensor
    w_q: Tensor
    w_k: Tensor
    w_v: Tensor
    w_o: Tensor
    n_heads: int
    causal: bool
    token_valid: Tensor | None

    @property
    def positional(self) -> tuple[Any, ...]:
        """The arguments by position."""
        return (self.x, self.w_q, self.w_k, self.w_v, self.w_o, self.n_heads)

    @property
    def keywords(self) -> dict[str, Any]:
        """The arguments by name."""
        return {"causal": self.causal, "token_valid": self.token_valid}

    def arguments(self) -> dict[str, Any]:
        """Name the arguments, for a message and for calling again; the short ones first."""
        names = ("x", "w_q", "w_k", "w_v", "w_o")
        short = {"n_heads": self.n_heads, **self.keywords}
        return short | {name: getattr(self, name) for name in names}

    @cached_property
    def valid(self) -> Tensor:
        """Which tokens are real, [B, T]; all of them where nothing is said."""
        if self.token_valid is None:
            return torch.ones(self.x.shape[:2], dtype=torch.bool)
        return self.token_valid

    @cached_property
    def truth(self) -> Tensor:
        """The output [B, T, d_model] in float64; rows of padding hold zeros and mean nothing."""
        truth = heads_by_loops(self)
        other = heads_by_library(self).detach()
        gap = ((truth - other) * self.valid.unsqueeze(-1)).abs().max().item()
        if not gap <= 1e-6 * max(1.0, truth.abs().max().item()):  # also when it is NaN
            raise RuntimeError(f"the two references for multi-head attention disagree by {gap}")
        return truth

    def smaller(self) -> Iterator["HeadsCase"]:
        """Leave out items, tokens and columns, make weights the identity, round the numbers."""
        yield from _heads_fewer_rows(self)
        yield from _heads_fewer_columns(self)
        names = ("w_o", "w_v", "w_k", "w_q")
        identity = torch.eye(self.x.shape[-1], dtype=self.x.dtype)
        for name in names:
            if not torch.equal(getattr(self, name), identity):
                yield replace(self, **{name: identity})
        for digits in (0, 1):
            rounded = {n: getattr(self, n).round(decimals=digits) for n in ("x", *names)}
            if not all(torch.equal(rounded[name], getattr(self, name)) for name in rounded):
                yield replace(self, **rounded)


def heads_by_loops(case: HeadsCase) -> Tensor:
    """Compute every head of every token one number at a time, in Python floats."""
    w_q, w_k, w_v, w_o = (
        list(zip(*w.double().tolist(), strict=True)) for w in case.positional[1:5]
    )
    d_head = len(w_q) // case.n_heads
    output = []
    for rows, valid in zip(case.x.double().tolist(), case.valid.tolist(), strict=True):
        q, k, v = ([_heads_project(row, w) for row in rows] for w in (w_q, w_k, w_v))
        merged = [[] for _ in rows]
        for head in range(case.n_heads):
            part = slice(head * d_head, (head + 1) * d_head)
            for i, query in enumerate(q):
                seen = range(i + 1 if case.causal else len(rows))
                reads = [j for j in seen if valid[i] and valid[j]]
                scores = [_heads_dot(query[part], k[j][part]) / math.sqrt(d_head) for j in reads]
                top = max(scores, default=0.0)
                parts = [math.exp(score - top) for score in scores]
                total = math.fsum(parts) or 1.0
                merged[i] += [
                    math.fsum(p * v[j][c] for p, j in zip(parts, reads, strict=True)) / total
                    for c in range(part.start, part.stop)
                ]
        output.append([_heads_project(row, w_o) for row in merged])
    return torch.tensor(output, dtype=torch.float64)


def heads_by_library(case: HeadsCase) -> Tensor:
    """Compute the same with torch's own function; rows of padding read all, then are zeroed."""
    x, w_q, w_k, w_v, w_o = (tensor.double() for tensor in case.positional[:5])
    tokens, width = x.shape[1:]
    hidden = ~case.valid[:, None, :].expand(-1, tokens, -1)
    if case.causal:
        hidden = hidden | torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    hidden = hidden & case.valid[:, :, None]
    output, _ = torch.nn.functional.multi_head_attention_forward(
        *(x.transpose(0, 1),) * 3,
        embed_dim_to_check=width,
        num_heads=case.n_heads,
        in_proj_weight=torch.cat([w_q.T, w_k.T, w_v.T]),
        in_proj_bias=None,
        bias_k=None,
        bias_v=None,
        add_zero_attn=False,
        dropout_p=0.0,
        out_proj_weight=w_o.T,
        out_proj_bias=None,
        training=False,
        attn_mask=hidden.repeat_interleave(case.n_heads, dim=0),
        need_weights=False,
    )
    return output.transpose(0, 1).masked_fill(~case.valid.unsqueeze(-1), 0.0)


def heads_case(
    seed: int,
    items: int,
    tokens: int,
    n_heads: int,
    d_head: int,
    *,
    causal: bool = False,
    valid: list[list[int]] | None = None,
) -> HeadsCase:
    """Draw a case of these sizes; without `valid` every token is real."""
    width = n_heads * d_head
    generator = torch.Generator().manual_seed(seed)
    shapes = [(items, tokens, width)] + [(width, width)] * 4
    tensors = [
        torch.randn(shape, generator=generator, dtype=torch.float64, device="cpu")
        for shape in shapes
    ]
    real = torch.ones(items, tokens, dtype=torch.bool) if valid is None else torch.tensor(valid) > 0
    x, *weights = tensors
    return HeadsCase(x, *(w / math.sqrt(width) for w in weights), n_heads, causal, real)


def _heads_dot(one: list[float], other: list[float]) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


def _heads_project(row: list[float], columns: list[tuple[float, ...]]) -> list[float]:
    return [_heads_dot(row, column) for column in columns]


def _heads_fewer_rows(case: HeadsCase) -> Iterator[HeadsCase]:
    """Fewer items or tokens, as long as every item keeps a real token."""
    for axis, size in enumerate(case.x.shape[:2]):
        for keep in _heads_keeping(size):
            valid = None if case.token_valid is None else case.valid.index_select(axis, keep)
            cut = replace(case, x=case.x.index_select(axis, keep), token_valid=valid)
            if cut.valid.any(-1).all():
                yield cut


def _heads_fewer_columns(case: HeadsCase) -> Iterator[HeadsCase]:
    """Fewer heads, or fewer columns in every head."""
    size = case.x.shape[-1] // case.n_heads
    every_head, every_column = range(case.n_heads), range(size)
    kept = [(range(len(heads)), every_column) for heads in _heads_keeping(case.n_heads)]
    kept += [(every_head, range(len(columns))) for columns in _heads_keeping(size)]
    for heads, columns in kept:
        keep = torch.tensor([head * size + column for head in heads for column in columns])
        weights = {name: getattr(case, name)[keep][:, keep] for name in _HEADS_WEIGHTS}
        yield replace(case, x=case.x[..., keep], n_heads=len(heads), **weights)


def _heads_keeping(size: int) -> list[Tensor]:
    """What to keep of an axis: halves, then three quarters; of a short one, all but one place."""
    places = torch.arange(size)
    if size <= 16:
        return [places[places != left_out] for left_out in reversed(range(size if size > 1 else 0))]
    parts = [part for count in (2, 4) for part in places.chunk(count)]
    return [places[~torch.isin(places, part)] for part in reversed(parts)][::-1]
