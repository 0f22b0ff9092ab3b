"""Every notebook, opened in JupyterLab and run from top to bottom as a learner would."""

from urllib.parse import urlsplit

import pytest

from course_build.run.jobs import ROOT

from .desk import LANGUAGES, NAMES, read_notebook
from .looks import faults

pytestmark = [
    pytest.mark.delivery,
    pytest.mark.xdist_group("lab"),
    pytest.mark.parametrize(("language", "name"), NAMES),
]


def test_all_cells_run_nothing_fails_what_is_folded_is_folded_and_figures_are_seen(notebook):
    assert notebook.ended == "all cells ran", faults(
        notebook.cells, notebook.saved, notebook.language
    )
    assert faults(notebook.cells, notebook.saved, notebook.language) == []


def test_there_are_folded_cells_and_figures_to_be_seen(notebook):
    assert sum(cell["placeholder"] for cell in notebook.cells) > 10
    assert sum(bool(output["figures"]) for c in notebook.cells for output in c["outputs"]) > 3


def test_a_notebook_that_was_only_opened_is_saved_as_it_was(notebook, language, name):
    assert notebook.unread == (ROOT / "notebooks" / language / f"{name}.ipynb").read_bytes()


def test_saving_changes_nothing_but_outputs(notebook, language, name):
    def skeleton(document):
        return [(c["id"], c["cell_type"], c["source"], _kept(c)) for c in document["cells"]]

    assert skeleton(notebook.saved) == skeleton(read_notebook(language, name))
    assert language in LANGUAGES


def _kept(cell):
    return {key: value for key, value in cell["metadata"].items() if key != "execution"}


def test_nothing_comes_from_another_host_and_no_script_fails(notebook):
    hosts = {urlsplit(url).hostname for url in notebook.asked if not url.startswith("data:")}
    assert hosts == {"127.0.0.1"}
    assert notebook.said == []
