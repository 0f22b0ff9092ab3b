"""What a translator has to do, said in a few lines: the cells, and the commands to copy."""

from collections.abc import Sequence

from course_build.base.commands import MOST, command, names_of
from course_build.base.findings import Finding


def list_work(findings: Sequence[Finding]) -> list[str]:
    """One line for each cell, at most MOST of a module; then how many more there are."""
    lines = []
    for path in dict.fromkeys(finding.path for finding in findings):
        here = [finding for finding in findings if finding.path == path]
        lines += [f"{finding.place} {finding.message}" for finding in here[:MOST]]
        if len(here) > MOST:
            lines.append(f"{path}: and {len(here) - MOST} more like these")
    return lines


def next_steps(findings: Sequence[Finding], languages: Sequence[str]) -> list[str]:
    """The commands for the translations among the findings that are stale or missing."""
    stale = [finding for finding in findings if finding.stale]
    missing = [finding for finding in findings if finding.rule == "missing-twin"]
    lines = []
    for words, here in (
        ("see what changed, correct the translation, then confirm what you have read:", stale),
        ("see what is not translated, write it beside its source, then confirm it:", missing),
    ):
        if here:
            lines += [words, *commands(("diff", "confirm"), here, languages)]
    return lines


def commands(
    verbs: Sequence[str], findings: Sequence[Finding], languages: Sequence[str], most: int = MOST
) -> list[str]:
    """Commands that name these cells; a module with more than `most` of them by its number."""
    names = names_of(((finding.path, str(finding.key)) for finding in findings), most)
    limit = dict.fromkeys(str(finding.lang) for finding in findings) if len(languages) > 2 else ()
    return [f"    {command(verb, names, limit)}" for verb in verbs]
