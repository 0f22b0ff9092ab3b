"""Checks at the door: every function of the course refuses a bad argument before it computes.

A wrong kind of thing is a TypeError, a wrong value or shape is a ValueError, and the message says
which argument it was, what was wanted and what came.
"""

import math
import numbers
from typing import Any

import torch
from torch import Tensor, nn

from course_lib.integers import check_positive_int


def check_bool(name: str, value: Any) -> None:
    """Require True or False themselves, not something that merely counts as one."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r} ({type(value).__name__})")


def check_module(name: str, value: Any) -> None:
    """Require a torch module."""
    if not isinstance(value, nn.Module):
        raise TypeError(f"{name} must be a torch.nn.Module, got {type(value).__name__}")


def is_finite_number(value: Any) -> bool:
    """Tell whether `value` is a real number that a float can hold; True and NaN are not."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no float can hold
        return False


def check_finite_number(name: str, value: Any) -> None:
    """Require a real number that is neither infinite nor NaN."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {value!r} ({type(value).__name__})")
    if not is_finite_number(value):
        raise ValueError(f"{name} must be finite, got {value!r}")


def check_finite_vector(name: str, values: Any) -> None:
    """Require a non-empty sequence of finite numbers; every failing is a ValueError."""
    if isinstance(values, Tensor):
        raise ValueError(f"{name} must be a plain list of numbers, got a tensor; call .tolist()")
    if not hasattr(values, "__len__") or not hasattr(values, "__getitem__") or len(values) == 0:
        raise ValueError(f"{name} must be a non-empty list of numbers, got {values!r}")
    for index, value in enumerate(values):
        if not is_finite_number(value):
            raise ValueError(f"{name}[{index}] must be a finite number, got {value!r}")


def check_tensor(name: str, value: Any) -> None:
    """Require a torch tensor with no empty axis."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(value).__name__}")
    if value.numel() == 0:
        raise ValueError(f"{name} has an empty axis: shape {list(value.shape)}")


def check_float_tensor(name: str, value: Any) -> None:
    """Require a floating-point tensor with no empty axis (its values are not looked at)."""
    check_tensor(name, value)
    if not value.is_floating_point():
        raise TypeError(
            f"{name} must hold floating-point numbers, got {value.dtype}; "
            f"call .float() or .double()"
        )


def check_bool_tensor(name: str, value: Any, meaning: str) -> None:
    """Require a bool tensor; `meaning` tells the reader what True stands for."""
    check_tensor(name, value)
    if value.dtype != torch.bool:
        raise TypeError(
            f"{name} must be a bool tensor ({meaning}), got {value.dtype}; "
            f"compare with something to make it one"
        )


def check_finite(name: str, value: Tensor) -> None:
    """Require that no entry of the tensor is infinite or NaN."""
    bad = ~torch.isfinite(value)
    if bad.any():
        first = bad.nonzero()[0].tolist()
        raise ValueError(
            f"{name} must be finite, but {int(bad.sum())} of its {value.numel()} entries are not; "
            f"the first is {value[tuple(first)].item()} at {first}"
        )


def check_same_device(name: str, value: Tensor, like_name: str, like: Tensor) -> None:
    """Require that two tensors live on one device."""
    if value.device != like.device:
        raise ValueError(
            f"{name} is on {value.device} but {like_name} is on {like.device}; "
            f"move one of them with .to(...)"
        )


def check_rank(name: str, value: Tensor, axes: str) -> None:
    """Require as many axes as `axes` names, for example "[B, T, d_model]"."""
    wanted = axes.count(",") + 1
    if value.dim() != wanted:
        raise ValueError(f"{name} must have shape {axes}, got {list(value.shape)}")


def check_stream(name: str, value: Any, weight_name: str, weight: Tensor) -> None:
    """Require a finite [B, T, d_model] tensor that fits a layer's weight [d_out, d_model]."""
    check_float_tensor(name, value)
    check_rank(name, value, "[B, T, d_model]")
    d_model = weight.shape[-1]
    if value.shape[-1] != d_model:
        raise ValueError(
            f"{name} has width {value.shape[-1]} but the layer has d_model={d_model}: "
            f"shape {list(value.shape)}"
        )
    check_same_device(name, value, weight_name, weight)
    if value.dtype != weight.dtype:
        raise TypeError(
            f"{name} is {value.dtype} but {weight_name} is {weight.dtype}; "
            f"convert one of them with .to(...)"
        )
    check_finite(name, value)


def check_token_ids(name: str, value: Any, axes: str, vocab_size: int) -> None:
    """Require a long tensor with these axes whose ids are all in the vocabulary."""
    check_tensor(name, value)
    if value.dtype != torch.long:
        raise TypeError(f"{name} must hold torch.long ids, got {value.dtype}; call .long()")
    check_rank(name, value, axes)
    low, high = int(value.min()), int(value.max())
    if low < 0 or high >= vocab_size:
        raise ValueError(
            f"{name} holds id {low if low < 0 else high}, outside the vocabulary "
            f"of {vocab_size} ids (0 to {vocab_size - 1})"
        )


def check_heads(d_model: Any, n_heads: Any) -> None:
    """Require a width that splits evenly into heads."""
    check_positive_int("d_model", d_model)
    check_positive_int("n_heads", n_heads)
    if d_model % n_heads != 0:
        raise ValueError(f"d_model={d_model} is not divisible by n_heads={n_heads}")
