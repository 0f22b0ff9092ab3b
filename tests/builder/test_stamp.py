"""A rebuild of what has not changed does nothing; whatever has changed, it is built again."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from course_build.base import stamp
from course_build.base.files import WRITING
from course_build.base.findings import DONE, WORK
from course_build.building import plain as plain_build

from .conftest import NAME, SOURCE, code, prose, stale

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("jupytext", "nbformat", "pyflakes", "markdown_it", "course_build.building.course")
TERM = (
    'identifiers = []\n[{key}.en]\nname = "{en}"\nmeans = "{words}"\n'
    '[{key}.ru]\nname = "{ru}"\nmeans = "{words}"\n'
)
GLOSSARY = "[mask]\n" + TERM.format(
    key="mask", en="mask", ru="маска", words="One two three four five six seven eight nine."
)


@pytest.fixture
def course(repo, monkeypatch):
    """A course that has just been built; `builds` holds those that were made since."""
    repo.reference("numbers", {"a": 1})
    repo.write("notebooks/src/glossary.toml", GLOSSARY)
    repo.write("build_notebooks.py", "")
    repo.build(prose("p"), code("c", "from course_lib.scaling import scale"))
    builder = repo.root / "builder"
    builder.mkdir()
    (builder / "chrome.py").write_text("A = 1\n")
    monkeypatch.setattr(stamp, "BUILDER", builder)
    assert repo.run().code == DONE
    build_course, repo.builds, repo.builder = plain_build.build_course, [], builder

    def counted(*arguments, **options):
        repo.builds.append(arguments)
        return build_course(*arguments, **options)

    monkeypatch.setattr(plain_build, "build_course", counted)
    return repo


def test_what_has_not_changed_is_not_built_again_and_the_same_is_said(course):
    (course.root / stamp.PLACE).unlink()
    before = course.run()
    assert len(course.builds) == 1
    after = course.run()
    assert len(course.builds) == 1
    assert after == before
    assert after.out.startswith(f"unchanged notebooks/en/{NAME}.ipynb\n")


INPUTS = [
    SOURCE,
    "course_lib/door.py",
    "course_lib/scaling.py",
    "reference/numbers.json",
    "reference/SHA256SUMS",
    "notebooks/src/glossary.toml",
    "pyproject.toml",
    "build_notebooks.py",
]


@pytest.mark.parametrize("path", INPUTS)
def test_one_more_byte_in_anything_that_is_read_builds_again(course, path):
    text = course.read(path)
    course.write(path, text + "\n")
    course.run()
    assert len(course.builds) == 1
    course.write(path, text)
    course.run()
    built = len(course.builds)
    assert built in (1, 2)  # what was refused, as a wrong sum is, has left the stamp as it was
    course.run()
    assert len(course.builds) == built


@pytest.mark.parametrize(
    "path", ["course_lib/new.py", "notebooks/src/module_04_new.py", "reference/new.json"]
)
def test_a_new_file_builds_again(course, path):
    course.write(path, course.read(SOURCE) if "module" in path else "")
    course.run()
    assert len(course.builds) == 1


@pytest.mark.parametrize("path", ["course_lib/door.py", "reference/numbers.json", SOURCE])
def test_a_file_that_is_gone_or_has_another_name_builds_again(course, path):
    (course.root / path).rename((course.root / path).with_stem("module_05_b"))
    course.run()
    assert len(course.builds) == 1


def test_a_line_that_moves_from_one_file_to_the_next_builds_again(course):
    for path, text in (("course_lib/a.py", "A = 1\n"), ("course_lib/b.py", "")):
        course.write(path, text)
    course.run()
    for path, text in (("course_lib/a.py", ""), ("course_lib/b.py", "A = 1\n")):
        course.write(path, text)
    course.run()
    assert len(course.builds) == 2


OUTPUTS = [
    f"notebooks/en/{NAME}.ipynb",
    f"notebooks/ru/{NAME}.ipynb",
    f"build/solved/en/{NAME}.ipynb",
    f"build/solved/ru/{NAME}.ipynb",
    "notebooks/en/glossary.md",
    "notebooks/ru/glossary.md",
]


@pytest.mark.parametrize("path", OUTPUTS)
def test_every_output_is_looked_at(course, path):
    right = course.read(path)
    course.write(path, right[:-1] + " ")
    assert course.run("--overwrite").code == DONE
    assert course.read(path) == right
    (course.root / path).unlink()
    course.run()
    assert course.read(path) == right
    assert len(course.builds) == 2


STRAYS = [
    "notebooks/en/left.txt",
    "notebooks/ru/module_09_gone.ipynb",
    "build/solved/en/left.ipynb",
    f"notebooks/en/.a{WRITING}",
    "notebooks/de/module_03_toy.ipynb",
]


@pytest.mark.parametrize("path", STRAYS)
def test_a_stray_file_is_said_every_time(course, path):
    course.write(path, "x")
    for _ in range(2):
        ran = course.run()
        assert ran.code == WORK
        assert f"{path}: [orphan]" in ran.err
    (course.root / path).unlink()
    assert course.run().code == DONE


def test_a_hidden_file_is_none_of_ours(course):
    course.write("notebooks/en/.ipynb_checkpoints/a.ipynb", "x")
    course.write("notebooks/en/module_03.progress.json", "x")  # a learner's
    assert course.run().code == DONE
    assert course.builds == []


def test_a_stale_translation_is_said_every_time(course):
    course.source(stale("p"))
    for _ in range(2):
        ran = course.run()
        assert ran.code == WORK
        assert "[stale-twin]" in ran.err
    assert course.run("--preview").code == DONE
    assert course.run().code == WORK


def test_a_preview_is_not_taken_for_a_build(course):
    text = course.read(SOURCE)
    course.source(stale("p"), code("c", "from course_lib.scaling import scale"))
    assert course.run("--preview").code == DONE
    course.write(SOURCE, text)
    ran = course.run()
    assert f"wrote     notebooks/ru/{NAME}.ipynb" in ran.out


def test_check_always_looks_for_itself(course):
    assert course.run("--check").code == DONE
    assert course.run("--preview").code == DONE
    assert len(course.builds) == 2


def test_other_modules_or_languages_are_another_build(course):
    course.run("--lang", "en")
    course.run("--lang", "en")
    assert len(course.builds) == 1
    course.run("--module", "3")
    course.run()
    assert len(course.builds) == 3


def test_a_new_builder_builds_again(course):
    (course.builder / "chrome.py").write_text("A = 2\n")
    course.run()
    (course.builder / "chrome.py").rename(course.builder / "other.py")
    course.run()
    course.run()
    assert len(course.builds) == 2


def test_another_python_or_library_or_setting_of_one_builds_again(course, monkeypatch, tmp_path):
    (tmp_path / "site" / "jupytext-9.9.dist-info").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    course.run()
    monkeypatch.setenv("PYFLAKES_BUILTINS", "missing")
    course.run()
    monkeypatch.setattr(sys, "version", "9.9")
    course.run()
    course.run()
    assert len(course.builds) == 3


def damaged(body: bytes) -> dict[str, bytes]:
    seal, _, inside = body.partition(b"\n")
    other = {**json.loads(inside), "named": ["notebooks/en/other.ipynb"]}
    return {
        "empty": b"",
        "truncated": body[:-30],
        "without its last byte": body[:-1],
        "with one byte more": body + b" ",
        "not text": b"\xff" + body,
        "not JSON": seal + b"\n{",
        "named differently": seal + b"\n" + json.dumps(other).encode(),
        "sealed, but a list": stamp.sealed(b"[]"),
        "sealed, but of another kind": stamp.sealed(b'{"inputs": 3}'),
        "sealed, of another build": stamp.sealed(json.dumps({**other, "inputs": "0"}).encode()),
    }


def test_a_damaged_or_foreign_stamp_is_none(course):
    whole = (course.root / stamp.PLACE).read_bytes()
    cases = damaged(whole)
    before = course.run()
    assert course.builds == []
    for body in cases.values():
        (course.root / stamp.PLACE).write_bytes(body)
        assert course.run() == before
    assert len(course.builds) == len(cases)
    assert (course.root / stamp.PLACE).read_bytes() == whole


def test_every_single_bit_of_a_stamp_counts(course):
    whole = (course.root / stamp.PLACE).read_bytes()
    taken = stamp.Stamp(course.root, json.loads(whole.partition(b"\n")[2])["inputs"])
    assert taken.confirmed()
    for place in range(0, len(whole), 7):
        (course.root / stamp.PLACE).write_bytes(
            whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
        )
        assert taken.confirmed() is None, place


def test_a_folder_in_the_stamps_place_only_costs_time(course):
    (course.root / stamp.PLACE).unlink()
    (course.root / stamp.PLACE).mkdir()
    assert course.run().code == DONE
    assert course.run().code == DONE
    assert len(course.builds) == 2
    assert sorted(path.name for path in (course.root / "build").iterdir()) == [
        "notebooks.stamp",
        "solved",
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_build_folder_that_cannot_be_written_only_costs_time(course):
    (course.root / stamp.PLACE).unlink()
    (course.root / "build").chmod(0o555)
    assert course.run().code == DONE
    assert course.run().code == DONE
    (course.root / "build").chmod(0o755)
    assert len(course.builds) == 2


def test_a_disk_that_takes_no_stamp_only_costs_time(course, monkeypatch):
    (course.root / stamp.PLACE).unlink()

    def refuse(source, target):
        raise PermissionError(13, "Permission denied", str(target))

    monkeypatch.setattr(stamp.os, "replace", refuse)
    assert course.run().code == DONE
    assert not list((course.root / "build").glob(".*"))
    assert not (course.root / stamp.PLACE).exists()


def start(root: Path) -> subprocess.Popen:
    script = (
        "import sys; from pathlib import Path; from course_build.cli import main;"
        "sys.exit(main([], Path(sys.argv[1])))"
    )
    return subprocess.Popen(
        [sys.executable, "-c", script, str(root)], cwd=ROOT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_builds_at_the_same_time_leave_one_whole_stamp(repo):
    repo.source(prose("p"))
    running = [start(repo.root) for _ in range(4)]
    said = [process.communicate(timeout=60) for process in running]
    assert [process.returncode for process in running] == [DONE] * 4, said
    assert not list((repo.root / "build").glob(".*"))
    stamped = (repo.root / stamp.PLACE).read_bytes()
    assert stamp.sealed(stamped.partition(b"\n")[2]) == stamped


def test_what_another_build_is_writing_is_no_stray_but_what_it_left_is(course):
    course.write(f"notebooks/en/.a.{os.getpid()}{WRITING}", "x")
    assert course.run().code == DONE
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    course.write(f"notebooks/en/.a.{gone.pid}{WRITING}", "x")
    assert course.run().code == WORK


def test_a_rebuild_without_changes_imports_nothing_large(repo):
    repo.source(prose("p"))
    script = (
        "import sys; from pathlib import Path; from course_build.cli import main;"
        "main([], Path(sys.argv[1])); print(*sys.modules)"
    )
    command = [sys.executable, "-c", script, str(repo.root)]
    ran = [
        subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    loaded = [set(out.split("\n")[-2].split()) for out in ran]
    assert set(HEAVY) <= loaded[0]
    assert not set(HEAVY) & loaded[1]
