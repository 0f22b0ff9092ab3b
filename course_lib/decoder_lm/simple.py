"""The decoder in NumPy as it is easiest to read: one pass over a text, and the same with a cache.

Every step of the cache is a short method of its own, so that it can be done wrongly on purpose.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from course_lib.decoder_lm.errors import ContextOverflow
from course_lib.decoder_lm.shape import ModelShape, check_parameters, map_parameters


class SimpleModel:
    """Give the logits of a text in one pass: what a cache has to reproduce.

    Shapes:  token_ids [T] -> logits [T, V], in the dtype of the parameters
    """

    def __init__(self, params: dict[str, Any], shape: ModelShape) -> None:
        check_parameters(params, shape)
        self.params, self.shape = map_parameters(np.asarray, params), shape

    def full_logits(self, token_ids: Sequence[int]) -> np.ndarray:
        """Return the logits of every position; nothing is kept."""
        _check_simple_ids(token_ids, 0, self.shape)
        places = np.arange(len(token_ids))
        lower_triangle = np.tri(len(token_ids), dtype=bool)  # [T, T]
        return self.run(token_ids, places, lower_triangle, lambda layer, k, v: (k, v))

    def run(
        self, token_ids: Sequence[int], positions: np.ndarray, allowed: np.ndarray, remember: Any
    ) -> np.ndarray:
        """Take tokens through all blocks; `remember(layer, k, v)` gives all keys and values."""
        p, n_heads = self.params, self.shape.n_heads
        x = p["token_embedding"][token_ids] + p["position_embedding"][positions]  # [T, d_model]
        for layer, block in enumerate(p["blocks"]):
            h = norm_rows(x, block["ln1_gain"], block["ln1_bias"])
            q, k, v = (part_heads(h @ block[f"w{a}"] + block[f"b{a}"], n_heads) for a in "qkv")
            keys, values = remember(layer, k, v)
            x = x + attend_heads(q, keys, values, allowed) @ block["wo"] + block["bo"]
            h = norm_rows(x, block["ln2_gain"], block["ln2_bias"])
            x = x + tanh_gelu(h @ block["w1"] + block["b1"]) @ block["w2"] + block["b2"]
        h = norm_rows(x, p["final_gain"], p["final_bias"])
        return h @ p["unembedding"] + p["unembedding_bias"]


class SimpleDecoder(SimpleModel):
    """Read a text chunk by chunk: each chunk finds the keys and values of the past in a cache."""

    def __init__(self, params: dict[str, Any], shape: ModelShape) -> None:
        super().__init__(params, shape)
        self.begin()

    def begin(self) -> None:
        """Start a new text: nothing is remembered."""
        shape, dtype = self.shape, self.params["final_gain"].dtype
        empty = [np.empty((shape.n_heads, 0, shape.d_head), dtype)] * shape.n_layers
        self.keys, self.values, self.length = list(empty), list(empty), 0

    def positions(self, width: int) -> np.ndarray:
        """Return where the new tokens stand."""
        return self.length + np.arange(width)

    def allowed(self, width: int) -> np.ndarray:
        """Return which keys each new token may read: all of the past, the chunk up to itself."""
        return np.tri(width, self.length + width, k=self.length, dtype=bool)

    def remember(self, layer: int, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Put new keys and values behind those of the past; return them all."""
        self.keys[layer] = np.concatenate([self.keys[layer], k], axis=1)  # [H, T, d_head]
        self.values[layer] = np.concatenate([self.values[layer], v], axis=1)
        return self.keys[layer], self.values[layer]

    def extend(self, token_ids: Sequence[int]) -> np.ndarray:
        """Return the logits of the next chunk of the text; the cache then holds it too."""
        _check_simple_ids(token_ids, self.length, self.shape)
        width = len(token_ids)
        logits = self.run(token_ids, self.positions(width), self.allowed(width), self.remember)
        self.length += width
        return logits

    def cached_logits(self, token_ids: Sequence[int], chunks: Sequence[int]) -> np.ndarray:
        """Return the logits of a whole text, read from an empty cache in chunks of these widths."""
        pieces = _cut_in_chunks(token_ids, chunks, self.shape)
        self.begin()
        return np.concatenate([self.extend(piece) for piece in pieces])


def greedy_tokens(decoder: SimpleDecoder, prompt: Sequence[int], count: int) -> list[int]:
    """Continue a prompt by the likeliest token, again and again."""
    decoder.begin()
    new: list[int] = []
    chunk = prompt  # the whole prompt first, then the newest token alone
    for _ in range(count):
        new.append(int(decoder.extend(chunk)[-1].argmax()))
        chunk = new[-1:]
    return new


def greedy_tokens_anew(model: SimpleModel, prompt: Sequence[int], count: int) -> list[int]:
    """Continue a prompt without a cache: the whole text goes through the model at every step."""
    text = list(prompt)
    for _ in range(count):
        text.append(int(model.full_logits(text)[-1].argmax()))
    return text[len(prompt) :]


def part_heads(rows: np.ndarray, n_heads: int) -> np.ndarray:
    """Give each head its own columns: [T, d_model] -> [H, T, d_head]."""
    return rows.reshape(len(rows), n_heads, -1).swapaxes(0, 1)


def attend_heads(
    q: np.ndarray, keys: np.ndarray, values: np.ndarray, allowed: np.ndarray
) -> np.ndarray:
    """Mix the values by softmax(q kᵀ / √d_head), head by head.

    Shapes:  q [H, T_q, d_head], keys and values [H, T_k, d_head], allowed [T_q, T_k] bool
             -> [T_q, d_model]
    """
    scores = q @ keys.swapaxes(1, 2) / math.sqrt(q.shape[-1])  # [H, T_q, T_k]
    scores = np.where(allowed, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = weights @ values / weights.sum(-1, keepdims=True)  # [H, T_q, d_head]
    return mixed.swapaxes(0, 1).reshape(q.shape[1], -1)


def norm_rows(x: np.ndarray, gain: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Return (x - mean) / √(variance + 1e-5) · gain + bias of each row."""
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt(np.square(centred).mean(-1, keepdims=True) + 1e-5) * gain + bias


def tanh_gelu(x: np.ndarray) -> np.ndarray:
    """Return GELU in the form with tanh, as GPT-2 has it."""
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def _check_simple_ids(token_ids: Any, length: int, shape: ModelShape) -> None:
    """Require tokens of the vocabulary, at least one, that fit behind those already read."""
    ids = np.asarray(token_ids)
    if ids.ndim != 1 or ids.size == 0 or ids.dtype.kind not in "iu":
        raise ValueError(f"token_ids must be a list of integers, not empty, got {token_ids!r}")
    if ids.min() < 0 or ids.max() >= shape.vocab_size:
        raise ValueError(
            f"token ids must be in [0, {shape.vocab_size}), got {ids.min()} to {ids.max()}"
        )
    if length + len(ids) > shape.context_length:
        raise ContextOverflow(
            f"{length} tokens read and {len(ids)} new ones do not fit in "
            f"context_length={shape.context_length}; shorten the text or begin() a new one"
        )


def _cut_in_chunks(token_ids: Any, chunks: Any, shape: ModelShape) -> list[Sequence[int]]:
    _check_simple_ids(token_ids, 0, shape)
    if sum(chunks) != len(token_ids) or min(chunks) < 1:
        raise ValueError(
            f"chunks must be widths of at least 1 that sum to {len(token_ids)}, got {list(chunks)}"
        )
    starts = [sum(chunks[:n]) for n in range(len(chunks))]
    return [token_ids[start : start + w] for start, w in zip(starts, chunks, strict=True)]
