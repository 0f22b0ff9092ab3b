"""One pass of the fast stage over new tokens: every array is allocated before, and written over."""

import math

import numpy as np

from course_lib.decoder_lm.cached_attention import attend, score_buffer
from course_lib.decoder_lm.helper_thread import Crew
from course_lib.decoder_lm.kv_cache import CacheStep, KvCache
from course_lib.decoder_lm.packed import PackedModel, PackedPart, times_blocks

_GELU_SLOPE = math.sqrt(2.0 / math.pi)


class TokenPass:
    """Take a fixed number of tokens through the model, again and again, in the same buffers.

    The tokens stand one after the other, [N]. `groups` says whose they are: each is a list with
    one KvCache for every part of the model, and how many tokens each of its rows gets.
    """

    def __init__(self, model: PackedModel, crew: Crew, groups: list[tuple[list, int]]) -> None:
        self.model, self.crew, self.groups = model, crew, groups
        self.caches = [(cache, width) for caches, width in groups for cache in caches]
        count = sum(len(caches[0].lengths) * width for caches, width in groups)
        d_model = model.shape.d_model
        self.x = np.empty((count, d_model), np.float32)  # the residual stream
        self.normed = np.empty((count, d_model), np.float32)
        self.squares = np.empty((count, d_model), np.float32)
        self.row = np.empty((count, 1), np.float32)
        self.positions = np.empty(count, np.int64)
        self.desks = [
            _Desk(part, d_model, count, [(caches[p], width) for caches, width in groups])
            for p, part in enumerate(model.parts)
        ]

    def run(self, ids: np.ndarray) -> np.ndarray:
        """Return the residual stream after all layers, [N, d_model]; the caches then hold `ids`."""
        try:
            embed_tokens(self, ids)
            for layer in range(self.model.shape.n_layers):
                normalise(self)
                self.crew.run(_attention_part, self, layer)
                _add_parts(self, self.model.after_attention[layer])
                normalise(self)
                self.crew.run(_mlp_part, self, layer)
                _add_parts(self, self.model.after_mlp[layer])
        except BaseException:  # an interrupt must not leave the layers out of step
            for cache, _ in self.caches:
                cache.step = CacheStep()
            raise
        for cache, width in self.caches:
            cache.advance(width)
        return self.x


class _Desk:
    """One thread's buffers, and views of them that stay the same from step to step."""

    def __init__(
        self, part: PackedPart, d_model: int, count: int, groups: list[tuple[KvCache, int]]
    ) -> None:
        self.part = part
        heads, d_head = part.n_heads, part.layers[0].qkv.shape[2]
        self.qkv = np.empty((3 * heads, count, d_head), np.float32)
        self.mixed = np.empty((count, heads * d_head), np.float32)
        self.inner = np.empty((count, len(part.layers[0].b1)), np.float32)
        self.gate = np.empty_like(self.inner)
        wo = part.layers[0].wo
        self.padded = np.empty((count, wo.shape[0] * wo.shape[2]), np.float32)
        self.gives = self.padded[:, :d_model]
        self.groups = []
        start = 0
        for cache, width in groups:
            batch = len(cache.lengths)
            tokens = slice(start, start + batch * width)
            parted = self.qkv[:, tokens].reshape(3, heads, batch, width, d_head)
            q, k, v = parted.swapaxes(1, 2)  # each [batch, heads, width, d_head]
            mixed = self.mixed[tokens].reshape(batch, width, heads, d_head).swapaxes(1, 2)
            scores = score_buffer(q.shape, cache.keys.shape[3])
            self.groups.append((cache, q, k, v, mixed, scores))
            start = tokens.stop


