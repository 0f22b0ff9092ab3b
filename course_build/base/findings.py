"""What the builder has to say: findings, and the one exception that carries them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

DONE, WORK, BROKEN = 0, 1, 2  # how a command ends


@dataclass(frozen=True)
class Finding:
    """One thing to mend: where it is, which rule it breaks, and what to do about it.

    A stale finding is work to do (exit 1); any other is broken (exit 2). Without a line it is
    about a file or folder as a whole. A fault outside the source names the cells that ask for
    that place; one of a translation says in which language.
    """

    path: str
    line: int | None
    key: str | None
    rule: str
    message: str
    mend: str
    stale: bool = False
    asked_by: tuple[str, ...] = ()
    lang: str | None = None

    @property
    def place(self) -> str:
        """The file, the line, the cell and the rule."""
        line = f":{self.line}" if self.line is not None else ""
        cells = self._cells
        cell = f' cell "{cells[0]}":' if len(cells) == 1 else ""
        return f"{self.path}{line}:{cell} [{self.rule}]"

    @property
    def _cells(self) -> tuple[str, ...]:
        return (self.key,) if self.key is not None else self.asked_by

    def __str__(self) -> str:
        cells = self._cells
        lines = self.message.split("\n")
        if len(cells) > 1:
            lines.append(f"this stops {len(cells)} cells: {_some(cells)}")
        body = "\n".join(f"    {text}".rstrip() for text in lines)
        return f"{self.place}\n{body}\n    -> {self.mend}"

    def quoting(self, text: str) -> "Finding":
        """This finding with the line of the file that it is about."""
        return replace(self, message=f"{self.message}\n  | {text}") if text.strip() else self


class CourseError(Exception):
    """The build cannot go on; carries every finding of the stage that stopped it."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = in_reading_order(findings)
        super().__init__("\n".join(str(finding) for finding in self.findings))

    def in_cell(self, key: str) -> list[Finding]:
        """The findings; those in another file now name the cell that asked for it."""
        return [f if f.key is not None else replace(f, asked_by=(key,)) for f in self.findings]


def in_reading_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort findings by file and line, and say each thing once, whoever asked for it."""
    askers: dict[Finding, dict[str, None]] = {}
    for finding in findings:
        askers.setdefault(replace(finding, asked_by=()), {}).update(dict.fromkeys(finding.asked_by))
    unique = [replace(finding, asked_by=tuple(keys)) for finding, keys in askers.items()]
    return tuple(
        sorted(unique, key=lambda f: (f.path, f.line or 0, f.key or "", f.rule, f.message))
    )


def _some(keys: Sequence[str]) -> str:
    """The first three, and how many more there are."""
    more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""
    return ", ".join(keys[:3]) + more


def stop_if_broken(findings: Iterable[Finding]) -> None:
    """Raise when there is anything in the list that is broken, not merely stale."""
    findings = tuple(findings)
    if any(not finding.stale for finding in findings):
        raise CourseError(findings)
