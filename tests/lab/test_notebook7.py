"""Classic Notebook 7: a notebook of each language opens, runs and looks as it must."""

import pytest

from .desk import LANGUAGES, NAMES, open_jupyter, set_out
from .driver import OpenNotebook
from .looks import faults
from .pictures import keep_pictures

pytestmark = [pytest.mark.notebooks, pytest.mark.xdist_group("lab")]


def chosen(place, language):
    """Another module in each language."""
    names = [name for code, name in NAMES if code == language]
    return language, names[place % len(names)]


CHOSEN = [chosen(*each) for each in enumerate(LANGUAGES)]


@pytest.fixture(scope="module")
def classic(context, tmp_path_factory):
    """A notebook of each language, open in Notebook 7, all its cells run."""
    folder = tmp_path_factory.mktemp("classic")
    set_out(folder / "course")
    with open_jupyter("notebook", folder / "course", folder) as server:
        opened = {}
        for language, name in CHOSEN:
            file = folder / "course" / language / f"{name}.ipynb"
            address = f"{server.url}notebooks/{language}/{file.name}?token=t"
            opened[language, name] = OpenNotebook(context, address, file)
            opened[language, name].run_all()
        for notebook in opened.values():
            notebook.wait()
        yield opened
        for notebook in opened.values():
            notebook.close()


@pytest.mark.parametrize(("language", "name"), CHOSEN)
def test_all_cells_run_and_the_page_is_as_it_must_be(classic, language, name):
    notebook = classic[language, name]
    found = faults(notebook.cells, notebook.saved, language)
    assert notebook.ended == "all cells ran", found
    assert found == []
    keep_pictures(notebook, {"classic": notebook.cells[0]["key"]})
