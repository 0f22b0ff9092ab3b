"""The picture of masks: who may read whom, a cell for every query and key."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from course_lib.plots.card import add_legend, card_style, new_card, settled, wrap_label
from course_lib.plots.cells import closed_cell, frame_grid, open_cell
from course_lib.plots.checks import check_labels, check_words, to_array

# Inches to the left of the first mask (its label and numbers) and from each mask to the next.
MASK_LEFT = 0.66
MASK_GAP = 0.42


def _boolean_tables(masks: Sequence[ArrayLike]) -> list[np.ndarray]:
    tables = [to_array(f"masks[{index}]", mask) for index, mask in enumerate(masks)]
    if not tables:
        raise ValueError("masks is empty; pass at least one mask")
    for index, table in enumerate(tables):
        if table.dtype != np.bool_:
            raise TypeError(f"masks[{index}] must be bool (True = may read); got {table.dtype}")
        if table.ndim != 2 or table.size == 0:
            raise ValueError(f"masks[{index}] must be [T_q, T_k]; got shape {table.shape}")
    return tables


def _cell_inches(tables: list[np.ndarray]) -> float:
    columns = sum(table.shape[1] for table in tables)
    cell = min(0.42, (7.5 - MASK_LEFT - MASK_GAP * len(tables) + 0.2) / columns)
    if cell < 0.2:
        raise ValueError(
            f"{len(tables)} masks with {columns} columns together leave no room for legible "
            "digits; draw fewer masks or smaller ones"
        )
    return cell


def _mask_axes(
    tables: list[np.ndarray], titles: Sequence[str], x_label: str, legend: Sequence[str]
) -> tuple[Figure, list[Axes]]:
    cell = _cell_inches(tables)
    spans = [table.shape[1] * cell for table in tables]
    wrapped = [wrap_label(title, span + 0.16) for title, span in zip(titles, spans, strict=True)]
    top = 0.24 + 0.19 * max(title.count("\n") + 1 for title in wrapped)
    width = max(4.2, MASK_LEFT + sum(spans) + MASK_GAP * len(tables) - 0.2)
    height = top + max(len(table) for table in tables) * cell + 0.62
    figure, body = new_card(width, height, legend)
    body.text(0.5, 0.1 / height, x_label, ha="center")
    panels, left = [], MASK_LEFT
    for table, span, title in zip(tables, spans, wrapped, strict=True):
        tall = len(table) * cell
        place = (left / width, 1 - (top + tall) / height, span / width, tall / height)
        panels.append(body.add_axes(place, title=title))
        left += span + MASK_GAP
    return figure, panels


def _draw_mask(panel: Axes, table: np.ndarray) -> None:
    for (row, column), allowed in np.ndenumerate(table):
        panel.add_patch(open_cell(column, row, 0.55) if allowed else closed_cell(column, row))
        weight = "bold" if allowed else "normal"
        words = str(int(allowed))
        panel.text(column + 0.5, row + 0.52, words, ha="center", va="center", weight=weight)
    frame_grid(panel, [str(i) for i in range(table.shape[1])], [str(i) for i in range(len(table))])


def draw_masks(
    masks: Sequence[ArrayLike],
    *,
    panel_titles: Sequence[str],
    x_label: str,
    y_label: str,
    legend: Sequence[str],
) -> Figure:
    """Draw boolean masks side by side, every cell labelled 1 (may read) or 0 (may not).

    Args:    panel_titles: one a mask; legend: two texts, what 1 and what 0 mean.
    Shapes:  each mask [T_q, T_k] bool; the sizes may differ.
    Raises:  TypeError for a mask that is not bool; ValueError for a wrong shape or label count.
    """
    tables = _boolean_tables(masks)
    check_labels("panel_titles", panel_titles, len(tables), "mask")
    check_labels("legend", legend, 2, "value of a cell (1, then 0)")
    check_words(x_label=x_label, y_label=y_label)
    with card_style():
        figure, panels = _mask_axes(tables, panel_titles, x_label, legend)
        for panel, table in zip(panels, tables, strict=True):
            _draw_mask(panel, table)
        panels[0].set_ylabel(y_label)
        add_legend(figure, [open_cell(0, 0, 0.55), closed_cell(0, 0)], legend)
        return settled(figure)
