"""The lock files: made from the pins of today, whole, and with a digest for all but torch."""

import re

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement

from course_build.environment import bootstrap, lock

PYTHONS = ("3.11", "3.13")
PLATFORMS = ("linux", "darwin", "win32")
TIERS = {"reader": bootstrap.READER, "writer": bootstrap.WRITER, "all": bootstrap.EVERYTHING}


def entries(path):
    """What a lock file holds: (requirement, its digests)."""
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in re.findall(r"^[a-z0-9].*$", text, re.MULTILINE):
        requirement, *hashes = line.split("--hash=sha256:")
        yield Requirement(requirement), [digest.strip() for digest in hashes]


@pytest.fixture
def pins(tmp_path, monkeypatch):
    """Pins and a lock file of their own; to be changed."""
    source, target = tmp_path / "requirements.txt", tmp_path / "requirements.lock"
    source.write_text("a==1\n", encoding="utf-8")
    monkeypatch.setattr(lock, "SOURCES", {target: (source,)})
    target.write_text(f"# by uv:\n#    {lock.mark(target)}\na==1\n", encoding="utf-8")
    return source


def test_the_lock_files_are_of_the_pins_of_today():
    assert lock.outdated() == []


def test_pins_that_have_changed_are_told_without_asking_anybody(pins, capsys):
    assert lock.main(["--check"]) == 0
    pins.write_text("# a comment changes nothing\na==1  # why\n\n", encoding="utf-8")
    assert lock.main(["--check"]) == 0
    pins.write_text("a==2\n", encoding="utf-8")
    assert lock.main(["--check"]) == 1
    assert capsys.readouterr().err.endswith("since it was made; run: make lock\n")


@pytest.mark.parametrize("path", lock.SOURCES, ids=lambda path: path.name)
def test_every_package_has_a_digest_and_no_address(path):
    found = list(entries(path))
    assert found
    for requirement, hashes in found:
        assert hashes, requirement.name
        assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in hashes), requirement.name
        assert not lock.UNLOCKED.fullmatch(requirement.name)
    assert "://" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_each_pin_is_locked_once_on_every_platform_and_python(tier, python, platform):
    around = {
        "sys_platform": platform,
        "os_name": "nt" if platform == "win32" else "posix",
        "python_version": python,
        "python_full_version": f"{python}.9",
        "implementation_name": "cpython",
        "platform_machine": "x86_64",
    }
    files = TIERS[tier]
    locked = {}
    for path in (path for path in files if path.suffix == ".lock"):
        for requirement, _ in entries(path):
            marker = requirement.marker or Marker("python_version > '3'")
            if marker.evaluate(around):
                locked.setdefault(requirement.name, set()).add(str(requirement.specifier))
    assert {name for name, versions in locked.items() if len(versions) > 1} == set()
    for path in (path for path in files if path.suffix == ".txt"):
        for line in path.read_text(encoding="utf-8").splitlines():
            name, _, version = line.partition("==")
            if version and name != "torch":
                assert locked[name] == {f"=={version}"}


def test_a_reader_gets_at_most_110_packages():
    here = [r for r, _ in entries(bootstrap.LOCK) if not r.marker or r.marker.evaluate()]
    assert len(here) + len(["torch", "pip"]) <= 110


def test_uv_is_asked_for_every_platform_and_torch_is_left_out(tmp_path, monkeypatch):
    asked = []

    def run(command, **_):
        asked.append(command[5:])
        told = "torch==2.13.0\nnvidia-nvtx==1 ; sys_platform == 'linux'\nsympy==1\n"
        return type("Done", (), {"stdout": told})

    monkeypatch.setattr(lock.subprocess, "run", run)
    lock.lock_all(upgrade=True)
    first = asked[1]
    assert "--generate-hashes" in first
    assert first[first.index("--output-file") + 1] == "requirements.lock"
    left_out = [first[n + 1] for n, word in enumerate(first) if word == "--no-emit-package"]
    assert left_out == ["torch", "nvidia-nvtx"]
    assert all("--universal" in command for command in asked)
    assert all("--upgrade" in command for command in asked[1:])


def test_what_uv_cannot_resolve_is_a_sentence(monkeypatch, capfd):
    monkeypatch.setattr(lock.sys, "executable", "false")
    assert lock.main([]) == 2
    assert "uv could not resolve the pins" in capfd.readouterr().err
