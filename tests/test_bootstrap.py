"""The environment is made once, mended when damaged, and never left half made unnoticed."""

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from course_build import environment
from course_build.environment import bootstrap

HERE = tuple(sys.version_info[:2])


def held(venv):
    """The digests in an environment's stamp."""
    return set(bootstrap.read_stamp(venv).split())


@pytest.fixture
def pins(tmp_path):
    path = tmp_path / "requirements.txt"
    path.write_text("# nothing to install\n", encoding="utf-8")
    return (path,)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """One real environment, made by `ensure` in a folder with a space and Cyrillic letters."""
    folder = tmp_path_factory.mktemp("курс a")
    pins = folder / "requirements.txt"
    pins.write_text("# nothing to install\n", encoding="utf-8")
    python = bootstrap.ensure(folder / ".venv", (pins,))
    return folder / ".venv", (pins,), python


@pytest.fixture
def steps(monkeypatch):
    """Record what `ensure` would do instead of doing it."""
    done = []
    monkeypatch.setattr(bootstrap, "create", lambda venv: done.append("create"))
    monkeypatch.setattr(bootstrap, "install", lambda *args: done.append("install"))
    return done


def test_the_environment_runs_and_is_stamped_with_the_digest_of_its_pins(made):
    venv, pins, python = made
    code = "import sys; print(sys.prefix)"
    answer = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    assert Path(answer.stdout.strip()) == venv
    assert held(venv) == bootstrap.digests(pins)


def test_a_second_call_does_nothing(made, steps, capsys):
    venv, pins, python = made
    assert bootstrap.ensure(venv, pins) == python
    assert steps == []
    assert capsys.readouterr().err == ""


def test_changed_pins_are_installed_over_what_is_there(made, steps, tmp_path, capsys):
    changed = tmp_path / "requirements.txt"
    changed.write_text("# other pins\n", encoding="utf-8")
    bootstrap.ensure(made[0], (changed,))
    assert steps == ["install"]
    assert "pins changed" in capsys.readouterr().err


def test_an_installation_that_was_cut_off_is_made_anew(made, steps, capsys):
    venv, pins, _ = made
    stamp = bootstrap.read_stamp(venv)
    bootstrap.write_stamp(venv, bootstrap.UNFINISHED)
    try:
        bootstrap.ensure(venv, pins)
    finally:
        bootstrap.write_stamp(venv, stamp)
    assert steps == ["create", "install"]
    assert "cut off" in capsys.readouterr().err


def test_an_environment_whose_python_is_gone_is_made_anew(pins, steps, tmp_path, capsys):
    venv = tmp_path / ".venv"
    python = bootstrap.venv_python(venv)
    python.parent.mkdir(parents=True)
    python.symlink_to(tmp_path / "no-such-python")
    bootstrap.write_stamp(venv, "\n".join(bootstrap.digests(pins)))
    bootstrap.ensure(venv, pins)
    assert steps == ["create", "install"]
    assert "does not run (moved, copied or half made)" in capsys.readouterr().err


def test_an_environment_of_another_python_is_made_anew():
    reason = bootstrap.why_rebuild(Path(__file__), "x", (3, 11), (3, 13))
    assert "has Python 3.11, this is 3.13" in reason
    assert bootstrap.why_rebuild(Path(__file__), "x", HERE, HERE) is None


def test_an_environment_that_a_person_made_is_used_not_deleted(made, steps):
    venv, pins, _ = made
    stamp = bootstrap.read_stamp(venv)
    (venv / bootstrap.STAMP).unlink()
    try:
        bootstrap.ensure(venv, pins)
    finally:
        bootstrap.write_stamp(venv, stamp)
    assert steps == ["install"]


def test_creating_marks_the_environment_unfinished_before_anything_else(tmp_path, monkeypatch):
    venv = tmp_path / ".venv"
    seen = []

    def fail(command, **_):
        seen.append(bootstrap.read_stamp(venv))
        return 1

    monkeypatch.setattr(bootstrap, "run", fail)
    with pytest.raises(bootstrap.BootstrapError, match="apt-get install python3-venv"):
        bootstrap.create(venv)
    assert seen == [bootstrap.UNFINISHED]


