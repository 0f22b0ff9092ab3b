"""A stamp of the last build that left nothing to do: the same need not be built again.

It holds digests of all that decides what a build writes and says, and of what it wrote. It is
checked before anything large is imported. A stamp that is damaged, or from elsewhere, is none.
"""

import argparse
import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_build.base.files import WRITING, rendered_folders, visible
from course_build.base.places import SETTINGS_FILE, Files

BUILDER = Path(__file__).parents[1]
PLACE = "build/notebooks.stamp"
SETTINGS_OF_LIBRARIES = ("JUPYTEXT", "NBFORMAT", "PYFLAKES")  # how their variables begin


@dataclass(frozen=True)
class Stamp:
    """What decides about a build, as one digest, and the repository that it is built in."""

    root: Path
    inputs: str

    def confirmed(self) -> list[str] | None:
        """The notebooks and pages that the last build named, if nothing has changed since."""
        try:
            whole = (self.root / PLACE).read_bytes()
            body = whole.partition(b"\n")[2]
            if whole != sealed(body):
                return None
            stamp = json.loads(body)
            if stamp["inputs"] != self.inputs or not self._is_untouched(stamp):
                return None
            return stamp["named"]
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def leave(
        self, outputs: Mapping[str, bytes], named: Sequence[str], folders: Iterable[str]
    ) -> None:
        """Write the stamp, if that is possible: only time is lost where it is not."""
        stamp = {
            "inputs": self.inputs,
            "named": list(named),
            "outputs": {path: _digest([data]) for path, data in outputs.items()},
            "folders": {folder: visible(self.root, folder) for folder in folders},
        }
        body = json.dumps(stamp, ensure_ascii=False).encode()
        target = self.root / PLACE
        beside = target.with_name(f".{target.name}.{os.getpid()}{WRITING}")
        with contextlib.suppress(OSError):
            try:
                target.parent.mkdir(exist_ok=True)
                beside.write_bytes(sealed(body))
                os.replace(beside, target)
            finally:
                beside.unlink(missing_ok=True)

    def _is_untouched(self, stamp: Mapping[str, Any]) -> bool:
        folders, outputs = stamp["folders"], stamp["outputs"]
        return (
            rendered_folders(self.root) <= folders.keys()
            and all(visible(self.root, folder) == names for folder, names in folders.items())
            and all(_digest([(self.root / p).read_bytes()]) == d for p, d in outputs.items())
        )


def stamp_of(root: Path, options: argparse.Namespace, settings: bytes, files: Files) -> Stamp:
    """Take the stamp of a build that is to be made from these files with these options."""
    read = {SETTINGS_FILE: settings, **files.sources, **files.library, **files.references}
    asked = json.dumps([options.module, options.lang]).encode()
    around = [sys.version, *_libraries(), *_variables()]
    parts = [asked, *(text.encode("utf-8", "surrogateescape") for text in around)]
    for path, data in {**read, **files.glossary, **_builder(root)}.items():
        parts += [path.encode("utf-8", "surrogateescape"), data]
    return Stamp(root, _digest(parts))


def sealed(body: bytes) -> bytes:
    """A stamp's bytes: what it says under its digest, so that any damage shows."""
    return _digest([body]).encode() + b"\n" + body


def _builder(root: Path) -> dict[str, bytes]:
    """The code that builds."""
    paths = [*sorted(BUILDER.rglob("*.py")), *root.glob("build_notebooks.py")]
    return {str(path): path.read_bytes() for path in paths}


def _libraries() -> Iterator[str]:
    """Names and versions of what is installed, as the names of its folders say it."""
    for folder in sys.path:
        with contextlib.suppress(OSError):
            names = sorted(os.listdir(folder or "."))
            yield from (name for name in names if name.endswith((".dist-info", ".egg-info")))


def _variables() -> list[str]:
    return sorted(
        f"{name}={value}"
        for name, value in os.environ.items()
        if name.startswith(SETTINGS_OF_LIBRARIES)
    )


def _digest(parts: Iterable[bytes]) -> str:
    """One digest of several texts, each with its length: no two lists of them look the same."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(b"%d\n" % len(part))
        digest.update(part)
    return digest.hexdigest()
