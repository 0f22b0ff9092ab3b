"""Paint a mask, cell by cell, and see what attention makes of it."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from course_lib.live import load_widgets
from course_lib.plots.card import PALETTE, add_legend, card_style, text_inches, write_ticks
from course_lib.plots.cells import closed_cell, frame_grid, open_cell
from course_lib.plots.checks import check_labels, to_array
from course_lib.text import written_number
from course_lib.views.base import Control, Show, View, dial, show_view
from course_lib.views.panels import panel_at, still_card, widest
from course_lib.views.words import check_view_words, written_list


def view_mask_painter(
    weigh: Callable[[list[list[bool]]], ArrayLike],
    presets: Mapping[str, ArrayLike],
    *,
    token_labels: Sequence[str],
    words: Mapping[str, str],
) -> None:
    """Show a mask beside the weights that come of it; live, each cell can be painted.

    An empty row is drawn as what `weigh` makes of it: zeros, or the NaN of a softmax over nothing.

    Args:    weigh: allowed -> weights, as attention with fixed scores computes them
             presets: label -> allowed, the first is shown first; at most 24
             words: mask, own_mask, paint, mask_title, weights_title, x_label, y_label, open,
             hidden, empty, alt (fields mask, rows), row (query, reads), empty_row (query, weight)
    Shapes:  allowed [T, T] bool, True = may read; weights [T, T], T at most 7
    Raises:  ValueError for words that are missing or unknown, or masks of another shape
    """
    labels = list(token_labels)
    view = _painter_view(weigh, presets, labels, words)
    show_view(view, lambda view, show: _painter(view, show, labels, words))


def _painter_view(
    weigh: Callable[[list[list[bool]]], ArrayLike],
    presets: Mapping[str, ArrayLike],
    labels: list[str],
    words: Mapping[str, str],
) -> View:
    _check_painter_words(words)
    masks = _painter_masks(presets, labels)
    options = {label: (label, mask) for label, mask in masks.items()}
    mask = Control("mask", words["mask"], "choice", options, next(iter(options)))
    return View(
        "mask-painter",
        [mask],
        lambda state: draw_painted_mask(
            state["mask"][1], _weighed(weigh, state["mask"][1]), labels, words
        ),
        lambda state: _told_mask(*state["mask"], weigh, labels, words),
    )


def _check_painter_words(words: Mapping[str, str]) -> None:
    plain = "mask own_mask paint mask_title weights_title x_label y_label open hidden empty"
    fields = {"alt": "mask rows", "row": "query reads", "empty_row": "query weight"}
    check_view_words(words, *plain.split(), **fields)


def _painter_masks(
    presets: Mapping[str, ArrayLike], token_labels: Sequence[str]
) -> dict[str, np.ndarray]:
    size = len(token_labels)
    check_labels("token_labels", token_labels, size, "token")
    if not 2 <= size <= 7:
        raise ValueError(f"{size} tokens make no grid to paint; pass 2 to 7 token_labels")
    if not isinstance(presets, Mapping) or not presets:
        raise ValueError(f"presets must map labels to masks; got {presets!r}")
    masks = {label: to_array(f"presets[{label!r}]", mask) for label, mask in presets.items()}
    for label, mask in masks.items():
        if mask.dtype != np.bool_ or mask.shape != (size, size):
            raise ValueError(
                f"presets[{label!r}] must be bool [{size}, {size}], True = may read; "
                f"got {mask.dtype} {list(mask.shape)}"
            )
    return masks


def _weighed(weigh: Callable[[list[list[bool]]], ArrayLike], mask: np.ndarray) -> np.ndarray:
    weights = to_array("weigh(allowed)", weigh(mask.tolist())).astype(np.float64)
    if weights.shape != mask.shape:
        raise ValueError(f"weigh must return {list(mask.shape)}; got {list(weights.shape)}")
    return weights


def draw_painted_mask(
    mask: np.ndarray, weights: np.ndarray, token_labels: list[str], words: Mapping[str, str]
) -> Figure:
    """Draw a mask and the weights under it side by side, empty rows in a frame.

    Shapes:  mask [T, T] bool; weights [T, T], which may hold NaN
    """
    size = len(token_labels)
    left = widest(token_labels) + 0.75
    cell = min(0.62, (7.2 - left - 0.35) / (2 * size))
    under = 0.3 if widest(token_labels) < cell - 0.04 else widest(token_labels) + 0.2
    side = size * cell
    gap = max(0.35, text_inches(words["mask_title"], 11.5, "bold") - side + 0.2)
    legend = [words["open"], words["hidden"], words["empty"]]
    with card_style():
        figure = still_card(7.5, 0.5 + side + under + 0.35, legend)
        left += (7.35 - left - 2 * side - gap) / 2
        panels = [panel_at(figure, left + i * (side + gap), 0.5, side, side) for i in (0, 1)]
        _draw_entries(panels[0], mask, mask, lambda open_: (str(int(open_)), 0.55))
        _draw_entries(panels[1], mask, weights, _weight_look)
        for panel, name in zip(panels, ("mask_title", "weights_title"), strict=True):
            frame_grid(panel, token_labels, token_labels)
            panel.set(title=words[name], xlabel=words["x_label"])
            panel.tick_params(axis="x", rotation=0 if under == 0.3 else 90)
            for row in np.flatnonzero(~mask.any(axis=1)):
                panel.add_patch(_row_frame(int(row), size))
        panels[0].set_ylabel(words["y_label"])
        panels[1].set_yticklabels([])
        add_legend(figure, [open_cell(0, 0, 0.55), closed_cell(0, 0), _row_frame(0, 1)], legend)
        return write_ticks(figure)


def _draw_entries(
    panel: Axes, mask: np.ndarray, entries: np.ndarray, look: Callable[[Any], tuple[str, float]]
) -> None:
    """Draw each entry with the words and the strength of blue that `look` gives it."""
    for (row, column), allowed in np.ndenumerate(mask):
        words, strength = look(entries[row, column])
        patch = open_cell(column, row, strength) if allowed else closed_cell(column, row)
        panel.add_patch(patch)
        panel.text(column + 0.5, row + 0.52, words, ha="center", va="center")


def _weight_look(weight: float) -> tuple[str, float]:
    if math.isnan(weight):
        return "nan", 0.0
    return written_number(weight, 2) if weight else "0", 0.6 * round(float(weight), 2)


def _row_frame(row: int, size: int) -> Rectangle:
    look = {"facecolor": "none", "edgecolor": PALETTE["orange"], "linestyle": "--", "lw": 2.2}
    return Rectangle((0.04, row + 0.04), size - 0.08, 0.92, zorder=3, **look)


def _told_mask(
    label: str,
    mask: np.ndarray,
    weigh: Callable[[list[list[bool]]], ArrayLike],
    token_labels: list[str],
    words: Mapping[str, str],
) -> str:
    rows = []
    for query, allowed, weights in zip(token_labels, mask, _weighed(weigh, mask), strict=True):
        if not allowed.any():
            weight = "NaN" if np.isnan(weights).any() else written_number(weights.max())
            rows.append(words["empty_row"].format(query=query, weight=weight))
            continue
        read = [(token_labels[key], weights[key]) for key in np.flatnonzero(allowed)]
        reads = written_list(f"{key} {written_number(weight, 2)}" for key, weight in read)
        rows.append(words["row"].format(query=query, reads=reads))
    told = ". ".join(row[:1].upper() + row[1:] for row in rows)
    return words["alt"].format(mask=label, rows=f"{told}.")


def _painter(view: View, show: Show, token_labels: list[str], words: Mapping[str, str]) -> list:
    """Make the widgets: a list of masks, and a button for each cell."""
    widgets = load_widgets()
    (mask,) = view.controls
    preset, size = dial(mask), len(token_labels)
    narrow = {"width": "auto", "margin": "1px"}
    buttons = [
        [widgets.ToggleButton(tooltip=f"{query} → {key}", layout=narrow) for key in token_labels]
        for query in token_labels
    ]

    def paint(allowed: np.ndarray) -> None:
        for button, open_ in zip(sum(buttons, []), allowed.ravel().tolist(), strict=True):
            button.unobserve(painted, "value")
            button.value, button.description = open_, str(int(open_))
            button.observe(painted, "value")

    def painted(_: Any) -> None:
        allowed = np.array([[button.value for button in row] for row in buttons])
        paint(allowed)
        preset.value = None
        show({"mask": (words["own_mask"], allowed)})

    def chosen(change: Any) -> None:
        if change.new is not None:
            paint(mask.options[change.new][1])
            show({"mask": mask.options[change.new]})

    paint(mask.options[mask.start][1])
    preset.observe(chosen, "value")
    heads = [widgets.Label(""), *map(widgets.Label, token_labels)]
    rows = [[widgets.Label(query), *row] for query, row in zip(token_labels, buttons, strict=True)]
    columns = f"max-content repeat({size}, minmax(3em, max-content))"
    grid = widgets.GridBox(sum(rows, heads), layout={"grid_template_columns": columns})
    return [preset, widgets.Label(words["paint"]), grid]
