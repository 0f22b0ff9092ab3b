"""The picture of the chain rule: a text as a product of next-token probabilities."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from course_lib.plots.card import PALETTE, card_style, new_card, settled, wrap_label
from course_lib.plots.checks import check_labels, check_words, finite_array
from course_lib.text import written_number

CHAIN_ROW = 0.3  # inches that a token's row is high


def _draw_factors(panel: Axes, terms: np.ndarray) -> None:
    for row, factor in enumerate(np.exp(terms).round(3)):
        panel.barh(row, factor, height=0.66, color=PALETTE["blue"])
        panel.text(1.04, row, written_number(factor, 3), va="center", ha="left", size=10)
    panel.set_xlim(0, 1)
    panel.set_xticks((0, 0.5, 1), ("0", written_number(0.5, 1), "1"))


def _draw_running_sum(panel: Axes, terms: np.ndarray) -> None:
    rows, sums = np.arange(len(terms)), np.cumsum(terms).round(2) + 0.0  # never -0
    panel.plot(sums, rows, "o-", color=PALETTE["orange"], drawstyle="steps-pre", ms=4.5)
    low = min(sums[-1], -1.0)
    for row, total in zip(rows, sums, strict=True):
        words = written_number(total, 2).replace("-", "\u2212")  # a minus as on the axis
        panel.text(0.05 * -low, row, words, va="center", ha="left", size=10)
    panel.set(xlim=(1.06 * low, 0.03 * -low))


def draw_chain(
    log_probs: ArrayLike,
    *,
    token_labels: Sequence[str],
    panel_titles: Sequence[str],
    x_labels: Sequence[str],
    y_label: str,
) -> Figure:
    """Draw a text from top to bottom: each token's probability, and the log-likelihood so far.

    Left a bar for p(token | all tokens above), right the running sum of the logarithms.

    Args:    log_probs: nats, each at most 0; probabilities are drawn to 3 decimals and sums to
             2, so a trained model's last digits leave no trace in the picture
             panel_titles, x_labels: two each, for the factors and for their sum.
    Shapes:  log_probs [T], T at most 32.
    Raises:  ValueError for a wrong number of labels.
    """
    terms = finite_array("log_probs", log_probs, 1)
    check_labels("token_labels", token_labels, len(terms), "token")
    check_labels("panel_titles", panel_titles, 2, "panel (factors, their sum)")
    check_labels("x_labels", x_labels, 2, "panel (factors, their sum)")
    check_words(y_label=y_label)
    with card_style():
        figure, body = new_card(7.5, 1.1 + CHAIN_ROW * len(terms))
        panels = body.subplots(1, 2, sharey=True)
        _draw_factors(panels[0], terms)
        _draw_running_sum(panels[1], terms)
        for panel, title, x_label in zip(panels, panel_titles, x_labels, strict=True):
            panel.set(xlabel=x_label, ylim=(len(terms) - 0.4, -0.6))
            panel.set_title(wrap_label(title, 2.6))
            panel.grid(False, axis="y")
            panel.spines["left"].set_visible(False)
            panel.tick_params(axis="y", length=0)
        panels[0].set_yticks(range(len(terms)), list(token_labels))
        panels[0].set_ylabel(y_label)
        return settled(figure)