@pytest.fixture
def impossible(tmp_path, monkeypatch):
    """A pin that pip cannot find, and no index to ask."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    path = tmp_path / "impossible.txt"
    path.write_text("no-such-package-of-the-course==0\n", encoding="utf-8")
    return (path,)


def test_pins_that_pip_could_not_install_are_not_stamped(made, impossible):
    venv, pins, _ = made
    with pytest.raises(bootstrap.BootstrapError, match="Nothing was removed"):
        bootstrap.ensure(venv, impossible)
    assert held(venv) == set()  # and not `unfinished`: what was there is used on
    bootstrap.ensure(venv, pins)
    assert held(venv) == bootstrap.digests(pins)


def test_what_was_made_for_an_installation_that_failed_does_not_fill_the_disk(
    impossible, tmp_path, monkeypatch
):
    def create(venv):
        (venv / "half").mkdir(parents=True)
        bootstrap.write_stamp(venv, bootstrap.UNFINISHED)

    monkeypatch.setattr(bootstrap, "create", create)
    monkeypatch.setattr(bootstrap, "run", lambda *_, **__: 1)
    with pytest.raises(bootstrap.BootstrapError, match="installed is removed again"):
        bootstrap.ensure(tmp_path / ".venv", impossible)
    assert not (tmp_path / ".venv").exists()


def test_while_pip_runs_the_stamp_says_unfinished(pins, tmp_path, monkeypatch):
    seen = []

    def look(command, **_):
        seen.append(bootstrap.read_stamp(tmp_path))
        return 0

    monkeypatch.setattr(bootstrap, "run", look)
    bootstrap.install(tmp_path, pins, is_new=True)
    assert seen == [bootstrap.UNFINISHED]
    assert held(tmp_path) == bootstrap.digests(pins)


def test_a_lock_file_is_installed_first_and_no_file_without_its_digest(tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr(bootstrap, "run", lambda command, **_: ran.append(command[3:]) or 0)
    pins, lock = bootstrap.READER[1], bootstrap.READER[0]
    bootstrap.install(tmp_path, (lock, pins), is_new=True)
    assert [command[-2:] for command in ran] == [["-r", str(lock)], ["-r", str(pins)]]
    assert ["--require-hashes" in command for command in ran] == [True, False]


def test_reading_and_writing_need_few_packages_and_all_else_everything():
    for words, files in (
        ("-m course_build.lab --lang ru", bootstrap.READER),
        ("-m course_lib.contracts nll a.py:f", bootstrap.READER),
        ("build_notebooks.py --check", bootstrap.WRITER),
        ("build_notebooks.py proofread", bootstrap.WRITER),
        ("-m course_build.environment.lock --check", bootstrap.WRITER),
        ("-m course_build.environment.lock", bootstrap.EVERYTHING),
        ("-m pytest build_notebooks.py", bootstrap.EVERYTHING),
        ("", bootstrap.EVERYTHING),
    ):
        assert bootstrap.pins_for(words.split()) == files, words


def test_a_command_that_needs_more_adds_it_and_one_that_needs_less_changes_nothing(
    made, steps, monkeypatch, capsys
):
    venv, stamp = made[0], bootstrap.read_stamp(made[0])
    try:
        bootstrap.write_stamp(venv, "\n".join(bootstrap.digests(bootstrap.EVERYTHING)))
        for few in (bootstrap.READER, bootstrap.WRITER):
            bootstrap.ensure(venv, few)
        assert steps == []
        bootstrap.write_stamp(venv, "\n".join(bootstrap.digests(bootstrap.READER)))
        bootstrap.ensure(venv, bootstrap.EVERYTHING)
        assert steps == ["install"]
        assert "needs more; adding to it" in capsys.readouterr().err
        monkeypatch.undo()  # the real one, with a pip that only says yes
        monkeypatch.setattr(bootstrap, "run", lambda *_, **__: 0)
        bootstrap.install(venv, bootstrap.WRITER, is_new=False)
        assert held(venv) == bootstrap.digests(bootstrap.READER + bootstrap.WRITER)
    finally:
        bootstrap.write_stamp(venv, stamp)


def test_the_digest_ignores_line_endings_and_sees_every_file(tmp_path):
    one, two, dos = tmp_path / "1", tmp_path / "2", tmp_path / "3"
    one.write_bytes(b"a==1\nb==2\n")
    dos.write_bytes(b"a==1\r\nb==2\r\n")
    two.write_bytes(b"a==1\n")
    assert bootstrap.digests((one,)) == bootstrap.digests((dos,))
    assert bootstrap.digests((one, two)) == bootstrap.digests((one,)) | bootstrap.digests((two,))
    assert len(bootstrap.digests((one, two))) == 2


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 6, 15), (3, 10, 9)])
def test_an_old_python_is_told_what_to_do(version):
    """In syntax that it can read: the real one where it is installed, else its version."""
    assert "Python 3.11 or newer is needed, this is Python 3.10" in environment.refusal((3, 10, 9))
    assert environment.refusal((3, 11, 0)) == ""
    code = "import runpy, sys; sys.version_info = {}; runpy.run_module({!r}, run_name='__main__')"
    python = shutil.which("python{}.{}".format(*version))
    command = [sys.executable, "-c", code.format(version, "course_build.environment")]
    if python and subprocess.run([python, "-c", ""], capture_output=True).returncode == 0:
        command = [python, "-m", "course_build.environment"]
    told = subprocess.run(command, cwd=bootstrap.ROOT, capture_output=True, text=True, check=False)
    assert told.returncode == 2
    assert "or newer is needed, this is Python {}.{} ".format(*version) in told.stderr
    assert "Traceback" not in told.stderr


@pytest.mark.parametrize("code", [0, 1, 2, 77])
def test_the_exit_code_of_the_command_is_passed_on(code):
    assert bootstrap.run([sys.executable, "-c", f"raise SystemExit({code})"]) == code


def test_a_command_killed_by_a_signal_counts_as_in_a_shell():
    code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert bootstrap.run([sys.executable, "-c", code]) == 128 + signal.SIGKILL


def test_ctrl_c_lets_the_command_tidy_up_and_gives_130(tmp_path):
    tidied = tmp_path / "tidied"
    child = (
        "import pathlib, time\n"
        "try:\n    print('ready', flush=True); time.sleep(60)\n"
        f"except KeyboardInterrupt: time.sleep(0.3); pathlib.Path({str(tidied)!r}).touch()\n"
    )
    code = (
        "import signal, sys; from course_build.environment import bootstrap\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a job of `&` ignores it
        f"sys.exit(bootstrap.run([sys.executable, '-c', {child!r}]))"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=bootstrap.ROOT,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    with parent.stdout as out:
        assert out.readline() == b"ready\n"
        os.killpg(parent.pid, signal.SIGINT)  # as a terminal does: to the whole group
        assert parent.wait(20) == 130
    assert tidied.exists()


def test_sigterm_is_passed_on_and_gives_143():
    child = (
        "import os, signal, time\n"  # os.write, since the signal may come while print is at work
        "def told(*_): os.write(1, b'told\\n'); os._exit(0)\n"
        "signal.signal(signal.SIGTERM, told)\n"
        "print('ready', flush=True); time.sleep(60)\n"
    )
    code = (
        "import sys; from course_build.environment import bootstrap\n"
        f"sys.exit(bootstrap.run([sys.executable, '-c', {child!r}]))"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], cwd=bootstrap.ROOT, stdout=subprocess.PIPE
    )
    with parent.stdout as out:
        assert out.readline() == b"ready\n"
        parent.terminate()  # to this one process, as a supervisor does
        assert out.readline() == b"told\n"
        assert parent.wait(20) == 143


class Installer:
    """Real bootstrap processes on one environment whose pip waits until the test lets it end."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "requirements.txt").touch()
        self.started = []
        pip = (
            "#!/bin/sh\n"
            f'if [ "$2" != pip ]; then echo {HERE[0]} {HERE[1]}; exit; fi\n'
            f"echo $$ >> '{folder}/pips'\n"
            "n=0\n"  # at most 30 s, so that a failed test leaves nothing running
            f"while [ ! -e '{folder}/go' ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n+1)); done\n"
        )
        self.code = (
            "import functools, shutil, sys; from pathlib import Path\n"
            "from course_build.environment import bootstrap\n"
            f"folder = Path({str(folder)!r})\n"
            "def create(venv):\n"
            "    shutil.rmtree(venv, ignore_errors=True)\n"
            "    python = bootstrap.venv_python(venv)\n"
            "    python.parent.mkdir(parents=True)\n"
            "    bootstrap.write_stamp(venv, bootstrap.UNFINISHED)\n"
            f"    python.write_text({pip!r}); python.chmod(0o755)\n"
            "bootstrap.create = create\n"
            "bootstrap.ensure = functools.partial(bootstrap.ensure, folder / '.venv')\n"
            "bootstrap.pins_for = lambda arguments: (folder / 'requirements.txt',)\n"
            "sys.exit(bootstrap.main([]))\n"
        )

    def start(self):
        process = subprocess.Popen(
            [sys.executable, "-c", self.code],
            cwd=bootstrap.ROOT,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def pips(self, count=1):
        """Wait until so many pips have begun and return their process numbers."""
        path, end = self.folder / "pips", time.monotonic() + 20
        while time.monotonic() < end:
            found = path.read_text().split() if path.exists() else []
            if len(found) >= count:
                return [int(pid) for pid in found]
            time.sleep(0.02)
        raise AssertionError(f"{count} pips did not begin")

    def let_go(self):
        (self.folder / "go").touch()


@pytest.fixture
def installer(tmp_path):
    installer = Installer(tmp_path)
    yield installer
    installer.let_go()
    for process in installer.started:
        process.communicate(timeout=20)


def test_a_second_command_waits_for_the_installation_of_the_first(installer):
    first = installer.start()
    installer.pips()
    second = installer.start()
    assert second.stderr.readline() == "[course] another command is preparing .venv; waiting\n"
    installer.let_go()
    assert second.communicate(timeout=20)[1] == ""  # it finds the work done and says no more
    first.communicate(timeout=20)
    assert (first.returncode, second.returncode) == (0, 0)
    assert len(installer.pips()) == 1


def test_sigterm_during_the_installation_ends_pip_and_leaves_no_lock(installer):
    first = installer.start()
    (pip,) = installer.pips()
    first.terminate()
    assert "run the same command again" in first.communicate(timeout=20)[1]
    assert first.returncode == 143
    with pytest.raises(ProcessLookupError):
        os.kill(pip, 0)
    installer.let_go()
    second = installer.start()
    assert "cut off; making it anew" in second.communicate(timeout=20)[1]
    assert second.returncode == 0


def test_a_pip_that_outlives_a_killed_command_is_waited_for(installer):
    first = installer.start()
    installer.pips()
    first.kill()
    first.wait(20)
    second = installer.start()
    assert "waiting" in second.stderr.readline()
    installer.let_go()
    assert "cut off; making it anew" in second.communicate(timeout=20)[1]
    assert second.returncode == 0
    assert len(installer.pips()) == 2


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / ".venv.lock").mkdir()  # the one way to fail that holds for an administrator too
    with (
        pytest.raises(bootstrap.BootstrapError, match=re.escape(str(tmp_path)) + ".*\nMake it"),
        bootstrap.alone(tmp_path / ".venv"),
    ):
        pass


def test_clean_all_removes_the_lock_file_too(tmp_path):
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv.lock").touch()
    makefile = str(bootstrap.ROOT / "Makefile")
    subprocess.run(
        ["make", "-f", makefile, "clean-all"], cwd=tmp_path, check=True, capture_output=True
    )
    assert list(tmp_path.iterdir()) == []


def test_it_needs_only_the_standard_library_and_old_syntax():
    text = Path(bootstrap.__file__).read_text(encoding="utf-8")
    imported = set(re.findall(r"^(?:import|from) (\w+)", text, re.MULTILINE))
    assert imported <= sys.stdlib_module_names
    ast.parse(text, feature_version=(3, 6))  # raises when the syntax is newer
