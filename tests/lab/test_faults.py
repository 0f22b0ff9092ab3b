"""Each fault that a page can have is seen: planted in a small notebook, in the same JupyterLab."""

import json

import pytest

from .desk import LANGUAGES
from .driver import OpenNotebook
from .looks import faults

pytestmark = [pytest.mark.delivery, pytest.mark.xdist_group("lab")]

DOT = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>"
SHOW = "from IPython.display import HTML; HTML('''<img {} src=\"{}\">''')"
PLANTED = {
    "right": SHOW.format('alt="A square of nine pixels."', DOT),
    "silent-figure": SHOW.format("", DOT),
    "foreign-figure": SHOW.format('alt="Квадрат из девяти точек."', DOT),
    "broken-figure": SHOW.format('alt="Nothing."', "data:image/png;base64,AAAA"),
    "flat-figure": SHOW.format('alt="A line." style="height:0"', DOT),
    "warning": "import sys; print('beware', file=sys.stderr)",
    "opened": "opened = 1",
    "error": "1 / 0",
    "after": "never = 1",
}
FOUND = {
    "silent-figure": "a figure without alt text",
    "foreign-figure": "alt text in another language",
    "broken-figure": "a figure is not visible",
    "flat-figure": "a figure is not visible",
    "warning": "stderr: beware",
    "opened": "it must be folded",
    "error": "ZeroDivisionError",
    "after": "it was not run",
}


def code_cell(key, source):
    hidden = {"jupyter": {"source_hidden": True}} if key in ("opened", "right") else {}
    empty = {"execution_count": None, "outputs": []}
    return {"id": key, "cell_type": "code", "metadata": hidden, "source": source, **empty}


@pytest.fixture(scope="module")
def planted(context, lab, desk):
    file = desk / LANGUAGES[0] / "planted.ipynb"
    spec = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    cells = [code_cell(*each) for each in PLANTED.items()]
    document = {"cells": cells, "metadata": spec, "nbformat": 4, "nbformat_minor": 5}
    file.write_text(json.dumps(document), encoding="utf-8")
    address = f"{lab.url}lab/workspaces/planted/tree/{LANGUAGES[0]}/{file.name}?token=t"
    notebook = OpenNotebook(context, address, file)
    notebook.cell("opened").locator(".jp-InputPlaceholder").click()
    notebook.run_all()
    notebook.wait()
    yield notebook
    notebook.close()


def test_a_failed_cell_ends_the_wait(planted):
    assert planted.ended == "a cell failed"


def test_every_planted_fault_is_found_at_its_cell_and_nothing_else(planted):
    # the file was saved with the cell unfolded: what counts is how it was handed out
    saved = json.loads(json.dumps(planted.saved))
    next(cell for cell in saved["cells"] if cell["id"] == "opened")["metadata"] = {
        "jupyter": {"source_hidden": True}
    }
    found = faults(planted.cells, saved, LANGUAGES[0])
    assert {fault.partition(": ")[0] for fault in found} == set(FOUND)
    for key, words in FOUND.items():
        assert any(fault.startswith(f"{key}: ") and words in fault for fault in found), key
