"""What a decoder has done so far, prefill and decode counted apart."""

import numbers
from dataclasses import dataclass
from typing import Any


@dataclass
class DecodeStats:
    """Count tokens against passes over the weights: what a token costs is what it shares.

    A prefill reads all weights once for a whole prompt; a decoding step reads them again for one
    token of each row. `cache_positions` counts what was written into the cache, over all rows.
    """

    prefill_tokens: int = 0
    decode_tokens: int = 0
    cache_positions: int = 0
    weight_reads: int = 0

    def record_prefill(self, tokens: int) -> None:
        """Count one pass over the weights that has read `tokens` tokens of given text."""
        _check_decode_count("tokens", tokens)
        self.prefill_tokens += tokens
        self.cache_positions += tokens
        self.weight_reads += 1

    def record_decode(self, batch: int = 1, steps: int = 1) -> None:
        """Count steps that have each read the weights once, for one token of `batch` rows."""
        _check_decode_count("steps", steps)
        _check_decode_count("batch", batch)
        self.decode_tokens += steps * batch
        self.cache_positions += steps * batch
        self.weight_reads += steps

    @property
    def tokens_per_weight_read(self) -> float:
        """Return how many tokens shared one pass over the weights; 0.0 before the first pass."""
        if self.weight_reads == 0:
            return 0.0
        return (self.prefill_tokens + self.decode_tokens) / self.weight_reads


def _check_decode_count(name: str, value: Any) -> None:
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {value!r} ({type(value).__name__})")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}; record only what was done")
