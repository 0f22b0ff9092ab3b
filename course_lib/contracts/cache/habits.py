"""What a cached model does at its limits and with what it is given, right or wrong."""

import numpy as np

from course_lib.contracts.cache.logits import logit_array, scribble_over
from course_lib.contracts.cache.observer import CacheObserver

EDGE = 64  # longer contexts are not filled by a probe


def edge(seen: CacheObserver) -> list[bool]:
    """Whether the last place of a context is right for a single token."""
    length = seen.context_length
    return [] if length > EDGE else seen.right(seen.ids(length), [length - 1, 1])[-1:]


def beyond(seen: CacheObserver) -> str:
    """What the cache answers to one token more than fits."""
    size = seen.context_length
    if size > EDGE:
        return "not asked"
    ids = seen.ids(size + 1)
    got, steps = seen.run(ids, [size, 1]), seen.run(ids, [size + 1])
    if got is None:
        return "refused" if steps is None else "one chunk answered"
    for name, kept in (("front cut", ids[1:]), ("end cut", ids[:-1])):
        if all(seen.rows_equal(got, seen.run(kept)) or [False]):
            return name
    agree = all(seen.rows_equal(got, steps) or [False])
    return "answered" if agree else "answered, as the cut goes"


def beyond_full_pass(seen: CacheObserver) -> bool:
    """Whether the full pass answers to more than fits."""
    size = seen.context_length
    return size <= EDGE and seen.run(seen.ids(size + 1)) is not None


def aliased(seen: CacheObserver) -> bool | str:
    """Whether a later call changes an earlier result, or a written result comes back."""
    ids, other = seen.ids(5), seen.ids(5, 4)
    first = seen.cached(list(ids), [5])
    kept = logit_array(first).values.copy()
    second = logit_array(seen.cached(list(other), [5])).values
    if all(seen.rows_equal(second, kept)) and not all(seen.rows_equal(seen.run(other), kept)):
        return "the first result once more"
    changed = not np.array_equal(logit_array(first).values, kept)
    scribble_over(first)
    again = logit_array(seen.cached(list(ids), [5])).values
    return changed or not all(seen.rows_equal(again, kept))


def edited(seen: CacheObserver) -> list[bool]:
    """Whether each of the lists is as it was."""
    ids, chunks = list(seen.ids(6)), [3, 2, 1]
    seen.cached(ids, chunks)
    return [tuple(ids) == seen.ids(6), chunks == [3, 2, 1]]


def full_leaks(seen: CacheObserver) -> bool:
    """Whether the full pass reads the future."""
    return any(seen.reaches(seen.ids(7), 6)[:6])
