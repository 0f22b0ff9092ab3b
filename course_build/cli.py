"""The builder's command line: choose modules and languages, report, and say how it ended.

Exit codes: 0 done; 1 there is work (a stale translation, a notebook that is missing or differs,
an orphan); 2 something is broken or was asked wrongly.
"""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from course_build.build import Course, Files, build_course, notebook_path, solved_path, stem_of
from course_build.confirm import confirm
from course_build.decode import decode
from course_build.files import changed_files, orphans, read_files, write_files
from course_build.findings import CourseError, Finding
from course_build.settings import SETTINGS_FILE, Settings, parse_settings

DONE, WORK, BROKEN = 0, 1, 2


def main(arguments: Sequence[str], root: Path) -> int:
    """Run one command in the repository at root; return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        settings = parse_settings(_read_settings(root))
        files = read_files(root)
        if options.command == "confirm":
            return _confirm(options.cells, files, settings, root)
        return _build(options, files, settings, root)
    except CourseError as error:
        findings = error.findings
    except OSError as error:
        message, mend = f"cannot read: {error.strerror}", "make it a readable file"
        where = os.path.relpath(error.filename or root, root)
        findings = [Finding(where, 1, None, "file", message, mend)]
    _report(findings)
    print(f"\nbroken: {_count(findings)}; nothing was written", file=sys.stderr)
    return BROKEN


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="build_notebooks.py",
        description="Render notebooks/src into notebooks/<language>, each self-contained.",
        epilog="exit codes: 0 done; 1 stale, missing, different or orphaned; 2 broken",
    )
    parser.add_argument(
        "--module", nargs="+", metavar="NAME", help="only these modules: 3, or the file's name"
    )
    parser.add_argument("--lang", nargs="+", metavar="CODE", help="only these languages: en ru")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true", help="write nothing; compare with the disk")
    mode.add_argument(
        "--preview", action="store_true", help="build stale translations too, under a banner"
    )
    commands = parser.add_subparsers(dest="command", metavar="confirm")
    confirming = commands.add_parser(
        "confirm", help="after re-reading: stamp translations as up to date",
        description="Stamp the translations of these cells as re-read against today's text.",
    )  # fmt: skip
    confirming.add_argument(
        "cells", nargs="+", metavar="MODULE:KEY", help="for example 3:scaled-dot"
    )
    return parser


def _build(options: argparse.Namespace, files: Files, settings: Settings, root: Path) -> int:
    paths = _chosen_modules(options.module, files.sources)
    languages = _chosen_languages(options.lang, settings)
    course = build_course(files, settings, paths, languages, preview=options.preview)
    strays = _strays(files, settings, root)
    if course.stale:
        _report(course.stale)
    if options.check:
        return _check(course, strays, root)
    if course.stale and not options.preview:
        print(
            f"\nstale: {_count(course.stale)}; nothing was written "
            "(--preview builds all the same, under a banner)",
            file=sys.stderr,
        )
        return WORK
    outputs = {**course.notebooks, **course.solved}
    changed = changed_files(root, outputs)
    write_files(root, {path: outputs[path] for path in changed})
    for path in course.notebooks:
        print(f"{'wrote    ' if path in changed else 'unchanged'} {path}")
    print("to read them: make lab; or open one in any Jupyter, VS Code or Colab: it runs alone")
    _report_strays(strays)
    return WORK if strays else DONE


def _check(course: Course, strays: Sequence[str], root: Path) -> int:
    changed = changed_files(root, course.notebooks)
    for path, how in changed.items():
        print(f"{path}: {how}; run: make notebooks", file=sys.stderr)
    _report_strays(strays)
    if changed or strays or course.stale:
        return WORK
    print(f"{len(course.notebooks)} notebooks are up to date")
    return DONE


def _confirm(cells: Sequence[str], files: Files, settings: Settings, root: Path) -> int:
    texts: dict[str, str] = {}
    lines = []
    for cell in cells:
        module, colon, key = cell.partition(":")
        if not colon:
            raise _asked_wrongly(f"{cell!r} is not MODULE:KEY", "write for example 3:scaled-dot")
        [path] = _chosen_modules([module], files.sources)
        text = texts.get(path) or decode(path, files.sources[path])
        texts[path], done = confirm(path, text, key, settings.languages)
        what = f"confirmed in {', '.join(done)}" if done else "was already confirmed"
        lines.append(f"{path}: {key} {what}")
    outputs = {path: text.encode() for path, text in texts.items()}
    write_files(root, {path: outputs[path] for path in changed_files(root, outputs)})
    print("\n".join(lines))
    return DONE


def _chosen_modules(names: Sequence[str] | None, sources: Sequence[str]) -> list[str]:
    if not sources:
        raise _asked_wrongly("there is not one source in notebooks/src", "write module_NN_idea.py")
    if names is None:
        return list(sources)
    chosen = []
    for name in names:
        number = f"module_{int(name):02d}_" if re.fullmatch(r"\d{1,2}", name) else None
        found = [
            path
            for path in sources
            if (number and stem_of(path).startswith(number)) or stem_of(path) == name
        ]
        if not found:
            known = ", ".join(stem_of(path) for path in sources)
            raise _asked_wrongly(f"there is no module {name!r}", f"choose from {known}")
        chosen += found
    return list(dict.fromkeys(chosen))


def _chosen_languages(names: Sequence[str] | None, settings: Settings) -> list[str]:
    for name in names or ():
        if name not in settings.languages:
            known = ", ".join(settings.languages)
            raise _asked_wrongly(f"there is no language {name!r}", f"choose from {known}")
    return [code for code in settings.languages if names is None or code in names]


def _strays(files: Files, settings: Settings, root: Path) -> list[str]:
    """Everything in the output folders that no source makes, whatever was chosen."""
    pairs = [(code, stem_of(path)) for code in settings.languages for path in files.sources]
    expected = [place(*pair) for pair in pairs for place in (notebook_path, solved_path)]
    folders = sorted({path.rsplit("/", 1)[0] for path in expected})
    return orphans(root, folders, expected)


def _report_strays(strays: Sequence[str]) -> None:
    for path in strays:
        print(
            f"{path}: [orphan] no source makes this file\n"
            "    -> move or delete it yourself, or write its source",
            file=sys.stderr,
        )


def _read_settings(root: Path) -> str:
    try:
        return decode(SETTINGS_FILE, (root / SETTINGS_FILE).read_bytes())
    except FileNotFoundError as error:
        raise _asked_wrongly(f"there is no {SETTINGS_FILE}", "run in the repository") from error


def _asked_wrongly(message: str, mend: str) -> CourseError:
    return CourseError([Finding("build_notebooks.py", 1, None, "usage", message, mend)])


def _report(findings: Sequence[Finding]) -> None:
    print("\n".join(str(finding) for finding in findings), file=sys.stderr)


def _count(findings: Sequence[Finding]) -> str:
    return f"{len(findings)} finding" + ("s" if len(findings) != 1 else "")
