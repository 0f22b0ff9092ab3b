"""What is checked on a finished notebook: names, leftovers, and whether it can be read."""

import ast
from collections.abc import Iterator, Sequence

from pyflakes import checker, messages

from course_build.base.findings import Finding
from course_build.base.places import PACKAGE
from course_build.notebook.compose import NotebookCell
from course_build.source.cells import Cell
from course_build.source.code import without_commands
from course_build.text.prose import count_words

MOST_CODE_LINES = 40
MOST_CODE_CELLS = 3
MOST_WORDS = 90
KERNEL_NAMES = ("display", "get_ipython")
UNDEFINED = (messages.UndefinedName, messages.UndefinedLocal)
IMPORTING = ("imports", "library")  # the roles of cells that import from the library
Fault = tuple[int, tuple[str, str, str]]  # line of the program; rule, message, mend


def lint(cells: Sequence[NotebookCell]) -> list[Finding]:
    """Everything that may not be seen in a learner's notebook."""
    return [*code_faults(cells), *long_code(cells), *long_prose(cells), *code_without_prose(cells)]


def code_faults(cells: Sequence[NotebookCell]) -> list[Finding]:
    """What would not run: all code cells are looked at as one program."""
    written = [(cell, line) for cell in cells if cell.kind == "code" for line in cell.lines]
    sources = [without_commands(cell.source) for cell in cells if cell.kind == "code"]
    tree = ast.parse("\n".join(sources))
    free = {  # lines of the cells that may import from the library
        number for number, (cell, _) in enumerate(written, 1) if cell.origin.role in IMPORTING
    }
    leftovers = [fault for fault in _leftover_imports(tree) if fault[0] not in free]
    findings = []
    for number, fault in [*leftovers, *_undefined_names(tree)]:
        cell, line = written[number - 1]
        findings.append(Finding(line.path, line.number, cell.origin.key, *fault))
    return findings


def source_faults(cells: Sequence[Cell]) -> list[Finding]:
    """Names that a source does not know when it is run as it is written, in a checkout.

    There an import brings only what it names; in a notebook, also what that needs.
    """
    code = [cell for cell in cells if cell.kind == "code"]
    # A tree of all counts its lines from the first cell; each is told of in its own.
    written = [
        (cell, line) for cell in code for line, _ in enumerate(cell.text.split("\n"), start=1)
    ]
    tree = ast.parse("\n".join(without_commands(cell.text) for cell in code))
    findings = []
    for number, fault in _undefined_names(tree):
        cell, line = written[number - 1]
        findings.append(cell.finding(*fault, line=line))
    return findings


def _undefined_names(tree: ast.Module) -> Iterator[Fault]:
    """Names that no cell above (or, inside functions, anywhere) defines; annotations included."""
    mend = "define it in a cell above, import it, or embed it from the library"
    for message in checker.Checker(tree, builtins=set(KERNEL_NAMES)).messages:
        if isinstance(message, UNDEFINED):
            yield message.lineno, ("undefined-name", message.message % message.message_args, mend)


def _leftover_imports(tree: ast.Module) -> Iterator[Fault]:
    """Imports of the library that the builder knows nothing of: it would not be packed for them."""
    mend = 'import from it at the top level of a cell of its own, without a role or role="library"'
    for node in ast.walk(tree):
        if _imports_package(node):
            yield (
                getattr(node, "lineno", 1),
                ("leftover-import", f"{ast.unparse(node)} is left over", mend),
            )


def _imports_package(node: ast.AST) -> bool:
    """Is this an import of the library, in whatever disguise? A relative one has no other sense."""
    if isinstance(node, ast.Import):
        return any(_is_ours(alias.name) for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return node.level > 0 or _is_ours(node.module)
    if isinstance(node, ast.Call) and node.args:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        value = getattr(node.args[0], "value", None)
        return (
            name in ("import_module", "__import__") and isinstance(value, str) and _is_ours(value)
        )
    return False


def _is_ours(module: str | None) -> bool:
    return module is not None and module.split(".")[0] == PACKAGE


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
        elif is_visible_code(cell) and cell.origin.role != "library":  # one line, nothing to learn
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
