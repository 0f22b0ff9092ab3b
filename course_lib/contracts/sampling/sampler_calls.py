"""Calls of a batched sampler, each row many times, with the distribution that it must follow."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_lib.contracts.engine.call import Given
from course_lib.contracts.sampling.chance import ScriptedGenerator, SeededGenerator
from course_lib.contracts.sampling.references import by_library, by_loops

Row = tuple[float, ...]
_FALLING = (2.0, 1.0, 0.0, -1.0)
_MIXED = (0.0, 1.5, 1.0, -0.5)
_CLOSE = (0.5, 1.2, 0.1, 0.9)
_KINDS = ("float64", "float32")


@dataclass(frozen=True)
class Draws:
    """One call of a sampler: some rows of logits, each repeated, and how to sample from them.

    Not a Call of the engine: None is an argument here, and what is cut down are whole rows.
    """

    rows: tuple[Row, ...]
    repeats: int = 1
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 1
    dtype: str = "float64"
    kept: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    def logits(self) -> np.ndarray:
        """A new array: row b is rows[b % len(rows)]."""
        return np.tile(np.array(self.rows, dtype=self.dtype), (self.repeats, 1))

    def generator(self) -> np.random.Generator:
        """A new generator, the same each time."""
        return SeededGenerator(self.seed)

    def settings(self) -> dict[str, Any]:
        """The arguments between the logits and the generator."""
        return {name: getattr(self, name) for name in ("temperature", "top_k", "top_p")}

    def arguments(self) -> dict[str, Any]:
        """Name the arguments, for a message and for calling again."""
        return {"logits": self.logits(), **self.settings(), "rng": self.generator()}

    args = property(arguments)

    def fresh(self, rng: np.random.Generator | None = None) -> Given:
        """The arguments for one call, perhaps with a generator that has drawn already."""
        given = self.arguments()
        return Given(given | {"rng": rng or given["rng"]}, frozenset())

    def smaller(self) -> Iterator["Draws"]:
        """Keep one of the rows, then leave out arguments, then tokens."""
        if len(self.rows) > 1:
            yield from (replace(self, rows=(row,)) for row in self.rows)
            return
        for name in ("top_p", "top_k"):
            if getattr(self, name) is not None:
                yield replace(self, **{name: None})
        if self.temperature not in (0.0, 1.0):
            yield replace(self, temperature=1.0)
        row, least = self.rows[0], max(2, self.top_k or 0)
        for left_out in reversed(range(len(row) if least < len(row) <= 8 else 0)):
            yield replace(self, rows=(row[:left_out] + row[left_out + 1 :],))
        if self.temperature == 0 and self.repeats > 1:
            yield replace(self, repeats=self.repeats // 2)


@dataclass(frozen=True)
class Whole(Draws):
    """A call that is small already, or that fewer rows would make another."""

    def smaller(self) -> Iterator[Draws]:
        """Leave the call as it is."""
        return iter(())


@dataclass(frozen=True)
class Scripted(Whole):
    """A call in which one draw of the generator lies at the end of its range."""

    ones: bool = False

    def generator(self) -> np.random.Generator:
        """Draw 2: the one for row 2, or for token 2 of row 0, which is kept there."""
        return ScriptedGenerator(self.seed, 2, self.ones)


_wide = partial(torch.tensor, dtype=torch.float64)


def rows_by_loops(draws: Draws) -> Tensor:
    """What each of the rows must follow; at temperature 0 all goes to the first of the highest."""
    rows = np.array(draws.rows, dtype=draws.dtype).tolist()  # as the sampler gets them
    if draws.temperature > 0:
        return _wide([by_loops(row, **draws.settings()) for row in rows])
    best = [max(range(len(row)), key=lambda token: (row[token], -token)) for row in rows]
    return torch.eye(len(rows[0]), dtype=torch.float64)[best]


def rows_by_library(draws: Draws) -> Tensor:
    """The same from tensors."""
    rows = np.array(draws.rows, dtype=draws.dtype)
    if draws.temperature > 0:
        return _wide([by_library(row, **draws.settings()) for row in rows.tolist()])
    return torch.nn.functional.one_hot(torch.tensor(rows.argmax(-1)), rows.shape[1])


def calls_by_clause() -> dict[str, list[Draws]]:
    """The calls of each clause: those that count tokens, and those that ask something else."""
    calls = _counted_calls() | _other_calls() | {"draw_ends": _ends()}
    return calls | {"arguments_unchanged": calls["result_form"]}


def _other_calls() -> dict[str, list[Draws]]:
    wide = tuple((float(b), 1.0, 0.5 * b, 2.0, 0.3) for b in range(5))
    flat = tuple(0.1 * token for token in range(6))
    one = ((1.5,),)
    ties = ((1.0, 3.0, 3.0, 2.0), (0.0, 0.0, 0.0, 0.0), (2.0, 1.0, 2.0, 2.0))
    step = 2.0**-20  # seen by float32 too
    near = ((1.0, 1.0 + step, 1.0 - step, 0.0), (2.0, 2.0 - step, 2.0 + step, 2.0))
    huge = ((1e30, -1e30, 1e29), (-1e30, -2e30, -1e29), (0.0, 1e-30, 0.0))
    eight = tuple(0.01 * each for each in (0.1, 0.0, 0.2, -5.0, -5.0, -5.0, -4.0, -4.0))
    cold = partial(Draws, temperature=0.0)
    return {
        # one row, one token, as many rows as tokens, both widths of float, every setting
        "result_form": [
            *(Draws((_FALLING, _MIXED)), Draws((_MIXED,)), Draws(one)),
            *(Draws(one, 3, 0.0), Draws(one, 3, 0.7, 1, 0.5)),
            *(Draws(wide, 1, 0.7, 3, 0.9), Draws(wide, 1, 0.0), Draws(wide, 3)),
            *(Draws(wide, 1, 2.0, 2, dtype="float32"), Draws((_FALLING,), 1, 0.0)),
            *(Draws(wide[:2], 1, 0.5, None, 0.6), Draws(wide, 2, 1.0, 5, 1.0)),
        ],
        "greedy": [
            *(cold((_FALLING, _MIXED, _CLOSE), 4), cold(ties, 12), cold(near, 12)),
            *(cold(ties, 6, top_k=3, top_p=0.9), cold(ties, 6, top_p=0.99)),
            cold((*ties, _MIXED), 1, top_k=2),
            *(cold(huge, 2, dtype=kind) for kind in _KINDS),
        ],
        # enough chance in a call that two calls never agree by chance
        "generator": [Whole((flat,), 40, seed=19), Whole((flat, flat[::-1]), 24, 0.8, 4, 0.95)],
        "independent_rows": [Draws(((0.3, 0.0, 0.2),), 600, seed=16)],
        "independent_pairs": [
            *(Whole(((0.0, 0.1),) * 2, seed=17), Whole((eight,) * 2, 1, 1.0, None, 0.35, 18)),
        ],
        # half of the probability spread over thousands of tokens
        "large_vocabulary": [Draws(((math.log(2999.0), *(0.0,) * 2999),), 48, seed=27)],
    }


def _ends() -> list[Draws]:
    """Draws of exactly 0 and just below 1, in rows whose first and last tokens are removed."""
    first = (0.0, 0.0, 1.0, 0.0, 1.0, 1.0)  # keeps tokens 2, 4 and 5
    inner = (0.0, 1.0, 1.0, 1.0, 0.0, 0.0)
    rows = (first, first, inner, inner, inner, inner)
    calls = [Scripted(rows, 1, 1.0, 3, None, 20, ones=ones) for ones in (False, True)]
    calls += [Scripted(rows, 1, 0.7, None, 0.8, 21, "float32", ones) for ones in (False, True)]
    for kept in (5, 6, 7, 10, 11, 13, 2998):  # sums of equal parts, that end below 1 or above
        row = (-1.0, *(0.0,) * kept, -1.0)
        calls.append(Scripted((row,) * 6, 1, 1.0, kept, None, 22, ones=True))
    uneven = (-9.0, *(math.log(1 + token) for token in range(9)), -9.0)
    return [*calls, Scripted((uneven,) * 6, 1, 1.0, 9, None, 23, ones=True)]


def _counted_calls() -> dict[str, list[Draws]]:
    """The calls of the clauses that count tokens: rows whose likeliest ones are not the same."""
    both, other, three = (_FALLING, _MIXED), (_FALLING, _CLOSE), (3.0, 2.0, 1.0, 0.0)
    ties = ((1.0, 2.0, 2.0, 2.0), (0.0, 0.0, 0.0, 0.0))
    many = tuple(float(token % 3) for token in range(40))  # too many for a sort by insertion
    huge = ((5000.0, 4999.0, 0.0, -5000.0), (-9000.0, -9001.0, -9003.0, -9002.0))
    return {
        "softmax": [
            *(Draws(both, 700), Draws(both, 250, 1.0, 4, 1.0, 2, "float32")),  # filters of nothing
            *(Draws(((2.0, 0.0),), 1500, seed=28), Draws(((3.4, *(0.0,) * 29),), 300, seed=29)),
        ],
        "temperature": [Draws(both, 350, 0.5, seed=3), Draws(both, 500, 2.0, seed=4)],
        "top_k": [
            Draws((_CLOSE, _FALLING[::-1]), 250, 1.0, 2, seed=5),
            Draws((_CLOSE, _MIXED, _FALLING), 60, 1.0, 1, seed=6),
            Draws((_FALLING,), 300, 0.4, 3, seed=7),
        ],
        "top_p": [
            Draws(other, 250, 1.0, None, 0.6, 10),
            Draws((_MIXED, _CLOSE, _FALLING[::-1]), 150, 1.0, None, 0.8, 11),
            Draws(other, 60, 1.0, None, 1e-9, 12),
        ],
        "ties": [
            *(Draws(ties, 120, 1.0, 2, seed=8), Draws((many,), 120, 1.0, 6, seed=30)),
            Draws(ties, 120, 1.0, None, 0.5, 9),
        ],
        "order": [
            Draws((three, _CLOSE), 150, 0.5, None, 0.8, 13),
            Draws((three, _MIXED), 150, 2.5, None, 0.6, 14),
            *(Draws((_CLOSE, _MIXED), 120, 1.0, 3, p, 15) for p in (0.53, 0.75)),
        ],
        "extreme_logits": [
            *(Draws(huge, 120, seed=24, dtype=kind) for kind in _KINDS),
            Draws(huge, 120, 1.0, 3, 0.9, 25),
            Draws(((0.003, 0.002, 0.001, 0.0),), 120, 1e-3, seed=26),
        ],
    }
