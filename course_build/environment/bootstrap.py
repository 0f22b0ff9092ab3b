"""Make the course's virtual environment ready, then run its Python with the given arguments.

    python3 -m course_build.environment ARGUMENTS...

The first call creates .venv and installs the pinned requirements; later calls do so again only
when the pins changed or the environment is damaged. Standard library only, and it runs on any
Python 3.6+ up to the version check, so that an old Python gets a sentence and not a traceback.
"""

import contextlib
import errno
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None
    import msvcrt

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
REQUIREMENTS = (ROOT / "requirements.txt", ROOT / "requirements-dev.txt")
STAMP = "course-requirements.sha256"  # in the environment: which pins it holds
UNFINISHED = "unfinished\n"  # what the stamp says while an installation is under way
OLDEST = (3, 11)


class BootstrapError(Exception):
    """The environment cannot be made ready; the message says how to mend it."""


class Stopped(Exception):
    """Somebody ended the installation; `code` is the exit code that says how."""

    def __init__(self, code):
        super().__init__("stopped; run the same command again to go on")
        self.code = code


def say(message):
    """Tell the reader something on the error stream: the standard one belongs to the command."""
    print(message, file=sys.stderr, flush=True)


def check_python(version):
    """Refuse a Python that is too old for the pinned packages."""
    if tuple(version[:2]) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        found = ".".join(map(str, version[:2]))
        raise BootstrapError(
            f"Python {wanted} or newer is needed, this is Python {found} ({sys.executable}).\n"
            "Name a newer one: make PYTHON=python3.12 ...; python3.12 -m course_build.environment"
        )


def digest(requirements):
    """Return the SHA-256 of all requirement files together."""
    content = b"\0".join(path.read_bytes().replace(b"\r\n", b"\n") for path in requirements)
    return hashlib.sha256(content).hexdigest() + "\n"


