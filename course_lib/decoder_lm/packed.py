"""The parameters of the fast stage, laid out once in the order in which decoding reads them."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from course_lib.decoder_lm.block_product import (
    block_width,
    in_blocks,
    in_one_piece,
    matrix_blocks,
)
from course_lib.decoder_lm.shape import ModelShape, check_parameters

NORM_EPSILON = 1e-5
_TANH_SLOPE = math.sqrt(2.0 / math.pi)  # GELU(z) = z/2 · (1 + tanh(slope · z + cube · z³))
_GELU_SCALE = (0.044715 * _TANH_SLOPE) ** (1 / 3)  # with x = scale · z the cube's factor is 1
GELU_SLOPE = _TANH_SLOPE / _GELU_SCALE


@dataclass(frozen=True)
class PackedLayer:
    """What one thread needs of one layer: some heads, and some columns of the feed-forward net.

    Each matrix is cut into blocks of columns and has the bias as a row of its own, the first: the
    input carries a 1 in front. The columns of qkv: all queries, head by head, then keys, values.

    Shapes:  [blocks, 1, 1 + d_in, block width]
    """

    qkv: np.ndarray
    wo: np.ndarray
    w1: np.ndarray
    w2: np.ndarray


@dataclass(frozen=True)
class PackedPart:
    """One thread's share: n_heads heads, d_ff columns, n_tokens ids from `first_token` on."""

    n_heads: int
    d_ff: int
    first_token: int
    n_tokens: int
    layers: list[PackedLayer]
    unembedding: np.ndarray


@dataclass(frozen=True)
class PackedModel:
    """All weights in float32: the embeddings, which are shared, and `parts`, one for each thread.

    Everything that is added to the residual stream has been centred, so that its mean is 0 and
    a norm need not subtract it. A norm's gain and bias are in the matrix after it, and so are √d
    of the norm, 1/√d_head of the scores (in the queries) and two factors of GELU (in w1 and w2).
    """

    shape: ModelShape
    token_embedding: np.ndarray
    position_embedding: np.ndarray
    parts: list[PackedPart]
    whole: bool


def pack_parameters(
    params: dict[str, Any], shape: ModelShape, parts: int = 1, *, whole: bool = False
) -> PackedModel:
    """Lay the parameter dict out for decoding; it is read, never kept or changed.

    Args:    whole: for one text at a time: matrices in one piece, not in blocks
    Raises:  ShapeMismatch where params and shape disagree
    """
    check_parameters(params, shape)
    return PackedModel(
        shape,
        centred(params["token_embedding"]),
        centred(params["position_embedding"]),
        [_pack_part(params, shape, part, parts, whole) for part in range(parts)],
        whole,
    )


def packed_again(model: PackedModel, *, whole: bool) -> PackedModel:
    """Return the same model in the other layout; the one that is given stays as it is."""
    parts = [_part_again(part, model.shape, whole) for part in model.parts]
    return replace(model, parts=parts, whole=whole)


def centred(matrix: Any) -> np.ndarray:
    """Return the rows less their means, in float32: no norm after them can tell the difference."""
    matrix = _floats(matrix)
    return np.subtract(matrix, matrix.mean(axis=-1, keepdims=True), dtype=np.float32)


def after_norm(weight: np.ndarray, bias: np.ndarray, gain: np.ndarray, shift: np.ndarray) -> Any:
    """Return the rows (bias, then weight) that a vector x / ‖x‖ is multiplied by.

    LayerNorm(x) @ W + b = (x / ‖x‖) @ (√d · gain · W) + (shift @ W + b), for x of mean 0
    """
    rows = (gain * math.sqrt(len(gain)))[:, None] * weight
    return np.vstack([bias + shift @ weight, rows])


def _part_again(part: PackedPart, shape: ModelShape, whole: bool) -> PackedPart:
    widths = {"qkv": 3 * part.n_heads * shape.d_head, "w1": part.d_ff}
    widths |= {"wo": shape.d_model, "w2": shape.d_model}
    layers = []
    for old in part.layers:
        cut = {name: in_one_piece(getattr(old, name), width) for name, width in widths.items()}
        layers.append(PackedLayer(**{name: matrix_blocks(cut[name], whole=whole) for name in cut}))
    unembedding = in_one_piece(part.unembedding, part.n_tokens)
    return replace(part, layers=layers, unembedding=matrix_blocks(unembedding, whole=whole))


def _pack_part(
    params: dict[str, Any], shape: ModelShape, part: int, parts: int, whole: bool
) -> PackedPart:
    heads = _share(shape.n_heads, part, parts)
    columns = _share(np.shape(params["blocks"][0]["w1"])[1], part, parts)
    width = block_width(1 + shape.d_model)
    chunks = _share(-(-shape.vocab_size // width), part, parts)  # no two parts share a block
    tokens = slice(chunks.start * width, min(chunks.stop * width, shape.vocab_size))
    layers = []
    for block in params["blocks"]:
        block = {name: _floats(value) for name, value in block.items()}
        block |= {name: block[name] * (part == 0) for name in ("bo", "b2")}  # added once
        layers.append(_pack_layer(block, heads, columns, shape, whole))
    last = [_floats(params[f"unembedding{suffix}"])[..., tokens] for suffix in ("", "_bias")]
    norm = [_floats(params[name]) for name in ("final_gain", "final_bias")]
    return PackedPart(
        heads.stop - heads.start,
        columns.stop - columns.start,
        tokens.start,
        len(last[1]),
        layers,
        in_blocks(
            lambda at: after_norm(last[0][:, at], last[1][at], *norm), len(last[1]), whole=whole
        ),
    )


def _pack_layer(
    block: dict[str, Any], heads: slice, columns: slice, shape: ModelShape, whole: bool
) -> PackedLayer:
    norm_1, norm_2 = ([block[f"ln{n}_gain"], block[f"ln{n}_bias"]] for n in (1, 2))
    at = slice(heads.start * shape.d_head, heads.stop * shape.d_head)
    qkv = []
    for letter, factor in (("q", shape.scale), ("k", 1.0), ("v", 1.0)):
        weight, bias = block[f"w{letter}"][:, at], block[f"b{letter}"][at]
        qkv.append(after_norm(weight, bias, *norm_1) * factor)
    wo = centred(np.vstack([block["bo"], block["wo"][at]]))
    w1 = after_norm(block["w1"][:, columns], block["b1"][columns], *norm_2) * _GELU_SCALE
    w2 = centred(np.vstack([block["b2"], block["w2"][columns] * (0.5 / _GELU_SCALE)]))
    matrices = np.hstack(qkv), wo, w1, w2
    return PackedLayer(*(matrix_blocks(each, whole=whole) for each in matrices))


def _floats(value: Any) -> np.ndarray:
    """Return an array of single or double precision; one that is so already is not copied."""
    value = np.asarray(value)
    if value.size and not (np.isfinite(value.min()) and np.isfinite(value.max())):
        raise ValueError(
            f"a parameter of shape {list(value.shape)} holds NaN or an infinite number: load it "
            f"again, or look where its training failed"
        )
    return value if value.dtype in (np.float32, np.float64) else value.astype(np.float32)


def _share(size: int, part: int, parts: int) -> slice:
    return slice(size * part // parts, size * (part + 1) // parts)
