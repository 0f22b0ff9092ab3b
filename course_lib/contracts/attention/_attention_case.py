"""Inputs for attention, with the right answer worked out twice: by loops and by the library."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor


class AttentionTruth(NamedTuple):
    """The four fields that attention must return, in float64 and in the joint batch shape."""

    output: Tensor
    weights: Tensor
    scores: Tensor
    empty_rows: Tensor


@dataclass(frozen=True, eq=False)
class AttentionCase:
    """One call of attention; `empty_row` None leaves the argument out."""

    q: Tensor
    k: Tensor
    v: Tensor
    allowed: Tensor | None = None
    empty_row: str | None = None

    @property
    def positional(self) -> tuple[Tensor, ...]:
        """The arguments by position."""
        return (self.q, self.k, self.v) + (() if self.allowed is None else (self.allowed,))

    @property
    def keywords(self) -> dict[str, str]:
        """The arguments by name."""
        return {} if self.empty_row is None else {"empty_row": self.empty_row}

    def arguments(self) -> dict[str, Any]:
        """Name the arguments, for a message and for calling again."""
        names = ("q", "k", "v", "allowed")
        return dict(zip(names, self.positional, strict=False)) | self.keywords

    @cached_property
    def joint(self) -> tuple[int, ...]:
        """The batch axes of the result: those of q, k and v broadcast together."""
        return broadcast_axes(*(tensor.shape[:-2] for tensor in (self.q, self.k, self.v)))

    @cached_property
    def truth(self) -> AttentionTruth:
        """The right answer, on which both references agree to many digits."""
        truth = attention_by_loops(self)
        visible = ~truth.empty_rows.unsqueeze(-1)
        other = attention_by_library(self, truth.empty_rows)
        gap = ((truth.output - other) * visible).abs().max().item()
        size = max(1.0, truth.output.abs().max().item())
        if not gap <= 1e-6 * size:  # also when it is NaN
            raise RuntimeError(f"the two references for attention disagree by {gap}")
        return truth

    def smaller(self) -> Iterator["AttentionCase"]:
        """Cut away batch items, queries, keys and widths, then round the numbers."""
        for axis in range(-len(self.joint) - 2, -2):
            yield from _attention_cuts(self, {"q": axis, "k": axis, "v": axis, "allowed": axis})
        if self.joint and self.joint[0] == 1:
            yield _attention_changed(self, lambda tensor: _attention_without_axis(self, tensor))
        yield from _attention_cuts(self, {"k": -2, "v": -2, "allowed": -1})
        yield from _attention_cuts(self, {"q": -2, "allowed": -2})
        yield from _attention_cuts(self, {"q": -1, "k": -1})
        yield from _attention_cuts(self, {"v": -1})
        if max(tensor.numel() for tensor in (self.q, self.k, self.v)) <= 40:
            yield from _attention_rounded(self)


@dataclass(frozen=True, eq=False)
class AttentionRefusal(AttentionCase):
    """A call that must raise `wanted`; it is small already and is not cut down."""

    wanted: type[Exception] = ValueError

    def smaller(self) -> Iterator[AttentionCase]:
        """Leave the call as it is."""
        return iter(())


def broadcast_axes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Broadcast shapes together as torch does; torch's own function imports its compiler first."""
    if len(set(shapes)) == 1:
        return tuple(shapes[0])
    joint = []
    for sizes in itertools.zip_longest(*(shape[::-1] for shape in shapes), fillvalue=1):
        joint.append(max(sizes))
        if not {1, joint[-1]}.issuperset(sizes):
            raise ValueError(f"shapes that do not broadcast together: {shapes}")
    return tuple(joint[::-1])


def attention_by_loops(case: AttentionCase) -> AttentionTruth:
    """Compute attention one number at a time, in Python floats."""
    q, k, v, allowed = _attention_lists(case)
    t_k, scale = len(k[0]), 1 / math.sqrt(len(k[0][0]))
    fields = []
    for q_item, k_item, v_item, allowed_item in zip(q, k, v, allowed, strict=True):
        columns = list(zip(*v_item, strict=True))
        for query, may_read in zip(q_item, allowed_item, strict=True):
            scores = [
                math.fsum(map(float.__mul__, query, key)) * scale if read else -math.inf
                for key, read in zip(k_item, may_read, strict=True)
            ]
            empty = not any(may_read)
            top = 0.0 if empty else max(scores)
            parts = [math.exp(score - top) for score in scores]
            total = 1.0 if empty else math.fsum(parts)
            weights = [part / total for part in parts]
            output = [math.fsum(map(float.__mul__, weights, column)) for column in columns]
            fields.append((output, weights, scores, empty))
    rows = case.joint + (case.q.shape[-2],)
    output, weights, scores, empty_rows = zip(*fields, strict=True)
    return AttentionTruth(
        torch.tensor(output, dtype=torch.float64).reshape(*rows, case.v.shape[-1]),
        torch.tensor(weights, dtype=torch.float64).reshape(*rows, t_k),
        torch.tensor(scores, dtype=torch.float64).reshape(*rows, t_k),
        torch.tensor(empty_rows).reshape(rows),
    )


