"""Inputs for the sampling distribution, with the right answer from loops and from the library."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch


@dataclass(frozen=True)
class SamplingCase:
    """One call of a sampling distribution; None leaves an argument out."""

    logits: tuple[float, ...]
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None

    @property
    def keywords(self) -> dict[str, Any]:
        """The arguments by name, without those that are left out."""
        named = {"temperature": self.temperature, "top_k": self.top_k, "top_p": self.top_p}
        return {name: value for name, value in named.items() if value is not None}

    def arguments(self) -> dict[str, Any]:
        """Name the arguments, for a message and for calling again."""
        return {"logits": list(self.logits), **self.keywords}

    @cached_property
    def truth(self) -> list[float]:
        """The right distribution, on which both references agree."""
        loops, library = sampling_by_loops(self), sampling_by_library(self)
        gap = max(abs(one - other) for one, other in zip(loops, library, strict=True))
        same_support = all((a > 0) == (b > 0) for a, b in zip(loops, library, strict=True))
        if not (gap <= 1e-9 and same_support):
            raise RuntimeError(f"the two references for sampling disagree by {gap} on {self}")
        return loops

    def smaller(self) -> Iterator["SamplingCase"]:
        """Leave out tokens, then arguments, then round the logits."""
        size, least = len(self.logits), max(2, self.top_k or 0)
        if size > 8:
            halves = (self.logits[: size // 2], self.logits[size // 2 :])
            yield from (replace(self, logits=half) for half in halves if len(half) >= least)
        for left_out in reversed(range(size if least < size <= 8 else 0)):
            yield replace(self, logits=self.logits[:left_out] + self.logits[left_out + 1 :])
        for name in self.keywords:
            yield replace(self, **{name: None})
        rounded = tuple(float(round(logit)) for logit in self.logits)
        if rounded != self.logits:
            yield replace(self, logits=rounded)


@dataclass(frozen=True)
class SamplingRefusal(SamplingCase):
    """A call that must raise ValueError; it is small already and is not cut down."""

    def smaller(self) -> Iterator[SamplingCase]:
        """Leave the call as it is."""
        return iter(())


def sampling_by_loops(case: SamplingCase) -> list[float]:
    """Rank the tokens, keep the first k, then the shortest run of them that reaches top_p."""
    temperature = 1.0 if case.temperature is None else case.temperature
    ranked = sorted(range(len(case.logits)), key=lambda token: (-case.logits[token], token))
    kept = ranked[: case.top_k]
    top = case.logits[ranked[0]]
    mass = [math.exp((case.logits[token] - top) / temperature) for token in kept]
    if case.top_p is not None and case.top_p < 1:
        total, reached, count = math.fsum(mass), 0.0, 0
        while reached < case.top_p:
            reached = math.fsum(mass[: count + 1]) / total
            count += 1
        kept, mass = kept[:count], mass[:count]
    total = math.fsum(mass)
    shares = dict(zip(kept, mass, strict=True))
    return [shares.get(token, 0.0) / total for token in range(len(case.logits))]


def sampling_by_library(case: SamplingCase) -> list[float]:
    """Sort, cut and accumulate with torch, in float64."""
    logits = torch.tensor(case.logits, dtype=torch.float64)
    order = logits.argsort(descending=True, stable=True)[: case.top_k]
    temperature = 1.0 if case.temperature is None else case.temperature
    probs = (logits[order] / temperature).softmax(-1)
    if case.top_p is not None and case.top_p < 1:
        before = probs.cumsum(-1) - probs  # the mass of the likelier ones
        keep = (before < case.top_p) & (torch.arange(len(probs)) <= (before < case.top_p).sum() - 1)
        order, probs = order[keep], probs[keep] / probs[keep].sum()
    return torch.zeros_like(logits).scatter(0, order, probs).tolist()
