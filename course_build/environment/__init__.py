"""The virtual environment, its pins, its known faults; the ranges that are declared."""

import sys

OLDEST = (3, 11)


def refusal(version):
    """Say why a Python is too old for the pinned packages, and what to do; else nothing."""
    found = tuple(version[:2])
    said = (
        "[course] Python %d.%d or newer is needed, this is Python %d.%d (%s).\n"
        "Name a newer one: make PYTHON=python3.12 ...; python3.12 -m course_build.environment\n"
    )
    return "" if found >= OLDEST else said % (OLDEST + found + (sys.executable,))


# Here, in words that Python 2 understands too: what is imported next it could not even read.
if refusal(sys.version_info):
    sys.stderr.write(refusal(sys.version_info))
    sys.exit(2)
