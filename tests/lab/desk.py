"""A learner's desk: the notebooks alone in a folder, and a Jupyter server on it, offline."""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from course_build.run.environment import make_guard
from course_build.run.jobs import ROOT
from course_build.settings import SETTINGS_FILE, parse_settings
from tests.builder.jupyter import Server, serve

LANGUAGES = parse_settings((ROOT / SETTINGS_FILE).read_text(encoding="utf-8")).languages
NAMES = [
    (language, path.stem)
    for language in LANGUAGES
    for path in sorted((ROOT / "notebooks" / language).glob("*.ipynb"))
]

CONFIG = {  # the page tells about itself; nothing is asked of the network
    app: {"expose_app_in_browser": True} for app in ("LabApp", "JupyterNotebookApp")
}
CONFIG["LabApp"] |= {"news_url": None, "extension_manager": "readonly"}
SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    # two savings at once, on a busy machine, make it ask which one is meant
    "@jupyterlab/docmanager-extension:plugin": {"autosave": False},
    # light or dark, as the browser's user prefers
    "@jupyterlab/apputils-extension:themes": {"adaptive-theme": True},
}
WITHOUT = {"disabledExtensions": {"@jupyter/nbgrader": True}}  # a teacher's tool


def read_notebook(language: str, name: str) -> dict:
    """A committed notebook, as JSON."""
    path = ROOT / "notebooks" / language / f"{name}.ipynb"
    return json.loads(path.read_text(encoding="utf-8"))


def set_out(folder: Path) -> None:
    """Copy what a learner has: the folder of each language, and nothing beside it."""
    for language in LANGUAGES:
        unwanted = shutil.ignore_patterns(".*", "*.progress.json")
        shutil.copytree(ROOT / "notebooks" / language, folder / language, ignore=unwanted)


@contextlib.contextmanager
def open_jupyter(module: str, desk: Path, own: Path) -> Iterator[Server]:
    """Start JupyterLab ("jupyterlab") or Notebook 7 ("notebook") on a desk, for nobody else."""
    settings, temporary = own / "settings", own / "tmp"
    (settings / "labconfig").mkdir(parents=True)
    temporary.mkdir()
    for name in ("jupyter_lab_config", "jupyter_notebook_config"):
        (settings / f"{name}.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    for name, content in (("default_setting_overrides", SETTINGS), ("page_config", WITHOUT)):
        (settings / "labconfig" / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(make_guard(own / "guard")),
        "JUPYTER_CONFIG_PATH": str(settings),
        "TMPDIR": str(temporary),
        "OMP_NUM_THREADS": "1",
        "LC_ALL": "C.UTF-8",
    }
    with serve(desk, own / "server", module, environment) as server:
        yield server
