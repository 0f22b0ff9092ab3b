"""Texts longer than a model reads, and a score that reveals which windows were asked for."""

import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from course_lib.contracts.engine.call import Call, Calls, Each
from course_lib.contracts.engine.candidate import call_candidate
from course_lib.contracts.engine.read import malformed, number

Nats = Callable[[int, int], float]  # of a token, with so many of the text before it
STEP = 3  # from one token of the text to the next: so a score knows what it was shown

# fmt: off
_NOT_NUMBER = ("the result is {came}, not one finite number of nats | "
               "результат — {came}, а нужно одно конечное число нат")
# fmt: on


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


def nats_of_token(token: int, before: int = 0) -> float:
    """Nats that differ from token to token, whatever stands before it."""
    return 0.25 + (token * 0.6180339887498949) % 1.0 * 4


class WindowScore:
    """score(ids) -> the nats of ids[1:]; it keeps the windows that it was asked for.

    `nats` gives them for a token and the number of the text's own tokens before it in the window.
    """

    def __init__(self, nats: Nats = nats_of_token) -> None:
        self.nats, self.windows = nats, list[list[int]]()

    def __call__(self, ids: Any) -> Tensor:
        window = ids.tolist() if hasattr(ids, "tolist") else [int(token) for token in ids]
        if any(not isinstance(token, int) for token in window):
            raise ValueError("score takes one window of token ids, a sequence of integers")
        self.windows.append(window)
        nats, context = [], 0
        for before, token in itertools.pairwise(window):
            context = context + 1 if token - before == STEP else 0
            nats.append(self.nats(token, context))
        return torch.tensor(nats, dtype=torch.float64).as_subclass(WindowNats)

    def __str__(self) -> str:
        return "score(window) -> nats of window[1:]"


def text_of(length: int, repeated: bool = False) -> Tensor:
    """The ids of a text: all different, or, with `repeated`, from a vocabulary of three."""
    places = torch.arange(length)
    return (places * places + places // 3) % 3 if repeated else STEP * places + 2


def is_repeated(call: Call) -> bool:
    """Whether tokens of the text come again, so that they do not tell their places."""
    return not torch.equal(call.ids, text_of(len(call.ids)))


def _shorter(call: Call) -> Iterator[Call]:
    """Shorter texts, then shorter windows, then shorter strides."""
    length = len(call.ids)
    for less in (length // 2, length * 3 // 4, length * 7 // 8, length - 1):
        yield call.but(ids=text_of(less, is_repeated(call)))
    for name in ("max_length", "stride"):
        size = call.args[name]
        yield from (call.but(**{name: less}) for less in (size // 2, size - 1) if less < size)


def _legal(call: Call) -> bool:
    """Also that the text is one of ours: the score knows no others."""
    texts = [text_of(len(call.ids), repeated) for repeated in (False, True)]
    ours = any(torch.equal(call.ids, text) for text in texts)
    return ours and len(call.ids) >= 2 and 1 <= call.stride < call.max_length


_make = Calls("score, ids, max_length, stride", legal=_legal, shorter=_shorter)


def strided(length: int, max_length: int, stride: int, repeated: bool = False) -> Call:
    """A text of so many tokens, the model's max_length, the stride."""
    return _make(Each(WindowScore), text_of(length, repeated), max_length, stride)


def least_context(call: Call) -> Callable[[int], int]:
    """How many tokens a token must have been shown before it: those that any windows of
    max_length that move on by stride leave it, and all if the whole text fits."""
    fits = len(call.ids) <= call.max_length
    most = len(call.ids) if fits else call.max_length - call.stride
    least = {token: min(place, most) for place, token in enumerate(call.ids.tolist())}
    return lambda token: least.get(token, 0)


def mean_by_places(call: Call) -> Tensor:
    """The mean over the places, of which windows know nothing."""
    nats = [nats_of_token(token) for token in call.ids[1:].tolist()]
    return torch.tensor(math.fsum(nats) / len(nats), dtype=torch.float64)


def mean_by_windows(call: Call) -> Tensor:
    """The mean by windows, each counting what no earlier one has counted."""
    score, ids, done = WindowScore(), call.ids.tolist(), 1
    total = torch.zeros((), dtype=torch.float64)
    while done < len(ids):
        end = min(max(done + call.stride, call.max_length), len(ids))
        begin = max(end - call.max_length, 0)
        total = total + score(ids[begin:end])[done - begin - 1 :].sum()
        done = end
    return total.as_subclass(Tensor) / (len(ids) - 1)


def asked(candidate: Any, call: Call, nats: Nats = nats_of_token) -> tuple[Tensor, WindowScore]:
    """What comes back, one finite number, and the score, which knows its windows."""
    score = WindowScore(nats)
    given = call.but(score=score).fresh()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.tensor(tensor) is not what we are looking for
        got = number(call_candidate(candidate, *given.positional), call)
    if not got.isfinite():
        raise malformed("not a number", _NOT_NUMBER, "float", came=got.item())
    return got, score


def counted_weights(candidate: Any, call: Call) -> list[float]:
    """How often each place counts, by making its token alone dearer (a linear mean tells)."""

    def dearer(chosen: int) -> Tensor:
        return asked(candidate, call, lambda token, _: nats_of_token(token) + (token == chosen))[0]

    usual, ids = asked(candidate, call)[0], call.ids.tolist()
    return [((dearer(chosen) - usual) * (len(ids) - 1)).item() for chosen in ids]
