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


def token_norm(x: Tensor, axes: tuple[int, ...] = (-1,)) -> Tensor:
    """Give every token mean 0 and variance 1 over its own numbers, or over these axes."""
    centred = x - x.mean(axes, keepdim=True)
    return centred / (centred.square().mean(axes, keepdim=True) + 1e-5).sqrt()


def tiny_causal_lm(
    *,
    mix: Callable[[Tensor, Tensor], Tensor] = lambda x, token_ids: x,
    allowed: Callable[[Tensor], Tensor] = causal_rule,
    weigh: Callable[[Tensor, Tensor], Tensor] = lambda scores, allowed: scores.masked_fill(
        ~allowed, -math.inf
    ).softmax(-1),
    norm: Callable[[Tensor], Tensor] = token_norm,
    finish: Callable[[Tensor, Tensor], Tensor] = lambda logits, token_ids: logits,
) -> Callable[[Tensor], Tensor]:
    """A language model of two layers, token_ids [B, T] -> logits [B, T, V]; each step a function.

    `mix` changes the embeddings, `finish` the logits; both get the token ids too.
    """
    embedding, head, layers = numbers()

    def model(token_ids: Tensor) -> Tensor:
        position = torch.arange(token_ids.shape[1], dtype=torch.float64).unsqueeze(-1)
        different = torch.sin(position * torch.arange(1, _WIDTH + 1) * 0.7)  # at every length
        x = mix(embedding[token_ids] + different, token_ids)
        may_read = allowed(token_ids)
        for query, key, value, out in layers:
            h = norm(x)
            scores = h @ query @ (h @ key).mT / math.sqrt(_WIDTH)
            x = x + weigh(scores, may_read) @ (h @ value) @ out
        return finish(norm(x) @ head, token_ids)

    return model
