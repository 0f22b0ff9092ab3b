"""A learner's desk: the notebooks alone in a folder, and a Jupyter server on it, offline."""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from course_build.base.settings import SETTINGS_FILE, parse_settings
from course_build.run.environment import make_guard
from course_build.run.jobs import ROOT
from tests.builder.jupyter import Server, serve

LANGUAGES = parse_settings((ROOT / SETTINGS_FILE).read_text(encoding="utf-8")).languages
NAMES = [
    (language, path.stem)
    for language in LANGUAGES
    for path in sorted((ROOT / "notebooks" / language).glob("*.ipynb"))
]
# one language a module, each language once: the others are for -m thorough
CHOSEN = [
    (language, name)
    for language, name in zip(LANGUAGES, sorted({name for _, name in NAMES}), strict=False)
]

SETTINGS = ROOT / "course_build" / "lab"  # what `make lab` gives a learner
EXPOSED = {"expose_app_in_browser": True}  # the page tells about itself
# two savings at once, on a busy machine, make it ask which one is meant
UNSAVED = {"@jupyterlab/docmanager-extension:plugin": {"autosave": False}}


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
    shutil.copytree(SETTINGS, settings)
    temporary.mkdir()
    config = json.loads((settings / "jupyter_lab_config.json").read_text(encoding="utf-8"))
    config["LabApp"] |= EXPOSED
    config["JupyterNotebookApp"] = EXPOSED
    for name in ("jupyter_lab_config", "jupyter_notebook_config"):
        (settings / f"{name}.json").write_text(json.dumps(config), encoding="utf-8")
    overrides = settings / "labconfig" / "default_setting_overrides.json"
    given = json.loads(overrides.read_text(encoding="utf-8"))
    overrides.write_text(json.dumps(given | UNSAVED), encoding="utf-8")
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
