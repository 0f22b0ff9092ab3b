"""All notebooks are written or none; a failed or killed build loses nothing."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from course_build.base import files as edges
from course_build.base.files import write_files
from course_build.base.findings import CourseError
from course_build.interchange import importing
from course_build.translation import confirm

from .conftest import NAME, SOURCE, code, prose, stale

ROOT = Path(__file__).resolve().parents[2]


def test_a_refused_source_leaves_the_last_good_notebooks(repo):
    repo.build(prose("p"))
    before = repo.outputs()
    repo.refuse(prose("p"), code("x", "print(missing)"))
    assert repo.outputs() == before


def test_one_refused_source_stops_the_others_too(repo):
    repo.source(name="module_04_good")
    repo.refuse(code("x", "print(missing)"))
    assert repo.outputs() == {}


def test_the_findings_of_all_sources_are_said(repo):
    repo.source(code("y", "y = ("), name="module_04_bad")
    err = repo.refuse(code("x", "x = ("))
    assert f"{SOURCE}:" in err
    assert "module_04_bad.py:" in err
    assert err.index("module_03") < err.index("module_04")


def test_a_folder_that_cannot_be_written_changes_nothing(repo):
    repo.build()
    before = repo.outputs()
    repo.source(prose("p"))
    (repo.root / "notebooks/ru").rename(repo.root / "aside")
    repo.write("notebooks/ru", "a file where the folder should be")
    ran = repo.run()
    assert ran.code == 2
    assert "[write]" in ran.err
    assert "notebooks/ru" in ran.err
    (repo.root / "notebooks/ru").unlink()
    (repo.root / "aside").rename(repo.root / "notebooks/ru")
    assert repo.outputs() == before


def test_a_read_only_folder_changes_nothing(repo, monkeypatch):
    repo.build()
    before = repo.outputs()
    repo.source(prose("p"))
    really_open = open

    def refuse(path, mode="r", *args, **kwargs):
        if "w" in mode and "/ru/" in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return really_open(path, mode, *args, **kwargs)

    monkeypatch.setattr("builtins.open", refuse)
    ran = repo.run()
    assert ran.code == 2
    assert ran.err.startswith(
        "notebooks/ru: [write]\n    cannot write: Permission denied\n"
        "    -> make this folder writable (chmod u+w notebooks/ru); nothing was changed\n"
    )
    assert repo.outputs() == before


@pytest.mark.parametrize("failing", [1, 2, 3, 4])
def test_a_move_that_fails_half_way_is_undone(repo, monkeypatch, failing):
    repo.build()
    before = repo.outputs()
    repo.source(prose("p"))
    really_move, moves = os.replace, []

    def fail(source, target):
        moves.append(target)
        if len(moves) == failing:
            raise OSError(28, "No space left on device", str(target))
        really_move(source, target)

    monkeypatch.setattr(edges.os, "replace", fail)
    ran = repo.run()
    assert ran.code == 2
    assert "No space left on device" in ran.err
    assert repo.outputs() == before


@pytest.mark.parametrize("stopping", [1, 2, 3, 4])
def test_ctrl_c_half_way_through_the_moves_is_undone(repo, monkeypatch, stopping):
    repo.build()
    before = repo.outputs()
    repo.source(prose("p"))
    really_move, moves = os.replace, []

    def stop(source, target):
        moves.append(target)
        if len(moves) == stopping:
            raise KeyboardInterrupt
        really_move(source, target)

    monkeypatch.setattr(edges.os, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        repo.run()
    assert repo.outputs() == before


def test_a_full_disk_leaves_nothing_half_written(repo, monkeypatch):
    repo.build()
    before = repo.outputs()
    repo.source(prose("p"))

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(edges.os, "fsync", full)
    ran = repo.run()
    assert ran.code == 2
    assert ".: [write]\n    cannot write: No space left on device" in ran.err
    assert repo.outputs() == before


def test_a_move_that_fails_leaves_no_new_file(tmp_path, monkeypatch):
    really_move = os.replace

    def fail(source, target):
        if target.name == "b":
            raise OSError(28, "No space left on device", str(target))
        really_move(source, target)

    monkeypatch.setattr(edges.os, "replace", fail)
    with pytest.raises(CourseError, match=r"b: \[write\]\n    cannot write: No space left"):
        edges.write_files(tmp_path, {"a": b"1", "b": b"2"})
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, signal, sys
from pathlib import Path
from course_build import cli
from course_build.base import files
def killed(source, target):
    os.kill(os.getpid(), signal.SIGKILL)
files.os.replace = killed
cli.main([], Path(sys.argv[1]))
"""


def test_a_killed_build_leaves_whole_files_and_says_what_else_it_left(repo):
    repo.build()
    before = repo.outputs()
    repo.source(prose("p"))
    ran = subprocess.run([sys.executable, "-c", KILLED, repo.root], cwd=ROOT, check=False)
    assert ran.returncode == -signal.SIGKILL
    after = repo.outputs()
    left = sorted(after.keys() - before.keys())
    assert {path: after[path] for path in before} == before
    assert len(left) == 4
    ran = repo.run()
    assert ran.code == 1
    for path in left:
        assert path.endswith(".writing")
        assert f"{path}: [orphan]" in ran.err
        (repo.root / path).unlink()
    assert repo.run().code == 0


