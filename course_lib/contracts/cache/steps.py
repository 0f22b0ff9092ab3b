"""Wrong steps of a key-value cache: what it keeps, and what it gives back."""

from collections.abc import Callable
from typing import Any

import numpy as np

from course_lib.contracts.cache.tiny_decoder import (
    TinyCache,
    TinyDecoder,
    fitting_ids,
    joined_past,
    seen_keys,
)


def kept(decoder: TinyDecoder) -> TinyCache:
    """One cache for all prompts, never emptied."""
    if decoder.memory is None:
        decoder.memory = TinyCache(decoder.n_layers, decoder.d_model)
    return decoder.memory


def kept_but_rewound(decoder: TinyDecoder) -> TinyCache:
    """One cache for all prompts: only the length goes back to 0."""
    kept(decoder).length = 0
    return decoder.memory


def stale_slots(decoder: TinyDecoder, cache: TinyCache, layer: int, k: Any, v: Any) -> tuple:
    """Write into the slots of the chunk, and read all slots that were ever written."""
    end = cache.length + len(k)
    for past, new in ((cache.keys, k), (cache.values, v)):
        past[layer] = np.concatenate([past[layer][: cache.length], new, past[layer][end:]])
    return cache.keys[layer], cache.values[layer]


def past_window(decoder: TinyDecoder, width: int, n_keys: int, offset: int) -> np.ndarray:
    """The causal mask for a buffer whose places after the chunk are open too."""
    j, i = np.arange(n_keys), np.arange(width)[:, None]
    return (j <= offset + i) | (j >= offset + width)


def with_past(change: Callable[..., tuple]) -> Callable[..., tuple]:
    """Join a past that was changed: change(past, decoder) -> past, for keys and for values."""

    def store(decoder: TinyDecoder, cache: TinyCache, layer: int, k: Any, v: Any) -> tuple:
        past = cache.keys[layer], cache.values[layer]
        if cache.length:
            cache.keys[layer], cache.values[layer] = change(past, decoder, len(k))
        return joined_past(decoder, cache, layer, k, v)

    return store


def trimmed(past: tuple, decoder: TinyDecoder, width: int) -> tuple:
    """Keep four tokens less than the context holds."""
    window = decoder.context_length - 4
    return tuple(part[-window:] for part in past)


def shuffled_by_growth(past: tuple, decoder: TinyDecoder, width: int) -> tuple:
    """Read the old numbers in another order when the buffer grows."""
    if not _must_grow(past, width):
        return past
    return tuple(part.T.copy().reshape(part.shape) for part in past)


def lost_by_growth(past: tuple, decoder: TinyDecoder, width: int) -> tuple:
    """Forget the old numbers when the buffer grows."""
    return tuple(0 * part for part in past) if _must_grow(past, width) else past


def _must_grow(past: tuple, width: int) -> bool:
    """Whether a buffer of 8 places, doubled when full, has to grow for this chunk."""
    length, places = len(past[0]), 8
    while places < length:
        places *= 2
    return length + width > places


def _padded(decoder: TinyDecoder, keys: Any, values: Any) -> tuple:
    """The whole buffer: zeros after what was written."""
    empty = np.zeros((max(decoder.context_length - len(keys), 0), decoder.d_model))
    return np.concatenate([keys, empty]), np.concatenate([values, empty])


def whole_buffer(decoder: TinyDecoder, cache: TinyCache, layer: int, *new: Any) -> tuple:
    """Hand out the whole buffer."""
    return _padded(decoder, *joined_past(decoder, cache, layer, *new))


def buffer_if_one(decoder: TinyDecoder, cache: TinyCache, layer: int, k: Any, v: Any) -> tuple:
    """Hand out the whole buffer to a single token."""
    keys, values = joined_past(decoder, cache, layer, k, v)
    return _padded(decoder, keys, values) if len(k) == 1 else (keys, values)


def one_layer_for_all(decoder: TinyDecoder, cache: TinyCache, layer: int, k: Any, v: Any) -> tuple:
    """Every layer writes to the same places, and reads there what the last layer left."""
    for past, new in ((cache.keys, k), (cache.values, v)):
        past[0] = np.concatenate([past[0][: cache.length], new])
    return cache.keys[0], cache.values[0]


def nothing_kept(decoder: TinyDecoder, cache: TinyCache, layer: int, k: Any, v: Any) -> tuple:
    """Keep nothing, read the chunk alone."""
    return k, v


def singles_not_kept(decoder: TinyDecoder, cache: TinyCache, layer: int, k: Any, v: Any) -> tuple:
    """Keep a chunk only if it has two tokens or more."""
    past = cache.keys[layer], cache.values[layer]
    result = joined_past(decoder, cache, layer, k, v)
    if len(k) == 1:
        cache.keys[layer], cache.values[layer] = past
    return result


def same_array(decoder: TinyDecoder, rows: np.ndarray) -> np.ndarray:
    """Write every result into one array and return a view of it."""
    if decoder.memory is None:
        decoder.memory = np.zeros((decoder.context_length, decoder.vocab_size))
    view = decoder.memory[: len(rows)]
    view[...] = rows
    return view


def ids_taken(decoder: TinyDecoder, ids: list[int], chunks: list[int]) -> list[int]:
    """Empty the caller's list."""
    kept = list(fitting_ids(decoder, ids))
    ids.clear()
    return kept


def chunks_taken(decoder: TinyDecoder, rows: np.ndarray) -> np.ndarray:
    """Take a width out of the caller's list."""
    decoder.memory.pop()
    return rows


def chunks_noted(decoder: TinyDecoder, ids: list[int], chunks: list[int]) -> list[int]:
    """Remember the caller's list of widths."""
    decoder.memory = chunks
    return fitting_ids(decoder, ids)


def swapped(decoder: TinyDecoder, cache: TinyCache, layer: int, k: Any, v: Any) -> tuple:
    """Keep values as keys and keys as values; the chunk itself is read the right way round."""
    keys = np.concatenate([cache.keys[layer], k])
    values = np.concatenate([cache.values[layer], v])
    joined_past(decoder, cache, layer, v, k)
    return keys, values


def shortened_once(decoder: TinyDecoder, cache: TinyCache, layer: int, k: Any, v: Any) -> tuple:
    """The second chunk is written over the end of the first; all others follow one another."""
    if cache.calls == 1:
        cache.keys[layer], cache.values[layer] = cache.keys[layer][:-1], cache.values[layer][:-1]
    return joined_past(decoder, cache, layer, k, v)


def places_halved(decoder: TinyDecoder, cache: TinyCache, width: int) -> np.ndarray:
    """Positions of another scale."""
    return (cache.length + np.arange(width) + 0.5) / 2


def last_places(decoder: TinyDecoder, width: int, n_keys: int, offset: int) -> np.ndarray:
    """A causal mask that opens so many of the last places only."""
    few = n_keys - width - (decoder.context_length - 5)
    return seen_keys(width, n_keys, n_keys - width) & ~seen_keys(width, n_keys, few)


class _Prefix:
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


def decoder_with_prefix() -> TinyDecoder:
    """A decoder with a memory of its last text."""
    kept = _Prefix()
    return TinyDecoder(admit=kept.admit, finish=kept.finish)
