"""Choosing a notebook's language inside shared code: `# en:` / `# ru:` comment pairs."""

import re
from collections.abc import Sequence

from course_build.code import comments
from course_build.findings import Finding
from course_build.source import Cell


def check_comments(cell: Cell, languages: Sequence[str]) -> list[Finding]:
    """Every `# en:` line is followed at once by its twins, with the same indent."""
    marked = _marked(cell.text, languages)
    findings = []
    expected = 0
    previous = None
    for line, (indent, language, alone) in sorted(marked.items()):
        follows = previous is None or line == previous[0] + 1 and indent == previous[1]
        if cell.lang is not None:
            problem = "a cell with lang= has one language; mark no comment in it"
        elif not alone:
            problem = "a marked comment stands alone on its line"
        elif language != languages[expected] or (expected > 0 and not follows):
            problem = f"comments come as {', '.join(f'# {code}:' for code in languages)}"
        else:
            expected = (expected + 1) % len(languages)
            previous = (line, indent) if expected else None
            continue
        findings.append(_finding(cell, line, languages, problem))
        return findings
    if expected:
        problem = f"the # {languages[expected]}: line is missing after it"
        findings.append(_finding(cell, previous[0], languages, problem))
    return findings


def select_comments(text: str, language: str, languages: Sequence[str]) -> list[tuple[int, str]]:
    """Keep one language's comments, without their mark, as (line number from 0, line)."""
    marked = _marked(text, languages)
    selected = []
    for number, line in enumerate(text.split("\n")):
        if number not in marked:
            selected.append((number, line))
        elif marked[number][1] == language:
            indent = marked[number][0]
            words = line.split(f"{language}:", 1)[1].strip()
            selected.append((number, f"{indent}# {words}".rstrip()))
    return selected


def _marked(text: str, languages: Sequence[str]) -> dict[int, tuple[str, str, bool]]:
    """The marked comments: line -> (indent, language, alone on its line)."""
    mark = re.compile(rf"#\s*({'|'.join(map(re.escape, languages))}):")
    lines = text.split("\n")
    marked = {}
    for line, column, comment in comments(text):
        match = mark.match(comment)
        if match:
            before = lines[line][:column]
            marked[line] = before, match.group(1), not before.strip()
    return marked


def _finding(cell: Cell, line: int, languages: Sequence[str], problem: str) -> Finding:
    shown = cell.text.split("\n")[line].strip()
    lines = ", then ".join(f"# {language}: ..." for language in languages)
    return cell.finding(
        "comment-pair",
        f"{shown!r}: {problem}",
        f"write {lines}, each on its own line with the same indent",
        line=cell.text_line + line,
    )
