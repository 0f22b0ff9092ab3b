"""What a batch does, whatever the weights: which rows differ, and what wrong rows are equal to."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from course_lib.contracts.cache._logit_arrays import LOGIT_TOLERANCES, coarser_kind, logit_array

Prompts = tuple[tuple[int, ...], ...]


class BatchObserver:
    """A pair of functions, watched: each different call is made once and kept."""

    def __init__(self, one: Any, batch: Any, vocab_size: int, context_length: int) -> None:
        self.one, self.batch = one, batch
        self.vocab_size, self.context_length = vocab_size, context_length
        self.kept: dict[tuple, np.ndarray | None] = {}
        self.relations: dict[str, Any] = {}
        self.kind = "float64"
        self.first: dict[str, np.ndarray | None] = {}
        self.attempted = self.look_first()

    def prompt(self, length: int, salt: int = 1) -> tuple[int, ...]:
        """A prompt without a pattern, and without the first and last id where there are others."""
        inner = max(self.vocab_size - 2, 1)
        low = 1 if self.vocab_size > 2 else 0
        return tuple(low + (3 * t + salt + t * t) % inner for t in range(length))

    def mixed(self, salt: int = 1) -> Prompts:
        """Three prompts of different lengths, the longest first."""
        size = self.context_length
        return tuple(self.prompt(min(n, size), salt + n) for n in (5, 3, 2))

    def look_first(self) -> bool:
        """Two batches of one shape before all others; False if a function is not implemented."""
        for name, prompts in (("first", self.mixed()), ("again", self.mixed())):
            if name == "again":
                self.run(self.mixed()[::-1])
            try:
                result = logit_array(self.batch([list(prompt) for prompt in prompts]))
                self.first[name] = result.values.copy()
                self.kind = coarser_kind(self.kind, result.kind)
            except NotImplementedError:
                return False
            except Exception:
                self.first[name] = None
        try:
            alone = logit_array(self.one(list(self.mixed()[0])))
            self.kind = coarser_kind(self.kind, alone.kind)
        except NotImplementedError:
            return False
        except Exception:
            return True
        return True

    def run(self, prompts: Prompts) -> np.ndarray | None:
        """The logits of a batch; None where it fails."""
        return self._kept((prompts,), lambda: self.batch([list(prompt) for prompt in prompts]))

    def alone(self, prompt: Sequence[int]) -> np.ndarray | None:
        """The logits of one prompt; None where it does not fit or fails."""
        if not 0 < len(prompt) <= self.context_length:
            return None
        return self._kept(tuple(prompt), lambda: self.one(list(prompt)))

    def _kept(self, key: tuple, call: Callable[[], Any]) -> np.ndarray | None:
        if key not in self.kept:
            try:
                self.kept[key] = logit_array(call()).values.copy()
            except Exception:
                self.kept[key] = None
        return self.kept[key]

    def same(self, one: Any, other: Any, share: float = 1.0) -> bool:
        """Whether two rows agree up to rounding."""
        if one is None or other is None or one.shape != other.shape:
            return False
        scale = max(float(np.abs(other).max(initial=0.0)), 1e-30)
        with np.errstate(invalid="ignore"):
            gap = float(np.abs(one - other).max(initial=0.0))
        return gap <= share * LOGIT_TOLERANCES[self.kind] * scale

    def row(self, prompts: Prompts, place: int) -> np.ndarray | None:
        """One row of a batch; None where there is none."""
        got = self.run(prompts)
        return got[place] if got is not None and got.ndim == 2 and place < len(got) else None

    def right(self, prompts: Prompts, place: int) -> bool:
        """Whether a row of a batch equals its prompt alone."""
        return self.same(self.row(prompts, place), self.alone(prompts[place]))

    def label(self, prompts: Prompts, place: int) -> str:
        """What a row of a batch equals: the prompt alone, or one of the usual other things."""
        got, prompt = self.row(prompts, place), prompts[place]
        if got is None or self.same(got, self.alone(prompt)):
            return "nothing" if got is None else "right"
        for other in prompts[:place] + prompts[place + 1 :]:
            if self.same(got, self.alone(other)):
                return "another prompt"
        for cut in range(1, len(prompt)):
            if self.same(got, self.alone(prompt[:cut])):
                return "last token missing" if cut == len(prompt) - 1 else "front only"
            if self.same(got, self.alone(prompt[cut:])):
                return "first token missing" if cut == 1 else "end only"
        before = tuple(token for other in prompts[:place] for token in other)
        if place and self.same(got, self.alone(before + prompt)):
            return "after the prompts before it"
        for pad in self.paddings():
            for width in range(1, max(map(len, prompts)) - len(prompt) + 1):
                padding = (pad,) * width
                if self.same(got, self.alone(padding + prompt)):
                    return "with padding in front"
                if self.same(got, self.alone(prompt + padding)):
                    return "with padding behind"
        return "something else"

    def paddings(self) -> list[int]:
        """The ids that may serve as padding."""
        ids = range(self.vocab_size)
        return list(ids if self.vocab_size <= 16 else (*ids[:4], *ids[-3:]))

    def steady(self) -> bool:
        """Whether the first batch of all, given again, was answered the same."""
        first, again = self.first.get("first"), self.first.get("again")
        if first is None or again is None or first.shape != again.shape or first.ndim != 2:
            return first is None and again is None
        return all(self.same(*rows) for rows in zip(first, again, strict=True))

    def relation(self, relation: Callable[["BatchObserver"], Any]) -> Any:
        """A relation, looked at once."""
        name = relation.__name__
        if name not in self.relations:
            try:
                self.relations[name] = relation(self)
            except Exception as error:
                self.relations[name] = f"raised {type(error).__name__}"
        return self.relations[name]
