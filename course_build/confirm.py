"""Confirming a translation: its stamp is set to the source text it was just re-read against."""

import difflib
import re
from collections.abc import Sequence

from course_build.findings import CourseError, Finding
from course_build.source import Cell, parse_source
from course_build.twins import stamp


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
