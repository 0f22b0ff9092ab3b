"""The pins, and Pyodide's list of packages cut down to what lies beside it."""

import hashlib
import io
import json
import re
import sys
import tarfile
from pathlib import Path

import pytest

from course_build.lite import parts
from course_build.lite.parts import CORE, PINS, PartError, Pins, fetch, lay_out, read_pins

TEXT = PINS.read_text(encoding="utf-8")


def entry(name, *depends):
    file = f"{name}-1-py3-none-any.whl"
    return {"name": name, "version": "1", "file_name": file, "sha256": "0", "depends": [*depends]}


NEEDS = {
    "ipython": ["prompt_toolkit", "traitlets"],
    "prompt-toolkit": ["wcwidth"],
    "wcwidth": [],
    "traitlets": [],
    "micropip": ["packaging"],
    "packaging": [],
    "jedi": [],
    "numpy": [],
}
LOCK = {
    "info": {"python": "3.14.2"},
    "packages": {name: entry(name, *depends) for name, depends in NEEDS.items()},
}
PINNED = Pins("9.9", "0.2")


@pytest.fixture
def downloaded(tmp_path):
    """A folder as `fetch` leaves it."""
    with tarfile.open(tmp_path / "pyodide-9.9.tgz", "w:gz") as packed:
        files = {name: name.encode() for name in CORE} | {"ffi.d.ts": b"not served"}
        for name, content in {**files, parts.LOCK: json.dumps(LOCK).encode()}.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
    for each in parts.wheels(LOCK, "0.2").values():
        (tmp_path / each["file_name"]).write_bytes(each["name"].encode())
    return tmp_path


def test_everything_is_pinned_exactly():
    pins = read_pins(TEXT)
    assert re.fullmatch(r"\d+\.\d+\.\d+", pins.pyodide)
    assert re.fullmatch(r"\d+\.\d+\.\d+", pins.comm)
    lines = [line for line in TEXT.splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9_.-]+==[\w.]+", line) for line in lines)
    names = [line.split("==")[0] for line in lines]
    assert {"jupyterlite-core", "jupyterlite-pyodide-kernel"} <= set(names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("wrong", ["", TEXT + "# npm: pyodide@1.2.3\n", TEXT.replace("comm", "co")])
def test_a_pin_that_is_missing_or_there_twice_is_told(wrong):
    with pytest.raises(PartError, match="must pin this once"):
        read_pins(wrong)


def test_the_list_names_what_the_kernel_needs_with_the_digests_of_these_files(downloaded):
    lay_out(PINNED, LOCK, downloaded, downloaded / "site")
    lock = json.loads((downloaded / "site" / parts.LOCK).read_bytes())
    assert lock["info"] == LOCK["info"]
    assert set(lock["packages"]) == set(NEEDS) - {"numpy"} | {"comm"}
    for each in lock["packages"].values():
        content = (downloaded / "site" / each["file_name"]).read_bytes()
        assert each["sha256"] == hashlib.sha256(content).hexdigest()
        assert content == each["name"].encode()
    assert lock["packages"]["comm"]["depends"] == ["traitlets"]
    files = {path.name for path in (downloaded / "site").iterdir()}
    wheels = {each["file_name"] for each in lock["packages"].values()}
    assert files == {*CORE, parts.LOCK, *wheels}


def test_nothing_is_downloaded_twice(downloaded, monkeypatch):
    monkeypatch.setattr(parts, "call", lambda *given: pytest.fail(str(given)))
    assert fetch(Path(sys.executable), PINNED, downloaded) == LOCK


def test_what_is_lacking_is_asked_for_at_the_version_of_the_list(downloaded, monkeypatch):
    asked = []
    monkeypatch.setattr(parts, "call", lambda command, what: asked.append(command))
    (downloaded / "jedi-1-py3-none-any.whl").unlink()
    fetch(Path(sys.executable), PINNED, downloaded)
    assert [command[-1] for command in asked] == ["jedi==1"]
    assert {"download", "--no-deps", "3.14.2"} <= set(asked[0])
    with pytest.raises(PartError, match="no jedi-1-py3-none-any.whl"):
        lay_out(PINNED, LOCK, downloaded, downloaded / "site")


def test_without_npm_it_says_where_npm_comes_from(monkeypatch, tmp_path):
    monkeypatch.setattr(parts.shutil, "which", lambda name: None)
    with pytest.raises(PartError, match="Node.js"):
        fetch(Path(sys.executable), PINNED, tmp_path)


def test_a_program_that_fails_is_told_with_its_last_words(monkeypatch):
    program = [sys.executable, "-c", "import sys; sys.exit('no such version')"]
    with pytest.raises(PartError, match="pyodide@9 cannot be had:\nno such version"):
        parts.call(program, "pyodide@9")
    monkeypatch.setattr(parts, "PATIENCE", 0.01)
    with pytest.raises(PartError, match="pyodide@9: no end after"):
        parts.call([sys.executable, "-c", "import time; time.sleep(9)"], "pyodide@9")
