"""Make the course's virtual environment ready, then run its Python with the given arguments.

    python3 -m course_build.bootstrap ARGUMENTS...

The first call creates .venv and installs the pinned requirements; later calls do so again only
when the pins changed or the environment is damaged. Standard library only, and it runs on any
Python 3.6+ up to the version check, so that an old Python gets a sentence and not a traceback.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
REQUIREMENTS = (ROOT / "requirements.txt", ROOT / "requirements-dev.txt")
STAMP = "course-requirements.sha256"  # in the environment: which pins it holds
UNFINISHED = "unfinished\n"  # what the stamp says while an installation is under way
OLDEST = (3, 11)


class BootstrapError(Exception):
    """The environment cannot be made ready; the message says how to mend it."""


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
            "Name a newer one: make PYTHON=python3.12 ..., or python3.12 -m course_build.bootstrap"
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
    made = subprocess.run([base_python(), "-m", "venv", str(venv)], stdout=sys.stderr)
    if made.returncode:
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
    if subprocess.run(command, stdout=sys.stderr).returncode:
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
    wanted, stamp, python = digest(requirements), read_stamp(venv), tuple(sys.version_info[:2])
    reason = why_rebuild(venv, stamp, ask_version(venv), python)
    if reason is None and stamp == wanted:
        return venv_python(venv)
    say("[course] environment {}: {}".format(venv.name, reason or "its pins changed; updating"))
    say("[course] installing the pinned packages; the first time takes a few minutes")
    if reason:
        create(venv)
        stamp = ""
    install(venv, requirements, stamp, wanted)
    return venv_python(venv)


def run(command, environment=None):
    """Run a command to its end and return its exit code (130 after Ctrl-C)."""
    interrupted = False
    child = subprocess.Popen(command, cwd=str(ROOT), env=environment)
    while True:
        try:
            code = child.wait()
        except KeyboardInterrupt:
            interrupted = True  # the child got the same signal: let it tidy up and leave
            continue
        if interrupted:
            return 130
        return code if code >= 0 else 128 - code  # killed by a signal, as a shell counts it


def main(arguments):
    """Make the environment ready, run its Python with the arguments, return the exit code."""
    try:
        check_python(sys.version_info)
        python = ensure()
    except (BootstrapError, OSError) as error:
        say(f"[course] {error}")
        return 2
    except KeyboardInterrupt:
        say("\n[course] stopped; run the same command again to go on")
        return 130
    if not arguments:
        return 0
    return run([str(python), *arguments], dict(os.environ, PYTHONUTF8="1"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
