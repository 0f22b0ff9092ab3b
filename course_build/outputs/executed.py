"""The executed copies of the rendered notebooks: which are fresh, and running them when not."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from course_build.base.findings import CourseError, Finding
from course_build.environment.bootstrap import run

STOPPED = (130, 143)  # exit codes of what Ctrl-C or SIGTERM ended
MEASURED = "measured"  # the tag of cells that show what this run or this machine gave


def joined(text: str | list[str]) -> str:
    """Read a multi-line string of a notebook, which may be kept as a list of lines."""
    return text if isinstance(text, str) else "".join(text)


def outputs(notebook: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Walk through all outputs with the key of their cell."""
    for number, cell in enumerate(notebook["cells"], 1):
        for output in cell.get("outputs", ()):
            yield cell.get("id", f"number {number}"), output


def is_measured(cell: Mapping[str, Any]) -> bool:
    """Tell whether a cell is tagged as one that shows something else in each run."""
    return MEASURED in cell["metadata"].get("tags", ())


def read_notebook(path: str, content: bytes) -> dict[str, Any]:
    """Parse a notebook as JSON, or say that it is none."""
    try:
        notebook = json.loads(content)
        if isinstance(notebook.get("cells"), list):
            return notebook
        problem = "it has no list of cells"
    except (ValueError, AttributeError) as error:
        problem = str(error)
    message = f"not a notebook: {problem}"
    raise CourseError([Finding(path, 1, None, "executed-notebook", message, "run it again")])


def is_fresh(rendered: Mapping[str, Any], executed: Mapping[str, Any]) -> bool:
    """Tell whether an executed copy ran the rendered cells, all of them, as they are, to the end.

    A copy that was run with injected parameters is not one: its figures would be of other numbers.
    """
    if cells_of(rendered) != cells_of(executed):
        return False
    unrun = any(
        cell["cell_type"] == "code" and joined(cell["source"]) and not cell.get("execution_count")
        for cell in executed["cells"]
    )
    failed = any(output.get("output_type") == "error" for _, output in outputs(executed))
    return not unrun and not failed


def cells_of(notebook: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """List what a notebook says, without what came of it."""
    return [(cell["id"], cell["cell_type"], joined(cell["source"])) for cell in notebook["cells"]]


def executed_copies(root: Path, languages: Sequence[str]) -> dict[str, dict[str, Path]]:
    """Pair each rendered notebook with its executed copy: {language: {rendered name: path}}."""
    copies = {}
    for language in languages:
        rendered = sorted((root / "notebooks" / language).glob("module_*.ipynb"))
        folder = root / "build" / "executed" / "learner" / language
        copies[language] = {path.name: folder / path.name for path in rendered}
    if not any(copies.values()):
        message = f"no rendered notebook in {', '.join(languages)}"
        raise CourseError([Finding("notebooks", 1, None, "figures", message, "make notebooks")])
    return copies


def stale_copies(root: Path, copies: Mapping[str, Mapping[str, Path]]) -> list[str]:
    """Name the executed copies that do not show what the rendered notebooks now say."""
    stale = []
    for language, named in copies.items():
        for name, executed in named.items():
            rendered = f"notebooks/{language}/{name}"
            wanted = read_notebook(rendered, (root / rendered).read_bytes())
            path = executed.relative_to(root).as_posix()
            try:
                fresh = is_fresh(wanted, read_notebook(path, executed.read_bytes()))
            except (FileNotFoundError, CourseError):  # never run, or its writing was cut short
                fresh = False
            if not fresh:
                stale.append(path)
    return stale


def run_notebooks(root: Path) -> None:
    """Execute the learner's notebooks; their executed copies land in build/executed/.

    Raises:
        SystemExit: when somebody ends the run; its own last words have been said
    """
    command = [sys.executable, "-m", "course_build.run", "--edition", "learner"]
    print("running the notebooks first: their executed copies are missing or old", flush=True)
    code = run(command, folder=root)
    if code in STOPPED:
        sys.exit(code)


def fresh_copies(root: Path, languages: Sequence[str]) -> dict[str, dict[str, bytes]]:
    """Read the executed copies, {language: {path: content}}, after running the notebooks if old."""
    copies = executed_copies(root, languages)
    if stale_copies(root, copies):
        run_notebooks(root)
        findings = [
            Finding(path, 1, None, "executed-notebook", "it did not run to its end", "make run")
            for path in stale_copies(root, copies)
        ]
        if findings:
            raise CourseError(findings)
    return {
        language: {path.relative_to(root).as_posix(): path.read_bytes() for path in named.values()}
        for language, named in copies.items()
    }
