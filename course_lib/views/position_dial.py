"""Move a position and the base, and see the waves and what a dot product makes of them."""

from collections.abc import Callable, Mapping, Sequence

from numpy.typing import ArrayLike


def view_position_dial(
    table: Callable[[float], ArrayLike],
    *,
    positions: Sequence[int],
    bases: Sequence[float],
    words: Mapping[str, str],
) -> None:
    """Show the sines at one position, and its dot product with every other position.

    Args:    table: base -> the positional table; positions, bases: what the static controls offer,
             the first of each shown first, at most 24 together; live, every position is offered
             words: position, base, waves_title (field position), dot_title (position), x_label,
             wave_label, dot_label, pair (pair), here,
             alt (position, base, own, near, far, distance)
    Shapes:  each table [length, d_model], sines in even columns
    Raises:  ValueError for words that are missing or unknown, or a position outside the table
    """
    raise NotImplementedError
