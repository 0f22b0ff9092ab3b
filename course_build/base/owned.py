"""Whose a file is: the course's, which may write it anew, or that of somebody who worked in it.

What the course writes it remembers by its fingerprint, in the hidden file RECORD of the folder;
git knows what was committed. A file that is as either of them says is the course's. Every other
one may be somebody's work, and is not written over unless that is asked for; a copy stays then.
"""

import contextlib
import hashlib
import json
from collections.abc import Container, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from course_build.base.files import changed_files, write_files
from course_build.base.findings import CourseError, Finding
from course_build.base.git import git

RECORD = ".written.json"
KEPT = "work/kept"
TEXT_OF = ("cell_type", "source", "outputs", "attachments")  # what a person reads in a cell


def fingerprint(path: str, data: bytes) -> str:
    """Give a digest of what a file says.

    Of a notebook: its cells. To open one, fold a cell or choose a kernel changes none of it.
    """
    if path.endswith(".ipynb"):
        with contextlib.suppress(ValueError, LookupError, TypeError, AttributeError):
            cells = [_text(cell) for cell in json.loads(data)["cells"]]
            data = json.dumps(cells, sort_keys=True).encode()
    return hashlib.sha256(data.replace(b"\r\n", b"\n")).hexdigest()


def _text(cell: Mapping[str, Any]) -> dict[str, Any]:
    """What one cell says; a list of lines is one text."""
    said = {name: cell[name] for name in TEXT_OF if cell.get(name)}
    source = said.get("source", "")
    return said | {"source": source if isinstance(source, str) else "".join(source)}


def read_record(folder: Path) -> dict[str, str]:
    """Read what was last written in a folder: path -> fingerprint; a damaged record is none."""
    with contextlib.suppress(OSError, ValueError):
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        if isinstance(record, dict):
            return record
    return {}


def write_record(root: Path, folder: str, record: Mapping[str, str]) -> None:
    """Keep a record for the next time, where it says something new."""
    path = f"{folder}/{RECORD}"
    data = (json.dumps(record, indent=1, sort_keys=True) + "\n").encode()
    write_files(root, {path: data} if changed_files(root, {path: data}) else {})


def known(root: Path, path: str, record: Mapping[str, str]) -> set[str]:
    """What the course says at a path: what it wrote there last, and what is committed or staged."""
    blobs = [git(root, "cat-file", "blob", f"{tree}:./{path}") for tree in ("HEAD", "")]
    written = {record[path]} if path in record else set()
    return written | {fingerprint(path, data) for data in blobs if data}


def write_ours(root: Path, folder: str, files: Mapping[str, bytes], *, overwrite: bool) -> None:
    """Write what differs of these files, and remember those below a folder.

    Somebody's work there is refused with a CourseError, or with `overwrite` kept below KEPT.
    """
    record = read_record(root / folder)
    ours = {path: data for path, data in files.items() if path.startswith(f"{folder}/")}
    theirs = _others_work(root, ours, record)
    if theirs and not overwrite:
        what = "somebody has changed it, or it holds outputs: it is not written over"
        mend = f"run it again with --overwrite (make: ARGS=--overwrite); a copy stays in {KEPT}/"
        raise CourseError([Finding(path, None, None, "your-work", what, mend) for path in theirs])
    kept = {_kept_at(path, data): data for path, data in theirs.items()}
    write_files(root, {path: files[path] for path in changed_files(root, files)} | kept)
    written = {path: fingerprint(path, data) for path, data in ours.items()}
    write_record(root, folder, record | written)


def remove_strays(root: Path, folder: str, wanted: Container[str]) -> None:
    """Remove what the course wrote in a folder and makes no more, if nobody has changed it."""
    record = read_record(root / folder)
    for path in [path for path in record if path not in wanted]:
        with contextlib.suppress(OSError):
            if fingerprint(path, (root / path).read_bytes()) == record[path]:
                (root / path).unlink()
        del record[path]
    write_record(root, folder, record)


def _others_work(
    root: Path, files: Mapping[str, bytes], record: Mapping[str, str]
) -> dict[str, bytes]:
    """Find what would be lost if these files were written: path -> what is there now."""
    changed = [path for path, how in changed_files(root, files).items() if how == "differs"]
    there = {path: (root / path).read_bytes() for path in changed}
    return {
        path: data
        for path, data in there.items()
        if fingerprint(path, data) != fingerprint(path, files[path])
        and fingerprint(path, data) not in known(root, path, record)
    }


def _kept_at(path: str, data: bytes) -> str:
    """Where a copy stays: under a name that no other copy has."""
    place, mark = PurePosixPath(path), hashlib.sha256(data).hexdigest()[:8]
    return f"{KEPT}/{place.parent}/{place.stem}.{mark}{place.suffix}"
