"""What a translator has to do, said in a few lines: the cells, and the commands to copy."""

from collections.abc import Sequence

from course_build.commands import MOST, command, names_of
from course_build.findings import Finding


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
    """The commands for the stale translations among the findings."""
    lines = commands(("diff", "confirm"), findings, languages)
    words = "see what changed, correct the translation, then confirm what you have read:"
    return [words, *lines] if lines else []


def commands(
    verbs: Sequence[str], findings: Sequence[Finding], languages: Sequence[str], most: int = MOST
) -> list[str]:
    """Commands that name the stale cells; a module with more than `most` of them by its number."""
    stale = [finding for finding in findings if finding.stale]
    names = names_of(((finding.path, finding.key) for finding in stale), most)
    limit = dict.fromkeys(finding.lang for finding in stale) if len(languages) > 2 else ()
    return [f"    {command(verb, names, limit)}" for verb in verbs if stale]