def attention_by_library(case: AttentionCase, empty_rows: Tensor) -> Tensor:
    """Compute the output with torch's own function; the empty rows of its answer mean nothing."""
    q, k, v, allowed = _attention_expanded(case)
    return torch.nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=allowed | empty_rows.unsqueeze(-1)
    )


def attention_gradients(case: AttentionCase, cotangent: Tensor) -> tuple[Tensor, ...]:
    """The gradients of (output * cotangent).sum() with respect to q, k and v, by formula.

    dV = Wᵀ G,  dS = W ∘ (G Vᵀ - rowsum(W ∘ G Vᵀ)) / √d_k,  dQ = dS K,  dK = dSᵀ Q
    """
    q, k, v, _ = _attention_expanded(case)
    weights = case.truth.weights
    through = cotangent @ v.mT
    inner = (weights * through).sum(-1, keepdim=True)
    d_scores = weights * (through - inner) / math.sqrt(q.shape[-1])
    full = (d_scores @ k, d_scores.mT @ q, weights.mT @ cotangent)
    parts = zip(full, (case.q, case.k, case.v), strict=True)
    return tuple(gradient.sum_to_size(tensor.shape) for gradient, tensor in parts)


def normal(seed: int, *shape: int) -> Tensor:
    """Draw standard normal numbers in float64 from a generator of their own."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64, device="cpu")


def some_allowed(seed: int, *shape: int) -> Tensor:
    """Draw a mask whose rows each have a key to read and, if there are two, a key to hide."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.rand(shape, generator=generator, device="cpu").argsort(-1)
    most = max(1, shape[-1] - 1)
    count = torch.randint(1, most + 1, shape[:-1], generator=generator, device="cpu")
    return order < count.unsqueeze(-1)


def attention_inputs(
    seed: int, t_q: int, t_k: int, d_k: int, d_v: int, *batch: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw q, k and v of these sizes, all with the same batch axes."""
    return (
        normal(seed, *batch, t_q, d_k),
        normal(seed + 1, *batch, t_k, d_k),
        normal(seed + 2, *batch, t_k, d_v),
    )


def _attention_expanded(case: AttentionCase) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    t_q, t_k = case.q.shape[-2], case.k.shape[-2]
    allowed = torch.ones(1, dtype=torch.bool) if case.allowed is None else case.allowed
    wide = (tensor.detach().double() for tensor in (case.q, case.k, case.v))
    q, k, v = (tensor.expand(case.joint + tensor.shape[-2:]) for tensor in wide)
    return q, k, v, allowed.expand(case.joint + (t_q, t_k))


def _attention_lists(case: AttentionCase) -> list[list[Any]]:
    """q, k, v and allowed as nested lists with a single batch axis."""
    return [
        tensor.flatten(0, -3).tolist() if tensor.dim() > 2 else [tensor.tolist()]
        for tensor in _attention_expanded(case)
    ]


def _attention_changed(case: AttentionCase, change: Any) -> AttentionCase:
    allowed = None if case.allowed is None else change(case.allowed)
    return replace(case, q=change(case.q), k=change(case.k), v=change(case.v), allowed=allowed)


def _attention_without_axis(case: AttentionCase, tensor: Tensor) -> Tensor:
    return tensor.squeeze(0) if tensor.dim() == len(case.joint) + 2 else tensor


def _attention_cuts(case: AttentionCase, axes: dict[str, int]) -> Iterator[AttentionCase]:
    """Keep one half of an axis, or leave out one index, in every argument that has the axis."""
    tensors = {name: getattr(case, name) for name in axes}
    having = {
        name: tensor
        for name, tensor in tensors.items()
        if tensor is not None and tensor.dim() >= -axes[name] and tensor.shape[axes[name]] > 1
    }
    size = max((tensor.shape[axes[name]] for name, tensor in having.items()), default=1)
    everything = list(range(size))
    keeps = [everything[: size // 2], everything[size // 2 :]] if size > 3 else []
    if size <= 8:
        keeps += [everything[:i] + everything[i + 1 :] for i in reversed(everything)]
    for keep in keeps if size > 1 else []:
        kept = torch.tensor(keep)
        cut = replace(
            case,
            **{name: tensor.index_select(axes[name], kept) for name, tensor in having.items()},
        )
        if _attention_legal(cut, case):
            yield cut


def _attention_legal(cut: AttentionCase, case: AttentionCase) -> bool:
    """Tell whether a cut leaves the rows as full or as empty as the policy needs them."""
    had, has = (_attention_has_empty_row(each) for each in (case, cut))
    return had == has


def _attention_has_empty_row(case: AttentionCase) -> bool:
    return case.allowed is not None and not case.allowed.any(-1).all().item()


def _attention_rounded(case: AttentionCase) -> Iterator[AttentionCase]:
    for digits in (0, 1):
        q, k, v = (  # by way of float64: not every torch rounds sixteen bits
            tensor.double().round(decimals=digits).to(tensor.dtype)
            for tensor in (case.q, case.k, case.v)
        )
        rounded = replace(case, q=q, k=k, v=v.masked_fill(v == 0, 1.0))  # a value of 0 hides much
        pairs = [(getattr(rounded, name), getattr(case, name)) for name in "qkv"]
        if not all(((a == b) | a.isnan()).all() for a, b in pairs):
            yield rounded
