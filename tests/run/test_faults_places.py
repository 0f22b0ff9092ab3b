"""Places that are full, cannot be written, or have unusual names; two runs in one place."""

import json
import os
import shlex
import shutil
import subprocess
import sys

import nbformat
import pytest

from .notebooks import environment, make_checkout, run_checkout, run_command

pytestmark = pytest.mark.delivery

QUICK = {"module_01_quick": ["print('done')"]}
PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 2]);"


def may_mount():
    """Say whether this user may mount in a namespace of its own (CI runs as root)."""
    if sys.platform != "linux" or os.geteuid() != 0 or not shutil.which("unshare"):
        return False
    done = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    return done.returncode == 0


mounts = pytest.mark.skipif("not may_mount()", reason="mounting needs root on Linux")


def run_mounted(folder, mount, **more):
    """Run a checkout's notebooks in a mount namespace of its own, after a shell's `mount`."""
    script = f"set -e; {mount}; exec {shlex.join(run_command())}"
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script]
    env = environment(**more)
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=150
    )


def statuses(folder):
    report = json.loads((folder / "build" / "executed" / "report.json").read_text("utf-8"))
    return {one["notebook"]: one["status"] for one in report["notebooks"]}


@mounts
def test_no_room_for_the_working_folder_is_told_and_nothing_hangs(tmp_path, clean_room):
    course = make_checkout(tmp_path / "course", QUICK)
    full = clean_room / "full"
    full.mkdir()
    done = run_mounted(course, f"mount -t tmpfs -o size=16k none {full}", TMPDIR=str(full))
    full.rmdir()
    told = done.stdout + done.stderr
    assert done.returncode == 2, told
    assert "No space left" in told
    assert "Traceback" not in told


@mounts
def test_a_notebook_that_fills_the_disk_fails_at_its_cell_and_the_next_one_runs(
    tmp_path, clean_room
):
    fill = "with open('big', 'wb') as file: file.write(bytes(40_000_000))"
    course = make_checkout(tmp_path / "course", {"module_01_fills": ["1", fill, "2"]} | QUICK)
    small = clean_room / "small"
    small.mkdir()
    done = run_mounted(course, f"mount -t tmpfs -o size=20m none {small}", TMPDIR=str(small))
    small.rmdir()
    told = done.stdout + done.stderr
    assert done.returncode == 1, told
    assert "cell 2 of 3, key cell-1: OSError: [Errno 28] No space left on device" in told
    assert statuses(course) == {"module_01_fills": "failed", "module_01_quick": "passed"}


@mounts
@pytest.mark.parametrize("size", ["4k", "1m"])
def test_no_room_for_the_executed_copies_or_the_report_is_told(size, tmp_path, clean_room):
    first = {"module_01_quick": ["print('done')  # the longest code comes first" + " " * 1000]}
    notebooks = {"module_02_long": ["print('x' * 3_000_000)"]} | first
    course = make_checkout(tmp_path / "course", notebooks)
    executed = course / "build" / "executed"
    executed.mkdir(parents=True)
    filler = f"head -c 4096 /dev/zero > {executed}/filler" if size == "4k" else "true"
    kept = tmp_path / "kept"
    keep = f"trap 'cp -r {executed} {kept}' EXIT"
    mount = f"{keep}; mount -t tmpfs -o size={size} none {executed}; {filler}; false || true"
    script = f"{mount}; {shlex.join(run_command('--workers', '1'))}"
    command = ["unshare", "--mount", "--propagation", "private", "bash", "-c", script]
    done = subprocess.run(
        command, cwd=course, env=environment(), capture_output=True, text=True, timeout=150
    )
    told = done.stdout + done.stderr
    assert done.returncode == 2, told
    assert "No space left" in told
    assert "Traceback" not in told
    for path in kept.rglob("*.ipynb"):
        nbformat.read(str(path), 4)  # whole, or not there
    if size == "1m":
        report = json.loads((kept / "report.json").read_text("utf-8"))
        told = {one["notebook"]: one["status"] for one in report["notebooks"]}
        assert told == {"module_01_quick": "passed", "module_02_long": "broken"}


