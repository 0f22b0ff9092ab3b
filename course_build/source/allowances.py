"""What a translation may do otherwise than its source, and why: differs="numbers: reason"."""

from collections.abc import Collection, Sequence

from course_build.base.findings import Finding
from course_build.source.cells import Cell

ATTRIBUTE = "differs"
KINDS = ("structure", "formulas", "code", "links", "images", "numbers", "emphasis")
RULES = {f"parity-{kind}": kind for kind in KINDS} | {"code-twins": "code"}


def read_allowances(written: str | None) -> dict[str, str]:
    """Take "kind: reason; kind: reason" apart; of a kind given twice the last counts."""
    entries = [entry.partition(":") for entry in (written or "").split(";")]
    return {kind.strip(): reason.strip() for kind, _, reason in entries if kind.strip()}


def check_allowances(cell: Cell, source: Cell) -> list[Finding]:
    """Only a translation differs from something, in a kind that exists, for a reason."""
    if cell.differs is None:
        return []
    allowed = read_allowances(cell.differs)
    if cell is source:
        message = f"{ATTRIBUTE}={cell.differs!r} on a cell that is not a translation"
        return [cell.finding("allowance", message, "put it on the translation, or remove it")]
    faults = [f"{kind!r} is not a kind" for kind in allowed if kind not in KINDS]
    faults += [f"{kind} has no reason" for kind, why in allowed.items() if not _says_why(why)]
    if cell.differs.count(";") + 1 != len(allowed):
        faults.append("it is not a list of different kinds")
    if not cell.differs.isascii():
        faults.append("jupytext would escape its letters that are not ASCII")
    mend = f'write {ATTRIBUTE}="kind: reason; kind: reason" with kinds of {", ".join(KINDS)}'
    return [
        cell.finding("allowance", f"{ATTRIBUTE}={cell.differs!r}: {fault}", mend)
        for fault in faults
    ]


def allow(
    cell: Cell, findings: Sequence[Finding], compared: Collection[str] = KINDS
) -> list[Finding]:
    """Take out what the cell may do otherwise; say which of its allowances is needed no longer.

    `compared` are the kinds that were looked at.
    """
    allowed = [kind for kind in read_allowances(cell.differs) if kind in KINDS]
    kept = [finding for finding in findings if RULES.get(finding.rule) not in allowed]
    used = {RULES.get(finding.rule) for finding in findings}
    for kind in allowed:
        if kind in compared and kind not in used:
            message = f"{ATTRIBUTE} allows other {kind}, but the {kind} of the twins agree"
            mend = f"take {kind!r} out of {ATTRIBUTE}"
            kept.append(cell.finding("needless-allowance", message, mend))
    return kept


def _says_why(reason: str) -> bool:
    return sum(character.isalpha() for character in reason) >= 3
