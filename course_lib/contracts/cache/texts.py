"""Texts for a cached model: a prompt, how it is cut, and what else is asked with it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class CacheCase:
    """A text and how it is cut; no chunks: a call of the full pass.

    With `changed_from`, the text is also given with other tokens from there on; `between` is a
    text that is given between two calls.
    """

    ids: tuple[int, ...]
    chunks: tuple[int, ...] = ()
    vocab_size: int = 2
    changed_from: int = 0
    fixed_length: bool = False
    between: tuple[int, ...] = ()

    def arguments(self) -> dict[str, Any]:
        """Name the arguments, for a message and for calling again."""
        named: dict[str, Any] = {"ids": list(self.ids)}
        if self.chunks:
            named["chunks"] = list(self.chunks)
        if self.between:
            named["ids_between"] = list(self.between)
        if self.changed_from:
            named["changed_ids"] = list(self.changed_ids)
        return named

    @property
    def changed_ids(self) -> tuple[int, ...]:
        """The same text with every token from `changed_from` on replaced."""
        kept, rest = self.ids[: self.changed_from], self.ids[self.changed_from :]
        return kept + tuple((token + 1) % self.vocab_size for token in rest)

    def smaller(self) -> Iterator["CacheCase"]:
        """Fewer tokens at the end, fewer at the front, then fewer chunks."""
        if not self.fixed_length and len(self.ids) > 1:
            yield from self._shorter()
        for place in range(len(self.chunks) - 1):
            pair = self.chunks[place] + self.chunks[place + 1]
            merged = (*self.chunks[:place], pair, *self.chunks[place + 2 :])
            yield replace(self, chunks=merged)

    def _shorter(self) -> Iterator["CacheCase"]:
        if not self.chunks:
            if self.changed_from < len(self.ids) - 1:
                yield replace(self, ids=self.ids[:-1])
            if self.changed_from > 1:
                yield replace(self, ids=self.ids[1:], changed_from=self.changed_from - 1)
            return
        less = (*self.chunks[:-1], self.chunks[-1] - 1)
        yield replace(self, ids=self.ids[:-1], chunks=tuple(n for n in less if n))
        less = (self.chunks[0] - 1, *self.chunks[1:])
        yield replace(self, ids=self.ids[1:], chunks=tuple(n for n in less if n))


def cache_cuts(length: int) -> list[tuple[int, ...]]:
    """Ways of cutting a text: wide and narrow chunks, single tokens between wide ones."""
    patterns = [(4, 2, 1), (3, 2, 4), (1, length), (2, 3, 1, 2), (length - 1, 1), (1, 1, 4), (3, 1)]
    patterns += [(width, *[1] * length) for width in (2, 4)]  # a prefill, then single tokens
    cuts = [cut_by_pattern(length, pattern) for pattern in patterns]
    return sorted({cut for cut in cuts if len(cut) > 1}, key=lambda cut: (len(cut), cut))


def cut_by_pattern(length: int, pattern: tuple[int, ...]) -> tuple[int, ...]:
    """Repeat a pattern of widths until the text is used up."""
    widths: list[int] = []
    while sum(widths) < length:
        width = max(pattern[len(widths) % len(pattern)], 1)
        widths.append(min(width, length - sum(widths)))
    return tuple(widths)


def cut_at_powers(length: int) -> tuple[int, ...]:
    """Cut before and after each power of two, where buffers grow and tables end."""
    places = {2**n + more for n in range(1, 31) for more in (0, 1) if 2**n + more < length}
    bounds = [0, *sorted(places), length]
    return tuple(end - start for start, end in zip(bounds, bounds[1:], strict=False))
