"""The social card of a page, and the site's mark: pictures made by code, the same bytes always.

The mark is a causal mask, a staircase: each row reads itself and what came before it. A card, as
networks show beside a link, sets a title next to such a staircase of weights.
"""

import io
from collections.abc import Iterable, Iterator
from itertools import product
from textwrap import TextWrapper

CARD_SIZE = 1200, 630  # pixels, as the networks ask for
INK, PAPER, MUTED = "#0f1b2d", "#f5f7fa", "#a9b8cc"
BLUES = "#2c4a6e", "#5b9bd5", "#9ccbf2"  # from a small weight to a large one
ROWS = 7
TITLE_SPACE = 625, 330  # pixels, left of the staircase
TITLE_WIDTHS = 14, 18, 22, 26  # characters of a line, the fewest that fit
LINE_SPACE, ONE_LINE = (1060, 60), (200,)
WHOLE_WORDS = {"break_long_words": False, "break_on_hyphens": False}
MARK_ROWS = 4


def draw_card(kicker: str, title: str, motto: str) -> bytes:
    """A PNG with a small line above, the title large, and a line below.

    Raises:  ValueError where a text does not fit even when it is set small
    """
    from matplotlib.figure import Figure  # the pages are the only ones who need it

    width, height = CARD_SIZE
    figure = Figure((width / 100, height / 100), dpi=100, facecolor=INK)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    _draw_stairs(axes, left=730, top=120, step=60)
    style = {"va": "top", "ha": "left", "fontfamily": "DejaVu Sans", "linespacing": 1.25}
    above = axes.text(70, 62, kicker, color=BLUES[2], **style)
    large = axes.text(70, 150, title, color=PAPER, fontweight="bold", **style)
    below = axes.text(70, 556, motto, color=MUTED, **style)
    _fit(above, range(21, 11, -1), ONE_LINE, LINE_SPACE)
    _fit(large, range(48, 19, -2), TITLE_WIDTHS, TITLE_SPACE)
    _fit(below, range(19, 11, -1), ONE_LINE, LINE_SPACE)
    file = io.BytesIO()
    told = {"metadata": {"Software": None}, "pil_kwargs": {"optimize": True}}
    figure.savefig(file, format="png", facecolor=INK, **told)
    return file.getvalue()


def _fit(text, sizes: Iterable[int], widths: Iterable[int], space: tuple[int, int]) -> None:
    """Set a text as large as its space allows: points, characters of a line, pixels."""
    words = text.get_text()
    for size, width in product(sizes, widths):
        text.set_fontsize(size)
        text.set_text("\n".join(TextWrapper(width, **WHOLE_WORDS).wrap(words)))
        extent = text.get_window_extent()
        if extent.width <= space[0] and extent.height <= space[1]:
            return
    raise ValueError(f"too long for a card: {words}")


def _draw_stairs(axes, *, left: float, top: float, step: float) -> None:
    """The weights of a staircase as squares; those that may not be read are outlines."""
    from matplotlib.patches import FancyBboxPatch

    for row, column, weight in _weights():
        look = {"facecolor": _shade(weight), "edgecolor": "none"}
        if column > row:
            look = {"facecolor": "none", "edgecolor": BLUES[0], "linewidth": 1.2}
        place = left + column * step, top + row * step
        box = "round,pad=0,rounding_size=8"
        axes.add_patch(FancyBboxPatch(place, step - 8, step - 8, boxstyle=box, **look))


def _weights() -> Iterator[tuple[int, int, float]]:
    """Row, column and weight of each square; a row's weights fall off towards the past."""
    for row in range(ROWS):
        for column in range(ROWS):
            yield row, column, 1.0 / (1 + (row - column) % ROWS) if column <= row else 0.0


def _shade(weight: float) -> tuple[float, float, float]:
    """The colour of a weight between 0 and 1: dark, middle, light."""
    low, middle, high = (tuple(bytes.fromhex(colour[1:])) for colour in BLUES)
    below, above, part = (low, middle, 2 * weight) if weight < 0.5 else (
        middle, high, 2 * weight - 1
    )  # fmt: skip
    red, green, blue = (
        (1 - part) * start / 255 + part * end / 255 for start, end in zip(below, above, strict=True)
    )
    return red, green, blue


def draw_mark() -> bytes:
    """The site's mark as SVG: a staircase of squares, seen on light and dark tabs."""
    squares = "".join(
        f'<rect x="{1 + 8 * column}" y="{1 + 8 * row}" width="7" height="7" rx="1.5" '
        f'fill="{BLUES[2] if row == column else BLUES[1]}"/>'
        for row in range(MARK_ROWS)
        for column in range(row + 1)
    )
    ground = f'<rect x="-3" y="-3" width="39" height="39" rx="7" fill="{INK}"/>'
    space = "http://www.w3.org/2000/svg"
    return f'<svg xmlns="{space}" viewBox="-3 -3 39 39">{ground}{squares}</svg>\n'.encode()
