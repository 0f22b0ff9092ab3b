"""Caches that read too little of the past, or take another text's past for their own."""

from typing import Any

import numpy as np

from course_lib.contracts.cache._tiny_decoder import TinyDecoder, fitting_ids, seen_keys
from course_lib.contracts.engine.mistake import mistakes


def _cache_last_places(decoder: TinyDecoder, width: int, n_keys: int, offset: int) -> np.ndarray:
    """A causal mask that opens so many of the last places only."""
    few = n_keys - width - (decoder.context_length - 5)
    return seen_keys(width, n_keys, n_keys - width) & ~seen_keys(width, n_keys, few)


class _CachePrefix:
    """What a server keeps of the last text: its ids and their logits."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.last: list[int] = []
        self.rows: Any = None

    def admit(self, decoder: TinyDecoder, ids: list[int], chunks: list[int]) -> list[int]:
        """Note the new text."""
        self.last, self.ids = self.ids, list(fitting_ids(decoder, ids))
        return self.ids

    def finish(self, decoder: TinyDecoder, rows: np.ndarray) -> np.ndarray:
        """Answer from the last text wherever it is as long, if the first token is the same."""
        if self.last[:1] == self.ids[:1]:
            known = min(len(self.rows), len(rows))
            rows = np.concatenate([self.rows[:known], rows[known:]])
        self.rows = rows.copy()
        return rows


def _decoder_with_prefix() -> TinyDecoder:
    kept = _CachePrefix()
    return TinyDecoder(admit=kept.admit, finish=kept.finish)


# fmt: off
CACHE_PREFIX_MISTAKES = mistakes(
    None,
    cached_pass_with_a_window=("",
        "with the cache a token reads only the last few tokens, fewer than the context holds | "
        "с кэшем токен читает лишь несколько последних токенов — меньше, чем вмещает контекст",
        "the same mask in both passes | одна маска в обоих проходах",
        lambda: TinyDecoder(see=_cache_last_places)),
    prefix_not_compared=("",
        "a text that starts like the last one is answered from that one's cache, though it goes on "
        "differently | "
        "на текст, который начинается как прежний, отвечает кэш прежнего, хотя продолжение другое",
        "reuse only the tokens that are equal | берите только совпавшие токены",
        _decoder_with_prefix),
)
# fmt: on
