"""What these tests share: the exports of the real course, and nbgrader's own commands."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from course_build.base.files import read_files
from course_build.base.settings import SETTINGS_FILE, parse_settings
from course_build.building.course import build_course
from course_build.teaching.catalogue import read_catalogue
from course_build.teaching.exports import exports
from course_build.teaching.modules import modules

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = parse_settings((ROOT / SETTINGS_FILE).read_text(encoding="utf-8"))
LANGUAGES = SETTINGS.languages
STEMS = sorted(path.stem for path in ROOT.glob("notebooks/src/module_*.py"))
PAIRS = [(language, stem) for language in LANGUAGES for stem in STEMS]

each_module = pytest.mark.parametrize(("language", "stem"), PAIRS)


@dataclass(frozen=True)
class Made:
    """The exports, {path below build/teaching: content}, and what they were made from."""

    files: dict
    modules: dict
    known: dict

    def notebook(self, path):
        return json.loads(self.files[path])

    def module(self, language, stem):
        return self.modules[language, stem]


@pytest.fixture(scope="session")
def made():
    files = read_files(ROOT)
    course = build_course(files, SETTINGS, list(files.sources), LANGUAGES)
    known = read_catalogue(ROOT)
    listed = modules(course, files, SETTINGS)
    found = {(module.language, module.stem): module for module in listed}
    return Made(exports(course, files, SETTINGS, known), found, known)


class Grader:
    """A course folder of nbgrader's in a temporary place; its commands run as a teacher's do."""

    def __init__(self, folder, files):
        self.folder = folder
        for path, content in files.items():
            self.write(path, content)

    def write(self, path, content):
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_bytes(content)

    def run(self, *arguments):
        environment = {
            **os.environ,
            "HOME": str(self.folder),
            "JUPYTER_CONFIG_DIR": str(self.folder / "config"),
            "JUPYTER_DATA_DIR": str(self.folder / "data"),
            "IPYTHONDIR": str(self.folder / "ipython"),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        }  # nbgrader calls alembic
        done = subprocess.run(
            [sys.executable, "-m", "nbgrader", *arguments],
            cwd=self.folder, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stderr

    def released(self, assignment, stem):
        path = self.folder / "release" / assignment / f"{stem}.ipynb"
        return json.loads(path.read_bytes())

    def submit(self, student, assignment, stem, notebook):
        path = f"submitted/{student}/{assignment}/{stem}.ipynb"
        self.write(path, json.dumps(notebook).encode())

    def graded(self, student, assignment, stem):
        """The notebook as it was graded: {key: (text, everything that its cell showed)}."""
        path = self.folder / "autograded" / student / assignment / f"{stem}.ipynb"
        cells = json.loads(path.read_bytes())["cells"]
        return {c["id"]: ("".join(c["source"]), json.dumps(c.get("outputs"))) for c in cells}

    def scores(self, assignment):
        """{student: {key of a check: its points}}; None where a teacher has to look."""
        from nbgrader.api import Gradebook

        with Gradebook(f"sqlite:///{self.folder}/gradebook.db") as book:
            return {
                submission.student.id: {
                    grade.name: None if grade.needs_manual_grade else grade.score
                    for notebook in submission.notebooks
                    for grade in notebook.grades
                }
                for submission in book.assignment_submissions(assignment)
            }


@pytest.fixture(scope="session")
def grader(made, tmp_path_factory):
    """A course folder in a language with one notebook, which nbgrader has released once."""
    released = {}

    def make(language, path, notebook):
        text = json.dumps(notebook)
        if (language, path, text) not in released:
            folder = tmp_path_factory.mktemp(f"nbgrader-{language}")
            config = made.files[f"nbgrader/{language}/nbgrader_config.py"]
            course = Grader(folder, {"nbgrader_config.py": config})
            course.write(f"source/{path}", text.encode())
            course.run("generate_assignment", path.split("/")[0])
            released[language, path, text] = course
        return released[language, path, text]

    return make


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items):
    """What looks at the exports of the real course stays in the process that made them."""
    for item in items:
        if "made" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("teaching"))
