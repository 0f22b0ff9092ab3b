"""`make teach`: everything is made before anything is written, and a teacher's files stay."""

import os

import pytest

from course_build.base.findings import CourseError
from course_build.teaching import __main__ as command
from course_build.teaching import catalogue

from .conftest import ROOT


@pytest.fixture
def exported(monkeypatch, tmp_path):
    """The command on an empty folder, with these exports."""
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    monkeypatch.setattr(command, "read_catalogue", lambda root: {})

    def run(files, *options):
        monkeypatch.setattr(command, "exports", lambda *given: files)
        return command.main(list(options), tmp_path)

    monkeypatch.setattr(command, "read_files", lambda root: type("Files", (), {"sources": {}})())
    monkeypatch.setattr(command, "build_course", lambda *given: type("Course", (), {"stale": ()})())
    return run


def test_what_is_no_longer_made_goes_and_a_teachers_own_stays(exported, tmp_path):
    made = {"student/en/a.ipynb": b"a", "nbgrader/en/source/m/n.ipynb": b"n"}
    assert exported(made) == 0
    own = [
        "nbgrader/en/submitted/me/m/n.ipynb",
        "nbgrader/en/source/m/mine.ipynb",
        "nbgrader/en/gradebook.db",
        "student/en/notes.md",
    ]
    for path in own:
        place = tmp_path / "build/teaching" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"mine")
    assert exported({"student/en/b.ipynb": b"b"}) == 0
    found = (p for p in (tmp_path / "build/teaching").rglob("[!.]*") if p.is_file())
    left = sorted(path.relative_to(tmp_path / "build/teaching").as_posix() for path in found)
    assert left == sorted([*own, "student/en/b.ipynb"])


def test_what_a_teacher_changed_is_not_written_over_and_does_not_go(exported, tmp_path, capsys):
    folder = tmp_path / "build/teaching"
    assert exported({"student/en/a.md": b"a", "student/en/b.md": b"b"}) == 0
    (folder / "student/en/a.md").write_bytes(b"mine")
    assert exported({"student/en/a.md": b"new", "student/en/b.md": b"new"}) == 2
    assert "student/en/a.md: [your-work]" in capsys.readouterr().err
    assert (folder / "student/en/a.md").read_bytes() == b"mine"
    assert (folder / "student/en/b.md").read_bytes() == b"b"
    assert exported({"student/en/b.md": b"new"}) == 0  # the course makes no a.md any more
    assert (folder / "student/en/a.md").read_bytes() == b"mine"
    assert exported({"student/en/a.md": b"newer"}, "--overwrite") == 0
    assert (folder / "student/en/a.md").read_bytes() == b"newer"
    assert [path.read_bytes() for path in (tmp_path / "work/kept").rglob("a.*.md")] == [b"mine"]


def test_a_run_that_fails_leaves_the_last_good_files(exported, monkeypatch, tmp_path, capsys):
    assert exported({"student/en/a.ipynb": b"good", "teacher/en/a.ipynb": b"good"}) == 0

    def refuse(source, target):
        if str(target).endswith("teacher/en/a.ipynb"):
            raise OSError(28, "No space left on device", str(target))
        return real(source, target)

    real = os.replace
    monkeypatch.setattr("course_build.base.files.os.replace", refuse)
    assert exported({"student/en/a.ipynb": b"new", "teacher/en/a.ipynb": b"new"}) == 2
    assert "No space left" in capsys.readouterr().err
    for edition in ("student", "teacher"):
        assert (tmp_path / f"build/teaching/{edition}/en/a.ipynb").read_bytes() == b"good"


def test_a_library_that_cannot_be_read_is_told_with_its_last_words(tmp_path):
    with pytest.raises(CourseError, match="No module named"):
        catalogue.read_catalogue(tmp_path)
