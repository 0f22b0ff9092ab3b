"""Notebook cells to bytes: nbformat 4.5, ids from keys, no outputs, the same bytes always."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from course_build.base import quick_imports  # noqa: F401  (before nbformat: see there)
from course_build.notebook.compose import NotebookCell

import nbformat  # isort: skip

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def render(cells: Sequence[NotebookCell], name: str) -> bytes:
    """Write a notebook; raises what nbformat says should it not be a valid one."""
    return to_bytes(
        {
            "cells": [_cell(cell) for cell in cells],
            "metadata": {
                "colab": {"name": name, "provenance": [], "toc_visible": True},
                "kernelspec": KERNEL,
                "language_info": {"name": "python"},
            },
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )


def to_bytes(values: Mapping[str, Any]) -> bytes:
    """Write a notebook that is given as values; raises what nbformat says of one that is none."""
    notebook = nbformat.from_dict(values)
    with warnings.catch_warnings():
        # nbformat only warns where it repairs, and it repairs an id with a random one.
        warnings.simplefilter("error")
        nbformat.validate(notebook)
    text: str = nbformat.v4.writes_json(notebook)
    return f"{text}\n".encode()  # nbformat.writes validates again


def _cell(cell: NotebookCell) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    tags = dict.fromkeys([*cell.tags, "hide-input"] if cell.folded else cell.tags)
    if tags:
        metadata["tags"] = list(tags)
    if cell.folded:
        metadata |= {"cellView": "form", "jupyter": {"source_hidden": True}}
    written: dict[str, Any] = {
        "cell_type": cell.kind,
        "id": cell.id,
        "metadata": metadata,
        "source": cell.source,
    }
    if cell.kind == "code":
        written |= {"execution_count": None, "outputs": []}
    return written
