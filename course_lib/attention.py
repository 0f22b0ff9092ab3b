"""Attention: every query reads the values, in proportion to how well their keys match it."""

import functools
import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from course_lib.arguments import (
    check_bool,
    check_bool_tensor,
    check_finite,
    check_float_tensor,
    check_heads,
    check_same_device,
    check_stream,
)
from course_lib.masks import causal_allowed, padding_allowed

EmptyRowPolicy = Literal["error", "zero"]


@dataclass(frozen=True)
class AttentionResult:
    """Everything that attention computed, in the dtype it was computed in.

    Shapes:  output [..., T_q, d_v]; weights and scores [..., T_q, T_k];
             empty_rows [..., T_q] bool, True = this query was allowed to read nothing
    """

    output: Tensor
    weights: Tensor
    scores: Tensor
    empty_rows: Tensor


def scaled_dot_product_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    allowed: Tensor | None = None,
    *,
    empty_row: EmptyRowPolicy = "error",
) -> AttentionResult:
    """Mix the values, each by how well its key matches the query.

        scores = q kᵀ / √d_k,   weights = softmax of the allowed scores,   output = weights v

    Args:    allowed: True = may read; None = every query reads every key
             empty_row: what a fully masked query row is: an "error", or "zero" weights and output
    Shapes:  q [..., T_q, d_k], k [..., T_k, d_k], v [..., T_k, d_v], allowed -> [..., T_q, T_k];
             leading axes broadcast together; sixteen-bit inputs are computed in float32
    Raises:  ValueError for shapes that do not fit, inputs that are not finite, a fully masked row;
             TypeError for an `allowed` that is not bool; FloatingPointError for an overflow
    Source:  Vaswani et al. 2017, equation 1
    """
    _check_attention(q, k, v, allowed, empty_row)
    q, k, v, allowed = _joined(q, k, v, allowed)  # one dtype; allowed [..., T_q, T_k]

    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    scores = torch.where(allowed, scores, -math.inf)  # [..., T_q, T_k]
    empty_rows = ~allowed.any(dim=-1)  # [..., T_q]
    _check_scores(scores, allowed, empty_rows, empty_row)

    # A softmax over nothing is 0/0, and NaN times zero is NaN in the gradient: an empty row gets
    # zeros to work on, and loses its weights afterwards.
    weights = scores.masked_fill(empty_rows.unsqueeze(-1), 0.0).softmax(dim=-1)
    weights = weights.masked_fill(~allowed, 0.0)
    return AttentionResult(weights @ v, weights, scores, empty_rows)


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """Cut the width into heads: head h of a token is its h-th slice of d_head numbers.

    Shapes:  [..., T, d_model] -> [..., n_heads, T, d_head]
    """
    _check_splittable(x, n_heads)
    per_head = x.unflatten(-1, (n_heads, -1))  # [..., T, n_heads, d_head]
    return per_head.transpose(-3, -2)


def merge_heads(x: Tensor) -> Tensor:
    """Put the heads of every token side by side again: the inverse of `split_heads`.

    Shapes:  [..., n_heads, T, d_head] -> [..., T, d_model]
    """
    _check_mergeable(x)
    per_token = x.transpose(-3, -2)  # [..., T, n_heads, d_head]: without it, tokens would mix
    return per_token.flatten(-2)


class MultiHeadSelfAttention(nn.Module):
    """Let every token read the tokens of its own sequence, in several heads at once.

    Args:    token_valid: True = a real token; padding is neither read nor allowed to query,
             so its rows are empty and need empty_row="zero"
    Shapes:  x [B, T, d_model], token_valid [B, T] bool -> y [B, T, d_model],
             and with return_weights=True also weights [B, n_heads, T, T]
    """

    def __init__(self, d_model: int, n_heads: int, *, causal: bool = True) -> None:
        super().__init__()
        check_heads(d_model, n_heads)
        check_bool("causal", causal)
        self.n_heads = n_heads
        self.causal = causal
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.out = nn.Linear(d_model, d_model, bias=False)

    def forward(
        self,
        x: Tensor,
        *,
        token_valid: Tensor | None = None,
        empty_row: EmptyRowPolicy = "error",
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        check_stream("x", x, "qkv.weight", self.qkv.weight)
        allowed = padding_allowed(_valid_or_all("token_valid", token_valid, x))  # [B, T, T]
        if self.causal:
            allowed = allowed & causal_allowed(x.shape[1], x.shape[1], device=x.device)
        q, k, v = (split_heads(part, self.n_heads) for part in self.qkv(x).chunk(3, dim=-1))
        # [B, 1, T, T]: one mask for all the heads of a sequence
        result = scaled_dot_product_attention(q, k, v, allowed.unsqueeze(1), empty_row=empty_row)
        y = self.out(merge_heads(result.output).to(x.dtype))  # [B, T, d_model]
        return (y, result.weights) if return_weights else y


class MultiHeadCrossAttention(nn.Module):
    """Let every token read another sequence: queries from x, keys and values from the memory.

    Args:    memory_valid: True = a real token of the memory; padding is not read
    Shapes:  x [B, T_q, d_model], memory [B, T_k, d_model], memory_valid [B, T_k] bool
             -> y [B, T_q, d_model],
             and with return_weights=True also weights [B, n_heads, T_q, T_k]
    """

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        check_heads(d_model, n_heads)
        self.n_heads = n_heads
        self.q = nn.Linear(d_model, d_model, bias=False)
        self.kv = nn.Linear(d_model, 2 * d_model, bias=False)
        self.out = nn.Linear(d_model, d_model, bias=False)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        *,
        memory_valid: Tensor | None = None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        _check_cross(x, memory, self.q.weight)
        key_valid = _valid_or_all("memory_valid", memory_valid, memory)  # [B, T_k]
        allowed = key_valid[:, None, None, :]  # [B, 1, 1, T_k]: the same for all heads and queries
        q = split_heads(self.q(x), self.n_heads)
        k, v = (split_heads(part, self.n_heads) for part in self.kv(memory).chunk(2, dim=-1))
        result = scaled_dot_product_attention(q, k, v, allowed)
        y = self.out(merge_heads(result.output).to(x.dtype))  # [B, T_q, d_model]
        return (y, result.weights) if return_weights else y


def _check_attention(q: Any, k: Any, v: Any, allowed: Any, empty_row: Any) -> None:
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        check_float_tensor(name, tensor)
        if tensor.dim() < 2:
            raise ValueError(f"{name} must have shape [..., T, d], got {list(tensor.shape)}")
        check_same_device(name, tensor, "q", q)
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"q has d_k={q.shape[-1]} but k has d_k={k.shape[-1]}; they must be equal")
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(f"k has T_k={k.shape[-2]} but v has T_k={v.shape[-2]}; they must be equal")
    weights_shape = _weights_shape(q, k, v)
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        check_finite(name, tensor)
    if allowed is not None:
        _check_allowed(allowed, weights_shape, q)
    if empty_row not in ("error", "zero"):
        raise ValueError(f'empty_row must be "error" or "zero", got {empty_row!r}')


