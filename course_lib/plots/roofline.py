"""The picture of the roofline: how fast work of an intensity can be, and where each step lands."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

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
from course_lib.plots.checks import check_label, check_labels, check_words, positive_array


def _named_points(
    points: Mapping[str, Sequence[tuple[str, float, float]]],
) -> dict[str, tuple[list[str], np.ndarray, np.ndarray]]:
    if not isinstance(points, Mapping) or not 1 <= len(points) <= 2:
        raise ValueError(f"points must map one or two labels to points; got {points!r}")
    checked = {}
    for label, each in points.items():
        check_label("a label of points", label)
        if not each or any(len(point) != 3 for point in each):
            raise ValueError(f"points[{label!r}] must hold (name, intensity, rate) each")
        names, intensities, rates = zip(*each, strict=True)
        check_labels(f"names of points[{label!r}]", names, len(each), "point")
        checked[label] = (
            list(names),
            positive_array(f"intensities of points[{label!r}]", intensities),
            positive_array(f"rates of points[{label!r}]", rates),
        )
    return checked


def draw_roof(panel: Axes, bandwidth: float, peak: float, left: float, right: float) -> Line2D:
    """Draw the roof of a machine, and a dotted line at its balance."""
    balance = peak / bandwidth
    corners = [left, balance, right], [left * bandwidth, peak, peak]
    (roof,) = panel.loglog(*corners, color=PALETTE["ink"], lw=2.2, solid_joinstyle="miter")
    panel.axvline(balance, color=PALETTE["muted"], lw=1.2, ls=(0, (1, 2)), zorder=1)
    return roof


def _draw_points(
    panel: Axes, names: list[str], intensities: np.ndarray, rates: np.ndarray, turn: int
) -> Line2D:
    look = {**SERIES_LOOKS[turn], "linestyle": "none", "ms": 7, "mew": 1.6}
    (marks,) = panel.plot(intensities, rates, zorder=3, **look)
    below = {"xytext": (6, -6), "ha": "left", "va": "top"}
    above = {"xytext": (-6, 6), "ha": "right", "va": "bottom"}
    free = {"facecolor": PALETTE["card"], "edgecolor": "none", "pad": 0.6}  # of the grid's lines
    for name, x, y in zip(names, intensities, rates, strict=True):
        place = {"textcoords": "offset points", **(above if turn else below)}
        panel.annotate(name, (x, y), fontsize=10, bbox=free, zorder=1.5, **place)
    return marks


def draw_roofline(
    bandwidth: float,
    peak: float,
    points: Mapping[str, Sequence[tuple[str, float, float]]],
    *,
    title: str,
    x_label: str,
    y_label: str,
    legend: Sequence[str],
) -> Figure:
    """Draw a machine's roof, and steps of work under it: what the roof does not allow stays above.

    Args:    points: label -> (name, intensity, rate) of each point, one series or two; names are
             written below the first series and above the second
             bandwidth, peak: rates in the unit of y_label, at intensity 1 and at most
             legend: two texts, what the roof and what the dotted line at the balance mean
    Raises:  ValueError for values that are not above 0, or a wrong number of labels
    """
    positive_array("bandwidth and peak", [bandwidth, peak])
    checked = _named_points(points)
    check_labels("legend", legend, 2, "sign (roof, balance)")
    check_words(title=title, x_label=x_label, y_label=y_label)
    every = np.concatenate([[peak / bandwidth]] + [each[1] for each in checked.values()])
    left, right = every.min() / 2, every.max() * 2
    labels = [*legend, *checked]
    with card_style():
        figure, body = new_card(7.5, 4.0, labels)
        panel = body.subplots()
        handles = [draw_roof(panel, bandwidth, peak, left, right)]
        handles.append(Line2D([], [], color=PALETTE["muted"], lw=1.2, ls=(0, (1, 2))))
        for turn, each in enumerate(checked.values()):
            handles.append(_draw_points(panel, *each, turn))
        rates = np.concatenate([[left * bandwidth, peak], *(each[2] for each in checked.values())])
        panel.set(xlim=(left, right), ylim=(rates.min() / 1.6, rates.max() * 2))
        plain_log_ticks(panel.xaxis)
        plain_log_ticks(panel.yaxis)
        panel.set(xlabel=x_label, ylabel=y_label)
        panel.set_title(wrap_label(title, 6.6))
        add_legend(figure, handles, labels)
        return settled(figure)
