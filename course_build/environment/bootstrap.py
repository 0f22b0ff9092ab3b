"""Make the course's virtual environment ready, then run its Python with the given arguments.

    python3 -m course_build.environment ARGUMENTS...

The first call creates .venv and installs what the command needs: to read or to write takes few
packages, any other command all of them. Later calls do so again only when more is needed, the pins
changed or the environment is damaged. Standard library only.
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
NAMES = ("requirements", "requirements-build", "requirements-dev")
PINS, BUILD_PINS, DEV_PINS = (ROOT / (name + ".txt") for name in NAMES)
LOCK, BUILD_LOCK, DEV_LOCK = (ROOT / (name + ".lock") for name in NAMES)
READER, WRITER = (LOCK, PINS), (BUILD_LOCK, BUILD_PINS)
EVERYTHING = (LOCK, BUILD_LOCK, DEV_LOCK, PINS, BUILD_PINS, DEV_PINS)
FEW = (  # how the commands begin that need no more than a reader, or a writer
    (["-m", "course_build.lab"], READER),
    (["-m", "course_lib.contracts"], READER),
    (["-m", "course_lib.checking"], READER),
    (["build_notebooks.py"], WRITER),
    (["-m", "ruff"], WRITER),
    (["-m", "course_build.environment.lock", "--check"], WRITER),
)
STAMP = "course-requirements.sha256"  # in the environment: the digests of the files it holds
UNFINISHED = "unfinished\n"  # what the stamp says while an installation is under way


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


def pins_for(arguments):
    """Return the files that say what a command needs."""
    found = (files for words, files in FEW if arguments[: len(words)] == words)
    return next(found, EVERYTHING)


def digests(requirements):
    """Return the SHA-256 of each file of requirements."""
    contents = (path.read_bytes().replace(b"\r\n", b"\n") for path in requirements)
    return {hashlib.sha256(content).hexdigest() for content in contents}


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


def install(venv, requirements, is_new):
    """Install requirements and write the stamp last; what was made for them goes if that fails."""
    kept = digests(EVERYTHING).intersection(read_stamp(venv).split())
    write_stamp(venv, UNFINISHED)
    locks = [path for path in requirements if path.suffix == ".lock"]
    pins = [path for path in requirements if path not in locks]
    # First all that has digests; the pins then bring torch alone (lock.py says why it has none).
    if pip(venv, locks, "--require-hashes") or pip(venv, pins):
        if is_new:
            shutil.rmtree(str(venv), ignore_errors=True)  # half an environment may fill a disk
        else:
            write_stamp(venv, "")
        raise BootstrapError(
            "pip could not install the requirements (its words are above). Usual causes: no "
            "network to the package index, a full disk, a platform without a wheel for a pin.\n"
            + ("What was installed is removed again" if is_new else "Nothing was removed")
            + ": mend the cause and run the same command again."
        )
    write_stamp(venv, "".join(line + "\n" for line in sorted(kept | digests(requirements))))


def pip(venv, requirements, *options):
    """Install files of requirements; return pip's exit code."""
    if not requirements:
        return 0
    command = [str(venv_python(venv)), "-m", "pip", "install", "-qq", "--no-input", "--no-compile"]
    command += ["--disable-pip-version-check", *options]
    for path in requirements:
        command += ["-r", str(path)]
    return run_step(command)


def ensure(venv=VENV, requirements=EVERYTHING):
    """Bring the environment in line with the pins and return its interpreter."""
    if not is_ready(venv, requirements):
        with alone(venv):
            prepare(venv, requirements)
    return venv_python(venv)


def is_ready(venv, requirements):
    """Return whether an environment of this Python runs and holds the pins."""
    held, python = read_stamp(venv).split(), tuple(sys.version_info[:2])
    return digests(requirements).issubset(held) and ask_version(venv) == python


def prepare(venv, requirements):
    """Create or update the environment, unless whoever held the lock before us has done it."""
    if is_ready(venv, requirements):
        return
    stamp, python = read_stamp(venv), tuple(sys.version_info[:2])
    reason = why_rebuild(venv, stamp, ask_version(venv), python)
    held = digests(EVERYTHING).intersection(stamp.split())
    more = "this command needs more" if held else "its pins changed"
    say("[course] environment {}: {}".format(venv.name, reason or more + "; adding to it"))
    say("[course] installing the pinned packages; the first time takes a minute or more")
    if reason:
        create(venv)
    install(venv, requirements, bool(reason))


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
        python = ensure(requirements=pins_for(arguments))
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