def venv_python(venv):
    """Return the path of an environment's interpreter."""
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def ask_version(venv):
    """Return (major, minor) of an environment's interpreter that has pip, or None if it has not."""
    code = "import pip, sys; print(*sys.version_info[:2])"
    try:
        answer = subprocess.run(
            [str(venv_python(venv)), "-c", code],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    major, minor = answer.stdout.split()
    return int(major), int(minor)


def read_stamp(venv):
    """Return what the environment's stamp says ('' when it has none)."""
    try:
        return (venv / STAMP).read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""


def write_stamp(venv, text):
    """Write the stamp at once or not at all."""
    new = venv / (STAMP + ".new")
    new.write_text(text, encoding="ascii")
    os.replace(str(new), str(venv / STAMP))


def try_lock(file):
    """Lock an open file unless another process has it locked, and return whether it is ours."""
    try:
        if fcntl:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        say("[course] no file locks in this folder: run one command at a time until .venv is made")
    return True


@contextlib.contextmanager
def alone(venv):
    """Let one process at a time prepare an environment; the lock ends with its process."""
    path = venv.with_name(venv.name + ".lock")
    try:
        file = path.open("ab")
    except OSError as error:
        raise BootstrapError(
            f"cannot write in the folder {path.parent} ({error.strerror}).\n"
            "Make it writable, or copy the course to a folder of yours and run the command there."
        ) from None
    with file:
        os.set_inheritable(file.fileno(), True)  # a pip that outlives us still has it locked
        told = False
        while not try_lock(file):
            if not told:
                say(f"[course] another command is preparing {venv.name}; waiting")
            told = True
            time.sleep(0.1)
        yield


def base_python():
    """Return the interpreter to build from: this one, or the one this environment came from."""
    return getattr(sys, "_base_executable", None) or sys.executable


def why_rebuild(venv, stamp, version, wanted):
    """Say why an environment must be made anew; None when it can be used or updated."""
    if not venv.exists():
        return "creating it"
    if version is None:
        return "its Python or pip does not run (moved, copied or half made); making it anew"
    if version != wanted:
        return "it has Python {}.{}, this is {}.{}; making it anew".format(*version + wanted)
    if stamp == UNFINISHED:
        return "an earlier installation was cut off; making it anew"
    return None


def create(venv):
    """Make an empty environment, marked unfinished before anything is in it."""
    if venv.exists():
        shutil.rmtree(str(venv))
    venv.mkdir()
    write_stamp(venv, UNFINISHED)
    if run_step([base_python(), "-m", "venv", str(venv)]):
        raise BootstrapError(
            f"could not create {venv}.\nOn Debian or Ubuntu the module is a package of its own: "
            "apt-get install python3-venv. Then run the same command again."
        )


def install(venv, requirements, stamp, wanted):
    """Install the pinned requirements and write the stamp last."""
    write_stamp(venv, UNFINISHED)
    command = [str(venv_python(venv)), "-m", "pip", "install", "-qq", "--no-input"]
    command += ["--disable-pip-version-check"]
    for path in requirements:
        command += ["-r", str(path)]
    if run_step(command):
        if stamp:  # pip resolves before it touches anything: what was installed still is
            write_stamp(venv, stamp)
        raise BootstrapError(
            "pip could not install the requirements (its words are above). Usual causes: no "
            "network to the package index, a full disk, a platform without a wheel for a pin.\n"
            "Nothing else was changed: mend the cause and run the same command again."
        )
    write_stamp(venv, wanted)


def ensure(venv=VENV, requirements=REQUIREMENTS):
    """Bring the environment in line with the pins and return its interpreter."""
    if not is_ready(venv, requirements):
        with alone(venv):
            prepare(venv, requirements)
    return venv_python(venv)


def is_ready(venv, requirements):
    """Return whether an environment of this Python runs and holds the pins."""
    stamp, python = read_stamp(venv), tuple(sys.version_info[:2])
    return stamp == digest(requirements) and ask_version(venv) == python


def prepare(venv, requirements):
    """Create or update the environment, unless whoever held the lock before us has done it."""
    if is_ready(venv, requirements):
        return
    wanted, stamp, python = digest(requirements), read_stamp(venv), tuple(sys.version_info[:2])
    reason = why_rebuild(venv, stamp, ask_version(venv), python)
    say("[course] environment {}: {}".format(venv.name, reason or "its pins changed; updating"))
    say("[course] installing the pinned packages; the first time takes a few minutes")
    if reason:
        create(venv)
        stamp = ""
    install(venv, requirements, stamp, wanted)


def run(command, environment=None, output=None, folder=ROOT):
    """Run a command to its end; return its exit code (130 after Ctrl-C, 143 after SIGTERM)."""
    stops, child = [], None

    def pass_on(*_):
        stops.append(143)
        if child:
            child.terminate()

    before = signal.signal(signal.SIGTERM, pass_on)
    try:
        child = subprocess.Popen(
            command, cwd=str(folder), env=environment, stdout=output, close_fds=False
        )
        if stops:  # the signal came before there was a child to hear it
            child.terminate()
        while True:
            try:
                code = child.wait()
                break
            except KeyboardInterrupt:
                stops.append(130)  # the child got the same signal: let it tidy up and leave
    finally:
        signal.signal(signal.SIGTERM, before)
    if stops:
        return stops[0]
    return code if code >= 0 else 128 - code  # killed by a signal, as a shell counts it


def run_step(command):
    """Run a step of the installation; return its exit code, or raise Stopped if it was ended."""
    code = run(command, output=sys.stderr)
    if code in (130, 143):
        raise Stopped(code)
    return code


def main(arguments):
    """Make the environment ready, run its Python with the arguments, return the exit code."""
    try:
        check_python(sys.version_info)
        python = ensure()
    except (BootstrapError, OSError) as error:
        say(f"[course] {error}")
        return 2
    except Stopped as stop:
        say(f"\n[course] {stop}")
        return stop.code
    except KeyboardInterrupt:
        say(f"\n[course] {Stopped(130)}")
        return 130
    if not arguments:
        return 0
    return run([str(python), *arguments], dict(os.environ, PYTHONUTF8="1"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
