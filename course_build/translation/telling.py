"""What the builder says of findings, files that nobody makes, and notebooks."""

import sys
from collections.abc import Collection, Iterable, Sequence

from course_build.base.findings import Finding
from course_build.translation.work import list_work, next_steps


def tell_findings(findings: Sequence[Finding], languages: Sequence[str] = ()) -> None:
    """Say what is broken, one by one; then what is stale, in short, and the commands for it."""
    broken = [str(finding) for finding in findings if not finding.stale]
    stale = [finding for finding in findings if finding.stale]
    lines = [*broken, *list_work(stale), *next_steps(stale, languages)]
    print("\n".join(lines), file=sys.stderr)


def count(findings: Sequence[Finding]) -> str:
    """Count findings in words."""
    return f"{len(findings)} finding" + ("s" if len(findings) != 1 else "")


def tell_strays(strays: Sequence[str]) -> None:
    """Name the files in the output folders that no source makes."""
    for path in strays:
        print(
            f"{path}: [orphan] no source makes this file\n"
            "    -> move or delete it yourself, or write its source",
            file=sys.stderr,
        )


def tell_built(paths: Iterable[str], written: Collection[str]) -> None:
    """Name what was built, what of it is new, and how to read it."""
    for path in paths:
        print(f"{'wrote    ' if path in written else 'unchanged'} {path}")
    print("to read them: make lab; or open one in any Jupyter, VS Code or Colab: it runs alone")
