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

from course_build.base.choosing import add_choice, asked_wrongly, read_settings_file
from course_build.base.files import read_files
from course_build.base.findings import BROKEN, DONE, CourseError, Finding
from course_build.base.owned import KEPT
from course_build.base.stamp import stamp_of
from course_build.translation.telling import count, tell_built, tell_findings

PROG = "build_notebooks.py"
ENDS = "exit codes: 0 done; 1 stale, missing, different or orphaned; 2 broken"

# Name -> (module in course_build, what it does). The module has add_arguments(parser) and
# run(options, root) -> an exit code; it is imported only when its command is called, so that a
# plain build stays quick.
COMMANDS = {
    "status": ("translation.status", "how far each translation is, and what to do next"),
    "diff": ("translation.diff", "what changed in the text since its translation was confirmed"),
    "proofread": ("proofreading.command", "check spelling, typography, letters"),
    "confirm": ("translation.confirm", "after re-reading: stamp translations as up to date"),
    "export": ("interchange.export", "write the texts as PO files for translators"),
    "import": ("interchange.importing", "put the translations of PO files back"),
    "add-language": ("interchange.add_language", "begin a translation into one more language"),
}


def main(arguments: Sequence[str], root: Path) -> int:
    """Run one command in the repository at root; return the exit code."""
    name = arguments[0] if arguments else None
    if name in COMMANDS:
        module, summary = COMMANDS[name]
        command = import_module(f"course_build.{module}")
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
        findings = list(error.findings)
    except OSError as error:
        message, mend = f"cannot read: {error.strerror}", "make it a readable file"
        where = os.path.relpath(error.filename or root, root)
        findings = [Finding(where, 1, None, "file", message, mend)]
    tell_findings(findings)
    print(f"\nbroken: {count(findings)}; nothing was written", file=sys.stderr)
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
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help=f"write over what somebody has changed: a copy stays in {KEPT}/",
    )
    commands = parser.add_subparsers(dest="command", title="commands", metavar="COMMAND")
    for name, (_, summary) in COMMANDS.items():
        commands.add_parser(name, help=summary, add_help=False)
    return parser


def _build(options: argparse.Namespace, root: Path) -> int:
    """Build, unless the last build's stamp says that there is nothing to do."""
    if options.command:
        raise asked_wrongly(
            f"options stand before {options.command!r}", f"write {PROG} {options.command} ..."
        )
    settings, files = read_settings_file(root), read_files(root)
    plain = not options.check and not options.preview
    stamp = stamp_of(root, options, settings, files) if plain else None
    named = stamp.confirmed() if stamp else None
    if named is not None:
        tell_built(named, written=())
        return DONE
    from course_build.building.plain import build  # all that is large is imported from there

    return build(options, root, settings, files, stamp)
