"""The picture of a text: a bar over each of its words, for what it cost or what it weighs."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from course_lib.plots.card import PALETTE, card_style, new_card, settled, wrap_label
from course_lib.plots.checks import check_labels, check_words, finite_array
from course_lib.text import written_number


def _draw_text(panel: Axes, costs: np.ndarray, words: Sequence[str], marked: Sequence[int]) -> None:
    places, costs = np.arange(len(costs)), costs.round(2)
    bars = panel.bar(places, costs, width=0.72, color=PALETTE["blue"])
    for position in marked:
        bars[position].set(facecolor=PALETTE["orange"], edgecolor=PALETTE["ink"], hatch="///")
    for place, cost in zip(places, costs, strict=True):
        if place in marked or cost >= 1:
            weight = "bold" if place in marked else "normal"
            panel.annotate(
                written_number(cost, 1),
                (place, cost),
                (0, 2),
                textcoords="offset points",
                ha="center",
                weight=weight,
                size=10,
            )
    panel.set_xticks(places, list(words), rotation=90)
    panel.tick_params(axis="x", length=0, pad=2)
    panel.grid(False, axis="x")


def draw_over_words(
    heights: Sequence[ArrayLike],
    *,
    token_labels: Sequence[Sequence[str]],
    marked: Sequence[Sequence[int]],
    panel_titles: Sequence[str],
    y_label: str,
) -> Figure:
    """Draw a bar over every word, one text above the other, on one scale.

    A height of at least 1, as a surprise in nats, is written on its bar, and so is a marked one.

    Args:    heights: each at least 0, as -log p is; drawn to 2 decimals, so a trained model's last
             digits leave no trace in the picture
             marked: for each text, the positions to point out, such as a planted error
    Shapes:  heights: 1 to 3 texts [T], T at most 32; their lengths may differ.
    Raises:  ValueError for a wrong number of labels.
    """
    texts = [finite_array(f"heights[{i}]", text, 1) for i, text in enumerate(heights)]
    check_labels("panel_titles", panel_titles, len(texts), "text")
    if len(token_labels) != len(texts):
        raise ValueError(f"token_labels must hold {len(texts)} lists, one for each text")
    for index, (text, words) in enumerate(zip(texts, token_labels, strict=True)):
        check_labels(f"token_labels[{index}]", words, len(text), "token")
    check_words(y_label=y_label)
    with card_style():
        figure, _ = new_card(7.5, 0.2 + 2.7 * len(texts))
        panels = figure.subplots(len(texts), 1, sharey=True, squeeze=False)[:, 0]
        for panel, text, words, places, title in zip(
            panels, texts, token_labels, marked, panel_titles, strict=True
        ):
            _draw_text(panel, text, words, places)
            panel.set_title(wrap_label(title, 6.5))
            panel.set_xlim(-0.7, max(map(len, texts)) - 0.3)
        panels[0].set_ylim(0, 1.18 * max(float(text.max().round(2)) for text in texts) or 1.0)
        figure.supylabel(y_label, fontsize=10.5)
        return settled(figure)
