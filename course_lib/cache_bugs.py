"""Six classic bugs of a key-value cache, each a step of SimpleDecoder done wrongly."""

from collections.abc import Callable, Sequence

import numpy as np

from course_lib.decoder_lm.errors import ContextOverflow
from course_lib.decoder_lm.simple import SimpleDecoder, greedy_tokens, greedy_tokens_anew


class MaskTopLeft(SimpleDecoder):
    """The triangle of a chunk starts at the first key of all, not at the first new one."""

    def allowed(self, width: int) -> np.ndarray:
        return np.tri(width, self.length + width, dtype=bool)


class NoMaskInLaterChunks(SimpleDecoder):
    """A chunk with a past gets no mask: it reads all keys, those of its own future too."""

    def allowed(self, width: int) -> np.ndarray:
        if self.length == 0:
            return super().allowed(width)
        return np.ones((width, self.length + width), dtype=bool)


class PositionsRestart(SimpleDecoder):
    """Positions are counted from the start of the chunk, not of the text."""

    def positions(self, width: int) -> np.ndarray:
        return np.arange(width)


class CacheNotReset(SimpleDecoder):
    """Only the first prompt starts anew: the pointer stays where the last text ended."""

    def begin(self) -> None:
        if not hasattr(self, "length"):
            super().begin()


class TrimmedTooEarly(SimpleDecoder):
    """The past is cut to a window, new tokens counted in, before these have read what goes."""

    window = 12

    def allowed(self, width: int) -> np.ndarray:
        places = np.arange(self.length + width)
        return super().allowed(width) & (places >= self.length - max(self.window - width, 0))


class OneTokenReadsTheBuffer(SimpleDecoder):
    """A single token gets no mask and as many keys as the buffer is long, empty ones included."""

    def remember(self, layer: int, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, ...]:
        free = [(0, 0), (0, self.shape.context_length - self.length - k.shape[1]), (0, 0)]
        return tuple(np.pad(past, free) for past in super().remember(layer, k, v))

    def allowed(self, width: int) -> np.ndarray:
        free = [(0, 0), (0, self.shape.context_length - self.length - width)]
        return np.pad(super().allowed(width), free, constant_values=width == 1)


CACHE_BUGS = {
    "mask_top_left": MaskTopLeft,
    "no_mask_in_later_chunks": NoMaskInLaterChunks,
    "positions_restart": PositionsRestart,
    "cache_not_reset": CacheNotReset,
    "trimmed_too_early": TrimmedTooEarly,
    "one_token_reads_the_buffer": OneTokenReadsTheBuffer,
}


def everyday_tests(
    make: Callable[[], SimpleDecoder], first: Sequence[int], second: Sequence[int], count: int
) -> dict[str, bool]:
    """Say which tests of a cached decoder pass, each on a fresh one: those that people write.

    All but two hold the cached logits to the full pass; "finite" only looks whether they are
    numbers, and "same_text" compares `count` greedy tokens after the first prompt.

    Args:    make: a decoder with an empty cache; first, second: prompts, of four tokens or more
    """
    half, n = len(first) // 2, len(first)
    return {
        "finite": bool(np.isfinite(make().cached_logits(first, [half, n - half])).all()),
        "one_chunk": _equals_full_pass(make(), first, [n]),
        "same_text": greedy_tokens(make(), first, count)
        == greedy_tokens_anew(make(), first, count),
        "prefill_then_steps": _equals_full_pass(make(), first, [half, *[1] * (n - half)]),
        "single_tokens": _equals_full_pass(make(), first, [1] * n),
        "two_chunks": _equals_full_pass(make(), first, [half, n - half]),
        "second_prompt": _equals_full_pass(make(), second, [len(second)], before=first),
    }


def _equals_full_pass(
    decoder: SimpleDecoder, text: Sequence[int], chunks: list[int], before: Sequence[int] = ()
) -> bool:
    """Whether the logits are equal up to rounding; one prompt may have come before."""
    want = decoder.full_logits(text)
    try:
        if before:
            decoder.cached_logits(before, [len(before)])
        got = decoder.cached_logits(text, chunks)
    except ContextOverflow:
        return False
    return float(np.abs(got - want).max()) <= 1e-4 * float(np.abs(want).max())
