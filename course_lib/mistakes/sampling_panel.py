"""Sampling distributions, right and wrong, that a contract of the learner is held to."""

import math
from functools import partial
from typing import Any

import numpy as np

from course_lib.contracts.sampling.sampling_mistakes import SAMPLING_MISTAKES
from course_lib.contracts.sampling.steps import mistaken_distribution, refuse_bad_sampling
from course_lib.mistakes.panel import Panel


class _BadSamplingError(ValueError):
    """A refusal under a name of its own: a ValueError nevertheless."""


def _refuse_by_another_name(*settings: Any) -> None:
    try:
        refuse_bad_sampling(*settings)
    except ValueError as error:
        raise _BadSamplingError("no") from error


def _by_logarithms(values: list[float], temperature: float) -> list[float]:
    scaled = [(value - max(values)) / temperature for value in values]
    log_sum = math.log(sum(map(math.exp, scaled)))
    return [math.exp(value - log_sum) for value in scaled]


def _ranked(values: list[float]) -> list[int]:
    return [int(token) for token in np.argsort(-np.array(values), kind="stable")]


def _in_numpy(values: list[float], temperature: float, dtype: Any = np.float64) -> list[Any]:
    parts = np.exp((np.array(values) - max(values)) / temperature, dtype=dtype)
    return list(parts / parts.sum())


SAMPLING_PANEL = Panel(
    {
        "in plain Python | на чистом Python": mistaken_distribution,
        "sorted by NumPy | с сортировкой NumPy": partial(mistaken_distribution, rank=_ranked),
        "by logarithms, which rounds otherwise | через логарифмы, с другим округлением":
            partial(mistaken_distribution, soften=_by_logarithms),
        "with numbers of NumPy | с числами NumPy": partial(mistaken_distribution, soften=_in_numpy),
        "in single precision | с числами одинарной точности":
            partial(mistaken_distribution, soften=partial(_in_numpy, dtype=np.float32)),
        "with a ValueError of its own | с собственным классом от ValueError":
            partial(mistaken_distribution, check=_refuse_by_another_name),
    },
    SAMPLING_MISTAKES,
)  # fmt: skip
score_contract = SAMPLING_PANEL.score
