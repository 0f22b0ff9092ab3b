"""The light card that every figure of the course is drawn on, and its palette.

The card is opaque, so a figure reads the same on a light and on a dark page; what colour says,
a line style, a marker, a hatch or a number says too.
"""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache

import matplotlib.style
from matplotlib.axis import Axis
from matplotlib.figure import Figure, FigureBase
from matplotlib.font_manager import FontProperties
from matplotlib.patches import FancyBboxPatch
from matplotlib.textpath import TextPath
from matplotlib.ticker import LogLocator, NullLocator, ScalarFormatter

from course_lib.text import written_digits

# Measured in tests/test_palette.py: each series has a contrast of at least 3 to the card, words
# at least 4.5, and in greyscale each series is a step away from every other.
PALETTE = {
    "blue": "#446A99",
    "green": "#64834F",
    "orange": "#C97A5E",
    "violet": "#6B3F94",
    "ink": "#2E3440",
    "muted": "#4C566A",
    "border": "#D8DEE9",
    "card": "#FFFFFF",
}

# Points at display size: an SVG point is 4/3 of a CSS pixel, so 7.5 inches are 720 pixels.
CARD_STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": PALETTE["muted"],
    "axes.grid": True,
    "axes.labelcolor": PALETTE["ink"],
    "axes.labelpad": 6.0,
    "axes.labelsize": 10.5,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": PALETTE["ink"],
    "axes.titlelocation": "left",
    "axes.titlepad": 9.0,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 10.5,
    "grid.color": PALETTE["border"],
    "grid.linewidth": 0.7,
    "hatch.color": PALETTE["border"],
    "hatch.linewidth": 1.0,
    "legend.fontsize": 10.5,
    "legend.frameon": False,
    "legend.handlelength": 2.8,
    "legend.labelcolor": PALETTE["ink"],
    "lines.linewidth": 1.8,
    "lines.markersize": 5.0,
    "text.color": PALETTE["ink"],
    "xtick.color": PALETTE["muted"],
    "xtick.labelcolor": PALETTE["ink"],
    "xtick.labelsize": 10.0,
    "ytick.color": PALETTE["muted"],
    "ytick.labelcolor": PALETTE["ink"],
    "ytick.labelsize": 10.0,
}

# Four looks that differ in dash and marker as well as in colour.
SERIES_LOOKS = [
    {"color": PALETTE["blue"], "linestyle": "-", "marker": "o"},
    {"color": PALETTE["orange"], "linestyle": "--", "marker": "s", "markerfacecolor": "white"},
    {"color": PALETTE["violet"], "linestyle": "-.", "marker": "^"},
    {"color": PALETTE["green"], "linestyle": ":", "marker": "D", "markeredgecolor": "#2E3440"},
]


def card_style() -> AbstractContextManager[None]:
    """Draw in the course's style whatever rcParams the caller has set, and leave those alone."""
    return matplotlib.style.context(["default", CARD_STYLE], after_reset=True)


@cache
def text_inches(words: str, points: float, weight: str = "normal") -> float:
    """Measure how wide these words are, in inches, in the font of the figures."""
    font = FontProperties(family="DejaVu Sans", weight=weight)
    return TextPath((0, 0), words, size=points, prop=font).get_extents().width / 72


def _legend_columns(labels: Sequence[str], width: float) -> int:
    widest = max(text_inches(label, 10.5) for label in labels) + 0.75  # and its line sample
    fitting = max(1, int((width - 0.3) / widest))
    rows = math.ceil(len(labels) / fitting)
    return math.ceil(len(labels) / rows)


def new_card(
    width: float, height: float, legend_labels: Sequence[str] = ()
) -> tuple[Figure, FigureBase]:
    """Return a figure on an opaque rounded card, and its body: the part above the legend.

    No pyplot state: the figure is gone when nobody holds it.

    Args:    width, height: of the body, in inches; legend_labels: what `add_legend` will hold,
             so that the card grows by the rows needed and the body keeps its size.
    """
    rows = (
        math.ceil(len(legend_labels) / _legend_columns(legend_labels, width))
        if legend_labels
        else 0
    )
    strip = 0.25 * rows + 0.1 if rows else 0.0
    figure = Figure(figsize=(width, height + strip), layout="constrained", facecolor="none")
    figure.get_layout_engine().set(w_pad=0.14, h_pad=0.13, wspace=0.02, hspace=0.02)
    _draw_card(figure)
    body = figure.subfigures(2, 1, height_ratios=(height, strip))[0] if rows else figure
    return figure, body


def _draw_card(figure: Figure) -> None:
    width, height = figure.get_size_inches()
    hair = 0.75 / 72  # keeps the whole border line inside the picture
    card = FancyBboxPatch(
        (hair / width, hair / height),
        1 - 2 * hair / width,
        1 - 2 * hair / height,
        boxstyle=f"round,pad=0,rounding_size={0.09 / width}",
        mutation_aspect=width / height,
        transform=figure.transFigure,
        facecolor=PALETTE["card"],
        edgecolor=PALETTE["border"],
        linewidth=1.0,
        zorder=-10,
    )
    card.set_in_layout(False)
    figure.add_artist(card)


def add_legend(figure: Figure, handles: Sequence, labels: Sequence[str]) -> None:
    """Put the legend under the body of a card that was made for these labels."""
    width, height = figure.get_size_inches()
    columns = _legend_columns(labels, width)
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 0.06 / height)}
    figure.legend(handles, labels, ncols=columns, **place).set_in_layout(False)


class WrittenTicks(ScalarFormatter):
    """The numbers of an axis, in the reader's language."""

    def __call__(self, value: float, pos: int | None = None) -> str:
        """Write the number at one place."""
        return written_digits(super().__call__(value, pos))


def write_ticks(figure: Figure) -> Figure:
    """Write the numbers of every axis in the reader's language; finished labels stay."""
    for axis in (axis for panel in figure.axes for axis in (panel.xaxis, panel.yaxis)):
        if type(axis.get_major_formatter()) is ScalarFormatter:
            axis.set_major_formatter(WrittenTicks())
    return figure


def settled(figure: Figure) -> Figure:
    """Fix where everything stands: laid out again, a figure would move by a hair each time."""
    write_ticks(figure).draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def wrap_label(label: str, inches: float, points: float = 11.5) -> str:
    """Break a bold label at its plain spaces, so that no line is wider than this many inches."""
    lines = [""]
    for word in label.split(" "):
        longer = f"{lines[-1]} {word}".lstrip()
        if lines[-1] and text_inches(longer, points, "bold") > inches:
            lines.append(word)
        else:
            lines[-1] = longer
    return "\n".join(lines)


def plain_log_ticks(axis: Axis) -> None:
    """Write 0.1, 0.2, 0.5, 1 on a log axis: the numbers that the prose speaks of."""
    low, high = axis.get_view_interval()
    steps = (1, 2, 5) if high / low < 300 else (1,)
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(lambda value, _: written_digits(f"{value:g}"))
    axis.set_minor_locator(NullLocator())
