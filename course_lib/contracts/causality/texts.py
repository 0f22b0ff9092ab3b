"""Pairs of texts for a language model, and how far apart its logits are on them."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

Rows = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class CausalityCase:
    """Two batches of texts: up to the first place where they differ, the logits must stay."""

    before: Rows
    after: Rows

    def arguments(self) -> dict[str, Any]:
        """Name the two calls to make."""
        before = {"token_ids": torch.tensor(self.before)}
        if self.after == self.before:
            return before
        return {**before, "changed_token_ids": torch.tensor(self.after)}

    def kept(self) -> list[int]:
        """For each item, how many of its tokens come before the first change."""
        pairs = zip(self.before, self.after, strict=True)
        return [min(differing(*pair), default=len(pair[0])) for pair in pairs]

    def smaller(self) -> Iterator["CausalityCase"]:
        """Leave items out, then the end, then the front; then undo changes one by one."""
        items, length = list(range(len(self.before))), len(self.before[0])
        half = len(items) // 2
        fewer = [items[:half], items[half:]] if len(items) > 2 else []
        fewer += [[kept for kept in items if kept != item] for item in items if len(items) > 1]
        yield from (self._cut(kept, slice(None)) for kept in fewer)
        if length > 1:
            ends = [slice(length // 2), slice(length - 1), slice(length // 2, None), slice(1, None)]
            yield from (self._cut(items, end) for end in ends)
        for item in items:
            for place in differing(self.before[item], self.after[item]):
                yield self._undone(item, place)

    def _cut(self, items: list[int], places: slice) -> "CausalityCase":
        return CausalityCase(
            *(tuple(rows[item][places] for item in items) for rows in (self.before, self.after))
        )

    def _undone(self, item: int, place: int) -> "CausalityCase":
        row = list(self.after[item])
        row[place] = self.before[item][place]
        return replace(self, after=(*self.after[:item], tuple(row), *self.after[item + 1 :]))


def differing(one: tuple[int, ...], other: tuple[int, ...]) -> list[int]:
    """The places where two texts differ."""
    return [place for place, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]


def causality_tolerance(dtype: torch.dtype) -> float:
    """How far logits of one shape may move, in spreads: rounding, as of an FFT, but no leak."""
    return 1e-10 if dtype == torch.float64 else 1e-5


def logit_spread(logits: Tensor) -> float:
    """How far a place's logits usually lie from their middle; never 0."""
    rows = logits.double().reshape(-1, logits.shape[-1])[:256]
    apart = (rows - rows.median(-1, keepdim=True).values).abs()
    for spread in (apart.median() / 0.6745, apart.mean(), rows.abs().mean()):
        if spread > 0:
            return float(spread)
    return 1.0


def logits_apart(one: Tensor, other: Tensor, rounding: float = 4.0) -> Tensor:
    """How far each logit is from the other, in spreads, beyond so many units of rounding."""
    if one.numel() == 0:
        return one.double()
    exact = one.double()
    slack = rounding * torch.finfo(one.dtype).eps * exact.abs()
    return ((exact - other.double()).abs() - slack).clamp_min(0) / logit_spread(one)


def ids_for(model: Callable[..., Any], rows: Rows) -> Tensor:
    """The rows as token ids, on the device where a module has its numbers."""
    ids = torch.tensor(rows, dtype=torch.long)
    if isinstance(model, nn.Module):
        first = next(model.parameters(), None)
        return ids if first is None else ids.to(first.device)
    return ids


def reseed(seed: int) -> None:
    """Let chance begin anew, wherever a model may take it from."""
    random.seed(seed)
    np.random.seed(seed)
    torch.default_generator.manual_seed(seed)


class CausalityTexts:
    """Texts over a vocabulary, and what can be changed in them; the same ones every time."""

    def __init__(self, vocab_size: int, length: int, seed: int = 7, least: int = 0) -> None:
        self.vocab_size, self.length, self.least = vocab_size, length, least
        self.generator = torch.Generator().manual_seed(seed)
        self.dtype = torch.float32  # of the logits

    def text(self, length: int | None = None) -> tuple[int, ...]:
        """A random text of ids from `least` on, of the greatest length unless told otherwise."""
        size = (length or self.length,)
        ids = torch.randint(self.least, self.vocab_size, size, generator=self.generator)
        return tuple(ids.tolist())

    def rows(self, items: int, length: int) -> Rows:
        """So many texts of this length, or of the greatest."""
        return tuple(self.text(min(length, self.length)) for _ in range(items))

    def other(self, token: int) -> int:
        """A random id that is not this one."""
        size = self.vocab_size - self.least - 1
        step = int(torch.randint(1, size + 1, (1,), generator=self.generator)) if size > 0 else 0
        return self.least + (token - self.least + step) % (size + 1)

    def lengths(self, most: int = 16) -> list[int]:
        """Every length up to the longest, or those around powers of two of a long one."""
        if self.length <= most:
            return list(range(1, self.length + 1))
        around = {2**power + step for power in range(1, 20) for step in (-1, 0, 1)}
        chosen = {n for n in around if n < self.length - 1} | {1, self.length - 1, self.length}
        return sorted(chosen)

    def places(self, length: int, most: int = 24) -> list[int]:
        """Every place but the first, or some of many: near both ends, and at random between."""
        if length <= most + 1:
            return list(range(1, length))
        between = torch.randint(5, length - 5, (most - 8,), generator=self.generator).tolist()
        return sorted({1, 2, 3, 4, *between, *range(length - 4, length)})

    def rows_at_once(self, length: int) -> int:
        """How many texts of this length one call may hold."""
        return max(1, min(32, 100_000 // (length * self.vocab_size)))

    def changed_at(
        self, text: tuple[int, ...], place: int, token: int | None = None
    ) -> tuple[int, ...]:
        """The text with one token replaced, by a random one unless told otherwise."""
        token = self.other(text[place]) if token is None else token
        return (*text[:place], token, *text[place + 1 :])

    def changed_from(self, text: tuple[int, ...], place: int) -> tuple[int, ...]:
        """The text with this token and all that follow replaced."""
        return (*text[:place], *(self.other(token) for token in text[place:]))

    def in_batches(
        self, text: tuple[int, ...], changed: list[tuple[int, ...]]
    ) -> Iterator[CausalityCase]:
        """One text against its changed versions, as many at once as a call may hold."""
        size = self.rows_at_once(len(text))
        for start in range(0, len(changed), size):
            rows = tuple(changed[start : start + size])
            yield CausalityCase((text,) * len(rows), rows)
