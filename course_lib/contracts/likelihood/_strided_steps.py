"""The steps of a strided loss, right and wrong, of which mistaken ones are put together."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor


def strided_windows(length: int, max_length: int, stride: int) -> Iterable[tuple[int, int]]:
    """Begin and end of the windows, one step of the right formula."""
    for begin in range(0, length, stride):
        yield begin, min(begin + max_length, length)
        if begin + max_length >= length:
            return


def strided_windows_stepping(
    length: int, max_length: int, stride: int, step: Callable[[int, int], int]
) -> Iterable[tuple[int, int]]:
    """The windows, moving by another step."""
    return strided_windows(length, max_length, step(max_length, stride))


def strided_windows_of(
    length: int, max_length: int, stride: int, width: int
) -> Iterable[tuple[int, int]]:
    """The windows, longer or shorter than the model reads."""
    return strided_windows(length, max(max_length + width, 2), stride)


def strided_windows_to_the_very_end(
    length: int, max_length: int, stride: int
) -> list[tuple[int, int]]:
    """Windows that go on after the one that reaches the end."""
    starts = range(0, length - 1, stride)
    return [(begin, min(begin + max_length, length)) for begin in starts]


def strided_whole_windows(length: int, max_length: int, stride: int) -> list[tuple[int, int]]:
    """The full windows only."""
    windows = list(strided_windows(length, max_length, stride))
    return [window for window in windows if window[1] - window[0] == max_length] or windows


def strided_short_of_context(
    length: int, max_length: int, stride: int
) -> Iterable[tuple[int, int]]:
    """New tokens only, and the one before them."""
    done = 1
    for _, end in strided_windows(length, max_length, stride):
        yield done - 1, end
        done = end


def new_nats(nats: Tensor, begin: int, done: int, stride: int) -> Tensor:
    """The nats of the tokens that no earlier window counted, one step of the right formula."""
    return nats[done - begin - 1 :]


def strided_trailing_again(nats: Tensor, begin: int, done: int, stride: int) -> Tensor:
    """The new tokens; all of them where there is none."""
    fresh = begin + 1 + len(nats) - done
    return nats[-fresh:] if fresh else nats


def mean_of_all(parts: Sequence[Tensor], length: int) -> Tensor:
    """The mean over all counted tokens, one step of the right formula."""
    return torch.cat(list(parts)).mean()


def sum_over_all(parts: Sequence[Tensor], length: int) -> Tensor:
    """The sum of the counted tokens, divided by the number of those that should be."""
    return torch.cat(list(parts)).sum() / (length - 1)


def mistaken_strided_nll(**steps: Callable[..., Any]) -> Callable[..., float]:
    """A strided loss with some of its steps (windows, fresh, reduce) replaced."""

    def strided_nll(
        score: Callable[[Any], Tensor], ids: Tensor, max_length: int, stride: int
    ) -> float:
        parts, done = [], 1
        windows = steps.get("windows", strided_windows)
        for begin, end in windows(len(ids), max_length, stride):
            nats = torch.as_tensor(score(ids[begin:end]))
            parts.append(steps.get("fresh", new_nats)(nats, begin, done, stride))
            done = end
        return float(steps.get("reduce", mean_of_all)(parts, len(ids)))

    return strided_nll


def means_weighing(first: int, later: int) -> Callable[..., Tensor]:
    """Window means, each weighted by its number of new tokens and so many more."""

    def reduce(parts: Sequence[Tensor], length: int) -> Tensor:
        weights = [len(part) + (later if place else first) for place, part in enumerate(parts)]
        pairs = zip(weights, parts, strict=True)
        return sum(weight * part.mean() for weight, part in pairs if weight > 0) / sum(weights)

    return reduce