def test_a_build_leaves_nothing_beside_its_notebooks(repo):
    repo.build(prose("p"))
    assert sorted(repo.outputs()) == [
        f"build/solved/en/{NAME}.ipynb",
        f"build/solved/ru/{NAME}.ipynb",
        f"notebooks/en/{NAME}.ipynb",
        f"notebooks/ru/{NAME}.ipynb",
    ]


def test_what_is_unchanged_is_not_touched(repo):
    repo.build()
    path = repo.root / f"notebooks/en/{NAME}.ipynb"
    os.utime(path, (1, 1))
    ran = repo.run()
    assert path.stat().st_mtime == 1
    *told, how_to_open = ran.out.splitlines()
    assert told == [f"unchanged notebooks/{language}/{NAME}.ipynb" for language in ("en", "ru")]
    assert "make lab" in how_to_open


def test_what_is_changed_is_named_and_keeps_its_mode(repo):
    repo.build()
    path = repo.root / f"notebooks/en/{NAME}.ipynb"
    path.chmod(0o640)
    repo.write(SOURCE, repo.read(SOURCE).replace("Some words.", "Other words."))
    ran = repo.run("--preview")
    assert f"wrote     notebooks/en/{NAME}.ipynb\n" in ran.out
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_new_notebook_can_be_read_by_everybody(repo):
    mask = os.umask(0o022)
    try:
        repo.build()
    finally:
        os.umask(mask)
    assert (repo.root / f"notebooks/en/{NAME}.ipynb").stat().st_mode & 0o777 == 0o644


# Orphans


@pytest.mark.parametrize(
    "path", ["notebooks/en/old.ipynb", "notebooks/ru/notes.txt", "build/solved/en/old.ipynb"]
)
@pytest.mark.parametrize("arguments", [(), ("--check",), ("--lang", "en"), ("--module", "3")])
def test_a_file_that_no_source_makes_is_reported_and_never_deleted(repo, path, arguments):
    repo.build()
    repo.write(path, "words")
    ran = repo.run(*arguments)
    assert ran.code == 1
    assert f"{path}: [orphan] no source makes this file\n    -> " in ran.err
    assert repo.read(path) == "words"


def test_the_notebook_of_a_removed_source_is_an_orphan(repo):
    repo.source(name="module_04_gone")
    repo.build()
    (repo.root / "notebooks/src/module_04_gone.py").unlink()
    ran = repo.run()
    assert ran.code == 1
    assert ran.err.count("module_04_gone.ipynb: [orphan]") == 4


def test_what_jupyter_and_finder_leave_is_no_orphan(repo):
    repo.build()
    repo.write("notebooks/en/.ipynb_checkpoints/x.ipynb", "words")
    repo.write("notebooks/en/.DS_Store", "words")
    assert repo.run("--check").code == 0


def test_a_learners_progress_is_no_orphan_and_stays(repo):
    repo.build()
    names = ["module_03.progress.json", "module_03.damaged-1.progress.json"]
    names.append(".module_03.progress.json.1.x.writing")  # whose kernel was killed
    for name in names:
        repo.write(f"notebooks/en/{name}", "words")
    assert repo.run("--check").code == 0
    assert repo.run().code == 0
    assert [repo.read(f"notebooks/en/{name}") for name in names] == ["words"] * 3


def test_a_file_that_somebody_wrote_since_it_was_read_is_not_overwritten(tmp_path):
    (tmp_path / "a").write_bytes(b"theirs")
    (tmp_path / "b").write_bytes(b"old")
    read = {"a": b"old", "b": b"old", "c": b"not written"}
    with pytest.raises(CourseError, match="^a: \\[write\\]\n    was changed by another program"):
        write_files(tmp_path, {"b": b"new", "a": b"new"}, made_from=read)
    assert [(tmp_path / name).read_bytes() for name in "ab"] == [b"theirs", b"old"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    write_files(tmp_path, {"b": b"new"}, made_from=read)
    assert (tmp_path / "b").read_bytes() == b"new"


@pytest.mark.parametrize("command", ["confirm", "import"])
def test_a_source_that_is_saved_while_a_command_works_on_it_is_not_overwritten(
    repo, monkeypatch, command
):
    repo.source(stale("p"))
    assert repo.run("export").code == 0
    po = repo.root / f"build/po/ru/{NAME}.po"
    po.write_text(po.read_text().replace("#, fuzzy\n", ""))
    argument = "3:p" if command == "confirm" else str(po)
    module = {"confirm": confirm, "import": importing}[command]
    write = module.write_files

    def late(*arguments, **options):
        repo.write(SOURCE, repo.read(SOURCE) + "\n# saved in an editor\n")
        write(*arguments, **options)

    monkeypatch.setattr(module, "write_files", late)
    ran = repo.run(command, argument)
    assert ran.code == 2
    assert f"{SOURCE}: [write]\n    was changed by another program meanwhile" in ran.err
    assert repo.read(SOURCE).endswith("# saved in an editor\n")
