"""What a cached model does, whatever its weights: which rows, which tokens, after which calls.

A stranger's weights are unknown, so that no wrong logits can be foretold. But the relations between
its own answers can: a row that a token no longer reaches, two cuts that agree with each other, a
second prompt that goes on where the first one ended. Right models agree on all of them.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from course_lib.contracts.cache.logits import LogitObserver


class CacheObserver(LogitObserver):
    """A pair of functions, watched: each different call is made once and kept."""

    def __init__(self, full: Any, cached: Any, vocab_size: int, context_length: int) -> None:
        super().__init__(vocab_size, context_length)
        self.full, self.cached = full, cached
        self.one, self.other = self.ids(min(3, context_length)), self.ids(min(4, context_length), 5)
        self.kin = (self.one[0], *self.ids(min(5, context_length), 7)[1:])
        # all this before anything else can leave a trace: a prompt, another one, the first again,
        # one that starts alike, one that starts otherwise, and the one that starts alike after it
        order = {"one": self.one, "other": self.other, "again": self.one, "kin": self.kin}
        order |= {"apart": self.other, "alone": self.kin, "apart again": self.other}
        self.first = {
            name: self.look(partial(cached, list(ids), [len(ids)])) for name, ids in order.items()
        }
        self.look(partial(full, list(self.one)))

    @classmethod
    def of(cls, model: Any) -> "CacheObserver":
        """Watch a decoder."""
        sizes = model.vocab_size, model.context_length
        return cls(model.full_logits, model.cached_logits, *sizes)

    def ids(self, length: int, salt: int = 1) -> tuple[int, ...]:
        """A prompt without a pattern in it."""
        return tuple((3 * t + salt + t * t) % self.vocab_size for t in range(length))

    def texts(self) -> list[tuple[int, ...]]:
        """Texts of all kinds that fit: short, long, one token repeated, the first and last id."""
        top, size = self.vocab_size - 1, self.context_length
        texts = [self.ids(n, salt) for n, salt in ((2, 1), (7, 2), (9, 3), (5, 4), (11, 5))]
        texts += [(0,) * 7, (top,) * 4, (0, top, 0, 0, top, top, 0, 0, 0), (top,)]
        return [text for text in texts if len(text) <= size] or [self.ids(size)]

    def reach(self) -> float:
        """The share of tokens that the last row of the full pass depends on."""
        ids = self.ids(min(7, self.context_length))
        return float(np.mean([self.reaches(ids, j)[-1] for j in range(len(ids))]))

    def run(self, ids: Sequence[int], chunks: Sequence[int] | None = None) -> np.ndarray | None:
        """The logits of a call; of the full pass without chunks; None where it fails."""
        key = (tuple(ids), None if chunks is None else tuple(chunks))
        if chunks is None:
            return self.logits(key, partial(self.full, list(ids)))
        return self.logits(key, partial(self.cached, list(ids), list(chunks)))

    def right(self, ids: Sequence[int], chunks: Sequence[int]) -> list[bool]:
        """Which rows of a cached call equal those of the full pass."""
        return self.rows_equal(self.run(ids, chunks), self.run(ids))

    def reaches(
        self, ids: tuple[int, ...], j: int, chunks: Sequence[int] | None = None
    ) -> list[bool]:
        """Which rows change when token j does, for one of two other tokens."""
        found = [False] * len(ids)
        for step in (1, 2):
            changed = (*ids[:j], (ids[j] + step) % self.vocab_size, *ids[j + 1 :])
            equal = self.rows_equal(self.run(changed, chunks), self.run(ids, chunks), 0.01)
            found = [before or not same for before, same in zip(found, equal, strict=False)]
            if all(found[j:]):
                break
        return found

    def lost(self, ids: tuple[int, ...], j: int, chunks: Sequence[int], row: int) -> bool:
        """Whether token j reaches a row in the full pass and not with the cache."""
        with_cache, without = self.reaches(ids, j, chunks), self.reaches(ids, j)
        return bool(with_cache and without) and without[row] and not with_cache[row]

    def relation(self, relation: Callable[["CacheObserver"], Any]) -> Any:
        """A relation, looked at once; none of a model that carries traces of earlier calls."""
        if self.state() != ("steady",):
            return "unsteady"
        return super().relation(relation)

    def state(self) -> tuple:
        """What the first calls of all said: was the first right, and what became of the next."""
        first = self.first
        gave = first["one"] is not None and first["again"] is not None
        steady = gave and all(self.rows_equal(first["again"], first["one"]))
        if steady and first["alone"] is not None and not self.same(first["kin"], first["alone"]):
            return ("steady until a text that starts alike",)
        if steady:
            return ("steady",)
        joined, second = self.run(self.one + self.other), "wrong"
        tail = None if joined is None else joined[len(self.one) :]
        for name, want in (("goes on", tail), ("right", self.run(self.other))):
            if self.same(first["other"], want):
                second = name
        right = self.same(first["one"], self.run(self.one))
        return (right, "raised" if first["other"] is None else second)
