"""What was asked for on the command line: modules by number or name, languages by code."""

import argparse
import re
from collections.abc import Collection, Sequence
from pathlib import Path, PurePath

from course_build.base.decode import decode
from course_build.base.findings import CourseError, Finding
from course_build.base.places import PAGE, SETTINGS_FILE, stem_of
from course_build.base.settings import Settings, parse_settings


def add_choice(parser: argparse.ArgumentParser) -> None:
    """Give a command the options --module and --lang."""
    parser.add_argument("--module", nargs="+", metavar="NAME", help="only these: 3, or the file")
    parser.add_argument("--lang", nargs="+", metavar="CODE", help="only these languages")


def read_settings(root: Path) -> Settings:
    """Read the settings of the repository at root; raises CourseError."""
    return parse_settings(decode(SETTINGS_FILE, read_settings_file(root)))


def read_settings_file(root: Path) -> bytes:
    """Read the file of the settings; raises CourseError where there is none."""
    try:
        return (root / SETTINGS_FILE).read_bytes()
    except FileNotFoundError as error:
        raise asked_wrongly(f"there is no {SETTINGS_FILE}", "run in the repository") from error


def chosen_modules(names: Sequence[str] | None, sources: Collection[str]) -> list[str]:
    """Choose among the paths of the sources; None chooses all; raises CourseError."""
    if not sources:
        raise asked_wrongly("there is not one source in notebooks/src", "write module_NN_idea.py")
    if names is None:
        return list(sources)
    chosen = []
    for name in names:
        number = re.fullmatch(r"(?:module_)?(\d{1,2})", name)
        begins = f"module_{int(number[1]):02d}_" if number else None
        stem = PurePath(name).stem  # a path, of the source or of a notebook made from it
        found = [
            path
            for path in sources
            if (begins and stem_of(path).startswith(begins))
            or stem_of(path) in (stem, f"{PAGE}{stem}")
        ]
        if not found:
            known = ", ".join(stem_of(path) for path in sources)
            raise asked_wrongly(f"there is no module {name!r}", f"choose from {known}")
        chosen += found
    return list(dict.fromkeys(chosen))


def chosen_languages(names: Sequence[str] | None, settings: Settings) -> list[str]:
    """Choose among the course's languages, in their order; None chooses all."""
    for name in names or ():
        if name not in settings.languages:
            known = ", ".join(settings.languages)
            raise asked_wrongly(f"there is no language {name!r}", f"choose from {known}")
    return [code for code in settings.languages if names is None or code in names]


def asked_wrongly(message: str, mend: str) -> CourseError:
    """Say that the command line asks for something that cannot be."""
    return CourseError([Finding("build_notebooks.py", 1, None, "usage", message, mend)])
