"""Layers: normalisation, the feed-forward network and the blocks they make with attention."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.arguments import (
    check_finite,
    check_finite_number,
    check_float_tensor,
    check_heads,
    check_same_device,
    check_stream,
)
from course_lib.attention import EmptyRowPolicy, MultiHeadCrossAttention, MultiHeadSelfAttention
from course_lib.integers import check_positive_int


def layer_norm(x: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """Give every token mean 0 and variance 1 over its own numbers, then a learned gain and bias.

        y = gain · (x - mean) / √(variance + eps) + bias,   variance = mean of (x - mean)²

    Shapes:  x [..., d], gain [d], bias [d] -> [..., d]; sixteen bits are computed in float32
    Raises:  ValueError for eps = 0 with a token whose numbers are all equal: its variance is 0
    Source:  Ba et al. 2016, equation 4; eps as in torch, inside the root
    """
    _check_layer_norm(x, gain, bias, eps)
    x = x.to(torch.promote_types(x.dtype, torch.float32))  # squares overflow sixteen bits
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = centred.square().mean(dim=-1, keepdim=True)  # [..., 1]: over d, not d - 1
    _check_variance(variance, eps)
    return gain * centred / torch.sqrt(variance + eps) + bias


class FeedForward(nn.Module):
    """Work on each token alone: widen it, bend it, narrow it again.

        y = down(GELU(up(x))),   GELU(z) = z Φ(z), the exact one (erf)

    Shapes:  x [B, T, d_model] -> [B, T, d_model], with [B, T, d_ff] between
    """

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        check_positive_int("d_model", d_model)
        check_positive_int("d_ff", d_ff)
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        check_stream("x", x, "up.weight", self.up.weight)
        return self.down(F.gelu(self.up(x), approximate="none"))


class PreNormBlock(nn.Module):
    """Add to the residual stream what the tokens read, then what each makes of it.

        x = x + attn(ln1(x))
        x = x + ffn(ln2(x))

    Args:    token_valid, empty_row: as `MultiHeadSelfAttention` takes them
    Shapes:  x [B, T, d_model] -> [B, T, d_model]
    """

    def __init__(self, d_model: int, n_heads: int, d_ff: int, *, causal: bool) -> None:
        super().__init__()
        check_heads(d_model, n_heads)
        self.ln1 = nn.LayerNorm(d_model)
        self.attn = MultiHeadSelfAttention(d_model, n_heads, causal=causal)
        self.ln2 = nn.LayerNorm(d_model)
        self.ffn = FeedForward(d_model, d_ff)

    def forward(
        self,
        x: Tensor,
        *,
        token_valid: Tensor | None = None,
        empty_row: EmptyRowPolicy = "error",
    ) -> Tensor:
        check_stream("x", x, "attn.qkv.weight", self.attn.qkv.weight)
        x = x + self.attn(self.ln1(x), token_valid=token_valid, empty_row=empty_row)
        return x + self.ffn(self.ln2(x))


class EncoderBlock(PreNormBlock):
    """A block in which every token reads the whole sequence."""

    def __init__(self, d_model: int, n_heads: int, d_ff: int) -> None:
        super().__init__(d_model, n_heads, d_ff, causal=False)


class DecoderBlock(PreNormBlock):
    """A block in which every token reads itself and what came before it."""

    def __init__(self, d_model: int, n_heads: int, d_ff: int) -> None:
        super().__init__(d_model, n_heads, d_ff, causal=True)


class EncoderDecoderBlock(nn.Module):
    """The decoder block of the original Transformer: it also reads the encoder's output.

        x = x + self_attn(ln1(x))
        x = x + cross_attn(ln2(x), memory)
        x = x + ffn(ln3(x))

    Shapes:  x [B, T_q, d_model], memory [B, T_k, d_model], memory_valid [B, T_k] bool
             -> [B, T_q, d_model]
    """

    def __init__(self, d_model: int, n_heads: int, d_ff: int) -> None:
        super().__init__()
        check_heads(d_model, n_heads)
        self.ln1 = nn.LayerNorm(d_model)
        self.self_attn = MultiHeadSelfAttention(d_model, n_heads, causal=True)
        self.ln2 = nn.LayerNorm(d_model)
        self.cross_attn = MultiHeadCrossAttention(d_model, n_heads)
        self.ln3 = nn.LayerNorm(d_model)
        self.ffn = FeedForward(d_model, d_ff)

    def forward(self, x: Tensor, memory: Tensor, *, memory_valid: Tensor | None = None) -> Tensor:
        check_stream("x", x, "self_attn.qkv.weight", self.self_attn.qkv.weight)
        x = x + self.self_attn(self.ln1(x))
        x = x + self.cross_attn(self.ln2(x), memory, memory_valid=memory_valid)
        return x + self.ffn(self.ln3(x))


def _check_layer_norm(x: Any, gain: Any, bias: Any, eps: Any) -> None:
    check_float_tensor("x", x)
    if x.dim() < 1:
        raise ValueError("x must have shape [..., d], got a single number")
    for name, vector in (("gain", gain), ("bias", bias)):
        check_float_tensor(name, vector)
        check_same_device(name, vector, "x", x)
        if vector.shape != x.shape[-1:]:
            raise ValueError(
                f"{name} must have shape {list(x.shape[-1:])}, got {list(vector.shape)}"
            )
    for name, tensor in (("x", x), ("gain", gain), ("bias", bias)):
        check_finite(name, tensor)
    check_finite_number("eps", eps)
    if eps < 0:
        raise ValueError(f"eps must not be negative, got {eps}")


def _check_variance(variance: Tensor, eps: float) -> None:
    if (variance + eps == 0).any():
        raise ValueError("eps must be above 0 here: all the numbers of a token of x are equal")
    if not torch.isfinite(variance).all():
        raise FloatingPointError(f"the variance of x overflows {variance.dtype}")
