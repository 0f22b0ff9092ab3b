"""What somebody has worked in is not written over; what was only opened, or is old, is."""

import json
import subprocess

import pytest

from course_build.base import owned

from .conftest import NAME, SOURCE, prose

NOTEBOOK = f"notebooks/en/{NAME}.ipynb"


@pytest.fixture
def built(repo):
    """A course that was built, and whose source has changed since."""
    repo.build(prose("p"))
    repo.write(SOURCE, repo.read(SOURCE).replace("seed = 18", "seed = 19"))
    return repo


def rewrite(repo, change):
    """Save the notebook again after a change, as an editor does."""
    notebook = repo.notebook()
    change(notebook)
    repo.write(NOTEBOOK, json.dumps(notebook, indent=3))
    return repo.read(NOTEBOOK)


def solve(notebook):
    notebook["cells"][-1]["source"] = ["my\n", "solution"]


def run_a_cell(notebook):
    cell = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "7"}]


def open_it(notebook):
    notebook["metadata"]["kernelspec"]["display_name"] = "Python 3 (ipykernel)"
    notebook["metadata"]["language_info"]["version"] = "3.99"
    notebook["cells"][0]["metadata"]["collapsed"] = True
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])


@pytest.mark.parametrize("work", [solve, run_a_cell])
def test_a_notebook_that_somebody_worked_in_stops_the_build_before_it_writes(built, work):
    theirs, before = rewrite(built, work), built.outputs()
    for _ in range(2):  # to ask again is not to be told to go on
        told = built.broken()
        assert f"{NOTEBOOK}: [your-work]" in told
        assert "run it again with --overwrite" in told
        assert built.outputs() == before
    ran = built.run("--overwrite")
    assert ran.code == 0
    assert built.text("parameters") == "seed = 19"
    [kept] = (built.root / owned.KEPT).rglob("*.ipynb")
    assert kept.read_text() == theirs
    assert built.run().code == 0


def test_a_second_overwriting_keeps_both_copies(built):
    for answer in ("one", "two"):
        rewrite(built, lambda notebook, text=answer: notebook["cells"][-1].update(source=text))
        assert built.run("--overwrite").code == 0
    kept = [path.read_text() for path in (built.root / owned.KEPT).rglob("*.ipynb")]
    assert len(kept) == 2
    assert "one" in "".join(kept)
    assert "two" in "".join(kept)


def test_a_notebook_that_was_only_opened_or_is_of_an_older_build_is_written_anew(built):
    rewrite(built, open_it)
    assert built.run().code == 0
    assert built.text("parameters") == "seed = 19"
    built.write(SOURCE, built.read(SOURCE).replace("seed = 19", "seed = 20"))
    assert built.run("--lang", "en").code == 0
    assert built.text("parameters") == "seed = 20"
    assert built.text("parameters", "ru") == "seed = 19"
    assert built.run().code == 0  # the other language is still known as the older build's
    assert built.text("parameters", "ru") == "seed = 20"
    assert not (built.root / owned.KEPT).exists()


def test_without_a_record_what_git_holds_is_ours_and_nothing_else(built):
    (built.root / "notebooks" / owned.RECORD).unlink()
    assert "[your-work]" in built.broken()  # nobody can tell: somebody may have worked there
    for arguments in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *arguments], cwd=built.root, check=True)
    assert built.run().code == 0
    assert built.text("parameters") == "seed = 19"


def test_a_damaged_record_is_none(built):
    (built.root / "notebooks" / owned.RECORD).write_text("[")
    assert "[your-work]" in built.broken()


def test_what_a_notebook_says_is_its_cells_and_a_broken_one_says_its_bytes():
    cells = [{"cell_type": "code", "source": ["a\n", "b"], "outputs": [], "metadata": {}}]
    same = [{"cell_type": "code", "source": "a\nb", "execution_count": 3, "id": "x"}]
    other = [{"cell_type": "raw", "source": "a\nb"}]
    one, two, three = (
        owned.fingerprint("n.ipynb", json.dumps({"cells": c, "metadata": {}}).encode())
        for c in (cells, same, other)
    )
    assert one == two != three
    assert owned.fingerprint("n.ipynb", b"{") == owned.fingerprint("n.md", b"{")
    assert owned.fingerprint("n.md", b"a\r\n") == owned.fingerprint("n.md", b"a\n")
