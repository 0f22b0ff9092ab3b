"""The picture of attention weights: one square, the numbers written in it."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from course_lib.plots.card import card_style, new_card, settled, wrap_label
from course_lib.plots.cells import closed_cell, frame_grid, open_cell
from course_lib.plots.checks import check_labels, check_words, finite_array
from course_lib.text import written_number


def _square_of_weights(weights: ArrayLike) -> np.ndarray:
    square = finite_array("weights", weights, 2)
    if square.shape[0] != square.shape[1]:
        raise ValueError(f"weights must be square [T, T]; got shape {square.shape}")
    if len(square) > 12:
        raise ValueError(f"{len(square)} tokens are too many to write numbers in; pass at most 12")
    if (square < 0).any() or (square > 1).any():
        raise ValueError(
            f"weights must lie in [0, 1]; got {square.min():g} to {square.max():g}. "
            "Scores become weights by softmax"
        )
    return square


def draw_attention(
    weights: ArrayLike,
    *,
    title: str,
    x_label: str,
    y_label: str,
    token_labels: Sequence[str],
) -> Figure:
    """Draw who reads whom: a row a query, darker for more weight, hatched where exactly 0.

    Args:    token_labels: one a token, the same for rows (queries) and columns (keys).
    Shapes:  weights [T, T], T at most 12.
    Raises:  ValueError for weights outside [0, 1], not square, or a wrong number of labels.
    """
    square = _square_of_weights(weights)
    check_labels("token_labels", token_labels, len(square), "token")
    check_words(title=title, x_label=x_label, y_label=y_label)
    cell = max(0.5, min(0.85, 5.0 / len(square)))
    digits = 3 if cell >= 0.6 else 2
    side = len(square) * cell
    with card_style():
        figure, _ = new_card(max(5.0, side + 1.5), side + 1.2)
        panel = figure.subplots()
        for (row, column), weight in np.ndenumerate(square):
            patch = open_cell(column, row, 0.6 * weight) if weight else closed_cell(column, row)
            panel.add_patch(patch)
            words = written_number(weight, digits) if weight else "0"
            panel.text(column + 0.5, row + 0.52, words, ha="center", va="center", fontsize=11)
        frame_grid(panel, list(token_labels), list(token_labels))
        panel.set(xlabel=x_label, ylabel=y_label)
        panel.set_title(wrap_label(title, figure.get_figwidth() - 1.0))
        return settled(figure)
