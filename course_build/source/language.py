"""Choosing a notebook's language inside shared code: `# en:` / `# ru:` comment pairs."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from course_build.base.findings import Finding
from course_build.source.cells import Cell
from course_build.source.code import comments


@dataclass(frozen=True)
class Marked:
    """A comment marked with a language; `before` is what stands before it on its line."""

    line: int
    before: str
    language: str
    words: str


def check_comments(
    cell: Cell, languages: Sequence[str], drafts: Collection[str] = ()
) -> list[Finding]:
    """Every `# en:` line is followed at once by its translations, with the same indent.

    Only the lines of drafts may be missing.
    """
    for group in comment_groups(cell.text, languages):
        present = [comment.language for comment in group]
        wanted = [code for code in languages if code not in drafts or code in present]
        problem = _problem(cell, group, wanted)
        if problem:
            shown = cell.text.split("\n")[group[0].line - 1].strip()
            lines = ", then ".join(f"# {language}: ..." for language in wanted)
            mend = f"write {lines}, each alone on its line, with the same indent"
            message = f"{shown!r}: {problem}"
            return [cell.finding("comment-pair", message, mend, line=group[0].line)]
    return []


def comment_groups(text: str, languages: Sequence[str]) -> list[list[Marked]]:
    """The marked comments, cut where one in the source language begins a new group."""
    groups: list[list[Marked]] = []
    for comment in _marked(text, languages):
        if comment.language == languages[0] or not groups:
            groups.append([])
        groups[-1].append(comment)
    return groups


def select_comments(text: str, language: str, languages: Sequence[str]) -> list[tuple[int, str]]:
    """Keep one language's comments, without their mark, as (line number from 1, line).

    Where a group has none in that language, the one in the source language is kept.
    """
    lines: list[str | None] = list(text.split("\n"))
    for group in comment_groups(text, languages):
        kept = next((c for c in group if c.language == language), group[0])
        for comment in group:
            shown = f"{kept.before}# {kept.words}".rstrip() if comment is kept else None
            lines[comment.line - 1] = shown
    return [(number, line) for number, line in enumerate(lines, 1) if line is not None]


def _problem(cell: Cell, group: Sequence[Marked], languages: Sequence[str]) -> str | None:
    if cell.lang is not None:
        return "a cell with lang= has one language; mark no comment in it"
    first = group[0]
    if first.before.strip():
        return "a marked comment stands alone on its line"
    present = [comment.language for comment in group]
    missing = [code for code in languages if code not in present]
    if missing and missing[0] != languages[0]:
        return f"the # {missing[0]}: line is missing after it"
    for place, (other, language) in enumerate(zip(group, languages, strict=False)):
        if other.language != language or other.line != first.line + place:
            return f"the # {language}: line is not where it belongs"
        if other.before != first.before:
            return "the pair is not indented alike"
    if len(group) > len(languages):
        return f"the # {group[len(languages)].language}: line is there twice"
    return None


def _marked(text: str, languages: Sequence[str]) -> list[Marked]:
    mark = re.compile(rf"#\s*({'|'.join(map(re.escape, languages))}):(.*)")
    lines = text.split("\n")
    return [
        Marked(line, lines[line - 1][:column], match[1], match[2].strip())
        for line, column, comment in comments(text)
        if (match := mark.match(comment))
    ]
