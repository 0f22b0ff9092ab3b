"""The notebooks' files: the published schema, and what Jupyter, Colab and VS Code read of them."""

import json
import re

import nbformat
import pytest

from course_build.base.chrome import CHROME, say
from course_build.run.jobs import ROOT

FILES = sorted(ROOT.glob("notebooks/*/*.ipynb"))
EDITOR_KEYS = {  # all that a cell's metadata may hold, and who reads it
    "cellView",  # Colab: "form" hides the code behind its title
    "jupyter",  # nbformat: source_hidden
    "tags",  # nbformat: the site, the runner
}
LARGEST = 2_000_000  # bytes; a notebook of this size still opens at once everywhere

pytestmark = pytest.mark.parametrize(
    "path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}"
)


def load(path):
    return json.loads(path.read_text(encoding="utf-8"))


def folded_cells(notebook):
    hidden = [c for c in notebook["cells"] if c["metadata"].get("jupyter", {}).get("source_hidden")]
    forms = [cell for cell in notebook["cells"] if "cellView" in cell["metadata"]]
    assert hidden == forms  # each tool has its own mark; a cell has both or none
    return hidden


def test_a_notebook_fits_the_published_schema(path):
    notebook = load(path)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    nbformat.validate(notebook, relax_add_props=False)


def test_a_notebook_says_which_kernel_and_language_it_needs(path):
    metadata = load(path)["metadata"]
    assert metadata["kernelspec"] == {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    }
    assert metadata["language_info"] == {"name": "python"}  # VS Code colours cells by it


def test_a_notebook_holds_no_metadata_that_nobody_reads(path):
    notebook = load(path)
    assert set(notebook) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert set(notebook["metadata"]) == {"kernelspec", "language_info", "colab"}
    for cell in notebook["cells"]:
        assert set(cell["metadata"]) <= EDITOR_KEYS, cell["id"]
        assert cell["metadata"].get("tags") != [], cell["id"]


def test_colab_finds_its_title_and_a_table_of_contents(path):
    assert load(path)["metadata"]["colab"] == {
        "name": f"{path.stem}.{path.parent.name}.ipynb",
        "provenance": [],
        "toc_visible": True,
    }


def test_folded_cells_are_folded_in_jupyter_in_colab_and_on_the_site(path):
    folded = folded_cells(load(path))
    assert folded
    for cell in folded:
        assert cell["cell_type"] == "code"
        assert cell["metadata"]["jupyter"] == {"source_hidden": True}
        assert cell["metadata"]["cellView"] == "form"
        assert "hide-input" in cell["metadata"]["tags"]


def test_a_folded_cell_says_in_its_first_line_what_is_in_it_for_editors_that_fold_nothing(path):
    """VS Code keeps no fold in the file: there the title stands above code that is open."""
    notebook = load(path)
    titles = {cell["id"]: "".join(cell["source"]).split("\n")[0] for cell in folded_cells(notebook)}
    for key, title in titles.items():
        assert re.fullmatch(r"#@title \S.{2,}", title), key
        bare = {say(code, "machinery") for code in CHROME}
        assert title.removeprefix("#@title ") not in bare, key
    titled = [c["id"] for c in notebook["cells"] if "".join(c["source"]).startswith("#@title")]
    assert titled == list(titles)


def test_nothing_hides_an_output_or_a_cell_as_a_whole(path):
    for cell in load(path)["cells"]:
        assert "outputs_hidden" not in cell["metadata"].get("jupyter", {})
        assert not {"hide-cell", "remove-cell", "hide-output"} & set(
            cell["metadata"].get("tags", [])
        )


def test_ids_are_legal_and_unique(path):
    ids = [cell["id"] for cell in load(path)["cells"]]
    assert len(ids) == len(set(ids))
    assert [key for key in ids if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", key)] == []


def test_a_notebook_is_small_and_ends_with_one_newline(path):
    data = path.read_bytes()
    assert len(data) < LARGEST
    assert data.endswith(b"}\n")
    assert b"\r" not in data
    assert not data.startswith(b"\xef\xbb\xbf")
