"""The builder's edges: reading the repository, and writing all of the notebooks or none."""

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from course_build.base.findings import CourseError, Finding
from course_build.base.places import PACKAGE, REFERENCES, SOURCES, Files

WRITING = ".writing"
PROGRESS = ".progress.json"  # a learner's own file beside the notebook: course_lib.practice


def read_files(root: Path) -> Files:
    """Read every source, library file and reference of the repository."""
    references = {**_read(root, REFERENCES, "*.json"), **_read(root, REFERENCES, "SHA256SUMS")}
    return Files(
        sources=_read(root, SOURCES, "*.py"),
        library=_read(root, PACKAGE, "**/*.py"),
        references=references,
        glossary=_read(root, SOURCES, "glossary.toml"),
    )


def _read(root: Path, folder: str, pattern: str) -> dict[str, bytes]:
    paths = sorted((root / folder).glob(pattern))
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


def changed_files(root: Path, files: Mapping[str, bytes]) -> dict[str, str]:
    """The files that are not on disk as they should be: path -> "missing" or "differs"."""
    changed = {}
    for path, data in files.items():
        try:
            if (root / path).read_bytes() != data:
                changed[path] = "differs"
        except (FileNotFoundError, NotADirectoryError):
            changed[path] = "missing"
    return changed


def orphans(root: Path, folders: Iterable[str], expected: Iterable[str]) -> list[str]:
    """What lies in these folders and belongs to no source."""
    expected = set(expected)
    found = [f"{folder}/{name}" for folder in folders for name in visible(root, folder)]
    return [path for path in found if path not in expected]


def visible(root: Path, folder: str) -> list[str]:
    """The names in a folder, sorted, without hidden ones; none where there is no such folder."""
    return [path.name for path in sorted((root / folder).glob("*")) if not _is_hidden(path)]


def rendered_folders(root: Path) -> set[str]:
    """Every folder that notebooks were rendered into, whatever the settings say today."""
    rendered = root.glob("notebooks/[a-z]*/module_*.ipynb")
    return {path.parent.relative_to(root).as_posix() for path in rendered} - {SOURCES}


def _is_hidden(path: Path) -> bool:
    """Is this none of ours? What a build left that was stopped is; what one writes now is not."""
    if PROGRESS in path.name:
        return True
    if not path.name.startswith("."):
        return False
    return not path.name.endswith(WRITING) or _is_running(path.name.split(".")[-2])


def _is_running(process: str) -> bool:
    if os.name != "posix":  # elsewhere signal 0 is no question
        return False
    try:
        os.kill(int(process), 0)
    except PermissionError:
        return True
    except (ValueError, OverflowError, OSError):
        return False
    return True


def write_files(
    root: Path, files: Mapping[str, bytes], made_from: Mapping[str, bytes] | None = None
) -> None:
    """Write every file or none: all are first written beside their places, then moved there.

    `made_from` holds what a file was when it was read: one that somebody has written since is not
    overwritten.
    """
    targets = {root / path: data for path, data in files.items()}
    try:
        for target, data in targets.items():
            _write(_beside(target), data, like=target)
        _check_unchanged(root, {path: made_from[path] for path in files if made_from})
        _move_all(targets)
    except OSError as error:
        raise CourseError([_cannot_write(error, root)]) from error
    finally:
        for target in targets:
            with contextlib.suppress(OSError):
                _beside(target).unlink(missing_ok=True)


def _check_unchanged(root: Path, read: Mapping[str, bytes]) -> None:
    what, mend = "was changed by another program meanwhile", "run the command again"
    changed = changed_files(root, read)
    if changed:
        raise CourseError([Finding(path, None, None, "write", what, mend) for path in changed])


def _cannot_write(error: OSError, root: Path) -> Finding:
    path = Path(error.filename2 or error.filename or root)
    if path.name.endswith(WRITING) or (isinstance(error, PermissionError) and not path.is_dir()):
        path = path.parent  # the reader knows the folder, not the file that waits in it
    where = Path(os.path.relpath(path, root)).as_posix()
    mend = "make it possible to write there; nothing was changed"
    if isinstance(error, PermissionError):
        mend = f"make this folder writable (chmod u+w {where}); nothing was changed"
    message = f"cannot write: {error.strerror or error}"
    return Finding(where, None, None, "write", message, mend)


def _beside(target: Path) -> Path:
    """Where a file waits, on the same disk, until all can be moved; hidden from Jupyter."""
    return target.with_name(f".{target.name}.{os.getpid()}{WRITING}")


def _write(path: Path, data: bytes, *, like: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if like.exists():
        path.chmod(like.stat().st_mode & 0o777)


def _move_all(targets: Iterable[Path]) -> None:
    """Move every file to its place; if one cannot go, or Ctrl-C comes, undo it."""
    before = {target: target.read_bytes() if target.exists() else None for target in targets}
    done: list[Path] = []
    try:
        for target in targets:
            os.replace(_beside(target), target)
            done.append(target)
    except (OSError, KeyboardInterrupt):
        for target in done:
            data = before[target]
            if data is None:
                target.unlink()
            else:
                _write(_beside(target), data, like=target)
                os.replace(_beside(target), target)
        raise
