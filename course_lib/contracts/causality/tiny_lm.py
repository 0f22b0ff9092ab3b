"""A tiny language model with numbers of its own, any step of which can be replaced."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

VOCAB_SIZE = 11
_WIDTH = 6


class _Numbers(NamedTuple):
    """The embeddings, the output matrix and, for each layer, query, key, value and output."""

    embedding: Tensor
    head: Tensor
    layers: tuple[Tensor, ...]


@lru_cache(maxsize=1)
def numbers() -> _Numbers:
    """Draw the numbers once, from a generator of their own."""
    generator = torch.Generator().manual_seed(31)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    layers = tuple(drawn(4, _WIDTH, _WIDTH) / math.sqrt(_WIDTH) for _ in range(2))
    return _Numbers(drawn(VOCAB_SIZE, _WIDTH), drawn(_WIDTH, VOCAB_SIZE), layers)


def causal_rule(token_ids: Tensor, ahead: int = 0) -> Tensor:
    """May query i read key j: no key after the query, or so many more. [T, T]"""
    length = token_ids.shape[1]
    return torch.ones(length, length, dtype=torch.bool).tril(ahead)


def _masked_weights(scores: Tensor, allowed: Tensor) -> Tensor:
    """Softmax over the keys that may be read."""
    return scores.masked_fill(~allowed, -math.inf).softmax(-1)


def _token_norm(x: Tensor) -> Tensor:
    """Give every token mean 0 and variance 1 over its own numbers."""
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()


def _left_alone(x: Tensor, token_ids: Tensor) -> Tensor:
    """Change nothing."""
    return x


def tiny_causal_lm(
    *,
    mix: Callable[[Tensor, Tensor], Tensor] = _left_alone,
    allowed: Callable[[Tensor], Tensor] = causal_rule,
    weigh: Callable[[Tensor, Tensor], Tensor] = _masked_weights,
    norm: Callable[[Tensor], Tensor] = _token_norm,
    finish: Callable[[Tensor, Tensor], Tensor] = _left_alone,
) -> Callable[[Tensor], Tensor]:
    """A language model of two layers, token_ids [B, T] -> logits [B, T, V]; each step a function.

    `mix` changes the embeddings, `finish` the logits; both get the token ids too.
    """
    embedding, head, layers = numbers()

    def model(token_ids: Tensor) -> Tensor:
        x = mix(embedding[token_ids] + _positions(token_ids.shape[1]), token_ids)
        may_read = allowed(token_ids)
        for query, key, value, out in layers:
            h = norm(x)
            scores = h @ query @ (h @ key).mT / math.sqrt(_WIDTH)
            x = x + weigh(scores, may_read) @ (h @ value) @ out
        return finish(norm(x) @ head, token_ids)

    return model


def _positions(length: int) -> Tensor:
    """Different numbers for every position of a text of any length."""
    position = torch.arange(length, dtype=torch.float64).unsqueeze(-1)
    return torch.sin(position * torch.arange(1, _WIDTH + 1) * 0.7)
