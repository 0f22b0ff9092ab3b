"""Panels that stand still: from picture to picture of a view only what is shown moves."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_lib.plots.card import new_card, text_inches


def still_card(width: float, height: float, legend_labels: Sequence[str] = ()) -> Figure:
    """Return a card whose panels are placed by hand: no layout moves them, and none takes time."""
    figure, _ = new_card(width, height, legend_labels)
    figure.set_layout_engine("none")
    return figure


def panel_at(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Add a panel by its place and size in inches, from the left and the upper edge of the card."""
    across, down = figure.get_size_inches()
    place = (left / across, 1 - (top + height) / down, width / across, height / down)
    return figure.add_axes(place)


def widest(labels: Sequence[str], points: float = 10.0) -> float:
    """Measure the widest of these labels, in inches."""
    return max(text_inches(label, points) for label in labels)
