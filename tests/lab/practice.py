"""What a notebook asks its reader: predictions and quiz questions, read from its code."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Prompt:
    """A question: its cell, its name, its words, and its choices (none: it wants a number).

    Choices are name -> words for a prediction, words -> (is it right, explanation) for the quiz.
    """

    key: str
    name: str
    question: str
    choices: Mapping[str, Any]


def find_predictions(notebook: dict) -> list[Prompt]:
    """List the predictions that are asked for."""
    return [
        Prompt(key, *map(ast.literal_eval, call.args[:2]), _choices(call.args[2:]))
        for key, call in _calls(notebook, "predict")
    ]


def find_quiz(notebook: dict) -> list[Prompt]:
    """List the quiz questions."""
    return [
        Prompt(key, *map(ast.literal_eval, call.args[1:3]), _choices(call.args[3:]))
        for key, call in _calls(notebook, "ask")
    ]


def find_cells(notebook: dict, verb: str, *arguments: str) -> list[str]:
    """List the cells that call a function of this name with these words as first arguments."""
    return [
        key
        for key, call in _calls(notebook, verb)
        if tuple(getattr(each, "value", None) for each in call.args[: len(arguments)]) == arguments
    ]


def find_views(notebook: dict) -> list[str]:
    """List the cells that show an interactive view."""
    return [
        cell["id"]
        for cell in _code(notebook)
        if "source_hidden" not in cell["metadata"].get("jupyter", {})
        and "\nview_" in "\n" + "".join(cell["source"])
    ]


def _code(notebook: dict) -> Iterator[dict]:
    return (cell for cell in notebook["cells"] if cell["cell_type"] == "code")


def _choices(arguments: list[ast.expr]) -> Mapping[str, Any]:
    return ast.literal_eval(arguments[0]) if arguments else {}


def _calls(notebook: dict, verb: str) -> Iterator[tuple[str, ast.Call]]:
    """The calls of this name that stand as statements of a cell."""
    for cell in _code(notebook):
        for statement in ast.parse("".join(cell["source"])).body:
            call = getattr(statement, "value", None)
            if isinstance(call, ast.Call):
                name = getattr(call.func, "attr", getattr(call.func, "id", ""))
                if name == verb:
                    yield cell["id"], call
