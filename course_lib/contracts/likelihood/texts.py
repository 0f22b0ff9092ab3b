"""Texts with a model's logits for them: the calls of a loss, and what each token costs."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib.contracts.engine.call import Call, Calls
from course_lib.contracts.engine.read import number
from course_lib.contracts.engine.subject import Terms
from course_lib.text import say

# ---------------------------------------------------------------- what is right, twice


def nats_by_loops(call: Call) -> Tensor | None:
    """The nats of every token that counts, number by number; too slow for a large text."""
    if call.logits.numel() > 4000:
        return None
    length, vocab = call.logits.shape[-2:]
    rows = call.logits.double().reshape(-1, length, vocab), call.token_ids.reshape(-1, length)
    counts, nats = counted(call).reshape(-1, length - 1).tolist(), []
    for logits, tokens, real in zip(*(part.tolist() for part in rows), counts, strict=True):
        for before, token, counts_here in zip(logits, tokens[1:], real, strict=False):
            if counts_here:
                top = max(before)
                mass = math.fsum(math.exp(logit - top) for logit in before)
                nats.append(math.log(mass) + (top - before[token]))
    return torch.tensor(nats, dtype=torch.float64)


def nats_by_library(call: Call) -> Tensor:
    """The nats of every token that counts, by torch's own function."""
    guesses = F.log_softmax(call.logits[..., :-1, :].double(), dim=-1)
    nats = F.nll_loss(guesses.flatten(0, -2), call.token_ids[..., 1:].flatten(), reduction="none")
    return nats[counted(call).flatten()]


def counted(call: Call) -> Tensor:
    """Which tokens count: the real ones that have a token before them."""
    everything = torch.ones_like(call.token_ids).bool()
    return call.args.get("valid", everything)[..., 1:]


# fmt: off
_COUNT = ("predicted tokens: {count}; the right answer is {want:.6g} | "
          "предсказанных токенов: {count}; верный ответ {want:.6g}")
# fmt: on


def _told(call: Call, got: Tensor, want: Tensor, allowed: float) -> str:
    """How many predictions there are, and the right answer."""
    return say(_COUNT, count=int(counted(call).sum()), want=want.item())


def terms_of(asked: str, follow: Callable[[Tensor], Tensor], **more: Any) -> Terms:
    """The terms of a function whose answer follows from the nats of the tokens."""

    def by_library(call: Call) -> Tensor:
        return follow(nats_by_library(call))

    def by_loops(call: Call) -> Tensor | None:
        nats = nats_by_loops(call)
        return None if nats is None else follow(nats)

    right, kept_by = (by_library, by_loops), "independent_results"
    return Terms(asked, right, number, between=another, facts=_told, kept_by=kept_by, **more)


def mean(nats: Tensor) -> Tensor:
    """The mean, summed without rounding."""
    return nats.new_tensor(math.fsum(nats.tolist()) / len(nats))


def misses_in_nats(got: Tensor, want: Tensor, call: Call) -> Tensor:
    """The error, on the scale of the largest logit: to round that is the least of errors."""
    scale = call.logits.double().abs().max()
    return (got - want).abs() / torch.maximum(want.abs(), scale).clamp(min=1.0)


# ---------------------------------------------------------------- calls


def _predicts_something(call: Call) -> bool:
    fits = call.token_ids.shape[-1] > 1 and call.token_ids.max() < call.logits.shape[-1]
    return bool(fits and counted(call).any())


def _without_unused(call: Call) -> Iterator[Call]:
    """No entry of the vocabulary that never comes."""
    unused = set(range(call.logits.shape[-1])) - set(call.token_ids.flatten().tolist())
    for token in sorted(unused)[-1:]:
        kept = torch.arange(call.logits.shape[-1]) != token
        ids = call.token_ids - (call.token_ids > token).long()
        yield call.but(logits=call.logits[..., kept], token_ids=ids)