@mounts
def test_a_checkout_that_cannot_be_written_is_told_with_the_way_to_mend_it(tmp_path, clean_room):
    course = make_checkout(tmp_path / "course", QUICK)
    path = shlex.quote(str(course))
    mount = f"mount --bind {path} {path}; mount -o remount,ro,bind {path}; cd {path}"
    done = run_mounted(course, mount)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("cannot write build in the folder ")
    assert "--output FOLDER" in done.stderr


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_a_checkout_without_permission_is_told_with_the_way_to_mend_it(tmp_path, clean_room):
    course = make_checkout(tmp_path / "course", QUICK)
    course.chmod(0o500)
    try:
        done = run_checkout(course)
    finally:
        course.chmod(0o700)
    assert done.returncode == 2
    assert done.stderr.startswith("cannot write build in the folder ")


def test_a_path_with_spaces_and_cyrillic_is_a_path_like_any_other(tmp_path, clean_room):
    course = make_checkout(
        tmp_path / "папка {b} с пробелом и 'кавычкой'", QUICK | {"график": [PLOT]}
    )
    temporary = clean_room / "вре мя"
    temporary.mkdir()
    done = run_checkout(course, env=environment(TMPDIR=str(temporary), LC_ALL="C"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert statuses(course) == {"module_01_quick": "passed", "график": "passed"}
    assert list(temporary.iterdir()) == []
    temporary.rmdir()
    path = course / "build" / "executed" / "learner" / "en" / "график.ipynb"
    kept = nbformat.read(str(path), 4)
    assert any("image/png" in output.get("data", {}) for output in kept.cells[0].outputs)


def test_lower_limits_of_the_system_are_kept_and_closed_output_does_no_harm(tmp_path, clean_room):
    course = make_checkout(tmp_path / "course", QUICK)
    limits = "ulimit -Hf 400000; ulimit -Sf 400000; ulimit -Hd 5000000; ulimit -Sd 5000000"
    script = f"{limits}; exec {shlex.join(run_command())} >&-"
    done = subprocess.run(
        ["bash", "-c", script], cwd=course, env=environment(), capture_output=True, timeout=150
    )
    assert done.returncode == 0, done.stderr
    assert statuses(course) == {"module_01_quick": "passed"}


def test_a_long_temporary_path_and_a_terminal_without_utf8_do_no_harm(tmp_path, clean_room):
    course = make_checkout(tmp_path / "course", QUICK)
    temporary = clean_room.joinpath(*["a-rather-long-name-of-a-folder"] * 6)
    temporary.mkdir(parents=True)
    env = environment(TMPDIR=str(temporary), PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    done = run_checkout(course, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.rmtree(clean_room / "a-rather-long-name-of-a-folder")
    assert list(clean_room.iterdir()) == []


def test_two_runs_at_once_in_one_checkout_do_not_spoil_each_other(tmp_path, clean_room):
    notebooks = {f"module_{n:02d}_quick": ["print('done')"] for n in range(1, 5)}
    course = make_checkout(tmp_path / "course", notebooks)
    both = [
        subprocess.Popen(
            run_command(),
            cwd=course,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(2)
    ]
    told = [one.communicate(timeout=150)[0] for one in both]
    codes = [one.returncode for one in both]
    assert sorted(codes) in ([0, 0], [0, 2]), told
    if 2 in codes:  # the later one gave way, and says so in a sentence
        assert len(told[codes.index(2)].splitlines()) == 1, told
    assert statuses(course) == dict.fromkeys(notebooks, "passed")
    for name in notebooks:
        kept = course / "build" / "executed" / "learner" / "en" / f"{name}.ipynb"
        assert nbformat.read(str(kept), 4).cells[0].outputs[0].text == "done\n"