def _attention_part(part: int, step: TokenPass, index: int) -> None:
    """Compute the heads of one part, and what they add to the stream."""
    desk = step.desks[part]
    layer = desk.part.layers[index]
    np.matmul(step.normed, layer.qkv, out=desk.qkv)  # [3 · heads, N, d_head]: all in one call
    desk.qkv += layer.qkv_bias
    for cache, q, k, v, mixed, scores in desk.groups:
        keys, values = cache.append(index, k, v)
        attend(q, keys, values, scores, mixed, cache.step.ends)
    times_blocks(desk.mixed, layer.wo, desk.padded)


def _mlp_part(part: int, step: TokenPass, index: int) -> None:
    """Compute the feed-forward columns of one part, and what they add to the stream."""
    desk = step.desks[part]
    layer = desk.part.layers[index]
    times_blocks(step.normed, layer.w1, desk.inner)
    desk.inner += layer.b1
    twice_gelu_in_place(desk.inner, desk.gate)
    times_blocks(desk.inner[:, : desk.part.d_ff], layer.w2, desk.padded)


def _add_parts(step: TokenPass, bias: np.ndarray) -> None:
    """Add to the stream what all parts and the bias give it."""
    for desk in step.desks:
        step.x += desk.gives
    step.x += bias


def twice_gelu_in_place(x: np.ndarray, gate: np.ndarray) -> None:
    """Write x · (1 + tanh(√(2/π) (x + 0.044715 x³))) over x; w2 has been halved for it."""
    np.multiply(x, x, out=gate)
    gate *= 0.044715 * _GELU_SLOPE
    gate += _GELU_SLOPE
    gate *= x
    np.tanh(gate, out=gate)
    gate += 1.0
    x *= gate


def normalise(step: TokenPass) -> None:
    """Write (x - mean) / √(variance + 1e-5); the gain and the bias are in the next matrix."""
    x, normed, row, squares = step.x, step.normed, step.row, step.squares
    np.add.reduce(x, axis=1, keepdims=True, out=row)
    row *= 1.0 / x.shape[1]
    np.subtract(x, row, out=normed)
    np.multiply(normed, normed, out=squares)
    np.add.reduce(squares, axis=1, keepdims=True, out=row)
    row *= 1.0 / x.shape[1]
    row += 1e-5
    np.sqrt(row, out=row)
    normed /= row


def embed_tokens(step: TokenPass, ids: np.ndarray) -> None:
    """Fill the stream with token and position embeddings."""
    start = 0
    for caches, width in step.groups:
        lengths = caches[0].lengths
        stop = start + len(lengths) * width
        np.add(
            lengths[:, None],
            np.arange(width),
            out=step.positions[start:stop].reshape(len(lengths), width),
        )
        start = stop
    np.take(step.model.token_embedding, ids, axis=0, out=step.x, mode="clip")
    np.take(step.model.position_embedding, step.positions, axis=0, out=step.squares, mode="clip")
    step.x += step.squares


class Unembedding:
    """Turn rows of the stream into logits, in buffers for a fixed number of rows."""

    def __init__(self, model: PackedModel, crew: Crew, rows: int) -> None:
        self.model, self.crew = model, crew
        self.x = np.empty((rows, model.shape.d_model), np.float32)
        self.normed, self.squares = np.empty_like(self.x), np.empty_like(self.x)
        self.row = np.empty((rows, 1), np.float32)
        stops = [part.first_token + len(part.unembedding_bias) for part in model.parts]
        self.padded = np.empty((rows, max(stops)), np.float32)
        self.logits = self.padded[:, : model.shape.vocab_size]

    def run(self, x: np.ndarray) -> np.ndarray:
        """Return logits [rows, V], in a buffer that the next call writes over."""
        self.x[:] = x
        normalise(self)
        self.crew.run(_logits_part, self)
        return self.logits


def _logits_part(part: int, step: Unembedding) -> None:
    """Compute the logits of one part of the vocabulary."""
    share = step.model.parts[part]
    if share.last_token > share.first_token:
        stop = share.first_token + len(share.unembedding_bias)
        out = step.padded[:, share.first_token : stop]
        times_blocks(step.normed, share.unembedding, out)
        out += share.unembedding_bias
