"""Calls of attention, with the right answer worked out twice, by loops and by the library."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from course_lib.contracts.engine.call import Call, Calls

# ---------------------------------------------------------------- what is right, twice


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


def joint_axes(call: Call) -> tuple[int, ...]:
    """The batch axes of the result: those of q, k and v broadcast together."""
    return broadcast_axes(*(tensor.shape[:-2] for tensor in (call.q, call.k, call.v)))


def _expanded(call: Call) -> tuple[Tensor, ...]:
    """q, k and v in float64 and the mask, all with every batch axis."""
    joint, wide = joint_axes(call), [call.q.double(), call.k.double(), call.v.double()]
    allowed = torch.ones(1, dtype=torch.bool) if call.allowed is None else call.allowed
    q, k, v = (tensor.expand(*joint, *tensor.shape[-2:]) for tensor in wide)
    return q, k, v, allowed.expand(*joint, q.shape[-2], k.shape[-2])


def attention_by_loops(call: Call) -> dict[str, Tensor]:
    """Compute attention one number at a time, in Python floats."""
    q, k, v, allowed = (t.reshape(-1, *t.shape[-2:]).tolist() for t in _expanded(call))
    scale, rows = 1 / math.sqrt(len(k[0][0])), []
    for queries, keys, values, mask in zip(q, k, v, allowed, strict=True):
        columns = list(zip(*values, strict=True))
        for query, may_read in zip(queries, mask, strict=True):
            scores = [
                math.fsum(map(float.__mul__, query, key)) * scale if read else -math.inf
                for key, read in zip(keys, may_read, strict=True)
            ]
            empty = not any(may_read)
            top = 0.0 if empty else max(scores)
            parts = [math.exp(score - top) for score in scores]
            total = 1.0 if empty else math.fsum(parts)
            weights = [part / total for part in parts]
            output = [math.fsum(map(float.__mul__, weights, column)) for column in columns]
            rows.append((output, weights, scores, empty))
    shape, names = (*joint_axes(call), call.q.shape[-2]), ("output", "weights", "scores")
    *numbers, empty_rows = zip(*rows, strict=True)
    fields = (torch.tensor(field, dtype=torch.float64) for field in numbers)
    truth = {n: field.reshape(*shape, -1) for n, field in zip(names, fields, strict=True)}
    return {**truth, "empty_rows": torch.tensor(empty_rows).reshape(shape)}


def attention_by_library(call: Call) -> dict[str, Tensor]:
    """Compute it with torch's own functions, which leave it to us what an empty row gives."""
    q, k, v, allowed = _expanded(call)
    empty = ~allowed.any(dim=-1)
    nothing = empty.unsqueeze(-1)
    output = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=allowed | nothing)
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~allowed, -math.inf)
    weights = scores.masked_fill(nothing, 0.0).softmax(dim=-1)
    output, weights = (field.masked_fill(nothing, 0.0) for field in (output, weights))
    return {"output": output, "weights": weights, "scores": scores, "empty_rows": empty}


def attention_gradients(call: Call, weights: Tensor, direction: Tensor) -> dict[str, Tensor]:
    """The gradients of (output * direction).sum() with respect to q, k and v, by formula.

    dV = Wᵀ G,  dS = W ∘ (G Vᵀ - rowsum(W ∘ G Vᵀ)) / √d_k,  dQ = dS K,  dK = dSᵀ Q
    """
    q, k, v, _ = _expanded(call)
    through = direction @ v.mT
    inner = (weights * through).sum(-1, keepdim=True)
    d_scores = weights * (through - inner) / math.sqrt(q.shape[-1])
    full = {"q": d_scores @ k, "k": d_scores.mT @ q, "v": weights.mT @ direction}
    return {name: slope.sum_to_size(call.args[name].shape) for name, slope in full.items()}


# ---------------------------------------------------------------- one call


def _alike(cut: Call, holes: bool = False, policy: str | None = None) -> bool:
    """Rows stay as full or as empty as the policy needs them; values of 0 would hide much."""
    kept = policy is None or cut.empty_row == policy
    empty = cut.allowed is not None and not bool(cut.allowed.any(-1).all())
    return kept and empty == holes and bool(cut.v.any())


def holed(call: Call) -> Call:
    """A call with an empty row, which must keep one when it is cut down."""
    policy = "zero" if call.empty_row == "zero" else None  # "error" is what None means
    return replace(call, legal=partial(_alike, holes=True, policy=policy))


def _fewer_keys(call: Call) -> Iterator[Call]:
    """Keys go first: of a single query one cannot see which sums are 1 instead of its own."""
    count, mask = call.k.shape[-2], call.allowed
    for left in reversed(range(count)) if 1 < count <= 8 else ():
        kept = [place for place in range(count) if place != left]
        less = mask[..., kept] if mask is not None and mask.shape[-1] == count else mask
        yield call.but(k=call.k[..., kept, :], v=call.v[..., kept, :], allowed=less)


ask = Calls(
    "q [...,Q,K], k [...,T,K], v [...,T,V], allowed [...,Q,T]?, *, empty_row?",
    legal=_alike,
    shorter=_fewer_keys,
)


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


def drawn(seed: int, t_q: int, t_k: int, d_k: int, d_v: int, *batch: int, **more: object) -> Call:
    """Draw q, k and v of these sizes, all with the same batch axes; `more` as the call has it."""
    q, k = normal(seed, *batch, t_q, d_k), normal(seed + 1, *batch, t_k, d_k)
    return ask(q, k, normal(seed + 2, *batch, t_k, d_v), **more)
