"""A reader's working copy of the rendered course: made once, renewed where nobody worked in it.

Of each file the record says which text of the course it was made from. A copy that still says that
is renewed with the course. One that somebody has changed, or that holds outputs, stays as it is:
the newer text is laid beside it, under a name with `-new`.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from course_build.base.files import PROGRESS, visible, write_files
from course_build.base.owned import fingerprint, known, read_record, write_record
from course_build.base.places import NOTEBOOKS

WORK = "work"


def bring_up_to_date(root: Path, languages: Sequence[str]) -> list[str]:
    """Make or renew the copy; return what there is to tell. Raises CourseError."""
    record, rendered = read_record(root / WORK), read_record(root / NOTEBOOKS)
    files: dict[str, bytes] = {}
    told = []
    for language in languages:
        first = not (root / WORK / language).exists()
        for name in visible(root, f"{NOTEBOOKS}/{language}"):
            path, copy = f"{NOTEBOOKS}/{language}/{name}", f"{WORK}/{language}/{name}"
            if not (root / path).is_file():
                continue
            data = (root / path).read_bytes()
            said, ours = fingerprint(path, data), known(root, path, rendered)
            if ours and said not in ours and (root / copy).exists():
                continue  # work done in the course's own folder comes along once
            place = _place(root, copy, said, record)
            if place is None:
                continue
            files[place], record[place] = data, said if said in ours else ""  # "": somebody's work
            if place != copy:
                told.append(f"{copy} is yours and stays; the course's newer one: {place}")
        files |= _progress(root, language) if first else {}
    write_files(root, files)
    write_record(root, WORK, record)
    made = [place for place in files if "-new" not in place]
    if made:
        told.insert(0, f"your working copy {WORK}/: {len(made)} files made or renewed")
    return told


def _place(root: Path, copy: str, said: str, record: Mapping[str, str]) -> str | None:
    """Choose where the course's text is to be written; nowhere if a copy of it is there."""
    for place in _names(copy):
        if not (root / place).exists():
            return place
        now = fingerprint(place, (root / place).read_bytes())
        if said in (now, record.get(place)):
            return None
        if now == record.get(place):
            return place
    return None


def _names(copy: str) -> Iterator[str]:
    """The names that a text may have: its own, then with -new, -new-2, ..."""
    place = PurePosixPath(copy)
    yield copy
    yield f"{place.parent}/{place.stem}-new{place.suffix}"
    for number in itertools.count(2):
        yield f"{place.parent}/{place.stem}-new-{number}{place.suffix}"


def _progress(root: Path, language: str) -> dict[str, bytes]:
    """What a reader has solved in the course's own folder."""
    folder = root / NOTEBOOKS / language
    found = sorted(path for path in folder.glob(f"*{PROGRESS}") if path.is_file())
    return {f"{WORK}/{language}/{path.name}": path.read_bytes() for path in found}
