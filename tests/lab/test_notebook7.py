"""Classic Notebook 7: a notebook opens, runs and looks as it must; -m thorough, another too."""

import pytest

from .desk import CHOSEN, open_jupyter, set_out
from .driver import OpenNotebook
from .looks import faults
from .pictures import keep_pictures

pytestmark = [pytest.mark.delivery, pytest.mark.xdist_group("lab")]


EACH = [
    pytest.param(*pair, marks=[] if pair == CHOSEN[-1] else [pytest.mark.thorough])
    for pair in CHOSEN
]


@pytest.fixture(scope="module")
def classic(tmp_path_factory):
    """A server of Notebook 7, and the desk that it is on."""
    folder = tmp_path_factory.mktemp("classic")
    set_out(folder / "course")
    with open_jupyter("notebook", folder / "course", folder) as server:
        yield server, folder / "course"


@pytest.mark.parametrize(("language", "name"), EACH)
def test_all_cells_run_and_the_page_is_as_it_must_be(context, classic, language, name):
    server, course = classic
    file = course / language / f"{name}.ipynb"
    address = f"{server.url}notebooks/{language}/{file.name}?token=t"
    notebook = OpenNotebook(context, address, file)
    try:
        notebook.run_all()
        notebook.wait()
        found = faults(notebook.cells, notebook.saved, language)
        assert notebook.ended == "all cells ran", found
        assert found == []
        keep_pictures(notebook, {"classic": notebook.cells[0]["key"]})
    finally:
        notebook.close()
