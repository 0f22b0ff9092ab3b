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
    stored,
)


def anything(decoder: TinyDecoder, ids: list[int], *_: Any) -> list[int]:
    """Refuse nothing."""
    return ids


def kept(decoder: TinyDecoder) -> TinyCache:
    """One cache for all prompts, never emptied."""
    if decoder.memory is None:
        decoder.memory = TinyCache(decoder.n_layers, decoder.d_model)
    return decoder.memory


def kept_but_rewound(decoder: TinyDecoder) -> TinyCache:
    """One cache for all prompts: only the length goes back to 0."""
    kept(decoder).length = 0
    return decoder.memory


def past_window(decoder: TinyDecoder, width: int, n_keys: int, offset: int) -> np.ndarray:
    """The causal mask for a buffer whose places after the chunk are open too."""
    return seen_keys(width, n_keys, offset) | (np.arange(n_keys) >= offset + width)


@stored
def slid(decoder: TinyDecoder, cache: TinyCache, past: np.ndarray, new: np.ndarray) -> np.ndarray:
    """As many of the last places as the context has."""
    return np.concatenate([past, new])[-max(decoder.context_length, len(new)) :]


@stored
def in_slots(
    decoder: TinyDecoder, cache: TinyCache, past: np.ndarray, new: np.ndarray
) -> np.ndarray:
    """Write into the slots of the chunk, and read all slots that were ever written."""
    return np.concatenate([past[: cache.length], new, past[cache.length + len(new) :]])


def joined_to(change: Callable[..., np.ndarray]) -> Callable[..., tuple]:
    """Join a past that was changed: change(decoder, past, new) -> past."""
    return stored(
        lambda decoder, cache, past, new: np.concatenate(
            [change(decoder, past, new) if cache.length else past, new]
        )
    )


def must_grow(past: np.ndarray, new: np.ndarray) -> bool:
    """Whether a buffer of 8 places, doubled when full, has to grow for this chunk."""
    places = 8
    while places < len(past):
        places *= 2
    return len(past) + len(new) > places


def shuffled_by_growth(decoder: TinyDecoder, past: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Read the old numbers in another order when the buffer grows."""
    return past.T.copy().reshape(past.shape) if must_grow(past, new) else past


def whole_buffer(decoder: TinyDecoder, *chunk: Any) -> tuple:
    """Hand out the whole buffer: zeros after what was written."""
    written = joined_past(decoder, *chunk)
    empty = max(decoder.context_length - len(written[0]), 0)
    return tuple(np.pad(part, ((0, empty), (0, 0))) for part in written)


def buffer_if_one(decoder: TinyDecoder, cache: TinyCache, layer: int, k: Any, v: Any) -> tuple:
    """Hand out the whole buffer to a single token."""
    return (whole_buffer if len(k) == 1 else joined_past)(decoder, cache, layer, k, v)


def one_layer_for_all(decoder: TinyDecoder, cache: TinyCache, layer: int, k: Any, v: Any) -> tuple:
    """Every layer writes to the same places, and reads there what the last layer left."""
    cut = stored(lambda decoder, cache, past, new: np.concatenate([past[: cache.length], new]))
    return cut(decoder, cache, 0, k, v)


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


def swapped(decoder: TinyDecoder, cache: TinyCache, layer: int, k: Any, v: Any) -> tuple:
    """Keep values as keys and keys as values; the chunk itself is read the right way round."""
    read = np.concatenate([cache.keys[layer], k]), np.concatenate([cache.values[layer], v])
    joined_past(decoder, cache, layer, v, k)
    return read


def same_array(decoder: TinyDecoder, rows: np.ndarray) -> np.ndarray:
    """Write every result into one array and return a view of it."""
    if decoder.memory is None:
        decoder.memory = np.zeros((decoder.context_length, decoder.vocab_size))
    view = decoder.memory[: len(rows)]
    view[...] = rows
    return view


def ids_taken(decoder: TinyDecoder, ids: list[int], chunks: list[int]) -> list[int]:
    """Empty the caller's list."""
    kept_ids = list(fitting_ids(decoder, ids))
    ids.clear()
    return kept_ids


def chunks_noted(decoder: TinyDecoder, ids: list[int], chunks: list[int]) -> list[int]:
    """Remember the caller's list of widths."""
    decoder.memory = chunks
    return fitting_ids(decoder, ids)


def chunks_taken(decoder: TinyDecoder, rows: np.ndarray) -> np.ndarray:
    """Take a width out of the caller's list."""
    decoder.memory.pop()
    return rows


def last_places(decoder: TinyDecoder, width: int, n_keys: int, offset: int) -> np.ndarray:
    """A causal mask that opens so many of the last places only."""
    few = n_keys - width - (decoder.context_length - 5)
    return seen_keys(width, n_keys, n_keys - width) & ~seen_keys(width, n_keys, few)


def decoder_with_prefix() -> TinyDecoder:
    """A decoder that answers from its last text, as far as that goes, if both start alike."""
    texts: list[list[int]] = [[], []]
    known: list[np.ndarray] = []

    def admit(decoder: TinyDecoder, ids: list[int], chunks: list[int]) -> list[int]:
        texts[:] = texts[1], list(fitting_ids(decoder, ids))
        return texts[1]

    def finish(decoder: TinyDecoder, rows: np.ndarray) -> np.ndarray:
        if texts[0][:1] == texts[1][:1]:
            both = min(len(known[0]), len(rows))
            rows = np.concatenate([known[0][:both], rows[both:]])
        known[:] = [rows.copy()]
        return rows

    return TinyDecoder(admit=admit, finish=finish)
