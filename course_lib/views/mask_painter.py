"""Paint a mask, cell by cell, and see what attention makes of it."""

from collections.abc import Callable, Mapping, Sequence

from numpy.typing import ArrayLike


def view_mask_painter(
    weigh: Callable[[list[list[bool]]], ArrayLike],
    presets: Mapping[str, ArrayLike],
    *,
    token_labels: Sequence[str],
    words: Mapping[str, str],
) -> None:
    """Show a mask beside the weights that come of it; live, each cell can be painted.

    An empty row is drawn as what `weigh` makes of it: zeros, or the NaN of a softmax over nothing.

    Args:    weigh: allowed -> weights, as attention with fixed scores computes them
             presets: label -> allowed, the first is shown first; at most 24
             words: mask, own_mask, paint, mask_title, weights_title, x_label, y_label, open,
             hidden, empty, alt (fields mask, rows), row (query, reads), empty_row (query, weight)
    Shapes:  allowed [T, T] bool, True = may read; weights [T, T], T at most 7
    Raises:  ValueError for words that are missing or unknown, or masks of another shape
    """
    raise NotImplementedError
