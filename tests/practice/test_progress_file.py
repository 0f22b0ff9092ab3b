"""The progress file: whole at every moment, damage is kept aside, and nothing is thrown away."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import types
from contextlib import contextmanager
from pathlib import Path

import pytest

from course_lib.practice import _progress_file
from course_lib.practice._progress_file import ProgressFile

ROOT = Path(__file__).parents[2]
NAME = "module_03.progress.json"
OPEN = {"state": "open", "contract": "check_it"}
GOOD = {"schema_version": 1, "module": "module_03", "exercises": {"mask": OPEN}}
WRITER = """
import sys
from pathlib import Path
from course_lib.practice._progress_file import ProgressFile
name, count = sys.argv[1], int(sys.argv[2])
file = ProgressFile("module_03", Path.cwd())
print("begun", flush=True)
number = 0
while number != count:
    number += 1
    entry = {"state": "passed", "clauses": [str(number)] * 200, "contract": "c"}
    file.change("exercises", f"{name}-{number % 50}", entry)
"""


@pytest.fixture
def file(folder):
    return ProgressFile("module_03", folder)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def open_files():
    """How many files this process holds open; 0 where nobody tells."""
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def on_disk(folder):
    return json.loads((folder / NAME).read_text(encoding="utf-8"))


def start_writer(folder, name, count):
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, name, str(count)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    )
    assert writer.stdout.readline() == b"begun\n"
    return writer


# Whole at every moment


def test_a_file_is_plain_json_that_ends_with_a_line_end(file, folder):
    file.change("exercises", "mask", OPEN)
    text = (folder / NAME).read_text(encoding="utf-8")
    assert text.endswith("}\n")
    assert on_disk(folder) == {**GOOD, "predictions": {}, "quiz": {}}
    assert names(folder) == [NAME]


def test_the_same_state_gives_the_same_bytes(file, folder):
    for name in ("b", "a"):
        file.change("exercises", name, OPEN)
    first = (folder / NAME).read_bytes()
    (folder / NAME).unlink()
    for name in ("a", "b"):
        file.change("exercises", name, OPEN)
    assert (folder / NAME).read_bytes() == first


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_kernel_killed_in_the_middle_leaves_a_whole_file(folder):
    for _ in range(8):
        writer = start_writer(folder, "a", -1)
        seen = 0
        until = time.monotonic() + 30
        while seen < 3 and time.monotonic() < until:
            if (folder / NAME).exists():
                assert on_disk(folder)["module"] == "module_03"
                seen += 1
        writer.send_signal(signal.SIGKILL)
        writer.wait(30)
        writer.stdout.close()
        assert on_disk(folder)["schema_version"] == 1
        assert ProgressFile("module_03", folder).read()["exercises"]
    left = [name for name in names(folder) if name != NAME]
    assert all(name.startswith(f".{NAME}.") and name.endswith(".writing") for name in left)


@pytest.mark.parametrize("use", ["read", "change"])
def test_whoever_looks_waits_for_the_notebook_that_writes(file, folder, monkeypatch, use):
    turns = []

    @contextmanager
    def turn(asked):
        turns.append(asked)
        (folder / NAME).write_text(json.dumps(GOOD), encoding="utf-8")  # the other one's
        yield

    monkeypatch.setattr(_progress_file, "_progress_turn", turn)
    (folder / NAME).write_bytes(b"half a fi")
    file.read() if use == "read" else file.change("quiz", "axis", {"choice": 1, "right": True})
    assert turns == [folder]
    assert names(folder) == [NAME]
    assert file.state["exercises"] == {"mask": OPEN}


@pytest.mark.skipif(os.name != "posix", reason="folders are locked with flock")
def test_two_notebooks_that_write_at_once_lose_nothing(folder):
    writers = [start_writer(folder, name, 50) for name in ("a", "b")]
    assert [writer.wait(120) for writer in writers] == [0, 0]
    for writer in writers:
        writer.stdout.close()
    wanted = {f"{name}-{number}" for name in "ab" for number in range(50)}
    assert set(on_disk(folder)["exercises"]) == wanted
    assert names(folder) == [NAME]


def test_what_another_notebook_wrote_meanwhile_is_kept(file, folder):
    other = ProgressFile("module_03", folder)
    file.change("exercises", "mask", OPEN)
    other.change("quiz", "axis", {"choice": 2, "right": False})
    file.change("exercises", "nll", OPEN)
    assert set(other.read()["exercises"]) == {"mask", "nll"}
    assert file.read()["quiz"] == {"axis": {"choice": 2, "right": False}}


def test_a_folder_that_cannot_be_locked_is_written_all_the_same(file, folder, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def refuse(*_):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    before = open_files()
    for _ in range(5):
        file.change("exercises", "mask", OPEN)
    assert on_disk(folder)["exercises"] == {"mask": OPEN}
    assert open_files() <= before


@pytest.mark.parametrize("module", [None, types.ModuleType("fcntl")], ids=["none", "empty"])
def test_where_there_is_no_flock_it_is_written_all_the_same(file, folder, monkeypatch, module):
    monkeypatch.setitem(sys.modules, "fcntl", module)
    file.change("exercises", "mask", OPEN)
    assert on_disk(folder)["exercises"] == {"mask": OPEN}


def test_a_notebook_that_never_lets_go_is_not_waited_for_without_end(file, folder, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(_progress_file, "_PROGRESS_PATIENCE", 0.05)
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        file.change("exercises", "mask", OPEN)
    finally:
        os.close(held)
    assert on_disk(folder)["exercises"] == {"mask": OPEN}


def test_no_lock_and_no_open_file_stays_behind(file):
    before = open_files()
    for _ in range(20):
        file.change("exercises", "mask", OPEN)
        file.read()
    assert open_files() <= before


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_clean_leaves_what_a_learner_has_done(folder):
    shutil.copy(ROOT / "Makefile", folder)
    kept = [folder / "notebooks/en" / name for name in (NAME, "module_03.damaged-1.progress.json")]
    for path in [*kept, folder / "build/report.json"]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}", encoding="utf-8")
    bare = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    subprocess.run(["make", "clean"], cwd=folder, env=bare, check=True, capture_output=True)
    assert [path.read_text(encoding="utf-8") for path in kept] == ["{}", "{}"]
    assert not (folder / "build").exists()


# Damage


def with_entry(section, entry):
    return json.dumps({**GOOD, section: {"x": entry}})


DAMAGED = {
    "empty": b"",
    "cut off": json.dumps(GOOD).encode()[:-20],
    "no text": b"\xff\xfe\x00{",
    "no object": b"[1, 2]",
    "a number": b"3",
    "of nobody": b"{}",
    "of another module": json.dumps({**GOOD, "module": "module_04"}).encode(),
    "of an unknown schema": json.dumps({**GOOD, "schema_version": "1"}).encode(),
    "schema true": json.dumps({**GOOD, "schema_version": True}).encode(),
    "an older schema": json.dumps({**GOOD, "schema_version": 0}).encode(),
    "a list of exercises": json.dumps({**GOOD, "exercises": []}).encode(),
    "deep": b"[" * 200_000,
    "long": json.dumps({**GOOD, "more": "x" * 1_000_001}).encode(),
    "not a number": b'{"schema_version": 1, "module": "module_03", "a": NaN}',
    "half a character": json.dumps({**GOOD, "a": "\ud800"}).encode(),
    "an entry": with_entry("exercises", "passed").encode(),
    "a state": with_entry("exercises", {"state": "won"}).encode(),
    "clauses": with_entry("exercises", {"state": "passed", "clauses": [1]}).encode(),
    "a clause": with_entry("exercises", {"state": "broken", "clause": 1}).encode(),
    "a list for a state": with_entry("exercises", {"state": ["open"]}).encode(),
    "passed nothing": with_entry("exercises", {"state": "passed", "contract": "c"}).encode(),
    "passed at nobody": with_entry("exercises", {"state": "passed", "clauses": []}).encode(),
    "broken nowhere": with_entry("exercises", {"state": "broken", "contract": "c"}).encode(),
    "mistakes": with_entry("exercises", {"state": "broken", "mistakes": "a"}).encode(),
    "a guess": with_entry("predictions", {"guess": [1]}).encode(),
    "a huge guess": b'{"schema_version": 1, "module": "module_03", '
    b'"predictions": {"x": {"guess": 1e999}}}',
    "a guess with more digits than a float has": with_entry(
        "predictions", {"guess": 10**400}
    ).encode(),
    "a mark": with_entry("predictions", {"guess": 1, "late": "no"}).encode(),
    "a choice": with_entry("quiz", {"choice": True, "right": True}).encode(),
    "a verdict": with_entry("quiz", {"choice": 1}).encode(),
    "a question": with_entry("quiz", {"choice": 1, "right": True, "said": {"en": 1}}).encode(),
    "no language": with_entry("quiz", {"choice": 1, "right": True, "said": []}).encode(),
    "half of it": with_entry("predictions", {"guess": 1, "said": {"en": ["Safe?"]}}).encode(),
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_file_is_kept_aside_and_said_and_progress_begins_anew(file, folder, data, capsys):
    (folder / NAME).write_bytes(data)
    file.change("exercises", "nll", OPEN)
    aside = "module_03.damaged-1.progress.json"
    assert capsys.readouterr().out == (
        f"{NAME} is damaged, or not from this notebook. It is kept as {aside}; your progress "
        "begins anew.\n"
    )
    assert (folder / aside).read_bytes() == data
    assert on_disk(folder)["exercises"] == {"nll": OPEN}
    assert file.trouble == ""


def test_damage_that_comes_again_is_kept_under_another_name(file, folder, capsys):
    for data in (b"one", b"two"):
        (folder / NAME).write_bytes(data)
        file.read()
    assert (folder / "module_03.damaged-1.progress.json").read_bytes() == b"one"
    assert (folder / "module_03.damaged-2.progress.json").read_bytes() == b"two"
    assert capsys.readouterr().out.count("is damaged") == 2


def test_what_somebody_else_added_to_the_file_stays_in_it(file, folder):
    (folder / NAME).write_text(json.dumps({**GOOD, "note": "mine"}), encoding="utf-8")
    file.change("exercises", "nll", OPEN)
    assert on_disk(folder)["note"] == "mine"
    assert set(on_disk(folder)["exercises"]) == {"mask", "nll"}


# In memory only


def test_a_newer_schema_is_left_as_it_is(file, folder, capsys):
    newer = json.dumps({**GOOD, "schema_version": 2, "exercises": [["mask"]]})
    (folder / NAME).write_text(newer, encoding="utf-8")
    file.change("exercises", "nll", OPEN)
    assert (folder / NAME).read_text(encoding="utf-8") == newer
    assert names(folder) == [NAME]
    assert file.read()["exercises"] == {"nll": OPEN}
    assert capsys.readouterr().out == file.trouble + "\n"
    assert "newer edition of the course" in file.trouble


def refuse_writing(monkeypatch, error):
    def refuse(path, mode):
        if mode == "xb":
            raise error
        return open(path, mode)

    monkeypatch.setattr(_progress_file, "open", refuse, raising=False)


@pytest.mark.parametrize(
    "error",
    [
        PermissionError(errno.EACCES, "Permission denied"),
        OSError(errno.EROFS, "Read-only file system"),
        OSError(errno.ENOSPC, "No space left on device"),
    ],
)
def test_a_folder_that_cannot_be_written_is_said_once_and_memory_goes_on(
    file, folder, monkeypatch, capsys, error
):
    file.change("exercises", "mask", OPEN)
    before = (folder / NAME).read_bytes()
    refuse_writing(monkeypatch, error)
    for name in ("nll", "heads"):
        file.change("exercises", name, OPEN)
    assert set(file.read()["exercises"]) == {"mask", "nll", "heads"}
    assert (folder / NAME).read_bytes() == before
    assert names(folder) == [NAME]
    said = capsys.readouterr().out
    assert said.startswith(f"{NAME} cannot be written here ({type(error).__name__}). ")
    assert said.count("memory only") == 1


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_memory_only(file, folder, capsys):
    folder.chmod(0o500)
    try:
        file.change("exercises", "mask", OPEN)
    finally:
        folder.chmod(0o700)
    assert "memory only" in capsys.readouterr().out
    assert names(folder) == []


def test_a_move_that_fails_leaves_the_old_file_and_nothing_beside_it(file, folder, monkeypatch):
    file.change("exercises", "mask", OPEN)
    before = (folder / NAME).read_bytes()

    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(_progress_file.os, "replace", refuse)
    file.change("exercises", "nll", OPEN)
    assert (folder / NAME).read_bytes() == before
    assert names(folder) == [NAME]
    assert file.trouble


def test_damage_that_cannot_be_moved_aside_is_left_where_it_is(file, folder, monkeypatch, capsys):
    (folder / NAME).write_bytes(b"damaged")

    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(_progress_file.os, "rename", refuse)
    file.change("exercises", "mask", OPEN)
    assert (folder / NAME).read_bytes() == b"damaged"
    assert file.read()["exercises"] == {"mask": OPEN}
    assert "cannot be read (PermissionError). It stays as it is." in capsys.readouterr().out


def test_a_folder_in_the_files_place_is_left_alone(file, folder, capsys):
    (folder / NAME).mkdir()
    file.change("exercises", "mask", OPEN)
    assert (folder / NAME).is_dir()
    assert file.read()["exercises"] == {"mask": OPEN}
    assert "cannot be read" in capsys.readouterr().out


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a pipe")
def test_a_pipe_in_the_files_place_is_not_waited_for(file, folder):
    os.mkfifo(folder / NAME)
    assert file.read()["exercises"] == {}
    assert file.trouble


def test_what_is_in_memory_only_is_told_with_the_progress(begin, folder, monkeypatch, capsys):
    refuse_writing(monkeypatch, PermissionError(errno.EACCES, "Permission denied"))
    progress = begin()
    progress.check("mask", lambda _: __import__("course_lib.report").report.ContractReport("c"), 0)
    capsys.readouterr()
    progress.show()
    shown = capsys.readouterr().out
    assert "Contracts passed: 1 of 3" in shown
    assert shown.endswith(f"{progress.file.trouble}\n")


def test_a_folder_that_is_gone_is_memory_only(file, folder, capsys, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    folder.rmdir()
    file.change("exercises", "mask", OPEN)
    assert file.read()["exercises"] == {"mask": OPEN}
    assert "cannot be written here (FileNotFoundError)" in capsys.readouterr().out


def test_a_link_stays_a_link_and_the_file_that_it_names_is_written(folder, tmp_path):
    elsewhere = tmp_path / "synchronised"
    elsewhere.mkdir()
    link = folder / "module_03.progress.json"
    link.symlink_to(elsewhere / "mine.json")
    file = ProgressFile("module_03", folder)
    for name in ("a", "b"):
        file.change("exercises", name, OPEN)
    assert link.is_symlink()
    assert '"b"' in (elsewhere / "mine.json").read_text(encoding="utf-8")
    assert set(ProgressFile("module_03", folder).read()["exercises"]) == {"a", "b"}
