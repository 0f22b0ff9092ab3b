"""Strings in Python as a reader meets them: fields and formulas hidden, every line exact."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping, Sequence

from course_build.proofreading.pieces import HOLE, Part
from course_build.text.strings import MATHS

FIELD = r"\{(?:[A-Za-z_][\w.\[\]]*|\d+)?(?:![rsa])?(?::[^{}]*)?\}"
HIDDEN = re.compile(rf"`[^`]*`|{MATHS.pattern}|{FIELD}")
BAR = " | "  # between the languages of a contract's text
OPENING = {"FSTRING_START", "TSTRING_START"}
CLOSING = {"FSTRING_END", "TSTRING_END"}


def string_nodes(tree: ast.AST) -> Iterator[ast.expr]:
    """Every string and f-string, in reading order; what is inside an f-string is part of it."""
    if is_string(tree):
        yield tree
        return
    for child in ast.iter_child_nodes(tree):
        yield from string_nodes(child)


def is_string(node: object) -> bool:
    """Say whether a node is a string or an f-string."""
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def string_parts(lines: Sequence[str], node: ast.expr, first_line: int = 1) -> list[Part]:
    """A string's text as (line, text) parts, one for each line that it is written on."""
    segment = _segment(lines, node)
    parts: list[Part] = []
    for line, literal in _literals(segment):
        parts += _read_literal(literal, first_line + node.lineno - 1 + line)
    return _hide(parts)


def localized_strings(
    tree: ast.AST, languages: Sequence[str]
) -> Iterator[tuple[str, ast.expr, bool]]:
    """The strings of every table {language: words}: its language, and whether it is in all alike.

    Keys of tables inside are no words.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict) and node.keys:
            codes = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
            if all(code in languages for code in codes):
                found = [list(_values(value)) for value in node.values]
                written = [{ast.unparse(string) for string in strings} for strings in found]
                shared = set.intersection(*written) if len(codes) > 1 else set()
                for code, strings in zip(codes, found, strict=True):
                    for string in strings:
                        yield code, string, ast.unparse(string) in shared


def paired_strings(tree: ast.Module, languages: Sequence[str]) -> Iterator[list[ast.expr]]:
    """The texts that contracts write in one line: "English | русский", or a pair of strings.

    What a mistake says in one string only is the same in every language.
    """
    prose = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}  # docstrings
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            if node.value.count(BAR) == len(languages) - 1:
                yield [node]
        elif isinstance(node, ast.Tuple) and all(map(is_string, node.elts)):
            values = [str(getattr(each, "value", "")) for each in node.elts]
            if len(values) != len(languages) or any(BAR in each for each in values):
                continue  # a name and its text are not two languages
            if values[0].isascii() != values[-1].isascii():
                yield node.elts
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "mistakes":
            tuples = [
                pair.value.elts for pair in node.keywords if isinstance(pair.value, ast.Tuple)
            ]
            for text in (text for told in tuples for text in told[1:3] if is_string(text)):
                if BAR not in str(getattr(text, "value", "")):
                    yield [text]


def split_parts(parts: Sequence[Part]) -> list[list[Part]]:
    """The parts of each language of "English | русский"; of a text without a bar, all of it."""
    told: list[list[Part]] = []
    start = 0
    for text in "".join(words for _, words in parts).split(BAR):  # a bar may end a literal
        told.append(list(_cut(parts, start, start + len(text))))
        start += len(text) + len(BAR)
    return told


def _cut(parts: Sequence[Part], start: int, end: int) -> Iterator[Part]:
    place = 0
    for line, words in parts:
        if kept := words[max(start - place, 0) : max(end - place, 0)]:
            yield line, kept
        place += len(words)


def _values(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Dict):
        for value in node.values:
            yield from _values(value)
    else:
        yield from string_nodes(node)


def twin_strings(trees: Mapping[str, ast.AST]) -> dict[str, list[tuple[ast.expr, bool]]]:
    """The strings of code twins, each with whether it is the same in every language."""
    found = {language: list(string_nodes(tree)) for language, tree in trees.items()}
    rows = list(zip(*found.values(), strict=False))
    shared = [len(row) > 1 and len({ast.unparse(node) for node in row}) == 1 for row in rows]
    return {
        language: [(row[place], same) for row, same in zip(rows, shared, strict=True)]
        for place, language in enumerate(found)
    }


def _segment(lines: Sequence[str], node: ast.expr) -> str:
    """What ast.get_source_segment gives, without cutting the whole file into lines each time."""
    rows = list(lines[node.lineno - 1 : node.end_lineno])
    rows[-1] = rows[-1].encode()[: node.end_col_offset].decode()
    rows[0] = rows[0].encode()[node.col_offset :].decode()
    return "\n".join(rows)


def _literals(segment: str) -> Iterator[tuple[int, str]]:
    """The literals that stand side by side in a segment, with their lines from 0."""
    rows = f"(\n{segment}\n)".split("\n")
    depth, start = 0, (1, 0)
    for token in tokenize.generate_tokens(io.StringIO("\n".join(rows)).readline):
        name = tokenize.tok_name[token.type]
        depth += (name in OPENING) - (name in CLOSING)
        if (name == "STRING" and depth == 0) or (name in OPENING and depth == 1):
            start = token.start
        if depth == 0 and (name == "STRING" or name in CLOSING):
            cut = rows[start[0] - 1 : token.end[0]]
            cut[-1] = cut[-1][: token.end[1]]
            cut[0] = cut[0][start[1] :]
            yield start[0] - 2, "\n".join(cut)


def _read_literal(literal: str, line: int) -> Iterator[Part]:
    tree = ast.parse(literal, mode="eval").body
    values = tree.values if isinstance(tree, ast.JoinedStr) else [tree]
    text = "".join(v.value if isinstance(v, ast.Constant) else HOLE for v in values)
    on_many_lines = "\n" in literal
    for number, row in enumerate(text.split("\n")):
        yield line + number * on_many_lines, f"\n{row}" if number else row


def _hide(parts: list[Part]) -> list[Part]:
    """Cover fields, formulas and code in backticks, also where they run over a line's end."""
    text = hide("".join(words for _, words in parts))
    hidden, place = [], 0
    for line, words in parts:
        hidden.append((line, text[place : place + len(words)]))
        place += len(words)
    return hidden


def hide(text: str) -> str:
    """Cover fields, formulas and code in backticks, keeping every offset."""
    return HIDDEN.sub(lambda found: HOLE * len(found[0]), text)
