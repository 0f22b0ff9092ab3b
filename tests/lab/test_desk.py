"""`make lab` opens a page that is there, in the language that is asked for or in the first."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from course_build.lab import __main__ as lab
from course_build.run.jobs import ROOT

from .desk import LANGUAGES

DESK = "work"  # the folder of the working copy


@pytest.fixture
def started(monkeypatch):
    """What would be started instead of JupyterLab: its words and its environment."""
    asked = []
    monkeypatch.setattr(lab, "bring_up_to_date", lambda root, languages: ["a line to tell"])
    monkeypatch.setattr(lab.os, "execve", lambda path, words, around: asked.append((words, around)))
    monkeypatch.setattr(
        lab.subprocess, "run", lambda *given, **_: subprocess.CompletedProcess(given, 0)
    )

    def run(*arguments):
        lab.main(list(arguments))
        return asked[-1]

    return run


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_welcome_page_of_a_language_opens_in_the_working_copy(started, language, capsys):
    words, around = started("--lang", language, "--no-browser")
    [address] = [word for word in words if word.startswith("--LabApp.default_url=")]
    assert address == f"--LabApp.default_url=/lab/tree/{DESK}/{language}/welcome.md"
    assert (ROOT / "notebooks" / language / "welcome.md").is_file()
    assert words[:3] == [sys.executable, "-m", "jupyterlab"]
    assert "--no-browser" in words
    assert around["JUPYTER_CONFIG_PATH"] == str(ROOT / "course_build" / "lab")
    assert "[course] a line to tell\n" in capsys.readouterr().err


def test_without_a_language_the_first_opens_whatever_the_shell_speaks(started, monkeypatch):
    monkeypatch.setenv("LANG", "fr_FR.UTF-8")
    assert f"--LabApp.default_url=/lab/tree/{DESK}/{LANGUAGES[0]}/welcome.md" in started()[0]


def test_a_language_that_is_not_there_is_refused_with_those_that_are(started, capsys):
    assert lab.main(["--lang", "fr"]) == 2
    told = capsys.readouterr().err
    assert "there is no language 'fr'" in told
    assert f"choose from {', '.join(LANGUAGES)}" in told


@pytest.mark.skipif(os.name != "posix", reason="only there is a root")
def test_root_is_let_in_with_a_line(started, monkeypatch, capsys):
    monkeypatch.setattr(lab.os, "geteuid", lambda: 0)
    assert "--allow-root" in started()[0]
    assert "started as root" in capsys.readouterr().err
    monkeypatch.setattr(lab.os, "geteuid", lambda: 1000)
    assert "--allow-root" not in started()[0]
    assert "root" not in capsys.readouterr().err


def test_make_lab_passes_the_language_and_the_options_on():
    command = ["make", "-n", "lab", "LANG=ru", "ARGS=--no-browser"]
    outside = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    options = {"cwd": ROOT, "env": outside, "capture_output": True, "text": True, "check": True}
    told = subprocess.run(command, **options).stdout
    assert told.split()[-4:] == ["course_build.lab", "--lang", "ru", "--no-browser"]


def test_a_normal_start_says_no_warning(tmp_path):
    """The real one, on a course of its own, until it tells its address."""
    for name in ("course_build", "notebooks"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    own = {"HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    (tmp_path / "home").mkdir()
    command = [sys.executable, "-m", "course_build.lab", "--no-browser", "--port=0"]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=own, stderr=subprocess.PIPE, text=True, errors="replace"
    )
    with process:
        said = []
        for line in process.stderr:
            said.append(line)
            if f"/{DESK}/en/welcome.md?token=" in line:
                break
        process.kill()  # it has no children yet
    assert "welcome.md" in said[-1], "".join(said)
    assert [line for line in said if re.search(r"warning|\[[WEC] ", line, re.IGNORECASE)] == []
    assert (tmp_path / "work/en/welcome.md").is_file()
