"""Positions: what tells a layer without order where each token stands."""

from typing import Any

import torch
from torch import Tensor

from course_lib.arguments import check_finite_number
from course_lib.integers import check_positive_int


def sinusoidal_encoding(
    length: int,
    d_model: int,
    *,
    base: float = 10_000.0,
    device: torch.device | str | None = None,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """Return the sine and cosine table that tells every position apart.

        PE[p, 2i] = sin(p / base^(2i/d_model)),   PE[p, 2i+1] = cos(p / base^(2i/d_model))

    Args:    dtype: float32 or float64; the angles are computed in float64 either way, because
             float16 cannot even count past 2048, and bfloat16 not past 256
    Shapes:  -> [length, d_model]
    Raises:  ValueError for an odd d_model or a base that is not finite and above 1;
             TypeError for another dtype
    Source:  Vaswani et al. 2017, section 3.5
    """
    _check_encoding(length, d_model, base, dtype)
    positions = torch.arange(length, dtype=torch.float64, device="cpu").unsqueeze(1)  # [length, 1]
    even_columns = torch.arange(0, d_model, 2, dtype=torch.float64, device="cpu")  # 2i: [d_model/2]
    angles = positions / base ** (even_columns / d_model)  # [length, d_model/2]
    table = torch.stack((angles.sin(), angles.cos()), dim=-1)  # [length, d_model/2, 2]
    return table.flatten(1).to(device=device, dtype=dtype)  # sin, cos, sin, cos, ...


def _check_encoding(length: Any, d_model: Any, base: Any, dtype: Any) -> None:
    check_positive_int("length", length)
    check_positive_int("d_model", d_model)
    if d_model % 2 != 0:
        raise ValueError(f"d_model must be even, a sine and a cosine each, got {d_model}")
    check_finite_number("base", base)
    if base <= 1:
        raise ValueError(f"base must be greater than 1, got {base}")
    if dtype not in (torch.float32, torch.float64):
        raise TypeError(f"dtype must be torch.float32 or torch.float64, got {dtype}")
