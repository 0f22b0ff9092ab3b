"""Calls of a likelihood, and their right answers in nats by two independent references."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True, eq=False)
class LikelihoodCase:
    """One call: logits [..., T, V], token_ids [..., T] and, where there is padding, valid."""

    logits: Tensor
    token_ids: Tensor
    valid: Tensor | None = None

    def arguments(self) -> dict[str, Any]:
        """Name the arguments, for a message and for calling again."""
        named = {"logits": self.logits, "token_ids": self.token_ids}
        return named if self.valid is None else {**named, "valid": self.valid}

    def copies(self) -> tuple[Tensor, ...]:
        """Fresh arguments, which a candidate may spoil."""
        return tuple(value.clone() for value in self.arguments().values())

    def smaller(self) -> Iterator["LikelihoodCase"]:
        """Fewer rows, fewer tokens, no unused entries of the vocabulary, rounder numbers."""
        return filter(_predicts_something, _smaller_likelihoods(self))


def _predicts_something(case: LikelihoodCase) -> bool:
    return case.token_ids.shape[-1] > 1 and (case.valid is None or bool(case.valid[..., 1:].any()))


def _smaller_likelihoods(case: LikelihoodCase) -> Iterator[LikelihoodCase]:
    length, vocab_size = case.logits.shape[-2:]
    rows = len(case.token_ids) if case.token_ids.dim() > 1 else 1
    for part in (slice(rows // 2), slice(rows // 2, None), slice(1, None), slice(rows - 1)):
        if rows > 1:
            yield _likelihood_of(case, lambda value, part=part: value[part])
    for part in (slice(length // 2 + 1), slice(length - 1), slice(1, None)):
        if length > 2:
            tokens = (Ellipsis, part)
            logits = case.logits[(*tokens, slice(None))]
            yield replace(_likelihood_of(case, lambda value, at=tokens: value[at]), logits=logits)
    unused = sorted(set(range(vocab_size)) - set(case.token_ids.flatten().tolist()))
    for token in unused[-1:] if vocab_size > 2 else []:
        kept = torch.arange(vocab_size) != token
        later = (case.token_ids > token).long()
        yield replace(case, logits=case.logits[..., kept], token_ids=case.token_ids - later)
    if case.valid is not None and bool(case.valid.all()):
        yield replace(case, valid=None)
    rounder = case.logits.round()
    if not torch.equal(rounder, case.logits):
        yield replace(case, logits=rounder)


def _likelihood_of(case: LikelihoodCase, part: Callable[[Tensor], Tensor]) -> LikelihoodCase:
    return LikelihoodCase(**{name: part(value) for name, value in case.arguments().items()})


def _counted_of(case: LikelihoodCase) -> Tensor:
    """Which tokens count: the real ones that have a token before them."""
    valid = torch.ones_like(case.token_ids, dtype=torch.bool) if case.valid is None else case.valid
    return valid[..., 1:]


def nats_by_library(case: LikelihoodCase) -> Tensor:
    """The nats of every token that counts, by torch's own function."""
    guesses = F.log_softmax(case.logits[..., :-1, :].double(), dim=-1)
    nats = F.nll_loss(guesses.flatten(0, -2), case.token_ids[..., 1:].flatten(), reduction="none")
    return nats[_counted_of(case).flatten()]


def nats_by_loops(case: LikelihoodCase) -> Tensor:
    """The nats of every token that counts, number by number."""
    length, vocab_size = case.logits.shape[-2:]
    logits = case.logits.double().reshape(-1, length, vocab_size).tolist()
    token_ids, nats = case.token_ids.reshape(-1, length).tolist(), []
    counted = _counted_of(case).reshape(-1, length - 1).tolist()
    for row, tokens, counts in zip(logits, token_ids, counted, strict=True):
        for position in range(1, length):
            if counts[position - 1]:
                before, token = row[position - 1], tokens[position]
                top = max(before)
                mass = math.fsum(math.exp(logit - top) for logit in before)
                nats.append(math.log(mass) + (top - before[token]))
    return torch.tensor(nats, dtype=torch.float64)


class Likelihood(NamedTuple):
    """What a contract asks for: its name, how it follows from the nats, and how far off one is.

    `misses` compares two results in nats, on the scale of the numbers that went in.
    """

    name: str
    follows: Callable[[Tensor], float]
    misses: Callable[[float, float, float], float]


def _mean_misses(got: float, want: float, scale: float) -> float:
    return abs(got - want) / max(1.0, abs(want), scale)


def _perplexity_misses(got: float, want: float, scale: float) -> float:
    if min(got, want) <= 0.0:
        return 0.0 if got == want else math.inf
    return _mean_misses(math.log(got), math.log(want), scale)


def _exp_of_the_mean(nats: Tensor) -> float:
    """The perplexity; infinite, so that nothing is demanded, near the end of the floats."""
    mean = math.fsum(nats.tolist()) / len(nats)
    return math.exp(mean) if mean < 700 else math.inf


def _sum_misses(got: float, want: float, scale: float) -> float:
    return abs(got - want) / max(1.0, abs(want))


MEAN_NLL = Likelihood(
    "next_token_nll", lambda nats: math.fsum(nats.tolist()) / len(nats), _mean_misses
)
PERPLEXITY = Likelihood("perplexity", _exp_of_the_mean, _perplexity_misses)
LOG_LIKELIHOOD = Likelihood(
    "exact_log_likelihood", lambda nats: -math.fsum(nats.tolist()), _sum_misses
)


def likelihood_wanted(
    case: LikelihoodCase, asked: Likelihood, loops: Callable[[LikelihoodCase], Tensor]
) -> float:
    """The right answer, once both references agree on the nats of every token."""
    nats = nats_by_library(case)
    if case.logits.numel() <= 4000:
        again = loops(case)
        if nats.shape != again.shape or not torch.allclose(nats, again, rtol=1e-11, atol=1e-12):
            raise RuntimeError(f"the two references for the nats disagree on {case}")
    if not bool(torch.isfinite(nats).all()):
        raise RuntimeError(f"the reference for the nats is not finite on {case}")
    return asked.follows(nats)


def likelihood_scale(case: LikelihoodCase) -> float:
    """The largest logit: rounding it is the least error that any formula makes."""
    return float(case.logits.double().abs().max())
