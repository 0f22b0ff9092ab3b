"""Turn temperature, top-k and top-p, and see what is left of one distribution."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from course_lib.plots.card import PALETTE, add_legend, card_style, write_ticks
from course_lib.plots.checks import check_labels, finite_array
from course_lib.text import written_number, written_share
from course_lib.views.base import Control, View, show_view
from course_lib.views.panels import panel_at, still_card, widest
from course_lib.views.words import check_view_words, written_list

# What is offered where each picture is drawn beforehand, and where it is drawn when asked for.
_TEMPERATURES = (0.5, 1.0, 2.0)
_TOP_KS = (None, 3)
_TOP_PS = (None, 0.9, 0.6)
_FINER_TEMPERATURES = tuple(tenths / 10 for tenths in range(1, 31))
_FINER_TOP_PS = tuple(twentieths / 20 for twentieths in range(1, 20))
_BEFORE_LOOK = {"facecolor": "none", "edgecolor": PALETTE["muted"], "lw": 1.2, "ls": (0, (2, 2))}


def view_sampling_dial(
    distribution: Callable[[float, int | None, float | None], Sequence[float]],
    *,
    token_labels: Sequence[str],
    words: Mapping[str, str],
) -> None:
    """Show the probabilities under the settings chosen, over those of the model itself.

    Args:    distribution: (temperature, top_k, top_p) -> probabilities; None switches a filter off
             token_labels: one a token, in the order of the probabilities; at most 12
             words: temperature, top_k, top_p, off, title (fields kept, total), x_label, before,
             after, removed, alt (temperature, top_k, top_p, kept, total, probs)
    Raises:  ValueError for words that are missing or unknown, or probabilities of another length
    """
    show_view(_sampling_view(distribution, list(token_labels), words))


def _sampling_view(
    distribution: Callable[[float, int | None, float | None], Sequence[float]],
    labels: list[str],
    words: Mapping[str, str],
) -> View:
    plain = "temperature top_k top_p off x_label before after removed"
    told = "temperature top_k top_p kept total probs"
    check_view_words(words, *plain.split(), title="kept total", alt=told)
    before = _chances(distribution, labels, 1.0, None, None)

    def left(state: Mapping[str, Any]) -> np.ndarray:
        return _chances(distribution, labels, state["temperature"], state["top_k"], state["top_p"])

    return View(
        "sampling-dial",
        _sampling_controls(words, len(labels)),
        lambda state: draw_sampling_dial(before, left(state), labels, words),
        lambda state: _told_sampling(left(state), state, labels, words),
    )


def _chances(
    distribution: Callable[[float, int | None, float | None], Sequence[float]],
    token_labels: Sequence[str],
    temperature: float,
    top_k: int | None,
    top_p: float | None,
) -> np.ndarray:
    probs = finite_array("the distribution", distribution(temperature, top_k, top_p), 1)
    check_labels("token_labels", token_labels, len(probs), "token")
    if not 2 <= len(probs) <= 12:
        raise ValueError(f"{len(probs)} tokens make no readable bars; pass 2 to 12")
    if (probs < 0).any() or abs(probs.sum() - 1) > 1e-6:
        raise ValueError(f"the distribution must sum to 1; got {probs.tolist()}")
    return probs


def _sampling_controls(words: Mapping[str, str], total: int) -> list[Control]:
    def options(values: Sequence[float | None], digits: int) -> dict[str, float | None]:
        return {
            words["off"] if value is None else written_number(value, digits): value
            for value in values
        }

    top_ks = [k for k in _TOP_KS if k is None or k < total]
    warmth = options(_TEMPERATURES, 1), options(_FINER_TEMPERATURES, 1)
    count = options(top_ks, 0), options([None, *range(total - 1, 0, -1)], 0)
    mass = options(_TOP_PS, 2), options([None, *reversed(_FINER_TOP_PS)], 2)
    middle, off = written_number(1.0, 1), words["off"]
    return [
        Control("temperature", words["temperature"], "range", warmth[0], middle, warmth[1]),
        Control("top_k", words["top_k"], "range", count[0], off, count[1]),
        Control("top_p", words["top_p"], "range", mass[0], off, mass[1]),
    ]


def draw_sampling_dial(
    before: np.ndarray, after: np.ndarray, token_labels: list[str], words: Mapping[str, str]
) -> Figure:
    """Draw one distribution as bars, in dashes what it was, and a cross where nothing is left."""
    left = widest(token_labels) + 0.35
    tall = 0.34 * len(after)
    legend = [words["before"], words["after"], words["removed"]]
    with card_style():
        figure = still_card(7.5, 0.5 + tall + 0.65, legend)
        panel = panel_at(figure, left, 0.5, 7.2 - left, tall)
        for place, (was, share) in enumerate(zip(before, after, strict=True)):
            _draw_chance(panel, place, was, share)
        panel.set(xlim=(0, 1.12), ylim=(len(after) - 0.4, -0.6), xlabel=words["x_label"])
        panel.set_xticks([0, 0.25, 0.5, 0.75, 1])
        panel.set_yticks(range(len(after)), token_labels)
        panel.tick_params(length=0)
        panel.grid(False, axis="y")
        kept = int((after > 0).sum())
        panel.set_title(words["title"].format(kept=kept, total=len(after)))
        signs = [
            Rectangle((0, 0), 1, 1, **_BEFORE_LOOK),
            Rectangle((0, 0), 1, 1, facecolor=PALETTE["blue"]),
            Line2D([], [], color=PALETTE["muted"], marker="x", ms=7, mew=1.8, ls="none"),
        ]
        add_legend(figure, signs, legend)
        return write_ticks(figure)


def _draw_chance(panel: Axes, place: int, was: float, share: float) -> None:
    if share > 0:
        panel.barh(place, share, height=0.66, color=PALETTE["blue"])
    else:
        panel.plot(0.012, place, "x", color=PALETTE["muted"], ms=7, mew=1.8, clip_on=False)
    panel.add_patch(Rectangle((0, place - 0.4), was, 0.8, zorder=3, **_BEFORE_LOOK))
    end = max(was, share) + 0.015
    panel.text(max(end, 0.035), place + 0.02, written_share(share), va="center", ha="left")


def _told_sampling(
    probs: np.ndarray, state: Mapping[str, Any], token_labels: list[str], words: Mapping[str, str]
) -> str:
    off = words["off"]
    told = [
        f"{label} {written_share(prob)}"
        for label, prob in zip(token_labels, probs, strict=True)
        if prob > 0
    ]
    return words["alt"].format(
        temperature=written_number(state["temperature"], 1),
        top_k=off if state["top_k"] is None else written_number(state["top_k"]),
        top_p=off if state["top_p"] is None else written_number(state["top_p"], 2),
        kept=len(told),
        total=len(probs),
        probs=written_list(told) + ".",
    )
