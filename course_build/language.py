"""Choosing a notebook's language inside shared code: `# en:` / `# ru:` comment pairs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from course_build.code import comments
from course_build.findings import Finding
from course_build.source import Cell


@dataclass(frozen=True)
class Marked:
    """A comment marked with a language; `before` is what stands before it on its line."""

    line: int
    before: str
    language: str
    words: str


def check_comments(cell: Cell, languages: Sequence[str]) -> list[Finding]:
    """Every `# en:` line is followed at once by its translations, with the same indent."""
    marked = _marked(cell.text, languages)
    for place, comment in enumerate(marked):
        group = marked[place - place % len(languages) :][: len(languages)]
        problem = _problem(cell, comment, group, languages)
        if problem:
            shown = cell.text.split("\n")[comment.line - 1].strip()
            lines = ", then ".join(f"# {language}: ..." for language in languages)
            mend = f"write {lines}, each alone on its line, with the same indent"
            message = f"{shown!r}: {problem}"
            return [cell.finding("comment-pair", message, mend, line=comment.line)]
    return []


def select_comments(text: str, language: str, languages: Sequence[str]) -> list[tuple[int, str]]:
    """Keep one language's comments, without their mark, as (line number from 1, line)."""
    marked = {comment.line: comment for comment in _marked(text, languages)}
    selected = []
    for number, line in enumerate(text.split("\n"), 1):
        if number not in marked:
            selected.append((number, line))
        elif marked[number].language == language:
            comment = marked[number]
            selected.append((number, f"{comment.before}# {comment.words}".rstrip()))
    return selected


def _problem(
    cell: Cell, comment: Marked, group: Sequence[Marked], languages: Sequence[str]
) -> str | None:
    if cell.lang is not None:
        return "a cell with lang= has one language; mark no comment in it"
    if comment.before.strip():
        return "a marked comment stands alone on its line"
    first = group[0]
    for place, (other, language) in enumerate(zip(group, languages, strict=False)):
        if other.language != language or other.line != first.line + place:
            return f"the # {language}: line is not where it belongs"
        if other.before != first.before:
            return "the pair is not indented alike"
    if len(group) < len(languages):
        return f"the # {languages[len(group)]}: line is missing after it"
    return None


def _marked(text: str, languages: Sequence[str]) -> list[Marked]:
    mark = re.compile(rf"#\s*({'|'.join(map(re.escape, languages))}):(.*)")
    lines = text.split("\n")
    return [
        Marked(line, lines[line - 1][:column], match[1], match[2].strip())
        for line, column, comment in comments(text)
        if (match := mark.match(comment))
    ]
