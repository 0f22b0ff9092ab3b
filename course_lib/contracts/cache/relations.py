"""Relations between the answers of a cached model, and the mistakes that stand in the same ones."""

from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

from course_lib.contracts.cache import habits
from course_lib.contracts.cache.mistakes import CACHE_MISTAKES
from course_lib.contracts.cache.observer import CacheObserver
from course_lib.contracts.cache.tiny_decoder import TinyDecoder
from course_lib.contracts.engine.diagnosis import Diagnosis, diagnose
from course_lib.contracts.engine.watch import Probe

_LONGEST = 20  # tokens of the longest probe


def _one_chunk(seen: CacheObserver) -> bool:
    return all(seen.right(seen.ids(7), [7]) or [False])


def _first_chunk(seen: CacheObserver) -> bool:
    return all(seen.right(seen.ids(7), [4, 3])[:4] or [False])


def _later_chunk(seen: CacheObserver) -> bool:
    return all(seen.right(seen.ids(7), [4, 3])[4:] or [False])


def _one_step(seen: CacheObserver) -> bool:
    return all(seen.right(seen.ids(7), [6, 1])[6:] or [False])


def _steps(seen: CacheObserver) -> bool:
    return all(seen.right(seen.ids(7), [1] * 7) or [False])


def _cut_matters(seen: CacheObserver) -> list:
    """Whether it matters how what follows the first chunk is cut, right or wrong."""
    ids = seen.ids(7)
    whole, steps = seen.run(ids, [3, 4]), seen.run(ids, [3, 1, 1, 1, 1])
    return [all(seen.rows_equal(whole, steps)[3:] or [False])]


def _leak_in_later(seen: CacheObserver) -> bool | str:
    """Whether a later token of a second chunk changes earlier rows of it.

    If these are rows of other places of the chunk, they are no proof of a leak.
    """
    ids = seen.ids(7)
    got, full = seen.run(ids, [4, 3]), seen.run(ids)
    if got is not None and full is not None and got.shape == full.shape:
        moved = [(i, j) for i in (4, 5, 6) for j in (4, 5, 6) if i != j]
        if any(all(seen.rows_equal(got[i : i + 1], full[j : j + 1])) for i, j in moved):
            return "rows of other places"
    return any(seen.reaches(ids, 6, [4, 3])[4:6])


def _leak_far_in_later(seen: CacheObserver) -> bool:
    """Whether the last token of a wide second chunk reaches its first row."""
    length = min(seen.context_length, 12)
    return bool((seen.reaches(seen.ids(length), length - 1, [2, length - 2]) or [False] * 3)[2])


def _leak_in_first(seen: CacheObserver) -> bool:
    return any(seen.reaches(seen.ids(7), 3, [4, 3])[:3])


def _leak_far(seen: CacheObserver) -> bool:
    """Whether the last token of a wide chunk reaches its first row."""
    length = min(seen.context_length, 12)
    return bool((seen.reaches(seen.ids(length), length - 1, [length]) or [False])[0])


def _leak_only_if_wide(seen: CacheObserver) -> bool:
    """Whether the future is read in wide chunks, and all is well one token at a time."""
    return _steps(seen) and (_leak_in_first(seen) or _leak_in_later(seen))


def _lost_in_chunk(seen: CacheObserver) -> list[bool]:
    ids = seen.ids(7)
    return [seen.lost(ids, j, [4, 3], row) for j in range(4) for row in (4, 5, 6)]


def _lost_in_step(seen: CacheObserver) -> list[bool]:
    ids = seen.ids(7)
    return [seen.lost(ids, j, [6, 1], 6) for j in (0, 3, 5)]


def _single_lost(seen: CacheObserver) -> bool:
    """Whether a token is lost if it came alone, and not if it came in a wider chunk."""
    ids = seen.ids(7)
    return seen.lost(ids, 4, [4, 1, 2], 5) and not seen.lost(ids, 4, [5, 2], 5)


def _alone(seen: CacheObserver) -> bool:
    """Whether a second chunk is what it would be as a text of its own."""
    ids = seen.ids(7)
    second, alone = seen.run(ids, [4, 3]), seen.run(ids[4:])
    rows = None if second is None or len(second) != 7 else second[4:]
    return all(seen.rows_equal(rows, alone) or [False])


def _repeated(seen: CacheObserver) -> bool:
    """Whether, one by one, a token repeated always says the same, though not in the full pass."""
    return _all_the_same(seen, [1] * 6)


def _repeated_chunk(seen: CacheObserver) -> bool:
    return _all_the_same(seen, [6])


def _all_the_same(seen: CacheObserver, chunks: list[int]) -> bool:
    rows, full = seen.run((1,) * 6, chunks), seen.run((1,) * 6)
    if rows is None or full is None or len(rows) != 6:
        return False
    same = all(seen.rows_equal(rows, np.repeat(rows[:1], 6, 0)) or [False])
    return same and not all(seen.rows_equal(full, np.repeat(full[:1], 6, 0)))


def _first_wrong_step(seen: CacheObserver) -> int | None:
    """From where on, at row 2 or later, a long text token by token is wrong for good."""
    length = min(seen.context_length, _LONGEST)
    rows = seen.right(seen.ids(length), [1] * length)
    k = rows.index(False) if False in rows else 0
    return k if k >= 2 and not any(rows[k:]) else None


