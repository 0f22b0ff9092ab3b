"""Saving in `make lab`: what opening writes into a notebook is left out, all else is kept."""

import json
import runpy
from types import SimpleNamespace

import pytest
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager
from traitlets.config import Config

from course_build.run.jobs import ROOT

FILE = str(ROOT / "course_build/lab/jupyter_lab_config.py")
OURS = {"name": "python3", "display_name": "Python 3"}
THEIRS = {"name": "python3", "display_name": "Python 3 (ipykernel)"}


@pytest.fixture(scope="module")
def hook():
    """The function that JupyterLab calls before it saves."""
    told = SimpleNamespace(FileContentsManager=SimpleNamespace())
    runpy.run_path(FILE, {"get_config": lambda: told})
    return told.FileContentsManager.pre_save_hook


def saved(hook, folder, content, path="n.ipynb", kind="notebook"):
    """What the notebook is saved as."""
    model = {"type": kind, "content": content}
    hook(model=model, path=path, contents_manager=SimpleNamespace(root_dir=str(folder)))
    return model["content"]


def test_only_what_opening_changes_stays_as_it_was_in_any_folder(hook, tmp_path):
    was = {"kernelspec": OURS, "language_info": {"name": "python"}, "title": "old"}
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/n.ipynb").write_text(json.dumps({"metadata": was, "cells": []}))
    now = {"kernelspec": THEIRS, "language_info": {"name": "python", "version": "3"}, "title": "n"}
    for path in ("deep/n.ipynb", "/deep/n.ipynb"):
        content = {"metadata": dict(now), "cells": [1]}
        assert saved(hook, tmp_path, content, path) == {
            "metadata": {**was, "title": "n"}, "cells": [1],
        }  # fmt: skip


@pytest.mark.parametrize(
    "was",
    [
        None,
        b"{",
        b"\xff",
        b"[]",
        b'{"metadata": {}}',
        b'{"metadata": {"kernelspec": "python3"}}',
        b'{"metadata": {"kernelspec": {"name": "julia"}, "language_info": {"name": "julia"}}}',
    ],
)
def test_another_kernel_a_new_notebook_or_what_is_none_is_saved_as_it_is(hook, tmp_path, was):
    if was is not None:
        (tmp_path / "n.ipynb").write_bytes(was)
    now = {"metadata": {"kernelspec": dict(THEIRS)}, "cells": [1]}
    assert saved(hook, tmp_path, json.loads(json.dumps(now))) == now
    assert saved(hook, tmp_path, {"metadata": {}}) == {"metadata": {}}
    assert saved(hook, tmp_path, "words", "n.md", "file") == "words"


def test_the_server_takes_it_without_a_word(tmp_path):
    config = Config()
    runpy.run_path(FILE, {"get_config": lambda: config})
    manager = AsyncLargeFileManager(config=config, root_dir=str(tmp_path))
    assert manager.pre_save_hook.__name__ == "keep_what_opening_changes"
