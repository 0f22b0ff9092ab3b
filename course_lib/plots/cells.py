"""One square with words in it: what mask and attention pictures are made of."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from course_lib.plots.card import PALETTE


def tint(colour: str, strength: float) -> tuple[float, float, float]:
    """Mix a colour into the card: strength 0 is the card, 1 the colour itself."""
    return tuple(
        strength * part + (1 - strength) * ground
        for part, ground in zip(to_rgb(colour), to_rgb(PALETTE["card"]), strict=True)
    )


def closed_cell(left: float, top: float) -> Rectangle:
    """Return the hatched square of an entry that may not be read."""
    return Rectangle(
        (left, top), 1, 1, facecolor="#F5F7FA", edgecolor=PALETTE["border"], hatch="////", lw=0.8
    )


def open_cell(left: float, top: float, strength: float) -> Rectangle:
    """Return the blue square of an entry that may be read."""
    return Rectangle(
        (left, top),
        1,
        1,
        facecolor=tint(PALETTE["blue"], strength),
        edgecolor=PALETTE["card"],
        lw=1.2,
    )


def frame_grid(panel: Axes, x_names: Sequence[str], y_names: Sequence[str]) -> None:
    """Set up square cells: row 0 on top, a name beside every row and under every column."""
    panel.set(xlim=(0, len(x_names)), ylim=(len(y_names), 0), aspect="equal")
    panel.set_xticks([column + 0.5 for column in range(len(x_names))], x_names)
    panel.set_yticks([row + 0.5 for row in range(len(y_names))], y_names)
    panel.tick_params(length=0, pad=5)
    panel.grid(False)
    for side in ("left", "bottom"):
        panel.spines[side].set_visible(False)
