"""Calls of a batched sampler, with the distribution that each row must follow."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from course_lib.contracts.sampling._sampler_chance import ScriptedGenerator, SeededGenerator
from course_lib.contracts.sampling._sampling_case import SamplingCase


@dataclass(frozen=True)
class SamplerCase:
    """One call of a sampler: some rows of logits, each repeated, and how to sample from them."""

    rows: tuple[tuple[float, ...], ...]
    repeats: int = 1
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 1
    dtype: str = "float64"

    def logits(self) -> np.ndarray:
        """A new array: row b is rows[b % len(rows)]."""
        return np.tile(np.array(self.rows, dtype=self.dtype), (self.repeats, 1))

    def generator(self) -> np.random.Generator:
        """A new generator, the same each time."""
        return SeededGenerator(self.seed)

    def settings(self) -> tuple[float, int | None, float | None]:
        """The arguments between the logits and the generator."""
        return self.temperature, self.top_k, self.top_p

    def arguments(self) -> dict[str, Any]:
        """Name the arguments, for a message and for calling again."""
        names = ("temperature", "top_k", "top_p")
        settings = dict(zip(names, self.settings(), strict=True))
        return {"logits": self.logits(), **settings, "rng": self.generator()}

    def distributions(self) -> list[list[float]]:
        """What each of `rows` must follow; both references agree on it."""
        rows = np.array(self.rows, dtype=self.dtype).astype(np.float64).tolist()
        return [SamplingCase(tuple(row), *self.settings()).truth for row in rows]

    def greedy(self) -> list[int]:
        """The lowest of the likeliest ids in each of `rows`; both references agree on it."""
        loops = []
        for row in np.array(self.rows, dtype=self.dtype).tolist():
            best = 0
            for token, logit in enumerate(row):
                best = token if logit > row[best] else best
            loops.append(best)
        library = np.array(self.rows, dtype=self.dtype).argmax(-1).tolist()
        if loops != library:
            raise RuntimeError(f"the two references for greedy sampling disagree on {self}")
        return loops

    def smaller(self) -> Iterator["SamplerCase"]:
        """Keep one of the rows, then leave out arguments, then tokens, then round."""
        if len(self.rows) > 1:
            yield from (replace(self, rows=(row,)) for row in self.rows)
            return
        for name in ("top_p", "top_k"):
            if getattr(self, name) is not None:
                yield replace(self, **{name: None})
        if self.temperature not in (0.0, 1.0):
            yield replace(self, temperature=1.0)
        row, least = self.rows[0], max(2, self.top_k or 0)
        for left_out in reversed(range(len(row) if least < len(row) <= 8 else 0)):
            yield replace(self, rows=(row[:left_out] + row[left_out + 1 :],))
        if self.temperature == 0 and self.repeats > 1:
            yield replace(self, repeats=self.repeats // 2)


@dataclass(frozen=True)
class WholeSamplerCase(SamplerCase):
    """A call that is small already, or that fewer rows would make another."""

    def smaller(self) -> Iterator[SamplerCase]:
        """Leave the call as it is."""
        return iter(())


@dataclass(frozen=True)
class ScriptedCase(WholeSamplerCase):
    """A call in which one draw of the generator lies at the end of its range."""

    ones: bool = False

    def generator(self) -> np.random.Generator:
        """Draw 2: the one for row 2, or for token 2 of row 0, which is kept there."""
        return ScriptedGenerator(self.seed, 2, self.ones)
