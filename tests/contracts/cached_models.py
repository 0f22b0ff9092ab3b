"""Models with a cache, written in many ways: pairs (full_logits, cached_logits) and their sizes."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F


class Pair(NamedTuple):
    """What the cache's contract takes."""

    full_logits: Callable[..., Any]
    cached_logits: Callable[..., Any]
    vocab_size: int = 11
    context_length: int = 12


def refuse_more(ids, limit):
    if len(ids) > limit:
        raise ValueError("context overflow")


class TorchLM:
    """Two heads, learned positions or RoPE, one slab of memory for all keys and values.

    `bug` names what is wrong; the code shares nothing with the catalogue.
    """

    def __init__(
        self,
        vocab_size=13,
        context_length=16,
        *,
        n_layers=2,
        dtype=torch.float64,
        seed=0,
        rope=False,
        window=None,
        bug="",
    ):
        g = torch.Generator().manual_seed(seed)
        self.d, self.heads, self.n_layers, self.bug = 12, 2, n_layers, bug
        self.vocab_size, self.context_length, self.dtype = vocab_size, context_length, dtype
        self.rope, self.window = rope, window

        def weight(*shape, scale=0.35):
            return (torch.randn(*shape, generator=g, dtype=torch.float64) * scale).to(dtype)

        self.tokens, self.places = weight(vocab_size, 12, scale=1), weight(context_length + 9, 12)
        self.layers = [
            {name: weight(12, 12) for name in ("q", "k", "v", "o", "up", "down")}
            for _ in range(n_layers)
        ]
        self.head = weight(12, vocab_size)
        self.slab = None

    def sizes(self):
        return self.vocab_size, self.context_length

    def pair(self):
        return Pair(self.full_logits, self.cached_logits, *self.sizes())

    def norm(self, x):
        return F.layer_norm(x, (self.d,))

    def split(self, x):
        return x.view(len(x), self.heads, -1).transpose(0, 1)  # [H, T, d_head]

    def turned(self, x, positions):
        if not self.rope:
            return x
        half = x.shape[-1] // 2
        angles = positions[:, None].to(self.dtype) * torch.tensor([1.0, 0.3, 0.1], dtype=self.dtype)
        a, b = x[..., :half], x[..., half:]
        return torch.cat(
            [a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1
        )

    def embedded(self, ids, positions):
        x = self.tokens[torch.tensor(ids)]
        return x if self.rope else x + self.places[positions]

    def mixed(self, x, layer, q, k, v, mask):
        y = F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=mask)[0]
        x = x + y.transpose(0, 1).reshape(len(x), -1) @ layer["o"]
        return x + F.gelu(self.norm(x) @ layer["up"]) @ layer["down"]

    def allowed(self, width, n_keys, offset):
        i, j = torch.arange(width)[:, None] + offset, torch.arange(n_keys)
        seen = j <= i
        return seen & (j > i - self.window) if self.window else seen

    def full_logits(self, ids):
        refuse_more(ids, self.context_length)
        positions = torch.arange(len(ids))
        x, mask = self.embedded(ids, positions), self.allowed(len(ids), len(ids), 0)
        if self.bug == "full_pass_without_mask":
            mask = None
        for layer in self.layers:
            q, k, v = (self.split(self.norm(x) @ layer[name]) for name in "qkv")
            x = self.mixed(x, layer, self.turned(q, positions), self.turned(k, positions), v, mask)
        return self.norm(x) @ self.head

    def fresh_slab(self):
        shape = (self.n_layers, 2, self.heads, self.context_length + 8, self.d // self.heads)
        if self.slab is None or self.bug not in ("cache_not_reset", "stale_slots_read"):
            self.slab, self.length = torch.zeros(shape, dtype=self.dtype), 0
            self.written = 0
        if self.bug == "stale_slots_read":
            self.length = 0

    def cached_logits(self, ids, chunks):
        limit = self.context_length
        if self.bug == "front_cut_when_too_long":
            ids = ids[-limit:]
        elif self.bug == "cache_not_reset":
            refuse_more([0] * (len(ids) + (self.length if self.slab is not None else 0)), limit)
        elif self.bug != "no_limit":
            refuse_more(ids, limit)
        self.fresh_slab()
        rows, start, self.calls = [], 0, 0
        for width in chunks:
            part = ids[start : start + width]
            if part:
                rows.append(self.extend(part))
            start += width
        return torch.cat(rows)

    def extend(self, ids):
        width, offset, bug = len(ids), self.length, self.bug
        end = offset + width
        positions = torch.arange(offset, end)
        if bug == "positions_restart":
            positions = torch.arange(width)
        elif bug == "positions_count_calls":
            positions = torch.arange(self.calls, self.calls + width)
        elif bug == "one_position_for_the_chunk":
            positions = torch.full((width,), offset)
        elif bug == "later_positions_shifted" and offset:
            positions = positions - 1
        x, mask = self.embedded(ids, positions), self.allowed(width, end, offset)
        if bug == "mask_top_left" or bug == "mask_top_left_if_wide" and width > 1:
            mask = self.allowed(width, end, 0)
        elif bug == "no_mask_in_later_chunks" and offset or bug == "no_mask_with_cache":
            mask = None
        write = offset - 1 if bug == "pointer_one_short" and offset else offset
        for n, layer in enumerate(self.layers):
            slot = 0 if bug == "one_cache_for_all_layers" else n
            q, k, v = (self.split(self.norm(x) @ layer[name]) for name in "qkv")
            q, k = self.turned(q, positions), self.turned(k, positions)
            past = self.slab[slot, :, :, :write].clone()
            if bug == "past_not_read":
                past = past[:, :, :0]
            if bug == "trimmed_too_early":
                past = past[:, :, -9:]
            if bug == "keys_and_values_swapped":
                past = past.flip(0)
            self.slab[slot, 0, :, write : write + width] = k
            self.slab[slot, 1, :, write : write + width] = v
            keys, values = torch.cat([past[0], k], 1), torch.cat([past[1], v], 1)
            if bug == "growth_destroys_layout" and end > 8 >= offset > 0:
                grown = self.slab[slot, :, :, :offset]
                self.slab[slot, :, :, :offset] = grown.transpose(0, 1).reshape(grown.shape)
            seen = mask
            if bug in ("past_not_read", "trimmed_too_early", "pointer_one_short"):
                seen = self.allowed(width, keys.shape[1], keys.shape[1] - width)
            if bug == "stale_slots_read":
                top = max(self.written, end)
                keys, values = self.slab[slot, 0, :, :top], self.slab[slot, 1, :, :top]
                j = torch.arange(top)
                seen = (j <= torch.arange(width)[:, None] + offset) | (j >= end)
            if bug == "whole_buffer_read" or (bug == "one_token_reads_the_buffer" and width == 1):
                keys, values = self.slab[slot, :, :, : self.context_length]
                j = torch.arange(self.context_length)
                seen = (j <= torch.arange(width)[:, None] + offset) | (j >= end)
            x = self.mixed(x, layer, q, keys, values, seen)
        self.length, self.calls = end, self.calls + 1
        if bug != "stale_slots_read":
            self.written = end
        self.written = max(self.written, end)
        return self.norm(x) @ self.head


TORCH_BUGS = [
    *("mask_top_left", "mask_top_left_if_wide", "no_mask_in_later_chunks", "no_mask_with_cache"),
    *("positions_restart", "positions_count_calls", "one_position_for_the_chunk"),
    *("later_positions_shifted", "full_pass_without_mask", "no_limit", "front_cut_when_too_long"),
    *("cache_not_reset", "stale_slots_read", "whole_buffer_read", "one_token_reads_the_buffer"),
    *("trimmed_too_early", "pointer_one_short", "growth_destroys_layout"),
    *("keys_and_values_swapped", "one_cache_for_all_layers", "past_not_read"),
]


# ---------------------------------------------------------------- other models


def recurrent_pair(vocab_size=7, context_length=9):
    """No attention at all: the cache is the hidden state."""
    rng = np.random.default_rng(3)
    table, turn = rng.normal(size=(vocab_size, 5)), rng.normal(size=(5, 5)) * 0.5

    def run(ids, state):
        rows = []
        for token in ids:
            state = np.tanh(state @ turn + table[token])
            rows.append(state @ table.T)
        return np.stack(rows), state

    def full(ids):
        refuse_more(ids, context_length)
        return run(ids, np.zeros(5))[0]

    def cached(ids, chunks):
        refuse_more(ids, context_length)
        state, rows, start = np.zeros(5), [], 0
        for width in chunks:
            part, state = run(ids[start : start + width], state)
            rows.extend(part.tolist())
            start += width
        return rows

    return Pair(full, cached, vocab_size, context_length)


def bigram_pair(vocab_size=5, context_length=4):
    """The logits depend on the token alone: nothing to cache, and nothing wrong with it."""
    table = np.random.default_rng(4).normal(size=(vocab_size, vocab_size))

    def full(ids):
        refuse_more(ids, context_length)
        return table[ids]

    return Pair(full, lambda ids, chunks: full(ids).astype(np.float32).tolist(), 5, context_length)


def recomputing_pair(model):
    """No cache: every chunk computes its whole history again."""

    def cached(ids, chunks):
        rows, end = [], 0
        for width in chunks:
            end += width
            rows.append(model.full_logits(ids[:end])[end - width :])
        return torch.cat(rows).numpy()

    return Pair(model.full_logits, cached, *model.sizes())


def loops_pair(vocab_size=6, context_length=10):
    """Plain Python: one layer, one head, lists of floats."""
    rng = np.random.default_rng(5)
    table = rng.normal(size=(vocab_size, 3)).tolist()
    places = rng.normal(size=(context_length, 3)).tolist()

    def token(token_id, position, history):
        x = [a + b for a, b in zip(table[token_id], places[position], strict=True)]
        history.append(x)
        scores = [sum(a * b for a, b in zip(x, key, strict=True)) for key in history]
        top = max(scores)
        parts = [math.exp(score - top) for score in scores]
        mixed = [sum(p * key[n] for p, key in zip(parts, history, strict=True)) for n in range(3)]
        x = [a + b / sum(parts) for a, b in zip(x, mixed, strict=True)]
        return [sum(a * b for a, b in zip(x, row, strict=True)) for row in table]

    def full(ids):
        return cached(ids, [len(ids)])

    def cached(ids, chunks):
        if len(ids) > context_length:
            raise RuntimeError("cache exhausted")
        history, rows, queue = [], [], list(ids)
        for width in chunks:
            for _ in range(width):
                rows.append(token(queue.pop(0), len(history), history))
        return rows

    return Pair(full, cached, vocab_size, context_length)
