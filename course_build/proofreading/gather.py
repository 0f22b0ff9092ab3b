"""Everything that a reader meets, as pieces: cells, library tables, the builder's words, pages."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from unicodedata import normalize

from course_build.base.places import PACKAGE
from course_build.proofreading.markdown import markdown_parts
from course_build.proofreading.pieces import HOLE, SHARED, Part, Piece, join
from course_build.proofreading.strings import (
    hide,
    is_string,
    localized_strings,
    paired_strings,
    split_parts,
    string_parts,
    twin_strings,
)
from course_build.source.cells import Cell, parse_source
from course_build.source.code import comments, without_commands
from course_build.source.language import comment_groups
from course_build.text.prose import parse_prose

NAME = re.compile(r"\w+")


def source_pieces(path: str, text: str, languages: Sequence[str]) -> list[Piece]:
    """The pieces of one module: prose, marked comments, and strings in code twins."""
    cells = parse_source(path, text, languages)
    pieces: list[Piece] = []
    twins: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.kind == "markdown":
            parts = markdown_parts(cell.text, cell.text_line)
            place = path, cell.key, cell.lang or languages[0], "prose"
            pieces += _joined(parts, place)
        elif cell.lang is None:
            pieces += _comments(cell, languages)
        else:
            twins.setdefault(cell.key, []).append(cell)
    for group in twins.values():
        pieces += _twins(group)
    return sorted(pieces, key=lambda piece: piece.lines[0])


def table_pieces(path: str, text: str, languages: Sequence[str]) -> list[Piece]:
    """The pieces of a Python file's tables {language: words}, and of its "English | русский"."""
    lines = text.split("\n")
    pieces: list[Piece] = []
    if any(f'"{language}"' in text for language in languages):
        for language, node, shared in localized_strings(ast.parse(text), languages):
            place = path, None, language, SHARED if shared else "table"
            pieces += _joined([string_parts(lines, node)], place)
    if path.startswith(f"{PACKAGE}/"):  # where a text stands in one line for all languages
        for nodes in paired_strings(ast.parse(text), languages):
            told = [part for node in nodes for part in split_parts(string_parts(lines, node))]
            kind = "table" if len(told) == len(languages) else SHARED
            told = told if kind == "table" else told * len(languages)
            for language, parts in zip(languages, told, strict=True):
                pieces += _joined([parts], (path, None, language, kind))
    return pieces


def code_pieces(code: Mapping[str, str], languages: Sequence[str]) -> Iterator[Piece]:
    """The docstrings and comments of Python files; what is a name in any of them is not read."""
    trees = {path: ast.parse(text) for path, text in code.items()}
    names = {*languages, *(name for tree in trees.values() for name in _names(tree))}
    for path, text in code.items():
        lines = text.split("\n")
        parts = [string_parts(lines, node) for node in _docstrings(trees[path])]
        parts += [[(line, hide(words.lstrip("# ")))] for line, _, words in comments(text)]
        parts = [[(line, _without(words, names)) for line, words in part] for part in parts]
        yield from _joined(parts, (path, None, languages[0], "code"))


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        for field in ("id", "attr", "arg", "name", "module"):
            yield from NAME.findall(str(getattr(node, field, None) or ""))


def _docstrings(tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and is_string(first.value):
                yield first.value


def _without(text: str, names: set[str]) -> str:
    """The text with names, and what has an index or a power, hidden."""

    def cover(found: re.Match[str]) -> str:
        is_word = found[0] not in names and normalize("NFKC", found[0]) == found[0]
        return found[0] if is_word else HOLE * len(found[0])

    return NAME.sub(cover, text)


def page_pieces(path: str, text: str, languages: Sequence[str]) -> list[Piece]:
    """The pieces of a Markdown page; NAME.ru.md is Russian, NAME.md the source language's."""
    marks = [language for language in languages if path.endswith(f".{language}.md")]
    language = marks[0] if marks else languages[0]
    pieces = _joined(markdown_parts(text), (path, None, language, "page"))
    return pieces + _joined(_plain_fences(text), (path, None, language, "code"))


def _plain_fences(text: str) -> Iterator[list[Part]]:
    """The words after the first gap in each line of a fence that is no code: what a tree says."""
    for token in parse_prose(text):
        if token.type == "fence" and not token.info and token.map:
            for line, words in enumerate(token.content.split("\n"), token.map[0] + 2):
                told = re.split(r"\S {2,}(?=\S)", words, maxsplit=1)[1:]
                yield [(line, hide(said)) for said in told]


def _joined(many: Iterable[list[Part]], place: tuple[str, str | None, str, str]) -> list[Piece]:
    return [piece for parts in many if (piece := join(parts, place))]


def _comments(cell: Cell, languages: Sequence[str]) -> Iterator[Piece]:
    """The comments that are marked with a language."""
    for group in comment_groups(cell.text, languages):
        for comment in group:
            yield from _one_line(cell, comment.language, comment.line, comment.words, "comment")


def _twins(cells: Sequence[Cell]) -> Iterator[Piece]:
    """Of code twins, the strings, and the comments that are not the same in all of them."""
    codes = {cell.lang: without_commands(cell.text) for cell in cells}
    strings = twin_strings({language: ast.parse(code) for language, code in codes.items()})
    written = {language: comments(code) for language, code in codes.items()}
    shared = set.intersection(*({words for *_, words in found} for found in written.values()))
    for cell in cells:
        lines = codes[cell.lang].split("\n")
        for node, same in strings[cell.lang]:
            parts = string_parts(lines, node, cell.text_line)
            place = cell.path, cell.key, cell.lang, SHARED if same else "string"
            yield from _joined([parts], place)
        for line, _, words in written[cell.lang]:
            if words not in shared or len(cells) == 1:
                yield from _one_line(cell, cell.lang, line, words.lstrip("# "), "comment")


def _one_line(cell: Cell, language: str, line: int, words: str, kind: str) -> list[Piece]:
    part = cell.text_line + line - 1, hide(words)
    return _joined([[part]], (cell.path, cell.key, language, kind))
