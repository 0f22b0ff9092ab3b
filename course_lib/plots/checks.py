"""What a drawing verb refuses, in words that say what to pass instead."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike


def check_label(name: str, label: str) -> None:
    """Require a finished, non-blank text."""
    if not isinstance(label, str):
        raise TypeError(f"{name} must be a str; got {type(label).__name__}")
    if not label.strip():
        raise ValueError(f"{name} is blank; write the words that the reader is to see")


def check_words(**labels: str) -> None:
    """Require a finished text for every label named."""
    for name, label in labels.items():
        check_label(name, label)


def check_labels(name: str, labels: Sequence[str], count: int, owner: str) -> None:
    """Require exactly one finished label for each of the count things that owner names."""
    if isinstance(labels, str) or not isinstance(labels, Sequence):
        raise TypeError(f"{name} must be a list of str; got {labels!r}")
    if len(labels) != count:
        raise ValueError(
            f"{name} must hold {count} labels, one for each {owner}; got {len(labels)}: "
            f"{list(labels)!r}"
        )
    for index, label in enumerate(labels):
        check_label(f"{name}[{index}]", label)


def to_array(name: str, values: ArrayLike) -> np.ndarray:
    """Read lists, arrays or CPU tensors as numbers; say so when they are not rectangular."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{name} must be a rectangular table of numbers ({error}); "
            "a tensor that tracks gradients or lives on a GPU needs .detach().cpu() first"
        ) from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold numbers; got {type(values).__name__} of {array.dtype}")
    return array


def finite_array(name: str, values: ArrayLike, rank: int) -> np.ndarray:
    """Return float64 values of this rank, with no empty axis, no NaN and no infinity."""
    array = to_array(name, values)
    if array.ndim != rank:
        raise ValueError(f"{name} must have {rank} axes; got {array.ndim}: shape {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name} is empty: shape {array.shape}; there is nothing to draw")
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name}{list(where)} is {array[where]}; every value must be finite")
    return array.astype(np.float64)


def positive_array(name: str, values: ArrayLike) -> np.ndarray:
    """Return a 1-D float64 array for a log axis: zero and below have no place on it."""
    array = finite_array(name, values, 1)
    if (array <= 0).any():
        index = int(np.argmax(array <= 0))
        raise ValueError(
            f"{name}[{index}] is {array[index]:g}; the axis is logarithmic, so every value "
            "must be above 0"
        )
    return array
