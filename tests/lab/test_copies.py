"""The working copy of `make lab`: made once; what somebody worked in stays, the rest is renewed."""

import json
import subprocess

import pytest

from course_build.lab.copies import bring_up_to_date

FOLDER = "notebooks/en"


def notebook(*sources, outputs=(), **metadata):
    cells = [
        {"cell_type": "code", "id": f"c{n}", "metadata": {}, "source": text, "outputs": []}
        for n, text in enumerate(sources)
    ]
    cells[0]["outputs"] = list(outputs)
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})


class Desk:
    """A course in a git repository and the reader's copy of it."""

    def __init__(self, root):
        self.root = root
        self.git("init", "-q")
        self.publish(notebook("v1"))

    def git(self, *arguments):
        subprocess.run(["git", *arguments], cwd=self.root, check=True)

    def publish(self, text):
        """Let the course have this notebook, as after git pull."""
        for folder in (FOLDER, "notebooks/ru"):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
            (self.root / folder / "module_03.ipynb").write_text(text)
            (self.root / folder / "welcome.md").write_text("Welcome")
        self.git("add", "notebooks")

    def lab(self):
        return bring_up_to_date(self.root, ["en", "ru"])

    def write(self, text, name="module_03.ipynb"):
        (self.root / "work/en" / name).write_text(text)

    def read(self, name="module_03.ipynb"):
        return (self.root / "work/en" / name).read_text()

    def names(self):
        return sorted(path.name for path in (self.root / "work/en").iterdir())


@pytest.fixture
def desk(tmp_path):
    desk = Desk(tmp_path)
    assert desk.lab() == ["your working copy work/: 4 files made or renewed"]
    assert desk.lab() == []
    return desk


def test_the_copy_has_what_the_course_has_in_every_language(desk):
    assert desk.names() == ["module_03.ipynb", "welcome.md"]
    assert (desk.root / "work/ru/module_03.ipynb").read_text() == notebook("v1")


def test_a_copy_that_was_only_opened_is_renewed(desk):
    desk.write(notebook("v1", language_info={"version": "3"}))
    desk.publish(notebook("v2"))
    assert desk.lab() == ["your working copy work/: 2 files made or renewed"]
    assert desk.read() == notebook("v2")
    assert desk.names() == ["module_03.ipynb", "welcome.md"]


@pytest.mark.parametrize("mine", [notebook("mine"), notebook("v1", outputs=["7"])])
def test_work_stays_and_the_newer_notebook_lies_beside_it(desk, mine):
    desk.write(mine)
    assert desk.lab() == []  # as long as the course is the same, there is nothing to say
    desk.publish(notebook("v2"))
    offered = (
        "work/en/module_03.ipynb is yours and stays; "
        "the course's newer one: work/en/module_03-new.ipynb"
    )
    assert offered in desk.lab()
    assert desk.lab() == []
    desk.publish(notebook("v3"))  # nobody worked in the newer one: it is renewed
    desk.lab()
    assert (desk.read(), desk.read("module_03-new.ipynb")) == (mine, notebook("v3"))
    desk.write(notebook("mine too"), "module_03-new.ipynb")
    desk.publish(notebook("v4"))
    desk.lab()
    assert desk.lab() == []
    assert desk.read() == mine
    assert desk.read("module_03-new.ipynb") == notebook("mine too")
    assert desk.read("module_03-new-2.ipynb") == notebook("v4")


def test_a_copy_that_was_deleted_is_made_anew_and_files_of_ones_own_stay(desk):
    (desk.root / "work/en/module_03.ipynb").unlink()
    desk.write("notes", "notes.md")
    desk.lab()
    assert (desk.read(), desk.read("notes.md")) == (notebook("v1"), "notes")


def test_a_lost_record_costs_nobody_their_work(desk):
    desk.write(notebook("mine"))
    (desk.root / "work/.written.json").unlink()
    desk.publish(notebook("v2"))
    desk.lab()
    assert (desk.read(), desk.read("module_03-new.ipynb")) == (notebook("mine"), notebook("v2"))


def test_work_in_the_folder_of_the_course_comes_along_and_counts_as_work(tmp_path):
    desk = Desk(tmp_path)
    (tmp_path / FOLDER / "module_03.ipynb").write_text(notebook("solved"))
    (tmp_path / FOLDER / "module_03.progress.json").write_text("{}")
    (tmp_path / FOLDER / "own.ipynb").write_text(notebook("own"))
    desk.lab()
    assert (desk.read(), desk.read("own.ipynb")) == (notebook("solved"), notebook("own"))
    assert desk.read("module_03.progress.json") == "{}"
    assert desk.lab() == []
    desk.write(notebook("solved more"))
    assert desk.lab() == []
    desk.publish(notebook("v2"))  # git has put its own back, and a newer one
    desk.lab()
    assert desk.read() == notebook("solved more")
    assert desk.read("module_03-new.ipynb") == notebook("v2")


def test_without_git_nothing_is_taken_for_untouched(tmp_path):
    (tmp_path / FOLDER).mkdir(parents=True)
    (tmp_path / FOLDER / "n.md").write_text("one")
    bring_up_to_date(tmp_path, ["en"])
    (tmp_path / FOLDER / "n.md").write_text("two")
    bring_up_to_date(tmp_path, ["en"])
    assert [path.read_text() for path in sorted((tmp_path / "work/en").glob("n*.md"))] == [
        "two",
        "one",
    ]
