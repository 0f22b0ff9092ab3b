"""The picture of a choice of words: how likely each is to come next, under several policies."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from course_lib.plots.card import PALETTE, card_style, new_card, settled, wrap_label
from course_lib.plots.checks import check_labels, check_words, finite_array
from course_lib.text import written_share


def _draw_shares(panel: Axes, shares: np.ndarray, most: float) -> None:
    places = np.arange(len(shares))
    drawn = shares.round(3)  # a trained model's last digits leave no trace in the picture
    panel.barh(places, drawn, height=0.7, color=PALETTE["blue"])
    for place, share in zip(places, shares, strict=True):
        left = drawn[place] + 0.05 * most
        if share == 0:
            panel.plot(0.06 * most, place, "x", color=PALETTE["muted"], ms=6, mew=1.6)
            left = 0.16 * most
        panel.text(left, place, written_share(share), va="center", ha="left", size=10)
    panel.set(xlim=(0, 1.5 * most), ylim=(len(shares) - 0.4, -0.6), xticks=[])
    panel.tick_params(length=0)
    panel.grid(False)
    panel.spines["bottom"].set_visible(False)


def draw_next_token(
    distributions: ArrayLike,
    *,
    token_labels: Sequence[str],
    panel_titles: Sequence[str],
    x_label: str,
    y_label: str,
) -> Figure:
    """Draw the probability of each word under each policy as bars, policies side by side.

    The probability is written at every bar; a word with probability exactly 0 was removed and is
    crossed out. All panels have one scale.

    Args:    distributions: drawn to 3 decimals; token_labels: the words, from top to bottom
             panel_titles: one a policy.
    Shapes:  distributions [policies, words], at most [4, 20]; a row may leave out unlikely words.
    Raises:  ValueError for a wrong number of labels.
    """
    rows = finite_array("distributions", distributions, 2)
    check_labels("token_labels", token_labels, rows.shape[1], "word")
    check_labels("panel_titles", panel_titles, len(rows), "policy")
    check_words(x_label=x_label, y_label=y_label)
    with card_style():
        figure, _ = new_card(7.5, 1.15 + 0.27 * rows.shape[1])
        panels = figure.subplots(1, len(rows), sharey=True, squeeze=False)[0]
        for panel, shares, title in zip(panels, rows, panel_titles, strict=True):
            _draw_shares(panel, shares, float(rows.max().round(3)) or 1.0)
            panel.set_title(wrap_label(title, 6.2 / len(rows) - 0.1))
        panels[0].set_yticks(range(rows.shape[1]), list(token_labels))
        figure.supxlabel(x_label, fontsize=10.5)
        figure.supylabel(y_label, fontsize=10.5)
        return settled(figure)
