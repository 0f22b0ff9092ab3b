"""What is checked on a finished notebook: names, leftovers, and whether it can be read."""

import ast
from collections.abc import Iterator, Sequence

from course_build.base.findings import Finding
from course_build.library.outline import (
    are_clean,
    imports_package,
    may_import_package,
    outline,
    undefined_names,
)
from course_build.notebook.compose import NotebookCell
from course_build.source.cells import Cell
from course_build.source.code import parse_code, without_commands
from course_build.text.prose import count_words

MOST_CODE_LINES = 40
MOST_CODE_CELLS = 3
MOST_WORDS = 90
Fault = tuple[int, tuple[str, str, str]]  # line of the program; rule, message, mend


def lint(cells: Sequence[NotebookCell]) -> list[Finding]:
    """Everything that may not be seen in a learner's notebook."""
    return [*code_faults(cells), *long_code(cells), *long_prose(cells), *code_without_prose(cells)]


def code_faults(cells: Sequence[NotebookCell]) -> list[Finding]:
    """What would not run: all code cells are looked at as one program."""
    if _is_faultless(cells):
        return []
    written = [(cell, line) for cell in cells if cell.kind == "code" for line in cell.lines]
    sources = [without_commands(cell.source) for cell in cells if cell.kind == "code"]
    tree = ast.parse("\n".join(sources))
    faults = [*_leftover_imports(tree), *_undefined_names(tree)]
    findings = []
    for number, fault in faults:
        cell, line = written[number - 1]
        findings.append(Finding(line.path, line.number, cell.origin.key, *fault))
    return findings


def source_faults(cells: Sequence[Cell]) -> list[Finding]:
    """Names that a source does not know when it is run as it is written, in a checkout.

    There an import brings only what it names; in a notebook, also what that needs.
    """
    code = [cell for cell in cells if cell.kind == "code"]
    if not undefined_names(ast.Module([s for c in code for s in parse_code(c.text).body], [])):
        return []
    # The trees are shared and count their lines from their own cell: to say where, parse it whole.
    written = [
        (cell, line) for cell in code for line, _ in enumerate(cell.text.split("\n"), start=1)
    ]
    tree = ast.parse("\n".join(without_commands(cell.text) for cell in code))
    findings = []
    for number, fault in _undefined_names(tree):
        cell, line = written[number - 1]
        findings.append(cell.finding(*fault, line=line))
    return findings


def _is_faultless(cells: Sequence[NotebookCell]) -> bool:
    """Is the program without fault as far as the outlines of library definitions show?

    Where they do not show it, the whole program is looked at, line by line.
    """
    if not are_clean(definition for cell in cells for definition in cell.definitions):
        return False
    program: list[ast.stmt] = []
    for cell in cells:
        if cell.definitions:
            program += outline(cell.definitions)
        elif cell.kind == "code":
            tree = parse_code(cell.source)
            if may_import_package(cell.source, tree):
                return False
            program += tree.body
    return not undefined_names(ast.Module(program, []))


def _undefined_names(tree: ast.Module) -> Iterator[Fault]:
    """Names that no cell above (or, inside functions, anywhere) defines; annotations included."""
    mend = "define it in a cell above, import it, or embed it from the library"
    for message in undefined_names(tree):
        yield message.lineno, ("undefined-name", message.message % message.message_args, mend)


def _leftover_imports(tree: ast.Module) -> Iterator[Fault]:
    """A notebook stands alone: nothing of the library may still be imported."""
    mend = "import from it at the top level of an embed cell only"
    for node in ast.walk(tree):
        if imports_package(node):
            yield node.lineno, ("leftover-import", f"{ast.unparse(node)} is left over", mend)


def long_code(cells: Sequence[NotebookCell]) -> list[Finding]:
    """A visible code cell fits on a screen."""
    return [
        cell.origin.finding(
            "long-code",
            f"{len(cell.lines)} lines of code in one visible cell; at most {MOST_CODE_LINES}",
            "split it by idea, move checks into private helpers, or fold it",
        )
        for cell in cells
        if is_visible_code(cell) and len(cell.lines) > MOST_CODE_LINES
    ]


def long_prose(cells: Sequence[NotebookCell]) -> list[Finding]:
    """A prose cell is one thought; hints and solutions may be longer."""
    findings = []
    for cell in cells:
        if cell.origin.kind == "markdown" and cell.origin.role != "hint":
            words = count_words(cell.origin.text)
            if words > MOST_WORDS:
                message = f"{words} words in one prose cell; at most {MOST_WORDS}"
                findings.append(
                    cell.origin.finding("long-prose", message, "split it or shorten it")
                )
    return findings


def code_without_prose(cells: Sequence[NotebookCell]) -> list[Finding]:
    """After three visible code cells the learner is told something."""
    findings = []
    count = 0
    for cell in cells:
        if cell.kind == "markdown":
            count = 0
        elif is_visible_code(cell):
            count += 1
            if count == MOST_CODE_CELLS + 1:
                message = f"more than {MOST_CODE_CELLS} code cells in a row"
                findings.append(
                    cell.origin.finding("no-prose", message, "say something before this cell")
                )
    return findings


def is_visible_code(cell: NotebookCell) -> bool:
    """Is this code that the learner sees without unfolding?"""
    return cell.kind == "code" and not cell.folded
