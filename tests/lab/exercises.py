"""The exercises of a notebook, found by the tags of their cells."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

FOLD = re.compile(r"\A<details\b")
CODE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LEFT_OPEN = re.compile(r"^(?:def |class )?(\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Exercise:
    """The ids of an exercise's cells, the name that it leaves to the learner, the solution."""

    stub: str
    check: str
    hints: tuple[str, ...]
    solution: str
    asked: str
    code: str


def find_exercises(notebook: dict) -> list[Exercise]:
    """List the exercises in the order of the notebook."""
    cells = notebook["cells"]
    stubs = [n for n, cell in enumerate(cells) if "exercise" in _tags(cell)]
    return [
        _exercise(cells[start:end])
        for start, end in zip(stubs, [*stubs[1:], len(cells)], strict=True)
    ]


def _exercise(cells: list[dict]) -> Exercise:
    stub = cells[0]
    check = next(cell for cell in cells if "exercise-check" in _tags(cell))
    *hints, solution = _folds(cells[cells.index(check) + 1 :])
    (code,) = CODE.findall(_text(solution))
    asked = LEFT_OPEN.search(re.sub(r"^#.*\n", "", _text(stub), flags=re.MULTILINE))[1]
    return Exercise(
        stub["id"], check["id"], tuple(hint["id"] for hint in hints), solution["id"], asked, code
    )


def _folds(cells: list[dict]) -> Iterator[dict]:
    """The folds that follow one another, down to the first that holds code."""
    for cell in cells:
        if cell["cell_type"] == "markdown" and FOLD.match(_text(cell)):
            yield cell
            if CODE.search(_text(cell)):
                return


def _tags(cell: dict) -> list[str]:
    return cell["metadata"].get("tags", [])


def _text(cell: dict) -> str:
    return "".join(cell["source"])
