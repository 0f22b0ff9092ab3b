"""Relations between the answers of a cached model, and the mistakes that stand in the same ones."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from course_lib.contracts.cache.logits import explained
from course_lib.contracts.cache.mistakes import CACHE_MISTAKES
from course_lib.contracts.cache.observer import CacheObserver
from course_lib.contracts.cache.tiny_decoder import TinyDecoder
from course_lib.contracts.engine.diagnosis import Diagnosis
from course_lib.contracts.engine.watch import Probe

Relation = Callable[[CacheObserver], Any]

_LONGEST = 20  # tokens of the longest probe
_EDGE = 64  # longer contexts are not filled by a probe


def _right(cut: list[int], start: int = 0, stop: int | None = None) -> Relation:
    """Whether these rows of a text that is cut so are right."""
    return lambda seen: all(seen.right(seen.ids(7), cut)[start:stop] or [False])


_one_chunk = _right([7])
_first_chunk = _right([4, 3], 0, 4)
_later_chunk = _right([4, 3], 4)
_one_step = _right([6, 1], 6)
_steps = _right([1] * 7)


def _cut_matters(seen: CacheObserver) -> list[bool]:
    """Whether it matters how what follows the first chunk is cut, right or wrong."""
    whole, steps = (seen.run(seen.ids(7), cut) for cut in ([3, 4], [3, 1, 1, 1, 1]))
    return [all(seen.rows_equal(whole, steps)[3:] or [False])]


def _leak_in_later(seen: CacheObserver) -> bool | str:
    """Whether a later token of a second chunk changes earlier rows of it.

    If these are rows of other places of the chunk, they are no proof of a leak.
    """
    ids = seen.ids(7)
    got, full = seen.run(ids, [4, 3]), seen.run(ids)
    if got is not None and full is not None and got.shape == full.shape:
        moved = [(i, j) for i in (4, 5, 6) for j in (4, 5, 6) if i != j]
        if any(seen.same(got[i : i + 1], full[j : j + 1]) for i, j in moved):
            return "rows of other places"
    return any(seen.reaches(ids, 6, [4, 3])[4:6])


def _leak_in_first(seen: CacheObserver) -> bool:
    return any(seen.reaches(seen.ids(7), 3, [4, 3])[:3])


def _leak_far(before: int) -> Relation:
    """Whether the last token of a wide chunk, that stands after so many, reaches its first row."""

    def leaks(seen: CacheObserver) -> bool:
        length = min(seen.context_length, 12)
        cut = [width for width in (before, length - before) if width]
        return any(seen.reaches(seen.ids(length), length - 1, cut)[before : before + 1])

    return leaks


def _leak_only_if_wide(seen: CacheObserver) -> bool:
    """Whether the future is read in wide chunks, and all is well one token at a time."""
    return _steps(seen) and (_leak_in_first(seen) or bool(_leak_in_later(seen)))


def _lost(cut: list[int], tokens: Iterable[int], rows: Iterable[int]) -> Relation:
    """Which of these tokens do not reach which of these rows, though in the full pass they do."""
    places = [(token, row) for token in tokens for row in rows]
    return lambda seen: [seen.lost(seen.ids(7), token, cut, row) for token, row in places]


_lost_in_chunk = _lost([4, 3], range(4), (4, 5, 6))
_lost_in_step = _lost([6, 1], (0, 3, 5), (6,))


def _single_lost(seen: CacheObserver) -> bool:
    """Whether a token is lost if it came alone, and not if it came in a wider chunk."""
    ids = seen.ids(7)
    return seen.lost(ids, 4, [4, 1, 2], 5) and not seen.lost(ids, 4, [5, 2], 5)


def _alone(seen: CacheObserver) -> bool:
    """Whether a second chunk is what it would be as a text of its own."""
    ids = seen.ids(7)
    second = seen.run(ids, [4, 3])
    return second is not None and len(second) == 7 and seen.same(second[4:], seen.run(ids[4:]))


def _all_the_same(chunks: list[int]) -> Relation:
    """Whether a token repeated always says the same, though not in the full pass."""

    def repeats(seen: CacheObserver) -> bool:
        rows, full = seen.run((1,) * 6, chunks), seen.run((1,) * 6)
        if rows is None or full is None or len(rows) != 6:
            return False
        told, right = (seen.same(each, np.repeat(each[:1], 6, 0)) for each in (rows, full))
        return told and not right

    return repeats


_repeated = _all_the_same([1] * 6)
_repeated_chunk = _all_the_same([6])


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
    return k is not None and all(seen.lost(seen.ids(k + 1), j, [1] * (k + 1), k) for j in range(k))


def _right_when_full(short: Relation, before: int) -> Relation:
    """Whether the end of a text is right where it fills the context, and wrong in a short one.

    The end is what comes after the first `before` tokens: all, or the last one (-1).
    """

    def right(seen: CacheObserver) -> bool:
        length = seen.context_length
        return length <= _EDGE and not short(seen) and all(_full_rows(seen, before) or [False])

    return right


def _full_rows(seen: CacheObserver, before: int) -> list[bool]:
    """Which of the last rows of a text that fills the context are right."""
    length = seen.context_length
    return seen.right(seen.ids(length), [length - 1, 1] if before else [length])[before:]


def _edge(seen: CacheObserver) -> list[bool]:
    """Whether the last place of a context is right for a single token."""
    return [] if seen.context_length > _EDGE else _full_rows(seen, -1)


def _wrong_after_first(seen: CacheObserver) -> bool:
    """Whether all that follows the first chunk is wrong, though every token reaches its rows."""
    odd = [_leak_in_first, _leak_in_later, _alone, _repeated, _repeated_chunk, _single_lost]
    odd += [_later_chunk, _steps, _one_step]  # are right, too
    lost = [*_lost_in_chunk(seen), *_lost_in_step(seen), *(each(seen) for each in odd)]
    first = _one_chunk(seen) and _first_chunk(seen)
    return first and not any(lost) and _first_wrong_step(seen) is None


def _formula(seen: CacheObserver) -> bool:
    """As if what follows the first chunk went through another formula, however it is cut."""
    return _wrong_after_first(seen) and all(_cut_matters(seen))


def _past(seen: CacheObserver) -> bool:
    """As if the past were not what it was; where positions are relative there is no telling."""
    relative = all(seen.rows_equal(seen.run((1,) * 6), np.repeat(seen.run((1,))[:1], 6, 0)))
    return not relative and _wrong_after_first(seen) and not all(_cut_matters(seen))


def _counts_calls(seen: CacheObserver) -> bool:
    """Whether a single token is right after single ones and wrong after a wide first chunk."""
    odd = [_leak_in_first(seen), _leak_in_later(seen), *_lost_in_step(seen), _one_step(seen)]
    odd += seen.right(seen.ids(7), [4, 3])[4:]
    return _steps(seen) and _one_chunk(seen) and not any(odd)


def _agrees_with_itself(seen: CacheObserver) -> bool:
    """Whether every row is wrong, however the text is cut, and always the same."""
    ids, whole = seen.ids(7), seen.run(seen.ids(7), [7])
    odd = any(seen.right(ids, [7])) or _leak_in_first(seen) or _full_leaks(seen)
    return not odd and all(
        seen.same(seen.run(ids, cut), whole) for cut in ([4, 3], [1] * 7, [3, 2, 2])
    )


def _beyond(seen: CacheObserver) -> str:
    """What the cache answers to one token more than fits."""
    size = seen.context_length
    if size > _EDGE:
        return "not asked"
    ids = seen.ids(size + 1)
    got, steps = seen.run(ids, [size, 1]), seen.run(ids, [size + 1])
    if got is None:
        return "refused" if steps is None else "one chunk answered"
    for name, kept in (("front cut", ids[1:]), ("end cut", ids[:-1])):
        if seen.same(got, seen.run(kept)):
            return name
    return "answered" if seen.same(got, steps) else "answered, as the cut goes"


def _beyond_full_pass(seen: CacheObserver) -> bool:
    """Whether the full pass answers to more than fits."""
    size = seen.context_length
    return size <= _EDGE and seen.run(seen.ids(size + 1)) is not None


def _aliased(seen: CacheObserver) -> bool | str:
    """Whether a later call changes an earlier result, or a written result comes back."""
    ids, other = seen.ids(5), seen.ids(5, 4)
    first, second = (lambda each=each: seen.cached(list(each), [5]) for each in (ids, other))
    return seen.aliased(first, second, lambda kept: seen.same(seen.run(other), kept))


def _edited(seen: CacheObserver) -> list[bool]:
    """Whether each of the lists is as it was."""
    ids, chunks = list(seen.ids(6)), [3, 2, 1]
    seen.cached(ids, chunks)
    return [tuple(ids) == seen.ids(6), chunks == [3, 2, 1]]


def _full_leaks(seen: CacheObserver) -> bool:
    """Whether the full pass reads the future."""
    return any(seen.reaches(seen.ids(7), 6)[:6])


_CORE = (
    *(_one_chunk, _first_chunk, _later_chunk, _steps, _cut_matters, _leak_in_later),
    *(_leak_in_first, _leak_far(0), _leak_far(2), _leak_only_if_wide, _lost_in_chunk),
    *(_lost_in_step, _single_lost, _alone, _repeated, _long, _long_lost, _repeated_chunk),
    *(_right_when_full(_one_chunk, 0), _right_when_full(_one_step, -1), _formula, _past),
    *(_counts_calls, _agrees_with_itself, _beyond, _beyond_full_pass, _aliased, _edited),
    _full_leaks,
)
_MORE = (_one_step, _edge)  # these hang on the number of layers, or on the cut


def cache_probes() -> list[Probe]:
    """What the first calls said, and then the relations."""
    looked = (
        Probe(partial(CacheObserver.relation, relation=relation), relation in _CORE)
        for relation in (*_CORE, *_MORE)
    )
    return [Probe(CacheObserver.state), *looked]


def explain_cache(seen: CacheObserver) -> Diagnosis:
    """Name the catalogued mistakes that stand in the same relations to themselves."""
    if seen.context_length < 8 or seen.vocab_size < 4:
        return Diagnosis()
    return explained(seen, CACHE_MISTAKES, TinyDecoder, cache_probes())
