"""The picture of the cache: how it outgrows the weights as texts grow longer or more."""

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


def _cache_and_weights(models: Mapping[str, tuple[float, float]]) -> dict[str, np.ndarray]:
    if not isinstance(models, Mapping) or not 1 <= len(models) <= len(SERIES_LOOKS):
        raise ValueError(
            f"models must map 1 to {len(SERIES_LOOKS)} labels to (cache of a token, weights); "
            f"got {models!r}"
        )
    checked = {}
    for label, pair in models.items():
        check_label("a label of models", label)
        checked[label] = positive_array(f"models[{label!r}]", pair)
        if len(checked[label]) != 2:
            raise ValueError(f"models[{label!r}] must be (cache of a token, weights); got {pair!r}")
    return checked


def _draw_model(
    panel: Axes, tokens: np.ndarray, cache: float, weights: float, look: Mapping[str, object]
) -> Line2D:
    colour = {"color": look["color"]}
    every = (len(tokens) // 4, max(1, len(tokens) // 2))  # two marks, away from the edges
    (line,) = panel.loglog(tokens, cache * tokens, markevery=every, **look)
    panel.axhline(weights, lw=1.2, ls=(0, (1, 2)), **colour)
    panel.plot([weights / cache], [weights], "o", ms=11, mfc="none", mew=1.6, mec=PALETTE["ink"])
    return line


def draw_cache_growth(
    tokens: Sequence[float],
    models: Mapping[str, tuple[float, float]],
    *,
    title: str,
    x_label: str,
    y_label: str,
    legend: Sequence[str],
) -> Figure:
    """Draw the memory of the cache against batch × length, and where it reaches the weights'.

    Args:    tokens: batch × length, from the fewest to the most; models: label -> (memory of one
             token's cache, memory of the weights), in the unit of y_label, at most four;
             legend: two texts, what a dotted level and what a circle means
    Raises:  ValueError for values that are not above 0, or a wrong number of labels
    """
    axis = positive_array("tokens", tokens)
    checked = _cache_and_weights(models)
    check_labels("legend", legend, 2, "sign (level, circle)")
    check_words(title=title, x_label=x_label, y_label=y_label)
    labels = [*checked, *legend]
    with card_style():
        figure, body = new_card(7.5, 4.0, labels)
        panel = body.subplots()
        handles = [
            _draw_model(panel, axis, cache, weights, look)
            for (cache, weights), look in zip(checked.values(), SERIES_LOOKS, strict=False)
        ]
        ink = {"color": PALETTE["ink"]}
        handles.append(Line2D([], [], lw=1.2, ls=(0, (1, 2)), **ink))
        handles.append(Line2D([], [], ls="none", marker="o", ms=9, mfc="none", mew=1.6, **ink))
        plain_log_ticks(panel.yaxis)
        plain_log_ticks(panel.xaxis)
        panel.set(xlabel=x_label, ylabel=y_label, xlim=(axis[0], axis[-1]))
        panel.set_title(wrap_label(title, 6.6))
        add_legend(figure, handles, labels)
        return settled(figure)
