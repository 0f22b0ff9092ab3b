"""What the builder has to say: findings, and the one exception that carries them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Finding:
    """One thing to mend: where it is, which rule it breaks, and what to do about it.

    A stale finding is work to do (exit 1); any other is broken (exit 2).
    """

    path: str
    line: int
    key: str | None
    rule: str
    message: str
    mend: str
    stale: bool = False

    def __str__(self) -> str:
        cell = f' cell "{self.key}":' if self.key is not None else ""
        body = "\n".join(f"    {line}".rstrip() for line in self.message.split("\n"))
        return f"{self.path}:{self.line}:{cell} [{self.rule}]\n{body}\n    -> {self.mend}"


class CourseError(Exception):
    """The build cannot go on; carries every finding of the stage that stopped it."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = in_reading_order(findings)
        super().__init__("\n".join(str(finding) for finding in self.findings))

    def in_cell(self, key: str) -> list[Finding]:
        """The findings; those in another file now name the cell that asked for it."""
        return [replace(finding, key=finding.key or key) for finding in self.findings]


def in_reading_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort findings by file and line, and say each thing once."""
    unique = dict.fromkeys(findings)
    return tuple(sorted(unique, key=lambda f: (f.path, f.line, f.key or "", f.rule, f.message)))


def stop_if_broken(findings: Iterable[Finding]) -> None:
    """Raise when there is anything in the list that is broken, not merely stale."""
    findings = tuple(findings)
    if any(not finding.stale for finding in findings):
        raise CourseError(findings)
