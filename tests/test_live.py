"""Controls are shown where somebody can click, and only there."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from course_build.run.environment import kernel_environment
from course_build.run.outcome import Plan
from course_lib import live
from course_lib.live import is_live, load_widgets

ROOT = Path(__file__).parents[1]


@pytest.fixture
def kernel(monkeypatch):
    """As in JupyterLab: a shell with a kernel, and nothing that asks for pictures."""
    monkeypatch.delenv("COURSE_STATIC", raising=False)
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setattr(live, "get_ipython", lambda: shell)
    return shell


def test_a_kernel_with_ipywidgets_is_live(kernel):
    assert is_live()


@pytest.mark.parametrize(("value", "live_then"), [("1", False), ("0", True), ("", True)])
def test_the_environment_can_ask_for_pictures(kernel, monkeypatch, value, live_then):
    monkeypatch.setenv("COURSE_STATIC", value)
    assert is_live() is live_then


def test_ipython_in_a_terminal_has_nothing_to_click(kernel):
    del kernel.kernel
    assert not is_live()


def test_plain_python_is_not_live(monkeypatch):
    monkeypatch.delenv("COURSE_STATIC", raising=False)
    assert not is_live()


def test_without_ipywidgets_nothing_is_live(kernel, monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert not is_live()
    with pytest.raises(ImportError):
        load_widgets()


def test_ipywidgets_is_imported_only_when_it_is_asked_for():
    code = "import sys; import course_lib.live; print('ipywidgets' in sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert (ran.stdout, ran.stderr) == ("False\n", "")


def test_the_runner_asks_for_pictures(tmp_path):
    env = kernel_environment(tmp_path, tmp_path, Plan(locale="C"))
    assert env["COURSE_STATIC"] == "1"
    assert "COURSE_STATIC" not in os.environ
