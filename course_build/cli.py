"""The builder's command line: a plain build, or one of the commands in COMMANDS.

Exit codes: 0 done; 1 there is work (a stale translation, a notebook that is missing or differs,
an orphan); 2 something is broken or was asked wrongly.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from course_build.build import (
    SOURCES,
    Course,
    Files,
    build_course,
    notebook_path,
    solved_path,
    stem_of,
)
from course_build.choosing import (
    add_choice,
    asked_wrongly,
    chosen_languages,
    chosen_modules,
    read_settings,
)
from course_build.files import changed_files, orphans, read_files, write_files
from course_build.findings import BROKEN, DONE, WORK, CourseError, Finding
from course_build.glossary_page import page_path
from course_build.settings import Settings
from course_build.work import list_work, next_steps

PROG = "build_notebooks.py"
ENDS = "exit codes: 0 done; 1 stale, missing, different or orphaned; 2 broken"

# Name -> (module, what it does). The module has add_arguments(parser) and run(options, root) -> an
# exit code; it is imported only when its command is called, so that a plain build stays quick.
COMMANDS = {
    "status": ("course_build.status", "how far each translation is, and what to do next"),
    "diff": ("course_build.diff", "what changed in the text since its translation was confirmed"),
    "proofread": ("course_build.proofreading.command", "check spelling, typography, letters"),
    "confirm": ("course_build.confirm", "after re-reading: stamp translations as up to date"),
    "export": ("course_build.interchange.export", "write the texts as PO files for translators"),
    "import": ("course_build.interchange.importing", "put the translations of PO files back"),
    "add-language": ("course_build.add_language", "begin a translation into one more language"),
}


def main(arguments: Sequence[str], root: Path) -> int:
    """Run one command in the repository at root; return the exit code."""
    name = arguments[0] if arguments else None
    if name in COMMANDS:
        module, summary = COMMANDS[name]
        command = import_module(module)
        parser = argparse.ArgumentParser(f"{PROG} {name}", description=summary, epilog=ENDS)
        command.add_arguments(parser)
        options, run = parser.parse_args(arguments[1:]), command.run
    else:
        options, run = _build_parser().parse_args(arguments), _build
    try:
        code = run(options, root)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader has seen enough: ... diff | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except CourseError as error:
        findings = error.findings
    except OSError as error:
        message, mend = f"cannot read: {error.strerror}", "make it a readable file"
        where = os.path.relpath(error.filename or root, root)
        findings = [Finding(where, 1, None, "file", message, mend)]
    _report(findings)
    print(f"\nbroken: {_count(findings)}; nothing was written", file=sys.stderr)
    return BROKEN


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        PROG, description="Render notebooks/src into notebooks/<language>, each self-contained.",
        epilog=ENDS,
    )  # fmt: skip
    add_choice(parser)
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true", help="write nothing; compare with the disk")
    mode.add_argument(
        "--preview", action="store_true", help="build stale translations too, under a banner"
    )
    commands = parser.add_subparsers(dest="command", title="commands", metavar="COMMAND")
    for name, (_, summary) in COMMANDS.items():
        commands.add_parser(name, help=summary, add_help=False)
    return parser


def _build(options: argparse.Namespace, root: Path) -> int:
    if options.command:
        raise asked_wrongly(
            f"options stand before {options.command!r}", f"write {PROG} {options.command} ..."
        )
    settings, files = read_settings(root), read_files(root)
    paths = chosen_modules(options.module, files.sources)
    languages = chosen_languages(options.lang, settings)
    course = build_course(files, settings, paths, languages, preview=options.preview)
    strays = _strays(files, settings, root)
    if options.check:
        return _check(course, strays, settings, root)
    if course.stale:
        _report(course.stale, settings.languages)
    if course.stale and not options.preview:
        print(
            f"\nstale: {_count(course.stale)}; nothing was written "
            "(--preview builds all the same, under a banner)",
            file=sys.stderr,
        )
        return WORK
    outputs = {**course.notebooks, **course.pages, **course.solved}
    changed = changed_files(root, outputs)
    write_files(root, {path: outputs[path] for path in changed})
    for path in [*course.notebooks, *course.pages]:
        print(f"{'wrote    ' if path in changed else 'unchanged'} {path}")
    print("to read them: make lab; or open one in any Jupyter, VS Code or Colab: it runs alone")
    _report_strays(strays)
    return WORK if strays else DONE


def _check(course: Course, strays: Sequence[str], settings: Settings, root: Path) -> int:
    changed = changed_files(root, {**course.notebooks, **course.pages})
    for path, how in changed.items():
        print(f"{path}: {how}; run: make notebooks", file=sys.stderr)
    _report_strays(strays)
    if course.stale:
        _report(course.stale, settings.languages)
    if changed or strays or course.stale:
        return WORK
    print(f"{len(course.notebooks)} notebooks are up to date")
    return DONE


def _strays(files: Files, settings: Settings, root: Path) -> list[str]:
    """Everything in the output folders that no source makes, whatever was chosen."""
    pairs = [(code, stem_of(path)) for code in settings.languages for path in files.sources]
    expected = [place(*pair) for pair in pairs for place in (notebook_path, solved_path)]
    if files.glossary:
        expected += [page_path(code) for code in settings.languages]
    # A language that was taken out of the settings leaves its notebooks behind.
    rendered = root.glob("notebooks/[a-z]*/module_*.ipynb")
    left = {path.parent.relative_to(root).as_posix() for path in rendered} - {SOURCES}
    folders = sorted({path.rsplit("/", 1)[0] for path in expected} | left)
    return orphans(root, folders, expected)


def _report_strays(strays: Sequence[str]) -> None:
    for path in strays:
        print(
            f"{path}: [orphan] no source makes this file\n"
            "    -> move or delete it yourself, or write its source",
            file=sys.stderr,
        )


def _report(findings: Sequence[Finding], languages: Sequence[str] = ()) -> None:
    """Say what is broken, one by one; then what is stale, in short, and the commands for it."""
    broken = [str(finding) for finding in findings if not finding.stale]
    stale = [finding for finding in findings if finding.stale]
    lines = [*broken, *list_work(stale), *next_steps(stale, languages)]
    print("\n".join(lines), file=sys.stderr)


def _count(findings: Sequence[Finding]) -> str:
    return f"{len(findings)} finding" + ("s" if len(findings) != 1 else "")
