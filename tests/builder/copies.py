"""A course of any size: copies of a real module, each with other texts, beside the real library."""

import re
import shutil
from pathlib import Path

from course_build.base.places import PACKAGE, REFERENCES, SETTINGS_FILE, SOURCES
from course_build.base.settings import parse_settings
from course_build.library.embed import is_embed
from course_build.source.cells import parse_source
from course_build.source.header import with_stamp
from course_build.source.twins import stamp

ROOT = Path(__file__).resolve().parents[2]
MODEL = "module_03_basic_transformer"
MOST = 100  # a module's number has two digits


def copy_course(folder: Path, count: int | None) -> Path:
    """Copy what a build needs into a new folder, with so many modules; None: with the real ones."""
    for name in ("course_build", PACKAGE, REFERENCES, SOURCES):
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
        )
    for name in (SETTINGS_FILE, "build_notebooks.py"):
        shutil.copy(ROOT / name, folder / name)
    if count is not None:
        for path in (folder / SOURCES).glob("*.py"):  # pages of prose name the real modules
            path.unlink()
        for number in range(count):
            name = re.sub("[0-9]{2}", f"{number:02d}", MODEL, count=1)
            (folder / SOURCES / f"{name}.py").write_text(another(number), encoding="utf-8")
    return folder


def another(number: int) -> str:
    """The text of the model with a mark in every cell, confirmed: nothing known of one helps here.

    Prose ends with one formula more, code with one comment more.
    """
    languages = parse_settings((ROOT / SETTINGS_FILE).read_text(encoding="utf-8")).languages
    path = f"{SOURCES}/{MODEL}.py"
    lines = (ROOT / path).read_text(encoding="utf-8").split("\n")
    for cell in parse_source(path, "\n".join(lines), languages):
        last = cell.text_line + cell.text.count("\n") - 1
        if cell.kind == "markdown":
            lines[last] += f"\n\n${number}$"
        elif cell.role != "imports" and not is_embed(cell):
            lines[last] += f"  # {number}"
    own = re.sub(r'(?<=Progress\(\n    ")module_\d\d', f"module_{number:02d}", "\n".join(lines))
    return _confirmed(path, own, languages)


def _confirmed(path: str, text: str, languages: tuple[str, ...]) -> str:
    lines = text.split("\n")
    sources: dict[str, str] = {}
    for cell in parse_source(path, text, languages):
        if cell.lang == languages[0]:
            sources[cell.key] = stamp(cell.text)
        elif cell.lang is not None:
            header = lines[cell.line - 1]
            lines[cell.line - 1] = with_stamp(header, languages[0], sources[cell.key])
    return "\n".join(lines)
