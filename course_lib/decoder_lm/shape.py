"""The sizes of a decoder, and a dict of parameters that has to fit them."""

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from course_lib.decoder_lm.errors import ShapeMismatch


@dataclass(frozen=True)
class ModelShape:
    """Keep the five sizes of a decoder together and derive the rest.

    Raises:  TypeError for a size that is no integer; ShapeMismatch for one below 1, and for a
             d_model that its heads cannot share evenly
    """

    n_layers: int
    d_model: int
    n_heads: int
    context_length: int
    vocab_size: int

    def __post_init__(self) -> None:
        for field in fields(self):
            size = _checked_size(field.name, getattr(self, field.name))
            object.__setattr__(self, field.name, size)
        if self.d_model % self.n_heads != 0:
            raise ShapeMismatch(
                f"d_model={self.d_model} is not divisible by n_heads={self.n_heads}; "
                f"every head gets the same whole number of columns"
            )

    @property
    def d_head(self) -> int:
        """Return the width of one head."""
        return self.d_model // self.n_heads

    @property
    def scale(self) -> float:
        """Return 1/√d_head, the factor on the attention scores."""
        return 1.0 / math.sqrt(self.d_head)

    def cache_bytes(self, batch: int, bytes_per_value: int = 2) -> int:
        """Return the bytes of a full cache: keys and values, every layer, every position."""
        values = 2 * self.n_layers * self.context_length * self.d_model  # of one text
        batch = _checked_size("batch", batch)
        return values * batch * _checked_size("bytes_per_value", bytes_per_value)


def parameter_shapes(shape: ModelShape, d_ff: int) -> dict[str, Any]:
    """Return the parameter dict with a shape, a tuple, in the place of every array."""
    d_model, vocab_size = shape.d_model, shape.vocab_size
    square, vector = (d_model, d_model), (d_model,)
    block: dict[str, tuple[int, ...]] = {"ln1_gain": vector, "ln1_bias": vector}
    block |= {"wq": square, "bq": vector, "wk": square, "bk": vector}
    block |= {"wv": square, "bv": vector, "wo": square, "bo": vector}
    block |= {"ln2_gain": vector, "ln2_bias": vector}
    block |= {"w1": (d_model, d_ff), "b1": (d_ff,), "w2": (d_ff, d_model), "b2": vector}
    return {
        "token_embedding": (vocab_size, d_model),
        "position_embedding": (shape.context_length, d_model),
        "blocks": [dict(block) for _ in range(shape.n_layers)],
        "final_gain": vector,
        "final_bias": vector,
        "unembedding": (d_model, vocab_size),
        "unembedding_bias": (vocab_size,),
    }


def check_parameters(params: dict[str, Any], shape: ModelShape) -> None:
    """Require every entry of the parameter dict, in its shape, and no other.

    d_ff is what the first block's w1 says; every block must have the same.

    Raises:  ShapeMismatch that names the first wrong entry, what was wanted and what came
    """
    if not isinstance(params, dict):
        raise TypeError(f"params must be a dict of parameters, got {type(params).__name__}")
    blocks: Any = params.get("blocks")
    _check_block_list(blocks, shape.n_layers)
    w1 = _entry_shape("blocks[0]['w1']", blocks[0].get("w1"))
    if len(w1) != 2:
        raise ShapeMismatch(f"blocks[0]['w1'] must have shape [d_model, d_ff], got {list(w1)}")
    wanted = parameter_shapes(shape, d_ff=w1[1])
    _check_entries("params", params, wanted)
    for index, block in enumerate(blocks):
        _check_entries(f"blocks[{index}]", block, wanted["blocks"][index])


def as_arrays(params: dict[str, Any], dtype: Any) -> dict[str, Any]:
    """Return the same dict with NumPy arrays of this dtype; an array that has it is not copied."""
    return map_parameters(lambda value: np.asarray(value, dtype=dtype), params)


def as_lists(params: dict[str, Any]) -> dict[str, Any]:
    """Return the same dict with (nested) lists of Python floats."""
    return map_parameters(lambda value: np.asarray(value, dtype=np.float64).tolist(), params)


def map_parameters(function: Callable[[Any], Any], params: dict[str, Any]) -> dict[str, Any]:
    """Return a dict of the same build with `function` applied to every entry, in order."""
    return {
        name: [map_parameters(function, block) for block in value]
        if name == "blocks"
        else function(value)
        for name, value in params.items()
    }


def random_parameters(shape: ModelShape, d_ff: int, seed: int) -> dict[str, Any]:
    """Draw float64 parameters with which every part of the model matters.

    A weight gets variance 1/d_in, so that scores and logits are of order 1. Gains are not 1 and
    biases not 0: a decoder that forgets one of them gives other logits.
    """
    rng = np.random.default_rng(seed)

    def draw(wanted: tuple[int, ...]) -> np.ndarray:
        if len(wanted) == 1:
            return rng.normal(0.0, 0.3, wanted)
        return rng.normal(0.0, 1.0 / math.sqrt(wanted[0]), wanted)

    params = map_parameters(draw, parameter_shapes(shape, _checked_size("d_ff", d_ff)))
    for name in ("token_embedding", "position_embedding"):
        params[name] = rng.normal(0.0, 1.0, params[name].shape)  # looked up, never multiplied
    for part, gain in [(params, "final_gain")] + [
        (block, gain) for block in params["blocks"] for gain in ("ln1_gain", "ln2_gain")
    ]:
        part[gain] += 1.0
    return params


def _checked_size(name: str, value: Any) -> int:
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {value!r} ({type(value).__name__})")
    if value < 1:
        raise ShapeMismatch(f"{name} must be at least 1, got {value}")
    return int(value)  # a NumPy integer would overflow in cache_bytes


def _entry_shape(name: str, value: Any) -> tuple[int, ...]:
    if value is None:
        raise ShapeMismatch(f"{name} is missing from the parameters")
    try:
        return np.shape(value)
    except ValueError as error:
        raise ShapeMismatch(f"{name} has rows of different lengths") from error


def _check_block_list(blocks: Any, n_layers: int) -> None:
    if not isinstance(blocks, list | tuple) or not all(isinstance(b, dict) for b in blocks):
        raise ShapeMismatch(
            f"params['blocks'] must be a list of dicts, one a layer, got {type(blocks).__name__}"
        )
    if len(blocks) != n_layers:
        raise ShapeMismatch(f"params has {len(blocks)} blocks, but the shape says {n_layers=}")


def _check_entries(place: str, entries: dict[str, Any], wanted: dict[str, Any]) -> None:
    for name, size in wanted.items():
        if name == "blocks":
            continue
        found = _entry_shape(f"{place}[{name!r}]", entries.get(name))
        if found != size:
            raise ShapeMismatch(
                f"{place}[{name!r}] must have shape {list(size)} for this ModelShape, "
                f"got {list(found)}; weights are stored [d_in][d_out]"
            )
    unknown = sorted(set(entries) - set(wanted))
    if unknown:
        raise ShapeMismatch(f"{place} has entries that this model does not use: {unknown}")