def _long(seen: CacheObserver) -> str:
    k = _first_wrong_step(seen)
    if k is None:
        return "no turning point"
    length = min(seen.context_length, _LONGEST)
    if not all(seen.right(seen.ids(length), [length]) or [False]):
        return "turns wrong in one chunk too"
    after = min(2, seen.context_length - k - 1)
    rows = seen.right(seen.ids(k + 1 + after), [k + 1, *[1] * after])
    moved = after > 0 and bool(rows) and all(rows[-after:])
    return "turns wrong, later after a wide chunk" if moved else "turns wrong"


def _long_lost(seen: CacheObserver) -> bool:
    """Whether, where a long text turns wrong, all the past is lost at once."""
    k = _first_wrong_step(seen)
    if k is None:
        return False
    ids = seen.ids(k + 1)
    return all(seen.lost(ids, j, [1] * (k + 1), k) for j in range(k))


def _right_in_a_full_chunk(seen: CacheObserver) -> bool:
    """Whether a chunk that is wrong in a short text is right where it fills the context."""
    length = seen.context_length
    if length > habits.EDGE or _one_chunk(seen):
        return False
    return all(seen.right(seen.ids(length), [length]) or [False])


def _right_in_the_last_step(seen: CacheObserver) -> bool:
    """Whether a single token that is wrong in a short text is right in the last place."""
    length = seen.context_length
    if length > habits.EDGE or _one_step(seen):
        return False
    return (seen.right(seen.ids(length), [length - 1, 1]) or [False])[-1]


def _wrong_after_first(seen: CacheObserver) -> bool:
    """Whether all that follows the first chunk is wrong, though every token reaches its rows."""
    lost = [*_lost_in_chunk(seen), *_lost_in_step(seen)]
    odd = [_leak_in_first(seen), _leak_in_later(seen), _alone(seen)]
    odd += [_repeated(seen), _repeated_chunk(seen), _single_lost(seen)]
    right_too = [_later_chunk(seen), _steps(seen), _one_step(seen)]
    first = _one_chunk(seen) and _first_chunk(seen)
    return first and not any(lost + odd + right_too) and _first_wrong_step(seen) is None


def _formula(seen: CacheObserver) -> bool:
    """As if what follows the first chunk went through another formula, however it is cut."""
    return _wrong_after_first(seen) and all(_cut_matters(seen))


def _past(seen: CacheObserver) -> bool:
    """As if the past were not what it was; where positions are relative there is no telling."""
    relative = all(seen.rows_equal(seen.run((1,) * 6), np.repeat(seen.run((1,))[:1], 6, 0)))
    return not relative and _wrong_after_first(seen) and not all(_cut_matters(seen))


def _counts_calls(seen: CacheObserver) -> bool:
    """Whether a single token is right after single ones and wrong after a wide first chunk."""
    odd = [_leak_in_first(seen), _leak_in_later(seen), *_lost_in_step(seen)]
    odd += seen.right(seen.ids(7), [4, 3])[4:]
    right = _steps(seen) and _one_chunk(seen)
    return right and not _one_step(seen) and not any(odd)


def _agrees_with_itself(seen: CacheObserver) -> bool:
    """Whether every row is wrong, however the text is cut, and always the same."""
    ids, whole = seen.ids(7), seen.run(seen.ids(7), [7])
    agree = [seen.rows_equal(seen.run(ids, cut), whole) for cut in ([4, 3], [1] * 7, [3, 2, 2])]
    odd = any(seen.right(ids, [7])) or _leak_in_first(seen) or habits.full_leaks(seen)
    return not odd and all(rows and all(rows) for rows in agree)


# fmt: off
_CORE = (
    _one_chunk, _first_chunk, _later_chunk, _steps, _cut_matters, _leak_in_later, _leak_in_first,
    _leak_far, _leak_far_in_later, _leak_only_if_wide, _lost_in_chunk, _lost_in_step, _single_lost,
    _alone, _repeated, _long, _long_lost, _repeated_chunk, _right_in_a_full_chunk,
    _right_in_the_last_step, _formula, _past, _counts_calls, _agrees_with_itself, habits.beyond,
    habits.beyond_full_pass, habits.aliased, habits.edited, habits.full_leaks,
)
# fmt: on
_MORE = (_one_step, habits.edge)  # these hang on the number of layers, or on the cut


def cache_probes() -> list[Probe]:
    """What the first calls said, and then the relations."""
    looked = (
        Probe(partial(CacheObserver.relation, relation=relation), relation in _CORE)
        for relation in (*_CORE, *_MORE)
    )
    return [Probe(CacheObserver.state), *looked]


def explain_cache(observer: CacheObserver) -> Diagnosis:
    """Name the catalogued mistakes that stand in the same relations to themselves."""
    if observer.context_length < 8 or observer.vocab_size < 4:
        return Diagnosis()
    catalogue = [
        replace(each, make=lambda place=place: _mistake_seen(place))
        for place, each in enumerate(CACHE_MISTAKES)
    ]
    return diagnose(observer, catalogue, cache_probes(), _mistake_seen(None))


@lru_cache(maxsize=64)
def _mistake_seen(place: int | None) -> CacheObserver:
    """A mistake of the catalogue, or right code, under observation: the same each time."""
    decoder = TinyDecoder() if place is None else CACHE_MISTAKES[place].make()
    sizes = decoder.vocab_size, decoder.context_length
    return CacheObserver(decoder.full_logits, decoder.cached_logits, *sizes)
