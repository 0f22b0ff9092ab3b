"""Run every rendered notebook with the oldest or the newest packages that pyproject.toml allows.

    python3.11 -m course_build.environment.compat oldest
    python3.13 -m course_build.environment.compat newest [options of course_build.run]

build/compat/END/ gets an environment with this Python: the packages with a declared range at that
end of it, the tools as they are pinned. In it the notebooks must come out with the same
bytes, and run; then the library, installed, must check its own functions by its contracts.

Standard library only: the course's own environment is not needed. Exit code 0: all of that holds;
1: a notebook is stale or failed, or a function was refused; 2: it could not be tried.
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from course_build.environment.bootstrap import (
    ROOT,
    BootstrapError,
    Stopped,
    ensure,
    run,
    say,
)
from course_build.environment.compat.ranges import (
    ENDS,
    RangeError,
    declared,
    requirements,
    wrong_python,
)

SHOW = """
import platform, sys
from importlib.metadata import version
versions = (f"{name} {version(name)}" for name in sys.argv[2:])
print(f"[course] {sys.argv[1]} ran: Python {platform.python_version()},", ", ".join(versions))
"""
RUNNER = ("nbclient", "papermill", "rich", "filelock")  # what executes the notebooks
LIBRARY = ("course_lib", "pyproject.toml", "README.md", "LICENSE")  # what a wheel is made of
OWN = {"causal_mask": "masks.py:causal_allowed", "sampling": "sampling.py:token_distribution"}


def prepare(end: str, folder: Path) -> tuple[Path, list[str]]:
    """Make the environment of one end; return its interpreter and the packages with a range."""
    bounds = declared((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    reason = wrong_python(end, bounds, tuple(sys.version_info[:2]))
    if reason:
        raise RangeError(reason)
    folder.mkdir(parents=True, exist_ok=True)
    pins = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    others = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8").splitlines()
    pins += "".join(f"{line}\n" for line in others if line.partition("==")[0] in RUNNER)
    wanted = folder / "requirements.txt"
    wanted.write_text(requirements(end, bounds, pins), encoding="utf-8", newline="\n")
    if end == "newest":  # the newest of an earlier day may be there
        shutil.rmtree(folder / "venv", ignore_errors=True)
    python = ensure(folder / "venv", (wanted,))
    return python, [name for name in bounds if name != "python"]


def copy_library(folder: Path) -> Path:
    """Copy what the library is built from: the build writes beside its sources."""
    source = folder / "source"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir()
    for name in LIBRARY:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile
        copy(ROOT / name, source / name)
    return source


def prove(python: Path, folder: Path, options: list[str]) -> int:
    """Build, run and check in an environment; return the worst exit code of all."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    environment |= {"PYTHONUTF8": "1", "OMP_NUM_THREADS": "1"}
    library = folder / "library"
    shutil.rmtree(library, ignore_errors=True)
    pip = ["-m", "pip", "install", "-qq", "--no-input", "--disable-pip-version-check"]
    steps = [
        ["-m", "pip", "check"],
        ["build_notebooks.py", "--check"],
        ["-m", "course_build.run", "--output", str(folder / "executed"), *options],
        [*pip, "--no-deps", "--target", str(library), str(copy_library(folder))],
    ]
    codes = []
    for step in steps:
        codes.append(run([str(python), *step], environment))
        if codes[-1] in (130, 143):
            return codes[-1]
    for contract, function in OWN.items():
        command = ["-P", "-m", "course_lib.contracts", contract]
        command.append(str(library / "course_lib" / function))
        codes.append(run([str(python), *command], environment | {"PYTHONPATH": str(library)}))
    return max(codes)


def main(arguments: list[str] | None = None) -> int:
    """Prove one end of the declared ranges and return the exit code."""
    prog = "python -m course_build.environment.compat"
    parser = argparse.ArgumentParser(prog, description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("end", choices=ENDS)
    known, options = parser.parse_known_args(arguments)
    folder = ROOT / "build" / "compat" / known.end
    try:
        python, packages = prepare(known.end, folder)
        code = prove(python, folder, options)
        subprocess.run([python, "-c", SHOW, known.end, *packages], check=True)
    except (BootstrapError, RangeError, OSError, subprocess.CalledProcessError) as error:
        say(f"[course] {error}")
        return 2
    except Stopped as stop:
        say(f"\n[course] {stop}")
        return stop.code
    return code


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
    sys.exit(130)
