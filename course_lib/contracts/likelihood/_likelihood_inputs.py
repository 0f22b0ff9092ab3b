"""Inputs of a loss: certain, indifferent, random, padded, extreme and coarse models."""

import torch
from torch import Tensor

from course_lib.contracts.likelihood._likelihood_case import LikelihoodCase


def random_likelihood(
    seed: int, rows: int, length: int, vocab_size: int, lengths: tuple[int, ...] | None = None
) -> LikelihoodCase:
    """Random logits and tokens; rows of the given lengths, padded on the right, where there are."""
    generator = torch.Generator().manual_seed(seed)
    shape = (rows, length, vocab_size)
    logits = (torch.randn(shape, generator=generator, dtype=torch.float64) * 2).round(decimals=1)
    token_ids = torch.randint(vocab_size, (rows, length), generator=generator)
    return LikelihoodCase(logits, token_ids, right_padding(length, lengths))


def right_padding(length: int, lengths: tuple[int, ...] | None) -> Tensor | None:
    """A mask whose rows are real up to their length."""
    if lengths is None:
        return None
    return torch.arange(length) < torch.tensor(lengths).unsqueeze(-1)


def certain_likelihood(seed: int, rows: int, length: int, vocab_size: int) -> LikelihoodCase:
    """Logits that leave no doubt about the next token; the last ones are sure of something else.

    No token follows itself, so that a model of the same token, or of the one before, costs a lot.
    """
    generator = torch.Generator().manual_seed(seed)
    steps = torch.randint(1, vocab_size - 1, (rows, length), generator=generator)
    token_ids = steps.cumsum(-1) % vocab_size
    follows = torch.cat([token_ids[:, 1:], (token_ids[:, -1:] + 1) % vocab_size], dim=1)
    logits = torch.nn.functional.one_hot(follows, vocab_size).double() * 80
    return LikelihoodCase(logits, token_ids)


def even_likelihood(rows: int, length: int, vocab_size: int, level: float) -> LikelihoodCase:
    """A model that finds every token equally likely, at some level of the logits."""
    token_ids = torch.arange(rows * length).reshape(rows, length) % vocab_size
    logits = torch.full((rows, length, vocab_size), level, dtype=torch.float64)
    return LikelihoodCase(logits, token_ids)


def surprised_likelihood(
    rows: int, length: int, gaps: tuple[float, ...], level: float = 0.0
) -> LikelihoodCase:
    """A model that gives each token that comes so many nats less than the other two."""
    token_ids = torch.arange(rows * length).reshape(rows, length) % 3
    follows = token_ids.roll(-1, 1)
    each = torch.tensor(gaps, dtype=torch.float64).repeat(rows * length)[: rows * length]
    logits = torch.full((rows, length, 3), level, dtype=torch.float64)
    logits.scatter_(-1, follows.unsqueeze(-1), level - each.reshape(rows, length, 1))
    return LikelihoodCase(logits, token_ids)


def zeros_likelihood(seed: int, lengths: tuple[int, ...] | None) -> LikelihoodCase:
    """A text with many tokens of id 0, which are dear."""
    case = random_likelihood(seed, 2, 5, 4, lengths)
    token_ids = torch.tensor([[0, 0, 3, 0, 1], [2, 0, 0, 1, 0]])
    logits = case.logits.clone()
    logits[..., 0] -= 3
    return LikelihoodCase(logits, token_ids, case.valid)


def masked_anywhere(valid: list[list[int]], vocab_size: int) -> LikelihoodCase:
    """Every prediction of a real token costs the same, that of padding a lot.

    So it does not matter whether one made from padding counts or not: both means are the same.
    """
    mask = torch.tensor(valid).bool()
    generator = torch.Generator().manual_seed(41)
    token_ids = torch.randint(vocab_size, mask.shape, generator=generator)
    logits = torch.zeros(*mask.shape, vocab_size, dtype=torch.float64)
    follows, counts = token_ids.roll(-1, 1), mask.roll(-1, 1)
    chosen = torch.where(counts, 1.0, -9.0).double()
    logits.scatter_(-1, follows.unsqueeze(-1), chosen.unsqueeze(-1))
    return LikelihoodCase(logits, token_ids, mask)


def of_dtype(case: LikelihoodCase, dtype: torch.dtype) -> LikelihoodCase:
    """The same call with logits rounded to another dtype; the truth follows what is left."""
    return LikelihoodCase(case.logits.to(dtype), case.token_ids, case.valid)
