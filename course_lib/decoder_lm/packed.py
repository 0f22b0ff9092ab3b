"""The parameters of the fast stage, laid out once in the order in which decoding reads them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from course_lib.decoder_lm.shape import ModelShape, check_parameters

_BLOCK_WIDTH = 64  # columns; a block of 768 rows is 196 kB: it stays in a core's second cache


@dataclass(frozen=True)
class PackedLayer:
    """What one thread needs of one layer: some heads, and some columns of the feed-forward net.

    A norm's gain and bias are folded into the matrix after it, 1/√d_head into the queries, the 1/2
    of GELU into w2: the same function, fewer steps.

    Shapes:  qkv [3 · heads, d_model, d_head], the others [blocks, d_in, block width];
             qkv_bias [3 · heads, 1, d_head], b1 [padded width]
    """

    qkv: np.ndarray
    qkv_bias: np.ndarray
    wo: np.ndarray
    w1: np.ndarray
    b1: np.ndarray
    w2: np.ndarray


@dataclass(frozen=True)
class PackedModel:
    """All weights in float32: what every thread shares, and `parts`, one for each thread.

    parts[p].layers[i] is a PackedLayer; `after_attention` and `after_mlp` are the biases that are
    added once for all parts, [n_layers, d_model].
    """

    shape: ModelShape
    token_embedding: np.ndarray
    position_embedding: np.ndarray
    after_attention: np.ndarray
    after_mlp: np.ndarray
    parts: list["PackedPart"]


@dataclass(frozen=True)
class PackedPart:
    """One thread's share: n_heads heads, d_ff columns, and the vocabulary from `first_token` on."""

    n_heads: int
    d_ff: int
    first_token: int
    last_token: int
    layers: list[PackedLayer]
    unembedding: np.ndarray
    unembedding_bias: np.ndarray


def pack_parameters(params: dict[str, Any], shape: ModelShape, parts: int = 1) -> PackedModel:
    """Lay the parameter dict out for decoding; it is read, never kept or changed.

    Raises:  ShapeMismatch where params and shape disagree
    """
    check_parameters(params, shape)
    blocks = params["blocks"]
    return PackedModel(
        shape,
        np.array(params["token_embedding"], np.float32, order="C"),
        np.array(params["position_embedding"], np.float32, order="C"),
        np.array([block["bo"] for block in blocks], np.float32),
        np.array([block["b2"] for block in blocks], np.float32),
        [_pack_part(params, shape, part, parts) for part in range(parts)],
    )


def in_blocks(matrix: Any, gain: Any = None) -> np.ndarray:
    """Cut a matrix into blocks of columns, each contiguous; row i is multiplied by gain[i].

    Shapes:  [d_in, d_out] -> [blocks, d_in, block width]; the last block ends in zeros
    """
    d_in, d_out = np.shape(matrix)
    width = _block_width(d_out)
    blocks = np.zeros((-(-d_out // width), d_in, width), np.float32)
    for index, block in enumerate(blocks):
        columns = np.asarray(matrix[:, index * width : (index + 1) * width])
        block[:, : columns.shape[1]] = columns if gain is None else columns * gain[:, None]
    return blocks


def times_blocks(x: np.ndarray, blocks: np.ndarray, out: np.ndarray) -> None:
    """Write x @ the matrix that was cut into blocks.

    Shapes:  x [N, d_in], blocks [blocks, d_in, width], out [N, blocks · width]
    """
    np.matmul(x, blocks, out=out.reshape(len(x), len(blocks), blocks.shape[2]).transpose(1, 0, 2))


def _pack_part(params: dict[str, Any], shape: ModelShape, part: int, parts: int) -> PackedPart:
    heads = _share(shape.n_heads, part, parts)
    d_ff = np.shape(params["blocks"][0]["w1"])[1]
    columns = _share(d_ff, part, parts)
    chunks = -(-shape.vocab_size // _BLOCK_WIDTH)  # whole blocks: no two parts share one
    tokens = _share(chunks, part, parts)
    tokens = slice(
        min(tokens.start * _BLOCK_WIDTH, shape.vocab_size),
        min(tokens.stop * _BLOCK_WIDTH, shape.vocab_size),
    )
    unembedding = _array(params["unembedding"])[:, tokens]
    bias = _array(params["unembedding_bias"])[tokens]
    return PackedPart(
        heads.stop - heads.start,
        columns.stop - columns.start,
        tokens.start,
        tokens.stop,
        [_pack_layer(block, heads, columns, shape) for block in params["blocks"]],
        in_blocks(unembedding, _array(params["final_gain"])),
        _padded(bias + _array(params["final_bias"]) @ unembedding),
    )


def _pack_layer(
    block: dict[str, Any], heads: slice, columns: slice, shape: ModelShape
) -> PackedLayer:
    p = {name: _array(value) for name, value in block.items()}
    d_head = shape.d_head
    qkv, qkv_bias = [], []
    for letter, factor in (("q", shape.scale), ("k", 1.0), ("v", 1.0)):
        for head in range(heads.start, heads.stop):
            part = slice(head * d_head, (head + 1) * d_head)
            weight = p[f"w{letter}"][:, part]
            bias = p[f"b{letter}"][part] + p["ln1_bias"] @ weight
            qkv.append((weight * p["ln1_gain"][:, None] * factor).astype(np.float32))
            qkv_bias.append((bias * factor).astype(np.float32))
    rows = slice(heads.start * d_head, heads.stop * d_head)
    w1 = p["w1"][:, columns]
    return PackedLayer(
        np.stack(qkv),
        np.stack(qkv_bias)[:, None],
        in_blocks(p["wo"][rows]),
        in_blocks(w1, p["ln2_gain"]),
        _padded(p["b1"][columns] + p["ln2_bias"] @ w1),
        in_blocks(p["w2"][columns] * 0.5),
    )


def _array(value: Any) -> np.ndarray:
    """Return a float array of at least single precision; one that is so already is not copied."""
    value = np.asarray(value)
    return value if value.dtype in (np.float32, np.float64) else value.astype(np.float32)


def _padded(bias: np.ndarray) -> np.ndarray:
    """Return the bias in float32, with zeros for the columns that fill up the last block."""
    width = _block_width(len(bias))
    padded = np.zeros(-(-len(bias) // width) * width, np.float32)
    padded[: len(bias)] = bias
    return padded


def _block_width(d_out: int) -> int:
    return max(1, min(_BLOCK_WIDTH, d_out))  # 1: a part of a small model may have no columns


def _share(size: int, part: int, parts: int) -> slice:
    return slice(size * part // parts, size * (part + 1) // parts)
