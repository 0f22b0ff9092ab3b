"""Confirming a translation: its stamp is set to the source text it was just re-read against."""

import argparse
import difflib
import re
from collections.abc import Sequence
from pathlib import Path

from course_build.choosing import asked_wrongly, chosen_modules, read_settings
from course_build.decode import decode
from course_build.files import changed_files, read_files, write_files
from course_build.findings import DONE, CourseError, Finding
from course_build.source import Cell, parse_source
from course_build.twins import stamp


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("cells", nargs="+", metavar="MODULE:KEY", help="for example 3:scaled-dot")


def run(options: argparse.Namespace, root: Path) -> int:
    """Stamp the translations of the named cells as re-read against today's text."""
    settings, sources = read_settings(root), read_files(root).sources
    texts: dict[str, str] = {}
    lines = []
    for cell in options.cells:
        module, colon, key = cell.partition(":")
        if not colon:
            raise asked_wrongly(f"{cell!r} is not MODULE:KEY", "write for example 3:scaled-dot")
        [path] = chosen_modules([module], sources)
        text = texts.get(path) or decode(path, sources[path])
        texts[path], done = confirm(path, text, key, settings.languages)
        what = f"confirmed in {', '.join(done)}" if done else "was already confirmed"
        lines.append(f"{path}: {key} {what}")
    outputs = {path: text.encode() for path, text in texts.items()}
    write_files(root, {path: outputs[path] for path in changed_files(root, outputs)})
    print("\n".join(lines))
    return DONE


def confirm(path: str, text: str, key: str, languages: Sequence[str]) -> tuple[str, list[str]]:
    """Re-stamp the translations of one key; return the new text and the languages re-stamped."""
    cells = parse_source(path, text, tuple(languages))
    source = _source_cell(path, cells, key, languages)
    fresh = stamp(source.text)
    lines = text.split("\n")
    done = []
    for cell in cells:
        if cell.key == key and cell.lang in languages[1:] and cell.stamp != fresh:
            lines[cell.line - 1] = _stamped(lines[cell.line - 1], languages[0], fresh)
            done.append(str(cell.lang))
    return "\n".join(lines), done


def _source_cell(path: str, cells: Sequence[Cell], key: str, languages: Sequence[str]) -> Cell:
    for cell in cells:
        if cell.key == key and cell.lang == languages[0]:
            return cell
    twins = [cell.key for cell in cells if cell.lang == languages[0]]
    near = difflib.get_close_matches(key, twins) or twins
    message = f"no {languages[0]} cell with a translation has the key {key!r}"
    mend = f"choose one of {', '.join(near)}"
    raise CourseError([Finding(path, 1, None, "unknown-key", message, mend)])


def _stamped(header: str, name: str, fresh: str) -> str:
    old = re.compile(rf"(?<=\s){re.escape(name)}\s*=\s*(\"[^\"]*\"|'[^']*')")
    new = f'{name}="{fresh}"'
    if old.search(header):
        return old.sub(new, header)
    return f"{header.rstrip()} {new}"
