"""The command add-language: begin a translation, which may be incomplete from its first day on."""

import argparse
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

from course_build.base.choosing import asked_wrongly
from course_build.base.commands import BUILDER, command
from course_build.base.decode import decode
from course_build.base.files import read_files, write_files
from course_build.base.findings import DONE, CourseError, Finding
from course_build.base.settings import SETTINGS_FILE, parse_settings
from course_build.building.course import build_course
from course_build.interchange.export import FOLDER

CODE = re.compile(r"[a-z]{2,3}")
DRAFTS = re.compile(r"^(drafts\s*=\s*\[)([^\]]*?)(,?\s*\])", re.MULTILINE)
LANGUAGES = re.compile(r"^languages\s*=\s*\[[^\]]*\].*$", re.MULTILINE)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("code", metavar="CODE", help="the language's ISO 639 code, for example de")


def run(options: argparse.Namespace, root: Path) -> int:
    """Add a draft language to the settings and say how to go on."""
    data = (root / SETTINGS_FILE).read_bytes()
    text = decode(SETTINGS_FILE, data)
    languages = parse_settings(text).languages
    check_code(options.code, languages)
    new = with_draft(text, options.code)
    files = read_files(root)
    # A comment such as "# de: ..." may now mean something: find out before anything is written.
    build_course(files, parse_settings(new), list(files.sources), [options.code])
    write_files(root, {SETTINGS_FILE: new.encode()}, made_from={SETTINGS_FILE: data})
    print(f"{options.code} is a draft now; what it lacks is shown in {languages[0]}. Next:")
    for what, line in (
        (f"render notebooks/{options.code}", BUILDER),
        ("hand out what there is to translate", command("export", languages=[options.code])),
        ("put it back", command("import", [f"{FOLDER}/{options.code}/MODULE.po"])),
        ("see how far it is", command("status", languages=[options.code])),
    ):
        print(f"  {what}:\n    {line}")
    return DONE


def check_code(code: str, languages: Sequence[str]) -> None:
    """Refuse what is no language code, and what the course already has."""
    if not CODE.fullmatch(code):
        message = f"{code!r} is not a language's code"
        raise asked_wrongly(message, "take the two or three letters of ISO 639, for example de")
    if code in languages:
        message = f"the course already has the language {code!r}"
        raise asked_wrongly(message, f"its languages are {', '.join(languages)}")


def with_draft(text: str, code: str) -> str:
    """The settings with one more draft; every other byte stays as it is."""
    start = re.search(r"^\[tool\.course\]", text, re.MULTILINE)
    head, table = (text[: start.end()], text[start.end() :]) if start else ("", text)
    if DRAFTS.search(table):
        table = DRAFTS.sub(rf'\1\2, "{code}"\3', table, count=1)
        table = table.replace(f'[, "{code}"', f'["{code}"', 1)
    else:
        table = LANGUAGES.sub(rf'\g<0>\ndrafts = ["{code}"]    # may be incomplete', table, count=1)
    new = head + table
    wanted = tomllib.loads(text)
    wanted["tool"]["course"].setdefault("drafts", []).append(code)
    try:
        right = tomllib.loads(new) == wanted
    except tomllib.TOMLDecodeError:
        right = False
    if not right:
        message = "cannot find the place for a draft language in [tool.course]"
        mend = f'write drafts = ["{code}"] below languages yourself'
        raise CourseError([Finding(SETTINGS_FILE, 1, None, "settings", message, mend)])
    return new
