"""The command's door: with a Python that lacks a package it says so, and what to run instead."""

import importlib
import sys
from typing import Any


def main() -> int:
    """Run the command line; exit code 2 where a package is missing."""
    try:
        judging: Any = importlib.import_module("course_lib.checking.judging")
    except ModuleNotFoundError as error:
        print(
            f"{error.name} is not installed for this Python.\n"
            "    -> in the repository: python3 -m course_build.environment -m course_lib.checking",
            file=sys.stderr,
        )
        return 2
    return int(judging.main())
