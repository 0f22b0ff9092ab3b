"""Module 4's first stage, cut from the rendered notebook: what runs with Python alone.

Whatever needs another package is left out, with all that needs it; no cell is written here but the
first, which says so. The cell that carries the library stays whole: it is only what is imported
from it that needs a package or does not.
"""

import ast
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from course_build.base.places import PACKAGE
from course_build.library.imports import imports_in
from course_build.library.payload import needed_files, unpacked
from course_build.notebook.glossary_links import PAGE
from course_build.outputs.executed import joined
from course_build.source.bound import names_bound
from course_build.source.code import parse_code
from course_build.source.header import LIBRARY_KEY
from course_build.teaching.assignment import unlinked
from course_build.teaching.needs import names_read, needed_cells

STEM = "module_04_decoder_only_lm"
NAME = "module_04_try_out"
IMPORTS, END = "imports", "typed-ask"  # where the packages come in; where the next stage begins
OUT = {"setup"}  # installs what is left out
EXERCISE = "ex-"
HIDDEN = "hide-input"
PRESENT = {*sys.stdlib_module_names, "IPython"}
KERNEL = {"name": "python", "display_name": "Python (Pyodide)", "language": "python"}
WORDS = {
    "en": """{title}: try it in the browser

Everything here runs in your browser. Python came with the page: there is nothing to install, and
nothing you type leaves this machine. Run the cells one by one with *Shift+Enter*, or all of them:
*Run → Run All Cells*.

This is the first stage of the module, the definition in loops: tales, the model, its likelihood,
writing on. **Left out:** the figures, the exercises with their contracts, training, and the two
stages that follow. They need NumPy, PyTorch or Matplotlib, and neither PyPI nor npm has NumPy or
PyTorch for this Python (Pyodide {pyodide}). The whole module is the notebook `{path}` of the
course.""",
    "ru": """{title}: первая проба в браузере

Всё здесь выполняется у вас в браузере. Python загрузился вместе со страницей: устанавливать ничего
не нужно, и то, что вы напишете, с вашего компьютера никуда не уходит. Запускайте ячейки по одной
(*Shift+Enter*) или все сразу: *Run → Run All Cells*.

Это первый вариант модели из модуля 4 — определение, записанное циклами: сказки, сама модель, её
правдоподобие, генерация. **Не вошли** рисунки, упражнения с контрактами, обучение и два следующих
варианта. Им нужны NumPy, PyTorch или Matplotlib, а для этого Python (Pyodide {pyodide}) ни в PyPI,
ни в npm нет ни NumPy, ни PyTorch. Весь модуль — в блокноте курса `{path}`.""",
}

Cell = dict[str, Any]


def cut(notebook: Mapping[str, Any], language: str, pyodide: str) -> dict[str, Any]:
    """Keep of a rendered notebook what runs without its packages, up to the second stage."""
    cells = [{**cell, "source": joined(cell["source"])} for cell in notebook["cells"]]
    kept = runnable(cells)
    code = [cell for cell in cells if cell["cell_type"] == "code" and cell["id"] in kept]
    read = set().union(*(names_read(cell["source"]) for cell in code if cell["id"] != IMPORTS))
    title = cells[0]["source"].split("\n")[0]
    path = f"notebooks/{language}/{STEM}.ipynb"
    words = WORDS.get(language) or next(iter(WORDS.values()))
    text = words.format(title=title, pyodide=pyodide, path=path)
    made = [{"cell_type": "markdown", "id": "try-out", "metadata": {}, "source": text}]
    for cell in cells:
        if cell["id"] == IMPORTS or (cell["id"] in kept and from_library(cell)):
            made.append({**cell, "source": imports_of(cell["source"], read)})
        elif cell["id"] in kept:
            is_code = cell["cell_type"] == "code"
            source = cell["source"] if is_code else unlinked(cell["source"], {PAGE, ""})
            made.append({**cell, "source": source})
    return {**notebook, "cells": made, "metadata": {"kernelspec": KERNEL}}


