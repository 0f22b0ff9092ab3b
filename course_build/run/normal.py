"""Bring an executed notebook to a form in which two runs give the same bytes."""

import copy
import re
from collections.abc import Mapping
from typing import Any

from course_build.outputs.executed import joined
from course_build.run.notebook_file import ADDED
from course_build.run.verdict import tags

SAID_OF_THE_RUN = ("execution", "papermill")  # when each cell ran, and how long it took
ADDRESS = re.compile(r"(?<=\bat )0x[0-9a-fA-F]{6,16}\b")
RANDOM = r"[/\\]+(?:ipykernel_\d+|course-[a-z0-9_]{8}|tmp[a-z0-9_]{8})(?![\w.-])"
# A folder with a random name, and all that stands before it in a path.
TEMPORARY = re.compile(rf"(?:[A-Za-z]:)?(?:[/\\]+[^\s/\\'\"<>|:]+)*{RANDOM}[/\\]*")
HINT = re.compile(RANDOM)


def normalise(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return a copy without what differs from run to run: it shows a reader the same.

    Gone are times, durations and the paths of the run, Python's version, random ids and empty
    lists of tags that papermill adds, and the pieces in which a stream came. Addresses become 0x…,
    paths into temporary folders begin with …/. Nothing measured is touched: a cell that prints it
    prints another value next time.
    """
    notebook = copy.deepcopy(notebook)
    parameters = notebook["metadata"].pop("papermill", {}).get("parameters")
    if parameters:
        notebook["metadata"]["papermill"] = {"parameters": parameters}
    notebook["metadata"].get("language_info", {}).pop("version", None)
    added = 0
    for cell in notebook["cells"]:
        for name in SAID_OF_THE_RUN:
            cell["metadata"].pop(name, None)
        if tags(cell) & ADDED:
            added += 1
            cell["id"] = f"papermill-{added}"
        elif not tags(cell):
            cell["metadata"].pop("tags", None)
        if "outputs" in cell:
            cell["outputs"] = _merged(cell["outputs"])
            for output in cell["outputs"]:
                _settle(output)
    return notebook


def scrub(text: str) -> str:
    """Replace memory addresses and the random part of temporary paths."""
    text = ADDRESS.sub("0x…", text)
    return TEMPORARY.sub("…/", text) if HINT.search(text) else text  # the whole pattern is slow


def _merged(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join neighbouring pieces of the same stream."""
    merged: list[dict[str, Any]] = []
    for output in outputs:
        if output["output_type"] == "stream":
            output["text"] = joined(output["text"])
            last = merged[-1] if merged else output
            if last is not output and last.get("name") == output["name"]:
                last["text"] += output["text"]
                continue
        merged.append(output)
    return merged


def _settle(output: dict[str, Any]) -> None:
    """Scrub all text of one output that a reader sees; pictures stay as they are."""
    if output["output_type"] == "stream":
        output["text"] = scrub(output["text"])
    elif output["output_type"] == "error":
        output["evalue"] = scrub(output["evalue"])
        output["traceback"] = [scrub(line) for line in output["traceback"]]
    else:
        output["data"] = _settled(output["data"])


def _settled(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        kind: scrub(joined(value)) if kind.startswith("text/") else value
        for kind, value in sorted(data.items())
    }
