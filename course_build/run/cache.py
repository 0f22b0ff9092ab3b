"""--cache: leave out a notebook that passed before, when nothing that decides its outputs changed.

An entry is the executed copy and a JSON file with two SHA-256: of the copy, and of all that went
into it: the rendered notebook's bytes, the edition, parameters, limits, locale and kind of kernel,
the runner's own sources, the variables that a kernel inherits, Python, the kind of processor, and
the names and versions of all that is installed. There is one entry for each edition, language and
notebook, so the cache does not grow. Only notebooks that passed are kept. A copy is put in place
only when its bytes still have the SHA-256 that was written down; an entry that does not hold is
said to be damaged and made anew.
"""

import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from course_build.run.environment import KEPT
from course_build.run.jobs import ROOT, label
from course_build.run.outcome import Job, Outcome, Plan
from course_build.run.writing import write_whole
from course_lib.checking.regular import read_regular

CACHE = ROOT / "build" / "cache"
SOURCES = ("course_build", "course_lib/checking")
PROCESSOR = ("model name", "flags", "CPU implementer", "CPU part", "Features")  # of /proc/cpuinfo
DAMAGED = (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError)


def _sha256(*contents: bytes) -> str:
    return hashlib.sha256(b"".join(contents)).hexdigest()


def runner_sources(root: Path = ROOT) -> dict[str, str]:
    """Give the SHA-256 of every source of course_build and of what supervises its kernels."""
    paths = [path for folder in SOURCES for path in sorted((root / folder).rglob("*.py"))]
    return {path.relative_to(root).as_posix(): _sha256(path.read_bytes()) for path in paths}


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> list[str]:
    """Say what kind of processor computes here: another one may round sums differently."""
    try:
        first = cpuinfo.read_text(encoding="utf-8", errors="replace").split("\n\n")[0]
    except OSError:
        return [platform.processor()]
    lines = [line.split(":", 1) for line in first.splitlines() if ":" in line]
    return [f"{name.strip()}:{value}" for name, value in lines if name.strip() in PROCESSOR]


def installed() -> list[str]:
    """List names and versions of all installed distributions."""
    found = {f"{d.name}=={d.version}" for d in importlib.metadata.distributions()}
    return sorted(found)


def environment(plan: Plan) -> dict[str, Any]:
    """Collect all that decides the outputs of every notebook of a run."""
    asked = asdict(plan)
    for name in ("workers", "total_limit"):  # how many at once changes no output
        del asked[name]
    return {
        "plan": asked,
        "runner": runner_sources(),
        "python": [sys.version, sys.implementation.cache_tag],
        "machine": [platform.system(), platform.machine(), platform.libc_ver(), *processor()],
        "inherited": {name: os.environ.get(name, "") for name in KEPT},
        "installed": installed(),
    }


class Cache:
    """The executed copies of notebooks that passed under this very plan and environment."""

    def __init__(
        self, plan: Plan, folder: Path = CACHE, say: Callable[[str], None] = lambda _: None
    ) -> None:
        self.folder = folder
        self.say = say
        self.plan = plan
        self._looked_up: dict[Job, str] = {}

    @functools.cached_property
    def _environment(self) -> bytes:
        return json.dumps(environment(self.plan), sort_keys=True, default=repr).encode()

    def digest(self, job: Job) -> str:
        """Give the SHA-256 of all that decides the outputs of a notebook."""
        return _sha256(
            self._environment, b"\0", label(job).encode(), b"\0", read_regular(job.notebook)
        )

    def find(self, job: Job) -> Outcome | None:
        """Put the executed copy of an earlier run in place; None when the notebook must run."""
        try:
            digest = self._looked_up[job] = self.digest(job)
        except OSError:  # what cannot be read fails where it runs
            return None
        copy, note = self._entry(job)
        if not note.exists() and not copy.exists():
            return None
        try:
            told = json.loads(note.read_bytes())
            if told["digest"] != digest:
                return None
            content = copy.read_bytes()
            if _sha256(content) != told["sha256"]:
                raise ValueError("the copy is not the one that was kept")
            cells = {str(key): float(seconds) for key, seconds in told["cells"].items()}
            kept = Outcome(job, "cached", float(told["seconds"]), told["peak_mb"], None, cells)
        except DAMAGED as error:
            self.say(f"cache: the entry of {label(job)} is damaged ({error}); it runs again")
            return None
        write_whole(job.executed, content)
        return kept

    def keep(self, outcome: Outcome) -> None:
        """Keep a notebook that passed, if its file is still the one that was looked up."""
        job = outcome.job
        if outcome.status != "passed" or self._looked_up.get(job) != self.digest(job):
            return
        copy, note = self._entry(job)
        try:
            content = job.executed.read_bytes()
            told = {
                "digest": self._looked_up[job],
                "sha256": _sha256(content),
                "seconds": outcome.seconds,
                "peak_mb": outcome.peak_mb,
                "cells": outcome.cells,
            }
            write_whole(copy, content)
            write_whole(note, json.dumps(told, indent=1).encode() + b"\n")
        except OSError as error:
            self.say(f"cache: {label(job)} passed but cannot be kept: {error}")

    def _entry(self, job: Job) -> tuple[Path, Path]:
        folder = self.folder / job.edition / job.language
        return folder / f"{job.name}.ipynb", folder / f"{job.name}.json"