def runnable(cells: Sequence[Cell]) -> set[str]:
    """The keys of the cells to keep: what is shown and can run, what that needs, its prose."""
    code = [(cell["id"], cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    texts = dict(code)
    lacks = lacking(unpacked(texts[LIBRARY_KEY]) if LIBRARY_KEY in texts else {})
    importing = [texts[IMPORTS], *(c["source"] for c in cells if from_library(c))]
    absent = set().union(*(packages(text, lacks) for text in importing))
    end = next(n for n, cell in enumerate(cells) if cell["id"] == END)
    kept: set[str] = {LIBRARY_KEY, IMPORTS} & texts.keys()
    for cell in cells[:end]:
        if is_shown(cell):
            needs = needed_cells(code, [cell["id"]], end=(IMPORTS,)) - {IMPORTS}
            lost = any(names_read(texts[key]) & absent for key in needs)
            if not (lost or needs & OUT or cell["id"].startswith(EXERCISE)):
                kept |= needs
    return kept | set(_prose(cells[:end], kept))


def is_shown(cell: Cell) -> bool:
    """Is this code that stands there for its own sake, neither folded nor an import?"""
    hidden = HIDDEN in cell["metadata"].get("tags", ()) or from_library(cell)
    return cell["cell_type"] == "code" and not hidden


def from_library(cell: Cell) -> bool:
    """Is this a cell that only imports from the library?"""
    if cell["cell_type"] != "code":
        return False
    modules = [getattr(node, "module", None) or "" for node in parse_code(cell["source"]).body]
    return bool(modules) and all(module.split(".")[0] == PACKAGE for module in modules)


def lacking(files: Mapping[str, bytes]) -> Callable[[str], bool]:
    """Say of a module whether it, or a file of the library that it needs, is not there."""
    library = {f"{PACKAGE}/{name}": content for name, content in files.items()}

    def lacks(module: str) -> bool:
        if module.split(".")[0] != PACKAGE:
            return module.split(".")[0] not in PRESENT
        return any(
            imported.package not in (PACKAGE, *PRESENT)
            for path in needed_files(library, [module])
            for node in ast.parse(library[path]).body
            if isinstance(node, ast.Import | ast.ImportFrom)
            for imported in imports_in(node)
        )

    return lacks


def packages(imports: str, lacks: Callable[[str], bool]) -> set[str]:
    """The names that come from packages which a browser's Python does not have."""
    lines = [node for node, source in _sources(imports) if lacks(source)]
    return set().union(*(names_bound(ast.unparse(line)) for line in lines))


def imports_of(imports: str, read: set[str]) -> str:
    """A cell of imports: its title, if it has one, and of its names those that are read."""
    lines = [line for line in imports.split("\n")[:1] if line.startswith("#")]
    for node in _imports(imports):
        node.names = [a for a in node.names if (a.asname or a.name).split(".")[0] in read]
        if node.names:
            lines.append(ast.unparse(node))
    return "\n".join(lines)


def _imports(imports: str) -> list[ast.Import | ast.ImportFrom]:
    body = ast.parse(imports).body
    return [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]


def _sources(imports: str) -> Iterator[tuple[ast.Import | ast.ImportFrom, str]]:
    """Each import with what it asks for: a package may load that only when it is asked."""
    for node in _imports(imports):
        above = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        yield from ((node, above + alias.name) for alias in node.names)


def _prose(cells: Sequence[Cell], kept: set[str]) -> Iterator[str]:
    """Prose speaks of the cells after it where its key ends in -ask, else of those before it."""
    places = [n for n, cell in enumerate(cells) if cell["cell_type"] == "markdown"]
    for before, place, after in zip([-1, *places], places, [*places[1:], len(cells)], strict=False):
        asks = cells[place]["id"].endswith("-ask")
        told = cells[place + 1 : after] if asks else cells[before + 1 : place]
        shown = [c["id"] for c in told if is_shown(c)]
        key = cells[place]["id"]
        if shown and kept.issuperset(shown) and not key.startswith(EXERCISE):
            yield key
