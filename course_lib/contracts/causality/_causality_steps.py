"""Steps of a tiny language model that are wrong in one way each: what is read, what is mixed."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from course_lib.contracts.causality._tiny_causal import (
    causal_rule,
    tiny_causal_lm,
    tiny_causal_numbers,
)


def open_rule(token_ids: Tensor) -> Tensor:
    """Every query may read every key."""
    return causal_rule(token_ids) | True


def inverted_weights(scores: Tensor, allowed: Tensor) -> Tensor:
    """Read the mask the other way round; the last token, left with nothing to read, reads 0."""
    return scores.masked_fill(allowed, -math.inf).softmax(-1).nan_to_num(0.0)


def one_ahead_rule(token_ids: Tensor) -> Tensor:
    """One key after the query may be read too."""
    length = token_ids.shape[1]
    return torch.ones(length, length, dtype=torch.bool).tril(1)


def small_table_rule(token_ids: Tensor) -> Tensor:
    """The causal rule up to four tokens, and no rule beyond."""
    return open_rule(token_ids) if token_ids.shape[1] > 4 else causal_rule(token_ids)


def first_item_rule(token_ids: Tensor) -> Tensor:
    """The causal rule for the first item of the batch alone."""
    rule = causal_rule(token_ids).repeat(token_ids.shape[0], 1, 1)  # [B, T, T]
    rule[1:] = True
    return rule


def padding_only_rule(token_ids: Tensor) -> Tensor:
    """An item with padding (id 0) hides its padding and nothing else."""
    real = (token_ids != 0).unsqueeze(1)  # [B, 1, T]
    rule = causal_rule(token_ids)
    return torch.where(real.all(-1, keepdim=True), rule, real | rule)


def with_last_token(x: Tensor, token_ids: Tensor) -> Tensor:
    """Add the last token to each."""
    return x + x[:, -1:]


def norm_over_time(x: Tensor) -> Tensor:
    """Take mean and variance over the tokens too."""
    centred = x - x.mean((1, 2), keepdim=True)
    return centred / (centred.square().mean((1, 2), keepdim=True) + 1e-5).sqrt()


def norm_over_items(x: Tensor) -> Tensor:
    """Take mean and variance of each feature over all tokens of the batch."""
    centred = x - x.mean((0, 1), keepdim=True)
    return centred / (centred.square().mean((0, 1), keepdim=True) + 1e-5).sqrt()


def with_neighbours(x: Tensor, token_ids: Tensor) -> Tensor:
    """A convolution that sees one token on each side."""
    padded = torch.nn.functional.pad(x, (0, 0, 1, 1))
    return 0.5 * padded[:, :-2] + x - 0.7 * padded[:, 2:]


def with_next_token(x: Tensor, token_ids: Tensor) -> Tensor:
    """Add what comes next, the target of the prediction."""
    targets = tiny_causal_numbers().embedding[token_ids[:, 1:]]
    return x + 0.6 * torch.nn.functional.pad(targets, (0, 0, 0, 1))


def with_circular_past(x: Tensor, token_ids: Tensor) -> Tensor:
    """Add the token before; the first one gets the last."""
    return x + 0.6 * x.roll(1, 1)


def with_chunk_means(x: Tensor, token_ids: Tensor) -> Tensor:
    """Add to each token the mean of its chunk of three."""
    chunks = [part.mean(1, keepdim=True).expand_as(part) for part in x.split(3, 1)]
    return x + torch.cat(chunks, 1)


def with_items_mixed(x: Tensor, token_ids: Tensor) -> Tensor:
    """Add what a reshape makes of the other order of axes."""
    items, length, width = x.shape
    return x + 0.5 * x.transpose(0, 1).reshape(items, length, width)


def logits_one_early(logits: Tensor, token_ids: Tensor) -> Tensor:
    """Move the logits one place to the front."""
    return logits.roll(-1, 1)


def backwards_lm() -> Callable[[Tensor], Tensor]:
    """A causal model of the text read from its end."""
    forwards = tiny_causal_lm()
    return lambda token_ids: forwards(token_ids.flip(1)).flip(1)


def dropping_lm() -> Callable[[Tensor], Tensor]:
    """A model whose dropout is always on."""

    def dropout(x: Tensor, token_ids: Tensor) -> Tensor:
        return torch.nn.functional.dropout(x, 0.2, training=True)

    return tiny_causal_lm(mix=dropout)


def remembering_lm() -> Callable[[Tensor], Tensor]:
    """A model that adds the last token of the call before."""
    before = [torch.zeros(1, 1, 1, dtype=torch.float64)]

    def with_the_past(x: Tensor, token_ids: Tensor) -> Tensor:
        seen, before[0] = before[0], x[:1, -1:].clone()
        return x + seen

    return tiny_causal_lm(mix=with_the_past)


def marking_lm() -> Callable[[Tensor], Tensor]:
    """A model that writes a first token into the ids it is given."""
    model = tiny_causal_lm()

    def marked(token_ids: Tensor) -> Tensor:
        token_ids[:, 0] = 1
        return model(token_ids)

    return marked
