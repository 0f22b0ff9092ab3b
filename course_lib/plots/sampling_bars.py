"""The picture of sampling: what each policy leaves of one distribution."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_lib.plots.card import PALETTE, card_style, new_card, settled, wrap_label
from course_lib.plots.checks import check_labels, check_words, finite_array
from course_lib.text import written_share


def _checked_distributions(distributions: Sequence[Sequence[float]]) -> np.ndarray:
    rows = finite_array("distributions", distributions, 2)
    for index, row in enumerate(rows):
        if (row < 0).any() or abs(row.sum() - 1) > 1e-6:
            raise ValueError(
                f"distributions[{index}] must be probabilities that sum to 1; got {row.tolist()}, "
                f"sum {row.sum():g}"
            )
    if rows.shape[1] > 16:
        raise ValueError(f"{rows.shape[1]} tokens are too many for labelled bars; pass at most 16")
    return rows


def _draw_distribution(panel: Axes, probs: np.ndarray) -> None:
    ids, kept = np.arange(len(probs)), np.flatnonzero(probs)
    panel.bar(kept, probs[kept], width=0.74, color=PALETTE["blue"], ec=PALETTE["ink"], lw=0.8)
    for token, prob in zip(ids, probs, strict=True):
        words = written_share(prob)
        if prob == 0:
            panel.plot(token, 0.025, "x", color=PALETTE["muted"], ms=8, mew=1.8, clip_on=False)
        panel.text(token, prob + (0.02 if prob else 0.06), words, ha="center", va="bottom", size=10)
    panel.set_xlim(-0.6, len(probs) - 0.4)
    panel.set_xticks(ids, [str(token) for token in ids])
    panel.tick_params(length=0)
    panel.grid(False, axis="x")
    panel.spines["left"].set_visible(False)


def draw_sampling(
    distributions: Sequence[Sequence[float]],
    *,
    panel_titles: Sequence[str],
    x_label: str,
    y_label: str,
) -> Figure:
    """Draw distributions over the same tokens as bars, side by side, on one scale.

    The probability is written on every bar; a token with probability exactly 0 was removed and
    is crossed out.

    Args:    panel_titles: one a distribution.
    Shapes:  distributions [policies, V], V at most 16.
    Raises:  ValueError for rows that do not sum to 1 or a wrong number of labels.
    """
    rows = _checked_distributions(distributions)
    check_labels("panel_titles", panel_titles, len(rows), "distribution")
    check_words(x_label=x_label, y_label=y_label)
    across = min(len(rows), max(1, int(6.7 / (0.37 * rows.shape[1] + 0.15))))
    down = -(-len(rows) // across)
    with card_style():
        figure, _ = new_card(7.5, 2.6 * down + 0.5)
        panels = figure.subplots(down, across, sharey=True, squeeze=False).ravel()
        for panel, probs, title in zip(panels, rows, panel_titles, strict=False):
            _draw_distribution(panel, probs)
            panel.set_title(wrap_label(title, 6.5 / across - 0.2))
        for unused in panels[len(rows) :]:
            unused.set_visible(False)
        panels[0].set_ylim(0, min(1.12, rows.max() + 0.12))
        figure.supxlabel(x_label, fontsize=10.5)
        figure.supylabel(y_label, fontsize=10.5)
        return settled(figure)
