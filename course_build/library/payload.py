"""The library files that a notebook needs, packed into one cell of it: a line a file.

What a line holds depends on nothing but its file, so a changed file changes one line.
"""

import ast
import base64
import functools
import hashlib
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from course_build.base.places import PACKAGE
from course_build.library.deflate import deflate
from course_build.library.imports import lazy_links
from course_build.library.reading import parse_library

FOLDER = Path(__file__).parent
UNPACK = FOLDER / "unpack.py"
COMMON = FOLDER / "common.txt"
ALWAYS = f"{PACKAGE}.text"  # it holds the reader's language, which the cell sets
INNER_IMPORT = re.compile(rf"^[ \t]+(from|import)\s+{PACKAGE}\b".encode(), re.MULTILINE)


@dataclass(frozen=True)
class Payload:
    """The files that a notebook carries, by their path in the package: packed, and their digest."""

    lines: Mapping[str, str]
    sha256: str


def pack(library: Mapping[str, bytes], modules: Iterable[str]) -> Payload | None:
    """Pack the files without which these modules cannot be imported; None without modules."""
    files = {
        path.removeprefix(f"{PACKAGE}/"): library[path]
        for path in sorted(needed_files(library, modules))
    }
    if not files:
        return None
    return Payload({name: packed(content) for name, content in files.items()}, digest(files))


def digest(files: Mapping[str, bytes]) -> str:
    """The digest that the cell compares: of the list that sha256sum would print of the files."""
    sums = [f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items()]
    return hashlib.sha256("".join(sums).encode()).hexdigest()


def needed_files(library: Mapping[str, bytes], modules: Iterable[str]) -> set[str]:
    """The paths of these modules, or of what a package gives by such a name, and all imports."""
    waiting = [each for module in modules for each in ((module, ""), module.rpartition(".")[::2])]
    if waiting:
        waiting.append((ALWAYS, ""))
    found: set[str] = set()
    while waiting:
        module, name = waiting.pop()
        path = path_of(library, module)
        if name:
            submodule = f"{module}.{name}"
            lazy = _lazy(path, library[path]).get(name) if path else None
            waiting += [(other, "") for other in (lazy, submodule) if other]
        if path is None or path in found:
            continue
        found.add(path)
        waiting += _imports(path, library[path])
        waiting.append((module.rpartition(".")[0], ""))  # importing it imports its package first
    return found


def path_of(library: Collection[str], module: str) -> str | None:
    """Where a module's text is, if it is the library's."""
    base = module.replace(".", "/")
    return next((p for p in (f"{base}.py", f"{base}/__init__.py") if p in library), None)


@functools.cache
def _imports(path: str, content: bytes) -> tuple[tuple[str, str], ...]:
    """All that a file imports from the library as (module, name), inside functions too."""
    tree = parse_library(path, content)
    nodes = ast.walk(tree) if INNER_IMPORT.search(content) else tree.body
    return tuple(found for node in nodes for found in _imported(node))


@functools.cache
def _lazy(path: str, content: bytes) -> dict[str, str]:
    return lazy_links(parse_library(path, content))


def _imported(node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Import):
        yield from ((alias.name, "") for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield from ((node.module, alias.name) for alias in node.names)


@functools.cache
def packed(content: bytes, *, shared: bool = True) -> str:
    """A file as the cell holds it."""
    return base64.b85encode(deflate(content, common() if shared else b"")).decode()


@functools.cache
def common() -> bytes:
    """What the library's files share: fragments of them, kept so that a line depends on no file."""
    return COMMON.read_bytes()


def cell_text(payload: Payload, language: str, changed: str, other: str) -> str:
    """The code of the cell: the function that unpacks, and its call with a line for each file."""
    lines = "".join(f'        "{name}": "{line}",\n' for name, line in payload.lines.items())
    return (
        f"{_function()}\n\n\n"
        f'use_course_lib(\n    "{language}",\n    "{payload.sha256}",\n'
        f"    {changed!r},\n    {other!r},\n"
        f'    "{packed(common(), shared=False)}",\n    {{\n{lines}    }},\n)'
    )


def _call(cell: str) -> ast.Call:
    """The call at the end of such a cell."""
    match ast.parse(cell).body[-1]:
        case ast.Expr(value=ast.Call() as call):
            return call
    raise ValueError("the cell that carries the library ends with no call")


def unpacked(cell: str) -> dict[str, bytes]:
    """The files that such a cell carries."""
    *_, shared, lines = map(ast.literal_eval, _call(cell).args)
    against = _inflate(shared)
    return {name: _inflate(line, against) for name, line in lines.items()}


def excerpt(cell: str) -> str:
    """Such a cell for who reads it: of what is packed, the beginning of each line."""
    return re.sub(r'"([^"\n]{40})[^"\n]{60,}"', r'"\1..."', cell)


def _inflate(line: str, against: bytes = b"") -> bytes:
    return zlib.decompressobj(-15, zdict=against).decompress(base64.b85decode(line))


@functools.cache
def _function() -> str:
    text = UNPACK.read_text(encoding="utf-8")
    return text[text.index("def ") :].rstrip("\n")
