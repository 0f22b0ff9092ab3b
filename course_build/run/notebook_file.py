"""Say in one line why a file cannot be run as a notebook, before a kernel is started for it."""

import json
import os
import stat
from pathlib import Path
from typing import Any

NOT_ONE = "the file is not a notebook"


def problem(path: Path) -> str | None:
    """Return why a file cannot be run as a notebook, and None when it can."""
    try:
        data = read_file(path)
    except OSError as error:
        return f"the file cannot be read: {error.strerror or error}"
    try:
        notebook = json.loads(data)
    except (ValueError, RecursionError) as error:
        return f"{NOT_ONE}: {'it is empty' if not data.strip() else error}"
    return _shape(notebook)


def read_file(path: Path) -> bytes:
    """Read a regular file; OSError for a folder, and for a pipe or device that may never end."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("it is a folder, a pipe or a device")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


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
