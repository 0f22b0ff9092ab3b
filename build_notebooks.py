"""Render the course: python build_notebooks.py --help. The work is done in course_build/."""

import gc
import sys
from pathlib import Path

# Syntax trees are millions of small objects that live as long as this process: looking through
# them for garbage again and again takes a fifth of its time.
gc.set_threshold(100_000)

if __name__ == "__main__":
    try:
        from course_build.cli import main
    except ModuleNotFoundError as error:
        print(
            f"{error.name} is not installed here.\n"
            "    -> run `make notebooks`, or: python -m pip install -r requirements.txt",
            file=sys.stderr,
        )
        sys.exit(2)
    sys.exit(main(sys.argv[1:], Path(__file__).resolve().parent))
