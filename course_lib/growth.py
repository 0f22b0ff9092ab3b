"""How fast a cost grows: the slope of a straight line on log-log axes, and how far to trust it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Slope:
    """The exponent k of a fitted power law n^k, and its standard error.

    A small error says that the points lie on a line. It does not say that the line goes on:
    look at the local slopes as well.
    """

    slope: float
    standard_error: float

    def __str__(self) -> str:
        return f"{self.slope:.2f} ± {self.standard_error:.2f}"


def fit_slope(lengths: Sequence[float], values: Sequence[float]) -> Slope:
    """Fit log value = k log n + c by least squares.

        k = Σ x y / Σ x²,   standard error = √(Σ residual² / (m - 2) / Σ x²)      m points

    with x and y the logarithms, each less its mean.

    Raises:  ValueError for fewer than three points, or one that is not above 0: no logarithm
    """
    x, y = _centred_logs(lengths, values, at_least=3)
    slope = (x @ y) / (x @ x)
    residual = y - slope * x
    error = math.sqrt((residual @ residual) / (len(x) - 2) / (x @ x))
    return Slope(float(slope), error)


def local_slopes(lengths: Sequence[float], values: Sequence[float]) -> list[float]:
    """Return the slope between each two neighbouring points: on a power law they are all equal."""
    x, y = _centred_logs(lengths, values, at_least=2)
    return (np.diff(y) / np.diff(x)).tolist()


def _centred_logs(lengths: Any, values: Any, *, at_least: int) -> tuple[np.ndarray, np.ndarray]:
    n, cost = np.asarray(lengths, np.float64), np.asarray(values, np.float64)
    if n.ndim != 1 or n.shape != cost.shape:
        raise ValueError(
            f"lengths and values must be two lists of one length; got shapes {n.shape} and "
            f"{cost.shape}"
        )
    if len(n) < at_least:
        raise ValueError(f"{len(n)} points are too few; pass at least {at_least}")
    for name, numbers in (("lengths", n), ("values", cost)):
        bad = ~(np.isfinite(numbers) & (numbers > 0))
        if bad.any():
            where = int(bad.argmax())
            raise ValueError(f"{name}[{where}] is {numbers[where]:g}; only finite numbers above 0")
    if (np.diff(n) <= 0).any():
        raise ValueError(f"lengths must grow from each to the next; got {n.tolist()}")
    x, y = np.log(n), np.log(cost)
    return x - x.mean(), y - y.mean()
