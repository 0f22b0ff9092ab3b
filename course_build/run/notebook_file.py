"""Say in one line why a file cannot be run as a notebook, before a kernel is started for it."""

import json
from pathlib import Path
from typing import Any

from course_lib.checking.regular import read_regular

ADDED = {"injected-parameters", "papermill-error-cell-tag"}  # on cells that papermill puts in
NOT_ONE = "the file is not a notebook"


def problem(path: Path) -> str | None:
    """Return why a file cannot be run as a notebook, and None when it can."""
    try:
        data = read_regular(path)
    except OSError as error:
        return f"the file cannot be read: {error.strerror or error}"
    try:
        notebook = json.loads(data)
    except (ValueError, RecursionError) as error:
        return f"{NOT_ONE}: {'it is empty' if not data.strip() else error}"
    return _shape(notebook)


def _shape(notebook: Any) -> str | None:
    if not isinstance(notebook, dict) or not isinstance(notebook.get("nbformat"), int):
        return f"{NOT_ONE}: it names no nbformat"
    if notebook["nbformat"] != 4:
        return f"the notebook has nbformat {notebook['nbformat']}; only 4 can be run"
    cells, metadata = notebook.get("cells"), notebook.get("metadata")
    if not isinstance(cells, list) or not isinstance(metadata, dict):
        return f"{NOT_ONE}: it needs a list of cells and metadata"
    if not all(map(_is_cell, cells)):
        return f"{NOT_ONE}: a cell lacks its cell_type, source or metadata"
    if not any(cell["cell_type"] == "code" and "".join(cell["source"]).strip() for cell in cells):
        return "the notebook has no code cell, so there is nothing to run"
    for cell in cells:
        if ADDED & set(cell["metadata"].get("tags", [])):
            # it would remove such a cell, or take it for its own, so that it never counts
            return f"a cell has a tag that papermill keeps for itself: {', '.join(sorted(ADDED))}"
    kernel = metadata.get("kernelspec")
    if not isinstance(kernel, dict) or not isinstance(kernel.get("name"), str):
        return "the notebook names no kernel (metadata.kernelspec.name)"
    return None


def _is_cell(cell: Any) -> bool:
    if not isinstance(cell, dict) or not isinstance(cell.get("metadata"), dict):
        return False
    source, tags = cell.get("source"), cell["metadata"].get("tags", [])
    lines = [source] if isinstance(source, str) else source
    return (
        isinstance(cell.get("cell_type"), str)
        and all(isinstance(part, list) for part in (lines, tags))
        and all(isinstance(text, str) for text in [*lines, *tags])
    )
