"""Which tests a change can reach, by what they import: of the folders that stand on code alone.

Contracts and decoders are two thirds of the seconds and read no file of the course, so that their
imports say all. A test of anything else is always run. Where nobody knows what changed - in CI,
without git, in a tree that is as it was committed and pushed - all are run, and the trials of
contracts are left to the delivery.
"""

import ast
import functools
import os
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from course_build.library.imports import lazy_links

ROOT = Path(__file__).resolve().parents[1]
CODE_ALONE = ("tests.contracts.", "tests.decoder_lm.")
TEXTS = ("notebooks/", "figures/", "course_build/", ".github/")  # what these tests never read


def changed_files(root: Path = ROOT) -> set[str] | None:
    """The files that differ from what was pushed; None where that is not known or none do."""
    if os.environ.get("CI"):
        return None
    base = _git(root, "merge-base", "HEAD", "@{upstream}") or ["HEAD"]
    changed = _git(root, "diff", "--name-only", base[0])
    new = _git(root, "ls-files", "--others", "--exclude-standard")
    return None if changed is None or new is None else {*changed, *new} or None


def _git(root: Path, *arguments: str) -> list[str] | None:
    done = subprocess.run(
        ["git", *arguments], cwd=root, capture_output=True, text=True, check=False
    )
    return None if done.returncode else done.stdout.splitlines()


def is_out_of_reach(module: str, contract: str | None, changed: set[str]) -> bool:
    """Whether a test of this module, about this contract, cannot tell before and after apart."""
    if not module.startswith(CODE_ALONE):
        return False
    code = {path for path in changed if not path.startswith(TEXTS) and not path.endswith(".md")}
    if any(not path.endswith(".py") or "/" not in path for path in code):
        return False  # pins, settings, data: they may change anything
    starts = [module] + ([f"tests.contracts.variants_{contract}"] if contract else [])
    return not code & reached(starts)


def reached(modules: Iterable[str]) -> set[str]:
    """The paths of these modules and of all that they import, however deep."""
    waiting, found = [(module, "") for module in modules], set()
    while waiting:
        module, name = waiting.pop()
        path = _path(module)
        if name and path:
            lazy = _lazy(path).get(name)  # what a package loads when its name is asked for
            waiting += [(other, "") for other in (lazy, f"{module}.{name}") if other]
        if path and path not in found:
            found.add(path)
            waiting += _imports(path, module)
            waiting.append((module.rpartition(".")[0], ""))
    return found


@functools.cache
def _path(module: str) -> str | None:
    base = module.replace(".", "/")
    return next((p for p in (f"{base}.py", f"{base}/__init__.py") if (ROOT / p).is_file()), None)


@functools.cache
def _tree(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_bytes())


@functools.cache
def _lazy(path: str) -> dict[str, str]:
    return lazy_links(_tree(path))


@functools.cache
def _imports(path: str, module: str) -> tuple[tuple[str, str], ...]:
    package = module if path.endswith("__init__.py") else module.rpartition(".")[0]
    return tuple(found for node in ast.walk(_tree(path)) for found in _imported(node, package))


def _imported(node: ast.AST, package: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Import):
        yield from ((alias.name, "") for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = package.split(".")[: 1 - node.level or None] if node.level else []
        origin = ".".join([*above, *([node.module] if node.module else [])])
        yield from ((origin, alias.name) for alias in node.names)
