"""python -m course_build.weight.types: mypy --strict; what is left in some rooms may only fall.

Exit codes: 0 no more findings than are written down; 1 more of them; 2 mypy could not look.
"""

import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from course_build.base.findings import BROKEN, DONE, WORK
from course_build.base.places import SETTINGS_FILE

TABLE = "[tool.course.types]"
ERROR = re.compile(r"(?P<path>[^:]+):\d+: error: ")


def by_room(lines: Iterable[str], rooms: Iterable[str]) -> dict[str, list[str]]:
    """mypy's errors by the room that they are in; under "" those of rooms that are clean."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        if error := ERROR.match(line):
            path = error["path"]
            inside = [room for room in rooms if path == room or path.startswith(f"{room}/")]
            found[max(inside, key=len, default="")].append(line)
    return found


def compare(found: Mapping[str, list[str]], allowed: Mapping[str, int]) -> tuple[list[str], int]:
    """What there is to say of it, and the exit code."""
    said, code = list(found.get("", ())), WORK if found.get("") else DONE
    for room, most in allowed.items():
        count = len(found.get(room, ()))
        if count > most:
            said += [
                *found[room],
                f"{room}: {count} findings, at most {most} in {TABLE}: mend yours",
            ]
            code = WORK
        elif count < most:
            said.append(f"lighter: in {TABLE}, {room!r} can have {count or 'no line'}")
    return said, code


def main(root: Path) -> int:
    """Run mypy as pyproject.toml says and hold its findings to the table."""
    settings = tomllib.loads((root / SETTINGS_FILE).read_text(encoding="utf-8"))
    allowed = settings["tool"]["course"]["types"]
    ran = subprocess.run(
        [sys.executable, "-m", "mypy"], cwd=root, capture_output=True, text=True, check=False
    )
    if ran.returncode not in (0, 1):
        print(ran.stdout, ran.stderr, sep="", end="", file=sys.stderr)
        return BROKEN
    said, code = compare(by_room(ran.stdout.splitlines(), allowed), allowed)
    for text in said:
        print(text, file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parents[2]))
