"""Texts longer than a model reads, and a score that reveals which windows were asked for."""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

STRIDED_STEP = 3  # from one token of the text to the next: so a score knows what it was shown


class WindowNats(Tensor):
    """What a score returns: a float64 tensor [T - 1] that numpy's functions understand too."""

    def sum(self, *axes: Any, **options: Any) -> Tensor:
        """The sum; numpy's empty options are overlooked."""
        return super().sum(*axes, **_given_options(options))

    def mean(self, *axes: Any, **options: Any) -> Tensor:
        """The mean; numpy's empty options are overlooked."""
        return super().mean(*axes, **_given_options(options))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.as_subclass(Tensor).numpy().astype(dtype or float)


def _given_options(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


class WindowScore:
    """score(ids) -> the nats of ids[1:]; it keeps the windows that it was asked for.

    `nats` gives them for a token and the number of the text's own tokens before it in the window.
    """

    def __init__(self, nats: Callable[[int, int], float]) -> None:
        self.nats, self.windows = nats, []

    def __call__(self, ids: Any) -> Tensor:
        window = ids.tolist() if hasattr(ids, "tolist") else [int(token) for token in ids]
        if any(not isinstance(token, int) for token in window):
            raise ValueError("score takes one window of token ids, a sequence of integers")
        self.windows.append(window)
        nats, context = [], 0
        for before, token in itertools.pairwise(window):
            context = context + 1 if token - before == STRIDED_STEP else 0
            nats.append(self.nats(token, context))
        return torch.tensor(nats, dtype=torch.float64).as_subclass(WindowNats)

    def __str__(self) -> str:
        return "score(window) -> nats of window[1:]"


@dataclass(frozen=True)
class StridedCase:
    """One call: a text of `length` tokens, the model's max_length, the stride.

    The tokens are all different, or, with `repeated`, taken from a vocabulary of three.
    """

    length: int
    max_length: int
    stride: int
    repeated: bool = False

    @property
    def ids(self) -> list[int]:
        """The text."""
        if self.repeated:
            return [(place * place + place // 3) % 3 for place in range(self.length)]
        return [STRIDED_STEP * place + 2 for place in range(self.length)]

    def arguments(self) -> dict[str, Any]:
        """Name the arguments, for a message and for calling again."""
        return {
            "score": WindowScore(lambda token, before: nats_of_token(token)),
            "ids": torch.tensor(self.ids),
            "max_length": self.max_length,
            "stride": self.stride,
        }

    def smaller(self) -> Iterator["StridedCase"]:
        """Shorter texts, then shorter windows, then shorter strides."""
        for name in ("length", "max_length", "stride"):
            size = getattr(self, name)
            for less in (size // 2, size - 1):
                case = replace(self, **{name: less})
                if case.length >= 2 and 1 <= case.stride < case.max_length and less < size:
                    yield case

    def least_context(self, place: int) -> int:
        """How many tokens before it a token must have been shown: those that any windows of
        max_length that move on by stride leave it, and all if the whole text fits."""
        if self.length <= self.max_length:
            return place
        return min(place, self.max_length - self.stride)


def nats_of_token(token: int) -> float:
    """Nats that differ from token to token, whatever stands before it."""
    return 0.25 + (token * 0.6180339887498949) % 1.0 * 4


def strided_by_places(case: StridedCase) -> float:
    """The mean over the places, of which windows know nothing."""
    nats = [nats_of_token(token) for token in case.ids[1:]]
    return math.fsum(nats) / len(nats)


def strided_by_windows(case: StridedCase) -> float:
    """The mean by windows, each counting what no earlier one has counted."""
    score = WindowScore(lambda token, before: nats_of_token(token))
    total, done = torch.zeros((), dtype=torch.float64), 1
    while done < case.length:
        end = min(max(done + case.stride, case.max_length), case.length)
        begin = max(end - case.max_length, 0)
        total = total + score(case.ids[begin:end])[done - begin - 1 :].sum()
        done = end
    return float(total) / (case.length - 1)
