"""The plain build: render the course and write it, or compare it with the disk (--check)."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from course_build.base.choosing import chosen_languages, chosen_modules
from course_build.base.decode import decode
from course_build.base.files import changed_files, orphans, rendered_folders
from course_build.base.findings import DONE, WORK
from course_build.base.owned import write_ours
from course_build.base.parallel import spread
from course_build.base.places import (
    NOTEBOOKS,
    SETTINGS_FILE,
    Files,
    is_page,
    notebook_path,
    prose_path,
    solved_path,
    stem_of,
)
from course_build.base.settings import Settings, parse_settings
from course_build.base.stamp import Stamp
from course_build.building.course import Course, build_course
from course_build.pages.glossary_page import page_path
from course_build.pages.readme import read_readmes, with_links
from course_build.translation.telling import count, tell_built, tell_findings, tell_strays


def build(
    options: argparse.Namespace, root: Path, settings_file: bytes, files: Files, stamp: Stamp | None
) -> int:
    """Build from these files; return the exit code.

    A build that leaves nothing to do leaves the stamp.
    """
    settings = parse_settings(decode(SETTINGS_FILE, settings_file))
    paths = chosen_modules(options.module, files.sources)
    languages = chosen_languages(options.lang, settings)
    course = build_course(files, settings, paths, languages, preview=options.preview, apply=spread)
    expected = _expected(files, settings)
    folders = _folders(expected, root)
    strays = orphans(root, folders, expected)
    stems = [stem_of(path) for path in files.modules]
    readmes = with_links(read_readmes(root, settings), stems, settings)
    if options.check:
        return _check(course, readmes, strays, settings, root)
    if course.stale:
        tell_findings(course.stale, settings.languages)
    if course.stale and not options.preview:
        print(
            f"\nstale: {count(course.stale)}; nothing was written "
            "(--preview builds all the same, under a banner)",
            file=sys.stderr,
        )
        return WORK
    outputs = {**course.notebooks, **course.pages, **course.solved, **readmes}
    changed = changed_files(root, outputs)
    write_ours(root, NOTEBOOKS, outputs, overwrite=options.overwrite)
    named = [*course.notebooks, *course.pages, *readmes]
    tell_built(named, changed)
    tell_strays(strays)
    if stamp and not strays:
        stamp.leave(outputs, named, folders)
    return WORK if strays else DONE


def _check(
    course: Course,
    readmes: Mapping[str, bytes],
    strays: Sequence[str],
    settings: Settings,
    root: Path,
) -> int:
    changed = changed_files(root, {**course.notebooks, **course.pages, **readmes})
    for path, how in changed.items():
        print(f"{path}: {how}; run: make notebooks", file=sys.stderr)
    tell_strays(strays)
    if course.stale:
        tell_findings(course.stale, settings.languages)
    if changed or strays or course.stale:
        return WORK
    print(f"{len(course.notebooks)} notebooks are up to date")
    return DONE


def _expected(files: Files, settings: Settings) -> list[str]:
    """Everything that the sources make, whatever was chosen."""
    expected = [
        place(code, stem_of(path))
        for code in settings.languages
        for path in files.sources
        for place in ((prose_path,) if is_page(path) else (notebook_path, solved_path))
    ]
    if files.glossary:
        expected += [page_path(code) for code in settings.languages]
    return expected


def _folders(expected: Sequence[str], root: Path) -> list[str]:
    """Where notebooks are. A language that was taken out of the settings leaves its own behind."""
    return sorted({path.rsplit("/", 1)[0] for path in expected} | rendered_folders(root))
