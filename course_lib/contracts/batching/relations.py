"""Relations between a batch and its prompts alone, and the mistakes that share them."""

from collections.abc import Callable
from functools import lru_cache, partial

from course_lib.contracts.batching.mistakes import BATCHING_MISTAKES
from course_lib.contracts.batching.observer import BatchObserver, Prompts, listed
from course_lib.contracts.batching.tiny_batch import TinyBatch
from course_lib.contracts.cache.logits import explained
from course_lib.contracts.engine.diagnosis import Diagnosis
from course_lib.contracts.engine.watch import Probe


def explain_batching(seen: BatchObserver) -> Diagnosis:
    """Name the catalogued mistakes that stand in the same relations to themselves."""
    if seen.context_length < 8 or seen.vocab_size < 6 or not seen.steady():
        return Diagnosis()
    return explained(seen, BATCHING_MISTAKES, TinyBatch, batching_probes())


def batching_probes() -> list[Probe]:
    """The relations between a batch and its prompts alone."""
    # fmt: off
    core = [
        _alone, _equal, *map(_coarsely, _FINE), _neighbours_content, _neighbours_length,
        _own_tokens, _tokens_that_vanish, _only_padding, _agrees_with_itself, _remembers,
        _aliased, _edited,
    ]
    # fmt: on
    return [
        Probe(partial(BatchObserver.relation, relation=relation), core=relation not in _FINE)
        for relation in (*core, *_FINE)
    ]


def _alone(seen: BatchObserver) -> bool:
    return all(seen.right((seen.prompt(n, n),), 0) for n in (2, 4))


def _labels(prompts: Callable[[BatchObserver], Prompts]) -> Callable[[BatchObserver], list[str]]:
    """What each row of a batch of three equals."""
    return lambda seen: [seen.label(prompts(seen), place) for place in range(3)]


_equal = _labels(lambda seen: tuple(seen.prompt(4, salt) for salt in (1, 3, 6)))
_long_first = _labels(lambda s: s.mixed(2))
_long_last = _labels(lambda s: s.mixed(3)[::-1])
_middle = _labels(lambda seen: tuple(seen.mixed(4)[place] for place in (1, 0, 2)))
_FINE = (_long_first, _long_last, _middle)


@lru_cache(maxsize=3)
def _coarsely(relation: Callable[[BatchObserver], list[str]]) -> Callable[..., list[str]]:
    """What padding does depends on many a detail; that a row is not right does not."""
    padding = ("with padding in front", "with padding behind", "something else")

    def coarsely(seen: BatchObserver) -> list[str]:
        return ["wrong" if label in padding else label for label in relation(seen)]

    return coarsely


def _agrees_with_itself(seen: BatchObserver) -> bool:
    """Whether batches are wrong, the same for all neighbours, and right in a full context."""
    prompts = seen.mixed(6)
    rows = [seen.same(seen.row(prompts, n), seen.row((prompts[n],), 0)) for n in range(3)]
    full = seen.prompt(seen.context_length, 2)
    wrong = not any(seen.right(prompts, n) for n in range(3))
    return wrong and all(rows) and seen.right((full,), 0)


def _neighbours_content(seen: BatchObserver) -> list[bool]:
    """Whether other tokens of a neighbour, as many as before, change a row."""
    found = []
    for lengths in ((4, 4), (5, 3), (3, 5)):
        left, right = before = tuple(seen.prompt(n, n + 1) for n in lengths)
        other = tuple(seen.prompt(n, 7) for n in lengths)
        for place, after in ((0, (left, other[1])), (1, (other[0], right))):
            found.append(seen.same(seen.row(before, place), seen.row(after, place), 0.01))
    return found


def _neighbours_length(seen: BatchObserver) -> bool:
    """Whether a longer neighbour leaves a short row as it was."""
    short = seen.prompt(3, 2)
    rows = [seen.row((seen.prompt(n, 5), short), 1) for n in (4, 6)]
    return seen.same(*rows)


def _own_tokens(seen: BatchObserver) -> list[bool]:
    """Which of its own tokens a row does not depend on, though the prompt alone does."""
    long, short = seen.prompt(5, 3), seen.prompt(3, 6)
    found = []
    for prompts, place in (((long, short), 1), ((short, long), 1)):
        for n in range(len(prompts[place])):
            changed = list(prompts[place])
            changed[n] = changed[n] % (seen.vocab_size - 2) + 1
            other = (*prompts[:place], tuple(changed), *prompts[place + 1 :])
            kept = seen.same(seen.row(other, place), seen.row(prompts, place), 0.01)
            matters = not seen.same(seen.alone(changed), seen.alone(prompts[place]), 0.01)
            found.append(kept and matters)
    return found


def _tokens_that_vanish(seen: BatchObserver) -> bool:
    """Whether rows are wrong just where a prompt holds some single id."""
    wrong = []
    for token in seen.paddings():
        prompt = (2, token, 3)
        if not all(seen.right(batch, 0) for batch in ((prompt, (1, 2, 3)), (prompt, (1,)))):
            wrong.append(token)
    return len(wrong) == 1  # of several, what was called before decides


def _only_padding(seen: BatchObserver) -> bool:
    """Whether just the shorter rows are wrong, by what the padding does and not what it holds."""
    labels = [*_long_first(seen), *_long_last(seen)]
    wanted = ["right", *["something else"] * 2]
    kept = all(_neighbours_content(seen)) and not any(_own_tokens(seen))
    right = _alone(seen) and _equal(seen) == ["right"] * 3
    return labels == wanted + wanted[::-1] and kept and right


def _remembers(seen: BatchObserver) -> bool:
    """Whether a batch goes wrong after another of the same shape."""
    before, prompts = (seen.prompt(6, 1), seen.prompt(2, 2)), (seen.prompt(2, 3), seen.prompt(6, 4))
    seen.run(before)
    return all(seen.right(prompts, place) for place in (0, 1))


def _aliased(seen: BatchObserver) -> bool | str:
    """Whether a later batch changes an earlier result, or a written result comes back."""
    prompts, other = seen.mixed(5), seen.mixed(6)
    first, second = (lambda each=each: seen.batch(listed(each)) for each in (prompts, other))
    return seen.aliased(first, second, lambda kept: seen.right(other, 0))


def _edited(seen: BatchObserver) -> bool | str:
    prompts = listed(seen.mixed(7))
    seen.batch(prompts)
    after = tuple(map(tuple, prompts))
    if after != seen.mixed(7) and sorted(after) == sorted(seen.mixed(7)):
        return "in another order"
    return after == seen.mixed(7)
