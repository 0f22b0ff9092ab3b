"""The picture of scaling: how the variance of q·k grows with d_k, and how √d_k stops it."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from course_lib.plots.card import (
    PALETTE,
    add_legend,
    card_style,
    new_card,
    plain_log_ticks,
    settled,
)
from course_lib.plots.checks import check_labels, check_words, positive_array
from course_lib.text import written_digits


def _measurements(
    d_k: Sequence[int], unscaled: Sequence[float], scaled: Sequence[float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    sizes = positive_array("d_k", d_k)
    grown, flat = positive_array("unscaled", unscaled), positive_array("scaled", scaled)
    for name, values in (("unscaled", grown), ("scaled", flat)):
        if len(values) != len(sizes):
            raise ValueError(
                f"{name} must hold one variance for each d_k: {len(sizes)}; got {len(values)}"
            )
    return sizes, grown, flat


def _draw_series(
    panel: Axes, sizes: np.ndarray, measured: np.ndarray, theory: np.ndarray, scaled: bool
) -> list[Line2D]:
    colour = PALETTE["orange" if scaled else "blue"]
    face = "none" if scaled else colour  # hollow: at d_k = 1 both marks stay visible
    mark, dash = ("s", ":") if scaled else ("o", "--")
    points = panel.loglog(sizes, measured, mark, color=colour, mfc=face, ms=8, mew=1.8)
    line = panel.loglog(sizes, theory, dash, color=PALETTE["muted"], lw=1.4, zorder=1)
    return points + line


def draw_variance(
    d_k: Sequence[int],
    unscaled: Sequence[float],
    scaled: Sequence[float],
    *,
    title: str,
    x_label: str,
    y_label: str,
    series_labels: Sequence[str],
    theory_labels: Sequence[str],
) -> Figure:
    """Draw measured variances as points over the lines that theory predicts, log against log.

    Args:    series_labels, theory_labels: two each, first unscaled (d_k), then scaled (1).
    Raises:  ValueError for values that are not above 0, or lengths that differ.
    """
    sizes, grown, flat = _measurements(d_k, unscaled, scaled)
    check_labels("series_labels", series_labels, 2, "series (unscaled, scaled)")
    check_labels("theory_labels", theory_labels, 2, "line (d_k, 1)")
    check_words(title=title, x_label=x_label, y_label=y_label)
    labels = [series_labels[0], theory_labels[0], series_labels[1], theory_labels[1]]
    with card_style():
        figure, body = new_card(7.5, 3.6, labels)
        panel = body.subplots()
        handles = _draw_series(panel, sizes, grown, sizes, scaled=False)
        handles += _draw_series(panel, sizes, flat, np.ones_like(sizes), scaled=True)
        plain_log_ticks(panel.yaxis)
        panel.xaxis.set_minor_locator(NullLocator())
        panel.set_xticks(sizes, [written_digits(f"{size:g}") for size in sizes])
        panel.set(title=title, xlabel=x_label, ylabel=y_label)
        add_legend(figure, handles, labels)
        return settled(figure)
