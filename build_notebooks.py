"""Render the course: build_notebooks.py --help. The work is done in course_build/."""

import gc
import shlex
import sys
from pathlib import Path

# Syntax trees are millions of small objects that live as long as this process: to look through
# them for garbage, again and again and at the end, takes a third of its time.
gc.set_threshold(2_000_000)


def run(arguments: list[str]) -> int:
    """Build, or say in a sentence why that is not possible; return the exit code."""
    try:
        from course_build.cli import main

        return main(arguments, Path(__file__).resolve().parent)
    except ModuleNotFoundError as error:
        command = shlex.join(["-m", "course_build.environment", "build_notebooks.py", *arguments])
        print(
            f"{error.name} is not installed for this Python.\n"
            f"    -> run in the repository's folder: python3 {command}",
            file=sys.stderr,
        )
        return 2
    except KeyboardInterrupt:
        print("\nstopped; nothing is half-written", file=sys.stderr)
        return 130


if __name__ == "__main__":
    code = run(sys.argv[1:])
    gc.disable()
    gc.freeze()
    sys.exit(code)
