"""A change runs the tests that it can reach, and leaves out none of them."""

import subprocess

import pytest

from tests.touched import changed_files, is_out_of_reach, reached

NLL, ATTENTION, FAST = (
    "tests.contracts.test_nll",
    "tests.contracts.test_trials",
    "tests.decoder_lm.test_fast",
)


@pytest.mark.parametrize(
    ("changed", "module", "contract", "left_out"),
    [
        ("course_lib/contracts/likelihood/nll.py", ATTENTION, "attention", True),
        ("course_lib/contracts/likelihood/nll.py", ATTENTION, "nll", False),
        ("course_lib/contracts/likelihood/nll.py", NLL, None, False),
        ("course_lib/contracts/engine/call.py", ATTENTION, "attention", False),
        ("course_lib/text.py", FAST, None, False),
        ("course_lib/decoder_lm/fast.py", FAST, None, False),
        ("course_lib/decoder_lm/fast.py", ATTENTION, "nll", True),
        ("tests/contracts/trial.py", ATTENTION, "nll", False),
        ("tests/contracts/variants_nll.py", ATTENTION, "nll", False),
        ("tests/contracts/variants_nll.py", ATTENTION, "tying", True),
        ("notebooks/src/module_03_basic_transformer.py", FAST, None, True),
        ("README.md", FAST, None, True),
        ("requirements.txt", FAST, None, False),
        ("reference/module_03.json", FAST, None, False),
        ("course_lib/contracts/likelihood/nll.py", "tests.test_plots", None, False),
    ],
)
def test_what_a_change_cannot_reach_is_left_out(changed, module, contract, left_out):
    assert is_out_of_reach(module, contract, {changed}) == left_out


def test_what_a_package_loads_when_asked_is_reached():
    paths = reached(["tests.contracts.variants_nll"])
    assert "course_lib/contracts/likelihood/nll.py" in paths  # by way of a table of names
    assert "course_lib/contracts/attention/attention.py" not in paths


def git(root, *arguments):
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)


def test_what_changed_is_what_was_not_pushed_and_nothing_means_everything(tmp_path, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    assert changed_files(tmp_path) is None  # no git
    git(tmp_path, "init", "-b", "main")
    (tmp_path / "a.py").write_text("1\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-m", "one")
    assert changed_files(tmp_path) is None
    (tmp_path / "a.py").write_text("2\n")
    (tmp_path / "b.py").write_text("3\n")
    assert changed_files(tmp_path) == {"a.py", "b.py"}
    git(tmp_path, "clone", ".", "clone")
    clone = tmp_path / "clone"
    (clone / "a.py").write_text("4\n")
    git(clone, "commit", "-am", "not pushed yet")
    assert changed_files(clone) == {"a.py"}
    monkeypatch.setenv("CI", "true")
    assert changed_files(clone) is None
