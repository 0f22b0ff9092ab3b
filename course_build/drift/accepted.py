"""The outputs of a notebook as a text file that reads well in a diff.

A first line names the versions it was accepted with; then each output has a head, `== KEY: KIND`,
and its text, indented. Of a cell tagged `measured` only the kinds are kept: its numbers are those
of one run. Figures are kept by name: their drawings are in figures/. Of a view the alt text of
every picture is kept too, since only the first picture is there.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course_build.outputs.executed import MEASURED, is_measured, joined
from course_build.outputs.views import read_view
from course_build.run.normal import normalise

NOTHING = "nothing"  # the kind of a cell that shows nothing where another edition shows something
INDENT = "    "
FIRST = re.compile(r"# accepted with (.+)")
HEAD = re.compile(r"== ([a-z0-9-]+): (.+)")


@dataclass(frozen=True)
class Shown:
    """One output of a cell: whose, of which kind, and what can be read in it."""

    key: str
    kind: str
    text: str = ""


class FormatError(Exception):
    """A file of accepted outputs that cannot be read; the message says where."""


def shown(notebook: dict[str, Any]) -> list[Shown]:
    """List what an executed notebook shows, in its order."""
    return [
        Shown(cell["id"], f"{MEASURED} {kind}") if is_measured(cell) else output
        for cell in normalise(notebook)["cells"]
        for kind, output in _outputs(cell)
    ]


def _outputs(cell: Mapping[str, Any]) -> Iterable[tuple[str, Shown]]:
    for output in cell.get("outputs", ()):
        kind, text = _read(output)
        lines = [line.rstrip() for line in text.split("\n")]
        yield kind, Shown(cell["id"], kind, "\n".join(lines).strip("\n"))


def _read(output: Mapping[str, Any]) -> tuple[str, str]:
    """Give an output's kind and the text in which a reader meets it."""
    if output["output_type"] == "stream":
        return output["name"], joined(output["text"])
    if output["output_type"] == "error":
        return "error", f"{output['ename']}: {output['evalue']}"
    data = output["data"]
    pictures = [kind for kind in data if kind.startswith("image/")]
    if pictures:
        name = output["metadata"].get(pictures[0], {}).get("name") or "-"
        view = read_view(data)
        if view is None:
            return f"figure {name}", ""
        return f"view {name}", "\n".join(f"{s}: {frame.alt}" for s, frame in view.frames.items())
    if joined(data.get("text/plain", "")).startswith("<IPython.core.display."):
        data = {k: v for k, v in data.items() if k != "text/plain"} or data  # says only that it is
    kind = "text/plain" if "text/plain" in data else min(data, default="text/plain")
    return kind, joined(data.get(kind, "")) if kind.startswith("text/") else ""


def by_cell(outputs: Iterable[Shown]) -> dict[str, list[Shown]]:
    """Group outputs by the key of their cell, in order."""
    cells: dict[str, list[Shown]] = {}
    for output in outputs:
        cells.setdefault(output.key, []).append(output)
    return cells


def write(outputs: Sequence[Shown], versions: Mapping[str, str]) -> str:
    """Write outputs as the text of a file."""
    names = ", ".join(f"{name} {version}" for name, version in versions.items())
    lines = [f"# accepted with {names}"]
    for output in outputs:
        lines += ["", f"== {output.key}: {output.kind}"]
        if output.text:
            lines += [f"{INDENT}{line}".rstrip() for line in output.text.split("\n")]
    return "\n".join(lines) + "\n"


def read(text: str) -> tuple[dict[str, str], list[Shown]]:
    """Read the versions and the outputs back; FormatError when the text is none of ours."""
    lines = text.split("\n")
    first = FIRST.fullmatch(lines[0])
    if not first:
        raise FormatError("line 1 does not say what it was accepted with")
    versions = dict(part.rsplit(" ", 1) for part in first[1].split(", "))
    found: list[tuple[str, str, list[str]]] = []
    for number, line in enumerate(lines[1:], 2):
        head = HEAD.fullmatch(line)
        if head:
            found.append((head[1], head[2], []))
        elif line and not (found and line.startswith(INDENT)):
            raise FormatError(f"line {number} is neither a head nor indented: {line}")
        elif found:
            found[-1][2].append(line.removeprefix(INDENT))
    return versions, [Shown(key, kind, "\n".join(body).strip("\n")) for key, kind, body in found]
