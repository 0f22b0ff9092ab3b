"""The picture of surprise: what each token of a text cost the model, in nats."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from course_lib.plots.card import PALETTE, card_style, new_card, settled, wrap_label
from course_lib.plots.checks import check_labels, check_words, finite_array
from course_lib.text import written_number


def _checked_texts(surprisals: Sequence[ArrayLike]) -> list[np.ndarray]:
    if not isinstance(surprisals, Sequence) or not 1 <= len(surprisals) <= 3:
        raise ValueError("surprisals must be a list of 1 to 3 texts, each a list of nats")
    texts = [finite_array(f"surprisals[{i}]", text, 1) for i, text in enumerate(surprisals)]
    for index, text in enumerate(texts):
        if (text < 0).any():
            where = int(np.argmax(text < 0))
            raise ValueError(
                f"surprisals[{index}][{where}] is {text[where]:g}; a surprisal is -log p, so it "
                "is at least 0"
            )
        if len(text) > 32:
            raise ValueError(
                f"surprisals[{index}] has {len(text)} tokens, too many for labelled bars; "
                "pass at most 32"
            )
    return texts


def _check_marked(marked: Sequence[Sequence[int]], texts: list[np.ndarray]) -> None:
    if not isinstance(marked, Sequence) or len(marked) != len(texts):
        raise ValueError(f"marked must hold one list of positions for each text; got {marked!r}")
    for index, (positions, text) in enumerate(zip(marked, texts, strict=True)):
        for position in positions:
            if type(position) is not int or not 0 <= position < len(text):
                raise ValueError(
                    f"marked[{index}] must hold positions from 0 to {len(text) - 1}; "
                    f"got {position!r}"
                )


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


def draw_surprisal(
    surprisals: Sequence[ArrayLike],
    *,
    token_labels: Sequence[Sequence[str]],
    marked: Sequence[Sequence[int]],
    panel_titles: Sequence[str],
    y_label: str,
) -> Figure:
    """Draw -log p of every token as bars over the words, one text above the other, on one scale.

    The height is written on the bars of at least 1 nat.

    Args:    surprisals: nats, each at least 0; drawn to 2 decimals, so a trained model's last
             digits leave no trace in the picture
             marked: for each text, the positions to point out, such as a planted error
    Shapes:  surprisals: 1 to 3 texts [T], T at most 32; their lengths may differ.
    Raises:  ValueError for a negative surprisal, a marked position that the text lacks, or a
             wrong number of labels.
    """
    texts = _checked_texts(surprisals)
    _check_marked(marked, texts)
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