def _weights_shape(q: Tensor, k: Tensor, v: Tensor) -> torch.Size:
    try:
        batch = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    except RuntimeError:
        raise ValueError(
            f"the leading axes of q {list(q.shape)}, k {list(k.shape)} and v {list(v.shape)} "
            f"do not broadcast together"
        ) from None
    return torch.Size((*batch, q.shape[-2], k.shape[-2]))


def _check_allowed(allowed: Any, weights_shape: torch.Size, q: Tensor) -> None:
    check_bool_tensor("allowed", allowed, "True = may read")
    check_same_device("allowed", allowed, "q", q)
    try:
        allowed.expand(weights_shape)
    except RuntimeError:
        raise ValueError(
            f"allowed has shape {list(allowed.shape)}, which does not broadcast to the "
            f"[..., T_q, T_k] of these tensors, {list(weights_shape)}"
        ) from None


def _joined(
    q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Bring q, k and v to one dtype of at least 32 bits, the mask to the shape of the weights."""
    dtype = functools.reduce(torch.promote_types, (q.dtype, k.dtype, v.dtype), torch.float32)
    if allowed is None:
        allowed = torch.ones((), dtype=torch.bool, device=q.device)
    return q.to(dtype), k.to(dtype), v.to(dtype), allowed.expand(_weights_shape(q, k, v))


def _check_scores(scores: Tensor, allowed: Tensor, empty_rows: Tensor, empty_row: str) -> None:
    if (allowed & ~torch.isfinite(scores)).any():
        raise FloatingPointError(
            f"q kᵀ overflows {scores.dtype}: some score that a query may read is not finite; "
            f"use smaller numbers or a wider dtype"
        )
    if empty_row == "error" and empty_rows.any():
        rows = empty_rows.nonzero().tolist()
        shown = ", ".join(str(row) for row in rows[:8])
        raise ValueError(
            f"{len(rows)} query row(s) fully masked, at index [..., query] {shown}"
            f"{', ...' if len(rows) > 8 else ''}; "
            f'let each read at least one key, or ask for empty_row="zero"'
        )


def _check_splittable(x: Any, n_heads: Any) -> None:
    check_float_tensor("x", x)
    if x.dim() < 2:
        raise ValueError(f"x must have shape [..., T, d_model], got {list(x.shape)}")
    check_heads(x.shape[-1], n_heads)


def _check_mergeable(x: Any) -> None:
    check_float_tensor("x", x)
    if x.dim() < 3:
        raise ValueError(f"x must have shape [..., n_heads, T, d_head], got {list(x.shape)}")


def _valid_or_all(name: str, valid: Tensor | None, tokens: Tensor) -> Tensor:
    """Return `valid` if it fits tokens [B, T, d_model], and all True if it is None."""
    if valid is None:
        return torch.ones(tokens.shape[:2], dtype=torch.bool, device=tokens.device)
    check_bool_tensor(name, valid, "True = a real token")
    if valid.shape != tokens.shape[:2]:
        raise ValueError(
            f"{name} must have shape [B, T] = {list(tokens.shape[:2])}, got {list(valid.shape)}"
        )
    check_same_device(name, valid, "the tokens", tokens)
    return valid


def _check_cross(x: Any, memory: Any, weight: Tensor) -> None:
    check_stream("x", x, "q.weight", weight)
    check_stream("memory", memory, "q.weight", weight)
    if x.shape[0] != memory.shape[0]:
        raise ValueError(f"x has batch {x.shape[0]} but memory has batch {memory.shape[0]}")
