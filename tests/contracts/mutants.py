"""Mutate right code: one operator, constant, name, keyword or statement at a time."""

import ast
import copy
import inspect
import signal
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

COMPARE = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
WORDS = {
    "max": "min",
    "min": "max",
    "amax": "amin",
    "sum": "mean",
    "mean": "sum",
    "any": "all",
    "all": "any",
    "tril": "triu",
    "triu": "tril",
    "sin": "cos",
    "cos": "sin",
    "argmax": "argmin",
    "exp": "expm1",
    "log": "log1p",
    "sqrt": "abs",
    "log_softmax": "softmax",
    "var": "std",
    "cumsum": "cumprod",
    "argsort": "sort",
    "zeros": "ones",
    "ones": "zeros",
    "float": "int",
    "masked_fill": "masked_fill_",
    "clone": "detach",
    "transpose": "swapaxes",
    "append": "insert",
    "eval": "train",
    "True": "False",
}


class TookTooLong(BaseException):
    """A mutant that does not come to an end; no `except Exception` may swallow it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """End the block after so many seconds of its own work, however busy the machine is.

    Where Python lets nothing pass, in a destructor or a callback of the garbage collector, a
    bell is not heard and not told either: it rings again.
    """

    def ring(*_: Any) -> None:
        raise TookTooLong

    def tell_all_but_the_bell(found: Any) -> None:
        if not issubclass(found.exc_type, TookTooLong):
            told(found)

    told, sys.unraisablehook = sys.unraisablehook, tell_all_but_the_bell
    before = signal.signal(signal.SIGVTALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 0.3)
        yield
    finally:
        signal.signal(signal.SIGVTALRM, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        sys.unraisablehook = told


def changes(node: ast.AST) -> Iterator[tuple[str, Callable[[ast.AST], ast.AST | None]]]:
    """The ways of changing one node, each with a few words; None as a result drops a statement."""

    def field(name, value):
        def change(found):
            setattr(found, name, value)
            return found

        return change

    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARE:
        other = COMPARE[type(node.ops[0])]
        yield f"{other.__name__}", field("ops", [other(), *node.ops[1:]])
    if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in ARITHMETIC:
        yield ARITHMETIC[type(node.op)].__name__, field("op", ARITHMETIC[type(node.op)]())
    if isinstance(node, ast.BinOp):
        yield "left only", lambda found: found.left
        yield "right only", lambda found: found.right
        if isinstance(node.op, ast.MatMult | ast.Sub | ast.Div):
            yield "swapped", lambda found: ast.BinOp(found.right, found.op, found.left)
    if isinstance(node, ast.UnaryOp):
        yield "no sign", lambda found: found.operand
    if isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield other.__name__, field("op", other())
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "flipped", field("value", not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield "+1", field("value", node.value + 1)
        yield "-1", field("value", node.value - 1)
        if node.value:
            yield "halved", field("value", node.value / 2)
    if isinstance(node, ast.Attribute) and node.attr in WORDS:
        yield WORDS[node.attr], field("attr", WORDS[node.attr])
    if isinstance(node, ast.Attribute) and node.attr in ("mT", "T"):
        yield "not transposed", lambda found: found.value
    if isinstance(node, ast.Name) and node.id in WORDS:
        yield WORDS[node.id], field("id", WORDS[node.id])
    if isinstance(node, ast.Call):
        for place, keyword in enumerate(node.keywords):
            rest = [kw for n, kw in enumerate(node.keywords) if n != place]
            yield f"no {keyword.arg}=", field("keywords", rest)
        if len(node.args) == 2 and len({ast.unparse(argument) for argument in node.args}) == 2:
            yield (
                "arguments swapped",
                lambda found: ast.Call(found.func, found.args[::-1], found.keywords),
            )
        if len(node.args) == 1:
            yield "call dropped", lambda found: found.args[0]
        if isinstance(node.func, ast.Attribute):
            yield "method dropped", lambda found: found.func.value
    if isinstance(node, ast.IfExp):
        yield "always", lambda found: found.body
        yield "never", lambda found: found.orelse
    if isinstance(node, ast.If | ast.While):
        yield (
            "condition negated",
            lambda found: type(found)(ast.UnaryOp(ast.Not(), found.test), found.body, found.orelse),
        )
    if isinstance(node, ast.Slice):
        yield "whole slice", lambda found: ast.Slice(None, None, found.step)
    if isinstance(node, ast.Expr | ast.Assign | ast.AugAssign | ast.If | ast.Raise | ast.For):
        yield "statement dropped", lambda found: ast.Pass()


class _Changed(ast.NodeTransformer):
    """Change the node that stands at one place in the order of ast.walk."""

    def __init__(self, target: ast.AST, change: Callable[[ast.AST], ast.AST]) -> None:
        self.target, self.change = target, change

    def visit(self, node: ast.AST) -> Any:
        return self.change(node) if node is self.target else self.generic_visit(node)


def mutants(function: Callable[..., Any]) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every mutant of a function that compiles, labelled "name:line what: code of the line"."""
    source = textwrap.dedent(inspect.getsource(function))
    tree, lines = ast.parse(source), source.splitlines()
    seen = Counter()
    nodes = [node for node in ast.walk(tree) if not _is_frame(tree, node)]
    for place, node in enumerate(nodes):
        for what, change in changes(node):
            other = copy.deepcopy(tree)
            target = [each for each in ast.walk(other) if not _is_frame(other, each)][place]
            _Changed(target, change).visit(other)
            ast.fix_missing_locations(other)
            line = getattr(node, "lineno", 1)
            code = ast.unparse(node)
            shown = code if "\n" not in code else lines[line - 1].strip()
            space = dict(function.__globals__)
            try:
                exec(compile(other, f"<mutant of {function.__name__}>", "exec"), space)
            except Exception:
                continue
            label = f"{function.__name__}:{line} {what}: {shown}"
            seen[label] += 1
            again = f" ({seen[label]})" if seen[label] > 1 else ""
            yield label + again, space[function.__name__]


def _is_frame(tree: ast.AST, node: ast.AST) -> bool:
    """The signature, the docstring and the annotations: nothing that runs in the body."""
    function = tree.body[0]
    if node in (tree, function) or node in ast.walk(function.args):
        return True
    first = function.body[0]
    document = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return document and node in (first, first.value)
