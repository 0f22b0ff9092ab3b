"""Compare what the executed notebooks show with what was last accepted.

    python -m course_build.drift [--accept] [--output build/compat/newest/executed]

The accepted outputs are in reference/outputs/: what each learner's notebook prints, and of the
edition with the solutions the cells that print something else. A cell tagged `measured` may print
any numbers; elsewhere each difference is drift, the rounding of another processor apart
(course_build/drift/compare.py says how much that is). Run the notebooks first: make run. What the
last run was not asked for is left out, and named, unless an earlier run of it still counts.

Exit codes: 0 the same; 1 drift; 2 broken (a notebook did not run, failed, was run with parameters
or has changed since; an accepted file cannot be read).
"""

import argparse
import json
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from course_build.base.files import write_files
from course_build.base.findings import BROKEN, DONE, WORK, CourseError, Finding
from course_build.base.settings import SETTINGS_FILE, parse_settings
from course_build.drift.accepted import FormatError, Shown, read, shown, write
from course_build.drift.compare import Change, compare, difference, merged
from course_build.outputs.executed import is_fresh, read_notebook

ROOT = Path(__file__).resolve().parents[2]
ACCEPTED, EXECUTED = "reference/outputs", "build/executed"
RENDERED = {"learner": "notebooks", "solved": "build/solved"}  # where each edition lies
PACKAGES = ("torch", "numpy", "matplotlib")
Versions = Mapping[str, str]


@dataclass(frozen=True)
class Drift:
    """One accepted file: what it says, what is shown now, and how they differ.

    Without `before` nothing was accepted yet; without `now` there is no such notebook.
    """

    path: str
    before: tuple[Versions, Sequence[Shown]] | None
    now: Sequence[Shown] | None

    @property
    def changes(self) -> list[Change]:
        return compare(self.before[1], self.now) if self.before and self.now is not None else []

    @property
    def is_same(self) -> bool:
        return self.before is not None and self.now is not None and not self.changes

    def told(self, versions: Versions) -> str:
        """Say what drifted, and between which versions."""
        if self.before is None:
            return f"{self.path}: not accepted yet"
        if self.now is None:
            return f"{self.path}: no such notebook is rendered; delete the file"
        then = self.before[0]
        moved = [f"{n} {then.get(n, '?')} -> {v}" for n, v in versions.items() if then.get(n) != v]
        head = f"{self.path}: {', '.join(moved) or 'the same versions as when it was accepted'}"
        body = "\n".join(str(change) for change in self.changes)
        return head + "\n" + "\n".join(f"    {line}" for line in body.split("\n"))


def versions_of(results: Path) -> dict[str, str]:
    """Name what a run used, as its report says; without a report, what is here."""
    try:
        told = json.loads((results / "report.json").read_text(encoding="utf-8"))
        packages = {name: str(told["versions"][name] or "absent") for name in PACKAGES}
        return {"Python": told["python"], **{k: v.split("+")[0] for k, v in packages.items()}}
    except (OSError, ValueError, KeyError, TypeError):
        return versions_here()


