"""The picture of scaling: how the variance of q·k grows with d_k, and how √d_k stops it."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from course_lib.plots.card import (
    PALETTE,
    SERIES_LOOKS,
    add_legend,
    card_style,
    new_card,
    plain_log_ticks,
)
from course_lib.plots.checks import check_label, check_labels, positive_array


def _same_length(d_k: np.ndarray, **measured: np.ndarray) -> None:
    for name, values in measured.items():
        if len(values) != len(d_k):
            raise ValueError(
                f"{name} must hold one variance for each d_k ({len(d_k)}); got {len(values)}"
            )


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
    sizes = positive_array("d_k", d_k)
    series = [positive_array("unscaled", unscaled), positive_array("scaled", scaled)]
    _same_length(sizes, unscaled=series[0], scaled=series[1])
    check_labels("series_labels", series_labels, 2, "series (unscaled, scaled)")
    check_labels("theory_labels", theory_labels, 2, "line (d_k, 1)")
    for name, label in (("title", title), ("x_label", x_label), ("y_label", y_label)):
        check_label(name, label)
    with card_style():
        figure, body = new_card(7.5, 3.6, [*series_labels, *theory_labels])
        panel = body.subplots()
        theory = [sizes, np.ones_like(sizes)]
        for i, (mark, dash) in enumerate((("o", "--"), ("s", ":"))):
            colour = SERIES_LOOKS[i]["color"]
            face = colour if i == 0 else "none"
            panel.loglog(
                sizes,
                series[i],
                mark,
                color=colour,
                mfc=face,
                ms=8,
                mew=1.8,
                label=series_labels[i],
            )
            panel.loglog(
                sizes,
                theory[i],
                dash,
                color=PALETTE["muted"],
                lw=1.4,
                zorder=1,
                label=theory_labels[i],
            )
        plain_log_ticks(panel.yaxis)
        panel.xaxis.set_minor_locator(NullLocator())
        panel.set_xticks(sizes, [f"{size:g}" for size in sizes])
        panel.set(title=title, xlabel=x_label, ylabel=y_label)
        add_legend(figure, *panel.get_legend_handles_labels())
    return figure
