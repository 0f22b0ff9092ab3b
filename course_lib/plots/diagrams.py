"""Two diagrams of what the code does: the path through a block, and the shapes of the heads."""

import itertools
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Polygon

from course_lib.plots.card import PALETTE, card_style, new_card, settled, wrap_label
from course_lib.plots.cells import tint
from course_lib.text import say

_WORDS = {
    "stream": "residual stream: x | остаточный поток: x",
    "alone": "each token alone | каждый токен отдельно",
    "between": "between tokens, under the mask | между токенами, под маской",
    "scale": "in a sane range | в разумных пределах",
    "split": "split | на головы",
    "merge": "merge | слияние",
    "weights": "weights | веса",
    "heads": "outputs | выходы",
    "merged": "merged | вместе",
}
Place = tuple[float, float]  # in inches
_CELL = 0.1  # inches: one number of a token
_HEADS = (("blue", ""), ("orange", "///"), ("green", "\\\\\\"))  # a colour and a hatch each


def draw_block() -> Figure:
    """Draw a pre-norm block: the stream passes through, and two sublayers add to it."""
    with card_style():
        figure, panel = _canvas(7.2, 2.25)
        line, boxes = 1.85, 0.85
        _arrow(panel, (0.3, line), (6.95, line), width=2.6, colour="violet")
        panel.text(0.3, line + 0.17, _said("stream") + "  [B, T, d_model]")
        sublayers = ((1.1, 2.75, "attn", "between"), (4.4, 6.05, "ffn", "alone"))
        for number, (out, back, name, does) in enumerate(sublayers, 1):
            _arrow(panel, (out, line), (out, boxes + 0.22))
            _box(panel, out, boxes, f"ln{number}", _said("scale"), True)
            _arrow(panel, (out + 0.5, boxes), (back - 0.5, boxes))
            _box(panel, back, boxes, name, _said(does), False)
            _arrow(panel, (back, boxes + 0.22), (back, line - 0.13))
            panel.text(back, line, "+", ha="center", va="center_baseline", weight="bold",
                       bbox={"boxstyle": "circle,pad=0.12", "fc": PALETTE["card"],
                             "ec": PALETTE["violet"], "lw": 1.6})  # fmt: skip
        return settled(figure)


def draw_head_shapes() -> Figure:
    """Draw what becomes of one text's numbers: cut into heads, mixed over tokens, merged.

    The sizes are those of the lesson: five tokens, width 12, three heads.
    """
    length, d_model, n_heads = 5, 12, len(_HEADS)
    width, tall, gap = d_model // n_heads, length * _CELL, 0.16
    stack = n_heads * tall + (n_heads - 1) * gap
    cut, each_head = "[B, H, T, d_head]", range(n_heads)
    bands = [head for head in each_head for _ in range(width)]
    # What is done before, what comes out, its shape, its tables: of each the looks of its columns.
    stages: tuple[tuple[str, str, str, list[list[Any]]], ...] = (
        ("", "x", "[B, T, d_model]", [["border"] * d_model]),
        ("split", "q, k, v", cut, [[head] * width for head in each_head]),
        ("softmax", "weights", "[B, H, T, T]", [[head] * length for head in each_head]),
        ("· v", "heads", cut, [[head] * width for head in each_head]),
        ("merge", "merged", "[B, T, d_model]", [bands]),
    )
    with card_style():
        figure, panel = _canvas(7.5, stack + 0.85)
        left, middle = 0.4, 0.65 + stack / 2
        for before, name, shape, tables in stages:
            left = _step(panel, left, middle, before) if before else left
            top = middle + (stack if len(tables) > 1 else tall) / 2
            for number, looks in enumerate(tables):
                place = (left, top - number * (tall + gap))
                _table(panel, place, length, looks, name == "weights")
            span = len(tables[0]) * _CELL
            panel.text(left + span / 2, 0.4, _said(name), ha="center", weight="bold")
            panel.text(left + span / 2, 0.18, shape, ha="center", fontsize=9, family="monospace")
            left += span
        return settled(figure)


def _said(name: str) -> str:
    return say(_WORDS[name]) if name in _WORDS else name


def _canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """A card to draw on in inches."""
    figure, _ = new_card(width, height)
    figure.set_layout_engine("none")  # every place is given in inches
    panel = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(0, height))
    panel.set_axis_off()
    return figure, panel


def _arrow(
    panel: Axes, start: Place, end: Place, width: float = 1.4, colour: str = "muted"
) -> None:
    arrow = FancyArrowPatch(
        start, end, arrowstyle="-|>", mutation_scale=12, shrinkA=0, shrinkB=0,
        linewidth=width, color=PALETTE[colour],
    )  # fmt: skip
    panel.add_patch(arrow)


def _box(panel: Axes, x: float, y: float, name: str, does: str, plain: bool) -> None:
    """A sublayer: its name in the code, and under it what it does."""
    panel.add_patch(
        FancyBboxPatch(
            (x - 0.45, y - 0.17), 0.9, 0.34, boxstyle="round,pad=0.05",
            facecolor=PALETTE["card"] if plain else tint(PALETTE["blue"], 0.25),
            edgecolor=PALETTE["muted" if plain else "border"],
        )
    )  # fmt: skip
    panel.text(x, y, name, ha="center", va="center_baseline", family="monospace", weight="bold")
    panel.text(x, y - 0.32, wrap_label(does, 1.4, 9.5), ha="center", va="top", fontsize=9.5)


def _table(panel: Axes, place: Place, rows: int, looks: list[Any], causal: bool) -> None:
    """A row of numbers for each token; each column has the look of its head, or a colour."""
    left, top = place
    tall, start = rows * _CELL, left
    for look, columns in itertools.groupby(looks):
        wide = len(list(columns)) * _CELL
        colour, hatch = (look, "") if isinstance(look, str) else _HEADS[look]
        corners = [(start, top), (start + wide, top), (start + wide, top - tall)]
        if causal:  # a staircase: a token reads itself and what is before it
            steps = [(n + up, n) for n in range(rows) for up in (0, 1)]
            corners = [(start + x * _CELL, top - y * _CELL) for x, y in steps]
            corners += [(start + wide, top - tall)]
        area = Polygon([*corners, (start, top - tall)], linewidth=0.0, hatch=hatch)
        shade = PALETTE[colour] if isinstance(look, str) else tint(PALETTE[colour], 0.75)
        area.set(facecolor=shade, edgecolor=PALETTE["card"])
        panel.add_patch(area)
        start += wide
    colour = PALETTE["border"] if causal else PALETTE["card"]
    panel.hlines([top - n * _CELL for n in range(rows + 1)], left, start, colour, linewidth=0.6)
    across = [left + n * _CELL for n in range(len(looks) + 1)]
    panel.vlines(across, top - tall, top, colour, linewidth=0.6)


def _step(panel: Axes, left: float, middle: float, done: str) -> float:
    """An arrow to what comes next, with what is done; returns where that begins."""
    start, end = left + 0.1, left + 0.72
    _arrow(panel, (start, middle), (end, middle))
    panel.text((start + end) / 2, middle + 0.08, _said(done), ha="center", fontsize=9)
    return end + 0.1