def versions_here() -> dict[str, str]:
    """Name what this environment runs notebooks with."""
    versions = {"Python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name).split("+")[0]
        except PackageNotFoundError:
            versions[name] = "absent"
    return versions


def asked_of(results: Path) -> set[str] | None:
    """Name what the last run was asked for, as edition/language/notebook; None if nobody knows."""
    try:
        rows = json.loads((results / "report.json").read_text(encoding="utf-8"))["notebooks"]
        return {f"{row['edition']}/{row['language']}/{row['notebook']}" for row in rows}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def shown_now(
    root: Path, languages: Sequence[str], results: str = EXECUTED
) -> tuple[dict[str, list[Shown]], list[str]]:
    """Read what the executed notebooks show, {accepted path: outputs}; CourseError.

    And name what was left out, since the last run was not asked for it.
    """
    asked = asked_of(root / results)
    found, findings, left_out = {}, [], []
    for language in languages:
        for name in sorted(p.stem for p in (root / "notebooks" / language).glob("module_*.ipynb")):
            outputs: dict[str, list[Shown]] = {}
            for edition, folder in RENDERED.items():
                rendered = f"{folder}/{language}/{name}.ipynb"
                run = f"{edition}/{language}/{name}"
                executed = f"{results}/{run}.ipynb"
                try:
                    both = [read_notebook(x, (root / x).read_bytes()) for x in (rendered, executed)]
                    problem = "" if is_fresh(*both) else "it failed, is old or had parameters set"
                except FileNotFoundError:
                    problem = "it has not been run"
                if not problem:
                    outputs[edition] = shown(both[1])
                elif asked is None or run in asked:
                    finding = Finding(
                        executed, None, None, "executed-notebook", problem, "make run"
                    )
                    findings.append(finding)
                else:
                    left_out.append(run)
            path = f"{ACCEPTED}/{language}/{name}"
            if "learner" in outputs:
                found[f"{path}.txt"] = outputs["learner"]
            if len(outputs) == len(RENDERED):
                found[f"{path}.solved.txt"] = difference(outputs["learner"], outputs["solved"])
    if findings:
        raise CourseError(findings)
    if not found:
        what, mend = "no notebook is rendered", "make notebooks"
        if left_out:
            what, mend = "no learner's notebook has been run", "make run"
        raise CourseError([Finding("notebooks", None, None, "drift", what, mend)])
    return found, left_out


def accepted_of(run: str) -> list[str]:
    """Name the accepted files that need a run, given as edition/language/notebook."""
    edition, _, name = run.partition("/")
    solved = f"{ACCEPTED}/{name}.solved.txt"
    return [solved, f"{ACCEPTED}/{name}.txt"] if edition == "learner" else [solved]


def find_drift(
    root: Path, languages: Sequence[str], results: str = EXECUTED
) -> tuple[list[Drift], list[str]]:
    """Pair what was accepted with what is shown now, file by file; CourseError.

    And name what was left out.
    """
    now, left_out = shown_now(root, languages, results)
    files = {p.relative_to(root).as_posix(): p for p in (root / ACCEPTED).glob("*/*.txt")}
    rest = {path for run in left_out for path in accepted_of(run)} - now.keys()
    drifts = []
    for path in sorted((now.keys() | files.keys()) - rest):
        try:
            before = read(files[path].read_text(encoding="utf-8")) if path in files else None
        except (FormatError, UnicodeDecodeError) as error:
            mend = "restore the file, or delete it and accept anew"
            raise CourseError([Finding(path, None, None, "accepted", str(error), mend)]) from error
        drifts.append(Drift(path, before, now.get(path)))
    return drifts, left_out


def accept(root: Path, drifts: Sequence[Drift], versions: Versions) -> list[str]:
    """Write what is shown now where it drifted; return the paths written."""
    files = {
        drift.path: write(
            merged(drift.before[1], drift.now) if drift.before else drift.now, versions
        ).encode()
        for drift in drifts
        if drift.now is not None and not drift.is_same
    }
    write_files(root, files)
    return list(files)


def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    """Compare, or with --accept take over what is shown now."""
    parser = argparse.ArgumentParser(prog="python -m course_build.drift", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--accept", action="store_true", help="take over what is shown now")
    parser.add_argument(
        "--output", metavar="FOLDER", default=EXECUTED, help="where the run left its results"
    )
    options = parser.parse_args(argv)
    versions = versions_of(root / options.output)
    try:
        settings = parse_settings((root / SETTINGS_FILE).read_text(encoding="utf-8"))
        drifts, left_out = find_drift(root, settings.complete, options.output)
        if left_out:
            print(f"not run, so not compared: {', '.join(left_out)}")
        drifted = [drift for drift in drifts if not drift.is_same]
        for drift in drifted:
            print(drift.told(versions), end="\n\n")
        if options.accept:
            print("".join(f"wrote {path}\n" for path in accept(root, drifts, versions)), end="")
            return WORK if any(drift.now is None for drift in drifts) else DONE
    except CourseError as error:
        print(error, file=sys.stderr)
        return BROKEN
    except OSError as error:
        print(f"broken: {error}", file=sys.stderr)
        return BROKEN
    print(f"{len(drifts)} accepted outputs, {len(drifted)} drifted")
    if drifted:
        print("read each change; where it is right: python -m course_build.drift --accept")
    return WORK if drifted else DONE


if __name__ == "__main__":
    sys.exit(main())
