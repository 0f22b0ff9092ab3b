"""The picture of positions: one fast and one slow pair of coordinates, over the positions."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from course_lib.plots.card import SERIES_LOOKS, add_legend, card_style, new_card, settled
from course_lib.plots.checks import check_labels, check_words, finite_array


def _check_column_pairs(pairs: Sequence[tuple[int, int]], columns: int) -> None:
    if not isinstance(pairs, Sequence) or len(pairs) == 0:
        raise ValueError(f"pairs must list at least one pair of columns; got {pairs!r}")
    for pair in pairs:
        if len(pair) != 2 or not all(type(c) is int and 0 <= c < columns for c in pair):
            raise ValueError(
                f"each of pairs must be two column numbers from 0 to {columns - 1}; got {pair!r}"
            )


def draw_positions(
    table: ArrayLike,
    pairs: Sequence[tuple[int, int]],
    *,
    panel_titles: Sequence[str],
    series_labels: Sequence[str],
    x_label: str,
    y_label: str,
) -> Figure:
    """Draw pairs of a positional table's columns as waves, a panel for each pair.

    Args:    pairs: (sine column, cosine column), as ((0, 1), (4, 5)); panel_titles: one a pair;
             series_labels: two, for the sine and the cosine of every panel.
    Shapes:  table [length, d_model].
    Raises:  ValueError for a column that the table lacks or a wrong number of labels.
    """
    values = finite_array("table", table, 2)
    _check_column_pairs(pairs, values.shape[1])
    check_labels("panel_titles", panel_titles, len(pairs), "pair")
    check_labels("series_labels", series_labels, 2, "column of a pair")
    check_words(x_label=x_label, y_label=y_label)
    every = max(1, len(values) // 40)
    with card_style():
        figure, body = new_card(7.5, 0.4 + 1.6 * len(pairs), series_labels)
        panels = body.subplots(len(pairs), 1, sharex=True, squeeze=False)[:, 0]
        for panel, columns, title in zip(panels, pairs, panel_titles, strict=True):
            for column, look, label in zip(columns, SERIES_LOOKS[:2], series_labels, strict=True):
                panel.plot(values[:, column], label=label, markevery=every, markersize=4, **look)
            panel.set(title=title, ylim=(-1.15, 1.15), yticks=(-1, 0, 1))
        panels[-1].set(xlabel=x_label, xlim=(-0.5, len(values) - 0.5))
        body.supylabel(y_label, fontsize=10.5)
        add_legend(figure, *panels[0].get_legend_handles_labels())
        return settled(figure)
