"""Checks of whole numbers, as in arguments; apart from them because these need no torch."""

import numbers
from typing import Any


def is_integer(value: Any) -> bool:
    """Tell whether `value` is an integer; True and 3.0 are not."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def check_int_at_least(name: str, value: Any, minimum: int) -> None:
    """Require an integer of at least `minimum`."""
    if not is_integer(value):
        raise TypeError(f"{name} must be an integer, got {value!r} ({type(value).__name__})")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}")


def check_positive_int(name: str, value: Any) -> None:
    """Require an integer of at least 1."""
    check_int_at_least(name, value, 1)
