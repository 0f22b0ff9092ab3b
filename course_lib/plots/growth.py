"""The picture of growth: what a text costs against its length, log against log, and the slopes."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from course_lib.plots.card import (
    PALETTE,
    SERIES_LOOKS,
    add_legend,
    card_style,
    new_card,
    plain_log_ticks,
    settled,
    wrap_label,
)
from course_lib.plots.checks import (
    check_label,
    check_labels,
    check_words,
    finite_array,
    positive_array,
)
from course_lib.text import written_digits


def _growing_costs(
    lengths: Sequence[float], costs: Mapping[str, Sequence[float]]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    sizes = positive_array("lengths", lengths)
    if not isinstance(costs, Mapping) or not 1 <= len(costs) <= 2:
        raise ValueError(f"costs must map one or two labels to costs; got {costs!r}")
    checked = {label: positive_array(f"costs[{label!r}]", cost) for label, cost in costs.items()}
    for label, cost in checked.items():
        check_label("a label of costs", label)
        if len(cost) != len(sizes):
            raise ValueError(
                f"costs[{label!r}] must hold one cost for each length: {len(sizes)}; "
                f"got {len(cost)}"
            )
    return sizes, checked


def _one_slope_each(slopes: Sequence[float], series: int) -> np.ndarray:
    exponents = finite_array("slopes", slopes, 1)
    if len(exponents) != series:
        raise ValueError(
            f"slopes must hold {series} numbers, one for each series; got {len(exponents)}"
        )
    return exponents


def _draw_growing(
    panel: Axes, sizes: np.ndarray, cost: np.ndarray, slope: float, turn: int
) -> list[Line2D]:
    look = {**SERIES_LOOKS[turn], "linestyle": "none"}
    points = panel.loglog(sizes, cost, ms=7, mew=1.6, **look)
    # A least-squares line goes through the mean of the points: its slope is all that is missing.
    line = np.exp(np.log(cost).mean()) * (sizes / np.exp(np.log(sizes).mean())) ** slope
    dash = SERIES_LOOKS[turn]["linestyle"]
    return points + panel.loglog(sizes, line, dash, color=PALETTE["muted"], lw=1.4, zorder=1)


def draw_growth(
    lengths: Sequence[float],
    costs: Mapping[str, Sequence[float]],
    *,
    slopes: Sequence[float],
    slope_labels: Sequence[str],
    title: str,
    x_label: str,
    y_label: str,
) -> Figure:
    """Draw costs as points over the straight lines that were fitted to them.

    Args:    costs: label -> one cost a length, one series or two; slopes, slope_labels: of the
             fitted lines, one a series
    Raises:  ValueError for values that are not above 0, or numbers of things that differ
    """
    sizes, checked = _growing_costs(lengths, costs)
    exponents = _one_slope_each(slopes, len(checked))
    check_labels("slope_labels", slope_labels, len(checked), "series")
    check_words(title=title, x_label=x_label, y_label=y_label)
    pairs = zip(checked, slope_labels, strict=True)
    labels = [label for pair in pairs for label in pair]
    with card_style():
        figure, body = new_card(7.5, 3.8, labels)
        panel = body.subplots()
        handles = []
        for turn, (cost, slope) in enumerate(zip(checked.values(), exponents, strict=True)):
            handles += _draw_growing(panel, sizes, cost, slope, turn)
        panel.xaxis.set_minor_locator(NullLocator())
        panel.set_xticks(sizes, [written_digits(f"{size:g}") for size in sizes])
        plain_log_ticks(panel.yaxis)
        panel.set(xlabel=x_label, ylabel=y_label)
        panel.set_title(wrap_label(title, 6.6))
        add_legend(figure, handles, labels)
        return settled(figure)
