"""Tiny notebooks, and copies of the repository that hold nothing but such notebooks."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat

from course_build.run.outcome import Job

ROOT = Path(__file__).resolve().parents[2]
KERNEL = {"name": "python3", "display_name": "python3", "language": "python"}


def write_notebook(path, sources):
    """Write a notebook whose code cells have these sources and the keys cell-0, cell-1, ..."""
    cells = [nbformat.v4.new_code_cell(text, id=f"cell-{n}") for n, text in enumerate(sources)]
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": KERNEL})
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    return path


def make_job(folder, name, sources):
    """Write a notebook below a folder and return the job that runs it."""
    path = write_notebook(folder / "in" / "en" / f"{name}.ipynb", sources)
    return job_of(folder, path)


def job_of(folder, path):
    """Return the job that runs a file, whatever is in it."""
    return Job(path, "learner", "en", folder / "out" / path.name)


def make_checkout(folder, notebooks):
    """Copy what the runner needs of the repository; its notebooks are {name: sources}."""
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in ("course_build", "course_lib"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", folder)
    for name, sources in notebooks.items():
        write_notebook(folder / "notebooks" / "en" / f"{name}.ipynb", sources)
    return folder


def run_command(*arguments):
    """Return the runner's command line for the notebooks of a checkout."""
    return [sys.executable, "-m", "course_build.run", "--edition", "learner", *arguments]


def environment(**more):
    """Return an environment for the runner; nothing but the TMPDIR of the test is inherited."""
    kept = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH")
    inherited = {name: os.environ[name] for name in kept if name in os.environ}
    return inherited | {"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"} | more


def run_checkout(folder, *arguments, **options):
    """Run the notebooks of a checkout as a person would and return what came of it."""
    options = {"cwd": folder, "env": environment(), "timeout": 150} | options
    command = run_command(*arguments)
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)
