"""Attention of the fast stage: new queries over views of the cache, in place."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from course_lib.decoder_lm.errors import ShapeMismatch

_QUERY_TILE = 64  # queries whose scores are computed at once
_FUTURE = np.triu(np.full((_QUERY_TILE, _QUERY_TILE), -np.inf, np.float32), k=1)  # added to scores


def fused_qkv_decode(
    hidden: np.ndarray, qkv_weight: np.ndarray, n_heads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute query, key and value of one new token of each row by a single product.

    Three products would read the same hidden vector three times and start three times.

    Shapes:  hidden [B, d_model] or [B, 1, d_model], qkv_weight [d_model, 3 d_model]
             -> each [B, n_heads, 1, d_head]
    """
    if np.ndim(hidden) == 3 and hidden.shape[1] == 1:
        hidden = hidden[:, 0]
    _check_fused_qkv(hidden, qkv_weight, n_heads)
    batch, d_model = hidden.shape
    fused = np.matmul(hidden, qkv_weight).reshape(batch, 3, n_heads, 1, d_model // n_heads)
    return fused[:, 0], fused[:, 1], fused[:, 2]


def cached_attention(query: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Let the newest positions read all of the cache that is not their future.

        softmax(q kᵀ / √d_head) v

    The queries are the last T_q of the T_k positions. One alone needs no mask: all the cache holds
    is its past and itself. Query i of several must not see the last T_q - 1 - i keys.

    Shapes:  query [B, H, T_q, d_head], keys, values [B, H, T_k, d_head], T_q <= T_k
             -> [B, H, T_q, d_head] float32
    Raises:  ShapeMismatch where they do not fit together
    """
    _check_cached_attention(query, keys, values)
    scaled = np.multiply(query, 1.0 / np.sqrt(query.shape[-1]), dtype=np.float32)
    mixed = np.empty(query.shape, np.float32)
    attend(scaled, keys, values, score_buffer(query.shape, keys.shape[2]), mixed, [])
    return mixed


def attend(
    scaled: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    scores: np.ndarray,
    out: np.ndarray,
    ends: Sequence[int],
) -> None:
    """Write softmax(q kᵀ) v of queries that carry the factor 1/√d_head already.

    Args:    scores: room for [B, H, a tile of queries, T_k]
             ends: how many keys each row has; empty if all have T_k. Else T_q must be 1
    """
    width, length = scaled.shape[2], keys.shape[2]
    keys = keys.swapaxes(2, 3)  # [B, H, d_head, T_k], still a view
    if width == 1:  # decoding: all that is in the cache may be read
        weights = scores[..., :length]
        np.matmul(scaled, keys, out=weights)
        for row, end in enumerate(ends):
            weights[row, :, :, end:] = -np.inf  # what a longer row left room for is not its past
        softmax_in_place(weights)
        np.matmul(weights, values, out=out)
        return
    for first in range(0, width, _QUERY_TILE):  # all at once a long prompt would need T² scores
        last = min(first + _QUERY_TILE, width)
        seen = length - width + last  # the tile's last query sees this many keys
        tile = scores[:, :, : last - first, :seen]
        np.matmul(scaled[:, :, first:last], keys[..., :seen], out=tile)
        # the offset causal mask: only the tile's own square has a future
        tile[..., seen - last + first :] += _FUTURE[: last - first, : last - first]
        softmax_in_place(tile)
        np.matmul(tile, values[:, :, :seen], out=out[:, :, first:last])


def softmax_in_place(scores: np.ndarray) -> None:
    """Turn scores into weights over the last axis, writing over them."""
    scores -= np.maximum.reduce(scores, axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= np.add.reduce(scores, axis=-1, keepdims=True)


def score_buffer(query_shape: tuple[int, ...], n_keys: int) -> np.ndarray:
    """Return room for the scores of one tile of queries against n_keys keys."""
    batch, n_heads, width, _ = query_shape
    return np.empty((batch, n_heads, min(width, _QUERY_TILE), n_keys), np.float32)


def _check_cached_attention(query: Any, keys: Any, values: Any) -> None:
    sizes = [np.shape(each) for each in (query, keys, values)]
    for name, size in zip(("query", "keys", "values"), sizes, strict=True):
        if len(size) != 4:
            raise ShapeMismatch(f"{name} must have shape [B, H, T, d_head], got {list(size)}")
    q, k, v = sizes
    if k != v or q[:2] != k[:2] or q[3] != k[3]:
        raise ShapeMismatch(
            f"query {list(q)}, keys {list(k)}, values {list(v)}: B, H and d_head must agree, and "
            f"keys and values in all"
        )
    if not 1 <= q[2] <= k[2]:
        raise ShapeMismatch(
            f"{q[2]} queries over {k[2]} keys: the queries are the newest of the cached positions; "
            f"append their keys and values first"
        )


def _check_fused_qkv(hidden: Any, qkv_weight: Any, n_heads: Any) -> None:
    sizes = np.shape(hidden), np.shape(qkv_weight)
    if len(sizes[0]) != 2 or sizes[1] != (sizes[0][1], 3 * sizes[0][1]):
        raise ShapeMismatch(
            f"hidden must be [B, d_model] and qkv_weight [d_model, 3 d_model], "
            f"got {list(sizes[0])} and {list(sizes[1])}"
        )
    if n_heads < 1 or sizes[0][1] % n_heads != 0:
        raise ShapeMismatch(f"d_model={sizes[0][1]} is not divisible by n_heads={n_heads}")