calls_of = partial(Calls, legal=_predicts_something, shorter=_without_unused)
text_call = calls_of("logits [B,T,V], token_ids [B,T], valid [B,T]?")


def drawn(seed: int, rows: int, length: int, vocab: int, lengths: tuple[int, ...] = ()) -> Call:
    """Random logits and tokens; rows of these lengths, padded on the right."""
    chance = torch.Generator().manual_seed(seed)
    logits = torch.randn(rows, length, vocab, generator=chance, dtype=torch.float64) * 2
    token_ids = torch.randint(vocab, (rows, length), generator=chance)
    valid = torch.arange(length) < torch.tensor(lengths).unsqueeze(-1) if lengths else None
    return text_call(logits.round(decimals=1), token_ids, valid)


def certain(seed: int, rows: int, length: int, vocab: int) -> Call:
    """Logits that leave no doubt about the next token; the last ones are sure of something else.

    No token follows itself, so that a model of the same token, or of the one before, costs a lot.
    """
    chance = torch.Generator().manual_seed(seed)
    token_ids = torch.randint(1, vocab - 1, (rows, length), generator=chance).cumsum(-1) % vocab
    follows = torch.cat([token_ids[:, 1:], (token_ids[:, -1:] + 1) % vocab], dim=1)
    return text_call(F.one_hot(follows, vocab).double() * 80, token_ids)


def even(rows: int, length: int, vocab: int, level: float) -> Call:
    """A model that finds every token equally likely, at some level of the logits."""
    token_ids = torch.arange(rows * length).reshape(rows, length) % vocab
    return text_call(torch.full((rows, length, vocab), level, dtype=torch.float64), token_ids)


def surprised(rows: int, length: int, gaps: tuple[float, ...], level: float = 0.0) -> Call:
    """A model that gives each token that comes so many nats less than the other two."""
    token_ids = torch.arange(rows * length).reshape(rows, length) % 3
    each = torch.tensor(gaps).double().repeat(rows * length)[: rows * length]
    logits = torch.full((rows, length, 3), level, dtype=torch.float64)
    at = token_ids.roll(-1, 1).unsqueeze(-1)
    return text_call(logits.scatter(-1, at, level - each.reshape(rows, length, 1)), token_ids)


def dear_zeros(seed: int, lengths: tuple[int, ...] = ()) -> Call:
    """A text with many tokens of id 0, which cost more than others."""
    call = drawn(seed, 2, 5, 4, lengths)
    logits = call.logits - torch.tensor([3.0, 0, 0, 0])
    return call.but(token_ids=torch.tensor([[0, 0, 3, 0, 1], [2, 0, 0, 1, 0]]), logits=logits)


def masked(vocab: int, *rows: str) -> Call:
    """Every prediction of a real token ("x") costs the same, that of padding (".") a lot.

    So it does not matter whether one made from padding counts or not: both means are the same.
    """
    valid = torch.tensor([[letter == "x" for letter in row] for row in rows])
    chance = torch.Generator().manual_seed(41)
    token_ids = torch.randint(vocab, valid.shape, generator=chance)
    chosen = torch.where(valid.roll(-1, 1), 1.0, -9.0).double().unsqueeze(-1)
    logits = torch.zeros(*valid.shape, vocab, dtype=torch.float64)
    logits = logits.scatter(-1, token_ids.roll(-1, 1).unsqueeze(-1), chosen)
    return text_call(logits, token_ids, valid)


def another(call: Call) -> list[Call]:
    """A call of the same sizes with other tokens, other logits and another mask."""
    before, valid = call.args.get("valid"), torch.ones_like(call.token_ids, dtype=torch.bool)
    valid[..., -1] = before is not None and not before[..., -1].all()
    if not valid[..., 1:].any():
        valid[..., -1] = True
    return [call.but(logits=-call.logits, token_ids=call.token_ids.flip(-1), valid=valid)]
