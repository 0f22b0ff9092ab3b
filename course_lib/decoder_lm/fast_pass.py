"""One pass of the fast stage over new tokens: every array is allocated before, and written over."""

import math
from typing import Any

import numpy as np

from course_lib.decoder_lm.block_product import BlockProduct, room_for, whole_width
from course_lib.decoder_lm.cached_attention import attend, score_buffer
from course_lib.decoder_lm.helper_thread import Crew
from course_lib.decoder_lm.kv_cache import CacheStep, KvCache
from course_lib.decoder_lm.packed import GELU_SLOPE, NORM_EPSILON, PackedModel, PackedPart

_SLOPE = np.array(GELU_SLOPE, np.float32)  # arrays: Python numbers would be converted each time
_ONE = np.array(1.0, np.float32)


class TokenPass:
    """Take a fixed number of tokens through the model, again and again, in the same buffers.

    The tokens stand one after the other, [N]. `groups` says whose they are: each is a list with a
    KvCache for every part of the model, and how many tokens each of its rows gets.
    """

    def __init__(
        self, model: PackedModel, crew: Crew, groups: list[tuple[list[KvCache], int]]
    ) -> None:
        self.model, self.crew, self.groups = model, crew, groups
        self.caches = [(cache, width) for caches, width in groups for cache in caches]
        count = sum(len(caches[0].lengths) * width for caches, width in groups)
        self.norm = Norm(count, model.shape.d_model)
        self.x = self.norm.x
        self.found, self.places = np.empty((2, *self.x.shape), np.float32)
        self.positions = np.empty(count, np.int64)
        self.offsets = _position_sums(groups, self.positions)
        self.desks = [
            _Desk(part, self.norm.out, [(caches[p], width) for caches, width in groups])
            for p, part in enumerate(model.parts)
        ]

    def run(self, ids: np.ndarray) -> np.ndarray:
        """Return the residual stream after all layers, [N, d_model]; the caches then hold `ids`."""
        try:
            embed_tokens(self, ids)
            for layer in range(self.model.shape.n_layers):
                for work in (_attention_part, _mlp_part):
                    self.norm.write()
                    self.crew.run(work, self.desks, layer)
                    for desk in self.desks:  # here, in order: the sum does not depend on threads
                        self.x += desk.gives
        except BaseException:  # an interrupt must not leave the layers out of step
            for cache, _ in self.caches:
                cache.step = CacheStep()
            raise
        for cache, width in self.caches:
            cache.advance(width)
        return self.x


def _position_sums(
    groups: list[tuple[list[KvCache], int]], positions: np.ndarray
) -> list[tuple[Any, ...]]:
    """Say for each group what makes its positions: the rows' lengths, 0 to width - 1, and where."""
    sums, start = [], 0
    for caches, width in groups:
        lengths = caches[0].lengths  # a view: each run adds to the lengths as they then are
        stop = start + len(lengths) * width
        sums.append((lengths[:, None], np.arange(width), positions[start:stop].reshape(-1, width)))
        start = stop
    return sums


class Norm:
    """Divide rows of mean 0 by their length: all that is left of LayerNorm once it is folded.

    Shapes:  x [N, d_model] -> out [N, 1 + d_model], with a 1 in front for the bias
    """

    def __init__(self, count: int, d_model: int) -> None:
        stream = np.full((count, 1 + d_model), math.sqrt(NORM_EPSILON * d_model), np.float32)
        self.x = stream[:, 1:]  # the column in front adds ε to the mean square of each row
        self.squared = stream[:, None], stream[:, :, None]
        self.length = np.empty((count, 1, 1), np.float32)
        self.out = np.ones((count, 1 + d_model), np.float32)
        self.into = self.x, self.length[:, 0], self.out[:, 1:]

    def write(self) -> None:
        """Write x / √(x · x + ε d_model) into out."""
        np.matmul(*self.squared, out=self.length)
        np.sqrt(self.length, out=self.length)
        np.divide(*self.into)


