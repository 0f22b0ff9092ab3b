"""The parts of the try-out: JupyterLite, Pyodide from npm, the kernel's wheels from PyPI."""

import hashlib
import json
import re
import shutil
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PINS = Path(__file__).resolve().parent / "requirements.txt"
CORE = (
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "pyodide.js",
    "pyodide.mjs",
    "python_stdlib.zip",
)
LOCK = "pyodide-lock.json"
STARTS = ("ipython", "micropip", "jedi", "packaging")  # what the kernel imports, and all they need
MISSING = "comm"  # the kernel imports it too, but Pyodide's list lacks it
NAMES = ("npm: pyodide", "browser: comm")  # what the comments pin, as the fields of Pins
PATIENCE = 600  # seconds


class PartError(Exception):
    """A part that cannot be had; the message says which, and how to mend it."""


@dataclass(frozen=True)
class Pins:
    """What pip does not install: Pyodide's version on npm, and comm's for the browser."""

    pyodide: str
    comm: str


def read_pins(text: str) -> Pins:
    """Read the two pins that stand in comments of the requirements."""
    found = {name: re.findall(rf"^# {name}[=@]+(\S+)$", text, re.MULTILINE) for name in NAMES}
    for name, versions in found.items():
        if len(versions) != 1:
            raise PartError(f"{PINS.name} must pin this once, in a comment of its own: {name}")
    return Pins(*(versions[0] for versions in found.values()))


def wheels(lock: Mapping[str, Any], comm: str) -> dict[str, dict[str, Any]]:
    """Choose from Pyodide's list what the kernel imports, and add comm: {name: entry}."""
    entries = lock["packages"]
    chosen: dict[str, dict[str, Any]] = {}
    waiting = list(STARTS)
    while waiting:
        name = waiting.pop().replace("_", "-")
        if name not in chosen:
            chosen[name] = entries[name]
            waiting += entries[name]["depends"]
    chosen[MISSING] = {
        **entries["traitlets"],
        "name": MISSING,
        "version": comm,
        "file_name": f"{MISSING}-{comm}-py3-none-any.whl",
        "imports": [MISSING],
        "depends": ["traitlets"],
    }
    return dict(sorted(chosen.items()))


def own_lock(lock: Mapping[str, Any], comm: str, folder: Path) -> bytes:
    """Pyodide's list cut down to the wheels in a folder, with the digests that these have.

    PyPI's wheels hold the same code as Pyodide's but are other files.
    """
    packages = {
        name: {**entry, "sha256": hashlib.sha256(read(folder / entry["file_name"])).hexdigest()}
        for name, entry in wheels(lock, comm).items()
    }
    return json.dumps({"info": lock["info"], "packages": packages}, indent=1).encode()


def read(path: Path) -> bytes:
    """Read a downloaded file; PartError where the index gave another than was asked for."""
    if not path.is_file():
        raise PartError(f"the package index has no {path.name}, which Pyodide's list names")
    return path.read_bytes()


def fetch(python: Path, pins: Pins, folder: Path) -> dict[str, Any]:
    """Download what the folder lacks: Pyodide's archive and the wheels. Return Pyodide's list."""
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / f"pyodide-{pins.pyodide}.tgz"
    if not archive.is_file():
        npm = shutil.which("npm")
        if npm is None:
            raise PartError("no npm here; it comes with Node.js, and Pyodide comes from it")
        package = f"pyodide@{pins.pyodide}"
        call([npm, "pack", "--silent", package, "--pack-destination", str(folder)], package)
    with tarfile.open(archive) as packed:
        lock = json.load(packed.extractfile(f"package/{LOCK}"))
    wanted = wheels(lock, pins.comm).values()
    lacking = [each for each in wanted if not (folder / each["file_name"]).is_file()]
    if lacking:
        names = [f"{each['name']}=={each['version']}" for each in lacking]
        target = ["--python-version", lock["info"]["python"], "--only-binary", ":all:"]
        pip = [str(python), "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder)]
        call([*pip, *target, *names], "the kernel's wheels")
    return lock


def lay_out(pins: Pins, lock: Mapping[str, Any], parts: Path, folder: Path) -> None:
    """Put Pyodide, the wheels and their list where JupyterLite serves them from."""
    folder.mkdir(parents=True)
    with tarfile.open(parts / f"pyodide-{pins.pyodide}.tgz") as packed:
        for name in CORE:
            (folder / name).write_bytes(packed.extractfile(f"package/{name}").read())
    for entry in wheels(lock, pins.comm).values():
        (folder / entry["file_name"]).write_bytes(read(parts / entry["file_name"]))
    (folder / LOCK).write_bytes(own_lock(lock, pins.comm, parts))


def call(command: Sequence[str], what: str, folder: Path | None = None) -> None:
    """Run a program, in a folder of its own if need be; PartError with its last words."""
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        raise PartError(f"{what}: no end after {PATIENCE} s") from None
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no words").splitlines()[-5:]
        raise PartError("\n".join([f"{what} cannot be had:", *last]))
