"""Judge an executed notebook: did all of it run, and did its exercises say what they must."""

import re
from collections.abc import Sequence
from typing import Any

from course_build.run.notebook_file import ADDED
from course_build.run.outcome import Failure

ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
MARKS = {"learner": ("○", "not attempted"), "solved": ("✓", "passed")}
SCREEN = 40  # lines of an error that are shown; the executed copy keeps all of it
CALLS = 6  # calls between the failing line and the error that are shown
FRAME = re.compile(r"(?:Cell In\[\d+\], line \d+|File .+?:\d+)(?:, in [^(]+)?")
ARROW = re.compile(r"-+> +\d+ (.*)")
WIDTH = 1000  # characters of one line that are shown
AROUND = 4  # source lines shown before and after the failing one


def plain(text: str) -> str:
    """Strip terminal colours and cut what would not fit on a screen."""
    lines = [_cut(line) for line in ANSI.sub("", text).splitlines()]
    more = [f"... {len(lines) - SCREEN} more lines"] if len(lines) > SCREEN else []
    return "\n".join(lines[:SCREEN] + more)


def _cut(line: str) -> str:
    more = len(line) - WIDTH
    return line if more <= 0 else f"{line[:WIDTH]}... {more} more characters"


def excerpt(source: str, line: int | None) -> str:
    """Number the source lines around the failing one (the first lines when it is not known)."""
    lines = source.splitlines()
    centre = line or 1
    first, last = max(1, centre - AROUND), min(len(lines), centre + AROUND)
    return "\n".join(
        f"{'>' if number == line else ' '}{number:>5} | {_cut(lines[number - 1])}"
        for number in range(first, last + 1)
    )


def failing_line(cell: dict[str, Any], traceback: Sequence[str]) -> int | None:
    """Find in an IPython traceback which line of this very cell was running."""
    text = ANSI.sub("", "\n".join(traceback))
    found = re.search(rf"Cell In\[{cell.get('execution_count')}\], line (\d+)", text)
    return int(found.group(1)) if found else None


def calls(traceback: Sequence[str]) -> str:
    """Give the way from the failing line to the error, a line a call; '' when there is no way.

    Of a long way its end is given; of errors that led to one another, the last one's.
    """
    found: list[str] = []
    for line in ANSI.sub("", "\n".join(traceback)).splitlines():
        if line.startswith(("The above exception was", "During handling of the above")):
            found.clear()
        elif head := FRAME.match(line):
            found.append(re.sub(r"^File .*site-packages[/\\]", "", head[0]))
        elif found and (code := ARROW.match(line)):
            found[-1] += f": {_cut(code[1].strip())}"
    deeper = found[1:]
    more = [f"... {len(deeper) - CALLS} calls"] if len(deeper) > CALLS else []
    return "\n".join(["called from there:", *more, *deeper[-CALLS:]]) if deeper else ""


def tags(cell: dict[str, Any]) -> set[str]:
    """Return a cell's tags."""
    return set(cell["metadata"].get("tags", []))


def own_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """List the cells that the notebook had before papermill added its own."""
    return [cell for cell in notebook["cells"] if not tags(cell) & ADDED]


def code_cells(notebook: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    """List the code cells that have something to run, with their numbers counted from 1."""
    return [
        (number, cell)
        for number, cell in enumerate(own_cells(notebook), 1)
        if cell["cell_type"] == "code" and cell["source"].strip()
    ]


def failure_at(
    notebook: dict[str, Any],
    number: int,
    reason: str,
    traceback: Sequence[str] = (),
) -> Failure:
    """Name a cell of a notebook as the place of a failure."""
    cells = own_cells(notebook)
    cell = cells[number - 1]
    source = excerpt(cell["source"], failing_line(cell, traceback))
    return Failure(plain(reason), number, len(cells), cell.get("id"), source, calls(traceback))


def cell_error(notebook: dict[str, Any]) -> Failure | None:
    """Report the first cell whose output is an error."""
    cells = code_cells(notebook)
    for place, (number, cell) in enumerate(cells):
        for output in cell["outputs"]:
            if output["output_type"] == "error":
                reason = f"{output['ename']}: {output['evalue']}"
                if output["ename"] == "SystemExit":
                    # papermill calls sys.exit(0) a success although the rest never ran
                    reason = (
                        f"the cell left with sys.exit({output['evalue']}), so the "
                        f"{len(cells) - place - 1} code cells after it never ran"
                    )
                return failure_at(notebook, number, reason, output["traceback"])
        if cell["metadata"].get("papermill", {}).get("exception"):
            # an error whose words are no Unicode text never arrives here as an output
            reason = "this cell raised an error whose message cannot be shown"
            return failure_at(notebook, number, reason)
    return None


def unfinished(notebook: dict[str, Any], reason: str) -> Failure:
    """Report the cell that was running when the run broke off (none when no cell had begun)."""
    started = [
        number
        for number, cell in code_cells(notebook)
        if cell["metadata"].get("papermill", {}).get("start_time")
    ]
    return failure_at(notebook, started[-1], reason) if started else Failure(plain(reason))


def never_ran(notebook: dict[str, Any]) -> Failure | None:
    """Report the first code cell without an execution count."""
    for number, cell in code_cells(notebook):
        if cell["execution_count"] is None:
            return failure_at(notebook, number, "this code cell never ran")
    return None


def exercise_failure(notebook: dict[str, Any], edition: str) -> Failure | None:
    """Report the first exercise check whose output is not the one this edition must give."""
    mark, meaning = MARKS[edition]
    for number, cell in code_cells(notebook):
        if "exercise-check" not in tags(cell):
            continue
        texts = [
            output["data"].get("text/plain", "") for output in cell["outputs"] if "data" in output
        ]
        if not any(text.startswith(mark) for text in texts):
            came = "\n".join(texts) or "no output at all"
            return failure_at(
                notebook,
                number,
                f"the {edition} edition's exercise check must print {mark} ({meaning}); "
                f"it printed: {came}",
            )
    return None


def verdict(notebook: dict[str, Any], edition: str) -> Failure | None:
    """Judge a notebook that ran to its end."""
    return cell_error(notebook) or never_ran(notebook) or exercise_failure(notebook, edition)
