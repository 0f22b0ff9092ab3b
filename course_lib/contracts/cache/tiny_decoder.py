"""A tiny causal language model with a cache, in NumPy, whose steps can be done wrongly."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


class TinyCache:
    """The keys and values of the past, one pair a layer, and how many tokens they stand for."""

    def __init__(self, n_layers: int, d_model: int) -> None:
        self.keys = [np.zeros((0, d_model)) for _ in range(n_layers)]
        self.values = [np.zeros((0, d_model)) for _ in range(n_layers)]
        self.length = 0
        self.calls = 0


class TinyDecoder:
    """A causal language model: full_logits(ids), and the same with a cache, chunk by chunk.

    `steps` replaces steps by name; each gets the decoder first. Positions are a formula, so any
    position has a vector, and the weights come from a generator of their own.
    """

    def __init__(
        self,
        vocab_size: int = 11,
        context_length: int = 12,
        n_layers: int = 2,
        seed: int = 18,
        **steps: Callable[..., Any],
    ) -> None:
        self.vocab_size, self.context_length, self.n_layers = vocab_size, context_length, n_layers
        self.seed, self.steps, self.d_model = seed, steps, 8
        rng, wide = np.random.default_rng(seed), (n_layers, self.d_model, self.d_model)
        self.w_qkv = rng.normal(size=(n_layers, self.d_model, 3 * self.d_model)) * 0.6
        self.w_out, self.w_in = rng.normal(size=wide) * 0.4, rng.normal(size=wide) * 0.4
        self.frequencies, self.phases = rng.uniform(0.3, 1.2, self.d_model), rng.normal(size=8)
        self.embedding = rng.normal(size=(vocab_size, self.d_model))
        self.memory: Any = None  # what a wrong step keeps between calls

    def resized(self, vocab_size: int, context_length: int) -> "TinyDecoder":
        """The same model, with the same mistakes, for another vocabulary and context."""
        return TinyDecoder(vocab_size, context_length, self.n_layers, self.seed, **self.steps)

    def step(self, name: str, *args: Any) -> Any:
        """Take a step the way that was handed in, or else the right way."""
        return self.steps.get(name, _RIGHT[name])(self, *args)

    def full_logits(self, ids: Sequence[int]) -> np.ndarray:
        """The logits of every position in one pass, without a cache."""
        ids = self.step("admit_full", list(ids))
        allowed = self.step("see_full", len(ids))
        return self.step("finish_full", self.rows_at(ids, np.arange(len(ids)), allowed))

    def rows_at(self, ids: Sequence[int], positions: np.ndarray, allowed: np.ndarray) -> np.ndarray:
        """The logits of tokens that stand at these positions and may read what `allowed` says."""
        x = self._embedded(ids, positions)
        for layer in range(self.n_layers):
            q, k, v = self._projected(layer, x)
            x = self._attended(layer, x, q, k, v, allowed, 8**-0.5)
        return x @ self.embedding.T

    def cached_logits(self, ids: list[int], chunks: list[int]) -> np.ndarray:
        """The same logits, chunk by chunk, each reading the past from the cache."""
        ids = self.step("admit", ids, chunks)
        cache, rows, start = self.step("begin"), [], 0
        for width in chunks:
            if start < len(ids):
                rows.append(self.extend(cache, ids[start : start + width]))
            start += width
        return self.step("finish", np.concatenate(rows))

    def extend(self, cache: TinyCache, ids: Sequence[int]) -> np.ndarray:
        """The logits of one chunk; its keys and values join the cache."""
        width = len(ids)
        x = self._embedded(ids, self.step("place", cache, width))
        for layer in range(self.n_layers):
            q, k, v = self._projected(layer, x)
            keys, values = self.step("store", cache, layer, k, v)
            allowed = self.step("see", width, len(keys), cache.length)
            scale = self.step("scale", cache.length)
            x = self._attended(layer, x, q, keys, values, allowed, scale)
        cache.length, cache.calls = self.step("advance", cache, width), cache.calls + 1
        return x @ self.embedding.T

    def _embedded(self, ids: Sequence[int], positions: np.ndarray | None) -> np.ndarray:
        x = self.embedding[np.asarray(ids, dtype=int)]
        if positions is None:
            return x
        return x + np.sin(np.multiply.outer(positions, self.frequencies) + self.phases)

    def _projected(self, layer: int, x: np.ndarray) -> list[np.ndarray]:
        return np.split(x @ self.w_qkv[layer], 3, axis=-1)

    def _attended(
        self,
        layer: int,
        x: np.ndarray,
        q: np.ndarray,
        keys: np.ndarray,
        values: np.ndarray,
        allowed: np.ndarray,
        scale: float,
    ) -> np.ndarray:
        """One block: attention and a small layer after it, both on the residual stream."""
        scores = np.where(allowed, q @ keys.T * scale, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        x = x + weights @ values / weights.sum(-1, keepdims=True) @ self.w_out[layer]
        return x + np.tanh(x @ self.w_in[layer])


def fitting_ids(decoder: Any, ids: list[int], *_: Any) -> list[int]:
    """Refuse more tokens than the context holds."""
    if len(ids) > decoder.context_length:
        raise ValueError(f"{len(ids)} tokens do not fit in a context of {decoder.context_length}")
    return ids


def seen_keys(width: int, n_keys: int, offset: int) -> np.ndarray:
    """The causal mask: query i stands at position offset + i."""
    return np.arange(n_keys) <= np.arange(width)[:, None] + offset


def stored(change: Callable[..., np.ndarray]) -> Callable[..., tuple]:
    """A step that keeps, and hands out, what change(decoder, cache, past, new) makes of each."""

    def store(decoder: Any, cache: TinyCache, layer: int, k: Any, v: Any) -> tuple:
        for past, new in ((cache.keys, k), (cache.values, v)):
            past[layer] = change(decoder, cache, past[layer], new)
        return cache.keys[layer], cache.values[layer]

    return store


joined_past = stored(lambda decoder, cache, past, new: np.concatenate([past, new]))

_RIGHT = {
    "admit_full": fitting_ids,
    "admit": fitting_ids,
    "begin": lambda decoder: TinyCache(decoder.n_layers, decoder.d_model),
    "place": lambda decoder, cache, width: cache.length + np.arange(width),
    "store": joined_past,
    "see": lambda decoder, width, n_keys, offset: seen_keys(width, n_keys, n_keys - width),
    "see_full": lambda decoder, width: seen_keys(width, width, 0),
    "scale": lambda decoder, offset: 8**-0.5,
    "advance": lambda decoder, cache, width: cache.length + width,
    "finish": lambda decoder, rows: rows,
    "finish_full": lambda decoder, rows: rows,
}
