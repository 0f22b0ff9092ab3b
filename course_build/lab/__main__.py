"""Open the course in JupyterLab, in a working copy that no command writes over.

    python3 -m course_build.environment -m course_build.lab [--lang ru] [options of JupyterLab]

The copy is the folder work/, which git does not know. What you have changed in it stays as it is;
where the course has become newer, the newer notebook lies beside yours.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from course_build.base.choosing import chosen_languages, read_settings
from course_build.base.findings import BROKEN, CourseError
from course_build.lab.copies import WORK, bring_up_to_date

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = ROOT / "course_build" / "lab"


def parse(argv: list[str] | None) -> tuple[argparse.Namespace, list[str]]:
    """Read our one option; all others are JupyterLab's."""
    parser = argparse.ArgumentParser(
        "python -m course_build.lab", description=__doc__, allow_abbrev=False
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--lang", metavar="CODE", help="the language of the page that opens first")
    return parser.parse_known_args(argv)


def command(language: str, options: list[str]) -> list[str]:
    """Say how JupyterLab is started: on the whole course, at the welcome page of the copy."""
    words = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={ROOT}"]
    words += [f"--FileContentsManager.preferred_dir={ROOT / WORK}"]
    words += [f"--LabApp.default_url=/lab/tree/{WORK}/{language}/welcome.md", *options]
    if hasattr(os, "geteuid") and os.geteuid() == 0 and "--allow-root" not in options:
        print(
            "[course] started as root, as in a container: so is what notebooks run; elsewhere, "
            "better start it as yourself",
            file=sys.stderr,
        )
        words.append("--allow-root")  # JupyterLab would refuse to start
    return words


def main(argv: list[str] | None = None) -> int:
    """Make or renew the copy, then be JupyterLab; return an exit code where it cannot start."""
    options, more = parse(argv)
    try:
        settings = read_settings(ROOT)
        asked = None if options.lang is None else [options.lang]
        language = chosen_languages(asked, settings)[0]
        for line in bring_up_to_date(ROOT, settings.languages):
            print(f"[course] {line}", file=sys.stderr, flush=True)
    except CourseError as error:
        print(error, file=sys.stderr)
        return BROKEN
    environment = dict(os.environ, JUPYTER_CONFIG_PATH=str(SETTINGS), PYTHONPATH=str(ROOT))
    words = command(language, more)
    if os.name == "posix":
        os.execve(words[0], words, environment)  # signals then reach JupyterLab and nobody else
    return subprocess.run(words, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