class _Desk:
    """One thread's buffers, and views of them that stay the same from step to step."""

    def __init__(
        self, part: PackedPart, normed: np.ndarray, groups: list[tuple[KvCache, int]]
    ) -> None:
        self.part, first = part, part.layers[0]
        count, d_model, heads = len(normed), normed.shape[1] - 1, part.n_heads
        d_head = groups[0][0].keys.shape[4]
        qkv, ends = room_for(count, first.qkv), [whole_width(first.wo), whole_width(first.w2)]
        gives = np.ones((count, max(ends)), np.float32)  # wo and w2 may be cut differently
        mixed = np.ones((count, 1 + heads * d_head), np.float32)  # column 0 stays 1, for the bias
        inner = room_for(count, first.w1, constant=1)
        self.inner, self.gate = inner[:, 1:], np.empty_like(inner[:, 1:])
        self.gives = gives[:, :d_model]
        self.to_qkv = BlockProduct(normed, qkv, first.qkv.shape[3])
        self.from_heads = BlockProduct(mixed, gives[:, : ends[0]], first.wo.shape[3])
        self.to_inner = BlockProduct(normed, self.inner, first.w1.shape[3])
        active = inner[:, : 1 + part.d_ff]
        self.from_inner = BlockProduct(active, gives[:, : ends[1]], first.w2.shape[3])
        self.groups, start = [], 0
        for cache, width in groups:
            batch = len(cache.lengths)
            tokens = slice(start, start + batch * width)
            parted = qkv[tokens, : 3 * heads * d_head].reshape(batch, width, 3, heads, d_head)
            q, k, v = parted.transpose(2, 0, 3, 1, 4)  # each [batch, heads, width, d_head]
            out = mixed[tokens, 1:].reshape(batch, width, heads, d_head).swapaxes(1, 2)
            scores = score_buffer(q.shape, cache.keys.shape[3])
            self.groups.append((cache, q, k, v, scores, out))
            start = tokens.stop


def _attention_part(part: int, desks: list[_Desk], index: int) -> None:
    """Compute the heads of one part, and what they add to the stream."""
    desk = desks[part]
    layer = desk.part.layers[index]
    desk.to_qkv.write(layer.qkv)
    for cache, q, k, v, scores, out in desk.groups:
        keys, values = cache.append(index, k, v)
        attend(q, keys, values, scores, out, cache.step.ends)
    desk.from_heads.write(layer.wo)


def _mlp_part(part: int, desks: list[_Desk], index: int) -> None:
    """Compute the feed-forward columns of one part, and what they add to the stream."""
    desk = desks[part]
    layer = desk.part.layers[index]
    desk.to_inner.write(layer.w1)
    scaled_gelu_in_place(desk.inner, desk.gate)
    desk.from_inner.write(layer.w2)


def scaled_gelu_in_place(x: np.ndarray, gate: np.ndarray) -> None:
    """Write x · (1 + tanh(x³ + GELU_SLOPE · x)) over x: GELU, but for factors in w1 and w2."""
    np.multiply(x, x, out=gate)
    gate += _SLOPE
    gate *= x
    np.tanh(gate, out=gate)
    gate += _ONE
    x *= gate


def embed_tokens(step: "TokenPass", ids: np.ndarray) -> None:
    """Fill the stream with token and position embeddings."""
    for lengths, offsets, into in step.offsets:
        np.add(lengths, offsets, out=into)
    model = step.model  # the ids have been checked; mode "clip" needs no buffer
    model.token_embedding.take(ids, axis=0, out=step.found, mode="clip")
    model.position_embedding.take(step.positions, axis=0, out=step.places, mode="clip")
    np.add(step.found, step.places, out=step.x)


class Unembedding:
    """Turn rows of the stream into logits, in buffers for a fixed number of rows."""

    def __init__(self, model: PackedModel, crew: Crew, count: int) -> None:
        self.model, self.crew = model, crew
        self.norm = Norm(count, model.shape.d_model)
        rooms = [whole_width(part.unembedding) for part in model.parts]
        padded = np.empty((count, sum(rooms)), np.float32)
        self.logits = padded[:, : model.shape.vocab_size]
        self.products = [
            BlockProduct(
                self.norm.out,
                padded[:, part.first_token :][:, :room],
                part.unembedding.shape[3],
            )
            for part, room in zip(model.parts, rooms, strict=True)
        ]

    def run(self, x: np.ndarray) -> np.ndarray:
        """Return logits [N, V], in a buffer that the next call writes over."""
        self.norm.x[:] = x
        self.norm.write()
        self.crew.run(_logits_part, self)
        return self.logits


def _logits_part(part: int, step: "Unembedding") -> None:
    """Compute the logits of one part of the vocabulary."""
    step.products[part].write(step.model.parts[part].unembedding)
