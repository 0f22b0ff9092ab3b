"""The picture of training: losses over steps, on a logarithmic axis."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from course_lib.plots.card import (
    PALETTE,
    SERIES_LOOKS,
    add_legend,
    card_style,
    new_card,
    plain_log_ticks,
    settled,
)
from course_lib.plots.checks import check_label, check_words, positive_array


def _positive_curves(curves: Mapping[str, Sequence[float]]) -> dict[str, np.ndarray]:
    if not isinstance(curves, Mapping):
        raise TypeError(f"curves must map a label to its losses; got {type(curves).__name__}")
    if not 1 <= len(curves) <= len(SERIES_LOOKS):
        raise ValueError(f"curves must hold 1 to {len(SERIES_LOOKS)} curves; got {len(curves)}")
    for label in curves:
        check_label("a label of curves", label)
    return {label: positive_array(f"curves[{label!r}]", loss) for label, loss in curves.items()}


def _check_level(level: tuple[float, str] | None) -> None:
    if level is None:
        return
    if not isinstance(level, tuple) or len(level) != 2:
        raise TypeError(f"level must be (value, label) or None; got {level!r}")
    positive_array("level", [level[0]])
    check_label("the label of level", level[1])


def draw_loss(
    curves: Mapping[str, Sequence[float]],
    *,
    title: str,
    x_label: str,
    y_label: str,
    level: tuple[float, str] | None = None,
) -> Figure:
    """Draw losses by step, from step 1, with a logarithmic loss axis.

    Args:    curves: label -> losses, at most four; level: (value, label) of a line to compare with.
    Raises:  ValueError for a loss that is not above 0 or not finite.
    """
    losses = _positive_curves(curves)
    _check_level(level)
    check_words(title=title, x_label=x_label, y_label=y_label)
    with card_style():
        labels = [*losses, level[1]] if level else list(losses)
        figure, body = new_card(7.5, 3.4, labels)
        panel = body.subplots()
        for index, (label, loss) in enumerate(losses.items()):
            every = max(1, len(loss) // 8)
            marks = (index * every // len(losses), every)  # staggered: curves may coincide
            steps = range(1, len(loss) + 1)
            panel.semilogy(steps, loss, label=label, markevery=marks, **SERIES_LOOKS[index])
        if level is not None:
            panel.axhline(level[0], color=PALETTE["ink"], lw=1.2, ls=(0, (1, 2)), label=level[1])
        plain_log_ticks(panel.yaxis)
        panel.margins(x=0.02)
        panel.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        panel.set(title=title, xlabel=x_label, ylabel=y_label)
        add_legend(figure, *panel.get_legend_handles_labels())
        return settled(figure)
