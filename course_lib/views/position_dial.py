"""Move a position and the base, and see the waves and what a dot product makes of them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from course_lib.plots.card import PALETTE, SERIES_LOOKS, add_legend, card_style, write_ticks
from course_lib.plots.checks import finite_array
from course_lib.text import written_number
from course_lib.views.base import Control, View, show_view
from course_lib.views.panels import panel_at, still_card
from course_lib.views.words import check_view_words

_HERE_LOOK = {"color": PALETTE["ink"], "lw": 1.6, "ls": (0, (4, 2))}


def view_position_dial(
    table: Callable[[float], ArrayLike],
    *,
    positions: Sequence[int],
    bases: Sequence[float],
    words: Mapping[str, str],
) -> None:
    """Show the sines at one position, and its dot product with every other position.

    Args:    table: base -> the positional table; positions, bases: what the static controls offer,
             the first of each shown first, at most 24 together; live, every position is offered
             words: position, base, waves_title (field position), dot_title (position), x_label,
             wave_label, dot_label, pair (pair), here,
             alt (position, base, own, near, far, distance)
    Shapes:  each table [length, d_model], sines in even columns
    Raises:  ValueError for words that are missing or unknown, or a position outside the table
    """
    show_view(_position_view(table, positions, bases, words))


def _position_view(
    table: Callable[[float], ArrayLike],
    positions: Sequence[int],
    bases: Sequence[float],
    words: Mapping[str, str],
) -> View:
    plain = "position base x_label wave_label dot_label here"
    fields = {"waves_title": "position", "dot_title": "position", "pair": "pair"}
    told = "position base own near far distance"
    check_view_words(words, *plain.split(), **fields, alt=told)
    tables = {base: _wave_table(table(base), base) for base in bases}
    length = min(map(len, tables.values()))
    return View(
        "position-dial",
        _position_controls(words, positions, bases, length),
        lambda state: draw_position_dial(tables[state["base"]], state["position"], words),
        lambda state: _told_position(tables[state["base"]], state, words),
    )


def _wave_table(values: ArrayLike, base: float) -> np.ndarray:
    table = finite_array(f"table({base:g})", values, 2)
    length, width = table.shape
    if length < 3 or width < 6 or width % 2:
        raise ValueError(
            f"table({base:g}) must have at least 3 positions and 3 pairs of columns; "
            f"got shape {table.shape}"
        )
    return table


def _position_controls(
    words: Mapping[str, str], positions: Sequence[int], bases: Sequence[float], length: int
) -> list[Control]:
    for position in positions:
        if type(position) is not int or not 0 <= position < length:
            raise ValueError(f"positions must be from 0 to {length - 1}; got {position!r}")
    places = {written_number(position): position for position in sorted(positions)}
    every = {written_number(position): position for position in range(length)}
    rates = {written_number(base): base for base in sorted(bases)}
    first, base = written_number(positions[0]), written_number(bases[0])
    return [
        Control("position", words["position"], "range", places, first, every),
        Control("base", words["base"], "range", rates, base),
    ]


def draw_position_dial(table: np.ndarray, position: int, words: Mapping[str, str]) -> Figure:
    """Draw three of the sines, and below them how like the position is to each other one.

    Shapes:  table [length, d_model]
    """
    pairs = table.shape[1] // 2
    chosen = (0, pairs // 2, pairs - 1)
    legend = [*(words["pair"].format(pair=pair) for pair in chosen), words["here"]]
    with card_style():
        figure = still_card(7.5, 4.35, legend)
        waves = panel_at(figure, 0.85, 0.45, 6.4, 1.3)
        dots = panel_at(figure, 0.85, 2.35, 6.4, 1.35)
        lines = _draw_sines(waves, table, chosen, position)
        like = table @ table[position]
        dots.plot(like, color=PALETTE["blue"])
        dots.plot([position], [like[position]], "o", ms=8, color=PALETTE["blue"])
        dots.axhline(0, color=PALETTE["muted"], lw=0.8)
        dots.set(ylim=(-0.75 * pairs, 1.15 * pairs), xlabel=words["x_label"])
        dots.set_title(words["dot_title"].format(position=written_number(position)))
        waves.set_title(words["waves_title"].format(position=written_number(position)))
        waves.set(ylim=(-1.25, 1.25), yticks=(-1, 0, 1), ylabel=words["wave_label"])
        dots.set_ylabel(words["dot_label"])
        figure.align_ylabels([waves, dots])
        for panel in (waves, dots):
            panel.axvline(position, zorder=1.5, **_HERE_LOOK)
            panel.set_xlim(-1, len(table))
        add_legend(figure, [*lines, Line2D([], [], **_HERE_LOOK)], legend)
        return write_ticks(figure)


def _draw_sines(
    panel: Axes, table: np.ndarray, pairs: Sequence[int], position: int
) -> list[Line2D]:
    lines = []
    for pair, look in zip(pairs, SERIES_LOOKS, strict=False):
        sine = table[:, 2 * pair]
        (line,) = panel.plot(sine, **look, markevery=[position], ms=7)
        lines.append(line)
    return lines


def _told_position(table: np.ndarray, state: Mapping[str, Any], words: Mapping[str, str]) -> str:
    position = state["position"]
    like = table @ table[position]
    near = position + 1 if position + 1 < len(table) else position - 1
    far = 0 if position >= len(table) / 2 else len(table) - 1
    return words["alt"].format(
        position=written_number(position),
        base=written_number(state["base"]),
        own=written_number(like[position], 2),
        near=written_number(like[near], 2),
        far=written_number(like[far], 2),
        distance=written_number(abs(far - position)),
    )
