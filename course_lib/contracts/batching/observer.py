"""What a batch does, whatever the weights: which rows differ, and what wrong rows are equal to."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from course_lib.contracts.cache.logits import LogitObserver

Prompts = tuple[tuple[int, ...], ...]


def listed(prompts: Prompts) -> list[list[int]]:
    """The prompts as a function is given them: lists that it may spoil."""
    return [list(prompt) for prompt in prompts]


class BatchObserver(LogitObserver):
    """A pair of functions, watched: each different call is made once and kept."""

    by_row = True

    def __init__(self, one: Any, batch: Any, vocab_size: int, context_length: int) -> None:
        super().__init__(vocab_size, context_length)
        self.one, self.batch = one, batch
        prompts = self.mixed()
        self.first = self.look(lambda: batch(listed(prompts)))
        self.run(prompts[::-1])  # one of the same shape, before anything else can leave a trace
        self.again = self.look(lambda: batch(listed(prompts)))
        self.look(lambda: one(list(prompts[0])))

    @classmethod
    def of(cls, model: Any) -> "BatchObserver":
        """Watch a model that answers to one prompt and to batches."""
        sizes = model.vocab_size, model.context_length
        return cls(model.last_logits_one, model.last_logits_batch, *sizes)

    def prompt(self, length: int, salt: int = 1) -> tuple[int, ...]:
        """A prompt without a pattern, and without the first and last id where there are others."""
        inner = max(self.vocab_size - 2, 1)
        low = 1 if self.vocab_size > 2 else 0
        return tuple(low + (3 * t + salt + t * t) % inner for t in range(length))

    def mixed(self, salt: int = 1) -> Prompts:
        """Three prompts of different lengths, the longest first."""
        size = self.context_length
        return tuple(self.prompt(min(n, size), salt + n) for n in (5, 3, 2))

    def run(self, prompts: Prompts) -> np.ndarray | None:
        """The logits of a batch; None where it fails."""
        return self.logits((prompts,), lambda: self.batch(listed(prompts)))

    def alone(self, prompt: Sequence[int]) -> np.ndarray | None:
        """The logits of one prompt; None where it does not fit or fails."""
        if not 0 < len(prompt) <= self.context_length:
            return None
        return self.logits(tuple(prompt), partial(self.one, list(prompt)))

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
        if got is None:
            return "nothing"
        others = prompts[:place] + prompts[place + 1 :]
        named = [("right", prompt), *(("another prompt", other) for other in others)]
        for cut in range(1, len(prompt)):
            last = cut == len(prompt) - 1
            named.append(("last token missing" if last else "front only", prompt[:cut]))
            named.append(("first token missing" if cut == 1 else "end only", prompt[cut:]))
        if place:
            before = (token for other in prompts[:place] for token in other)
            named.append(("after the prompts before it", (*before, *prompt)))
        for pad in self.paddings():
            for width in range(1, max(map(len, prompts)) - len(prompt) + 1):
                padding = (pad,) * width
                named.append(("with padding in front", padding + prompt))
                named.append(("with padding behind", prompt + padding))
        found = (name for name, text in named if self.same(got, self.alone(text)))
        return next(found, "something else")

    def paddings(self) -> list[int]:
        """The ids that may serve as padding."""
        ids = range(self.vocab_size)
        return list(ids if self.vocab_size <= 16 else (*ids[:4], *ids[-3:]))

    def steady(self) -> bool:
        """Whether the first batch of all, given again, was answered the same."""
        first, again = self.first, self.again
        if first is None or again is None or first.shape != again.shape or first.ndim != 2:
            return first is None and again is None
        return all(self.same(*rows) for rows in zip(first, again, strict=True))
