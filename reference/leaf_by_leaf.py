"""What the cross-checks share: every leaf of a reference file against a second computation.

Nothing here knows a number. A leaf that only one side knows is a disagreement.
"""

import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from mpmath import mp, mpf

ALLOWED_ULPS = 4  # a few roundings of exp, log, sin or cos, each at most one ulp
DIGITS = 50


def leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Walk to every leaf; an empty object or list counts as a leaf, so that it cannot hide."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{index}]")
    else:
        yield path, value


def ulps(found: float, wanted: mpf) -> float:
    """Measure |found - wanted| in units in the last place of found."""
    return float(abs(mpf(found) - wanted) / mpf(math.ulp(found)))


def disagreement(found: object, wanted: object) -> str | None:
    """Say how a leaf differs from what 50 digits say, or None.

    An mpf forgives a few ulps; anything else must be equal and of the same type.
    """
    if isinstance(wanted, mpf):
        if type(found) is not float or not math.isfinite(found):
            return f"wanted the float {mp.nstr(wanted, 20)}, got {found!r}"
        distance = ulps(found, wanted)
        if distance > ALLOWED_ULPS:
            return f"wanted {mp.nstr(wanted, 20)}, got {found!r}: {distance:.3g} ulps away"
        return None
    same = type(found) is type(wanted) and found == wanted
    return None if same else f"wanted exactly {wanted!r}, got {found!r}"


def crosscheck(text: str, expected: Callable[[], dict]) -> tuple[int, list[str]]:
    """Compare every leaf of a reference text; return how many leaves and what disagrees."""
    found = dict(leaves(json.loads(text)))
    with mp.workdps(DIGITS):
        wanted = dict(leaves(expected()))
        problems = [
            f"{path}: the file has it, this computation does not"
            for path in found
            if path not in wanted
        ]
        problems += [f"{path}: the file lacks it" for path in wanted if path not in found]
        for path in found.keys() & wanted.keys():
            problem = disagreement(found[path], wanted[path])
            if problem:
                problems.append(f"{path}: {problem}")
    return len(found.keys() | wanted.keys()), sorted(problems)


def run(file: Path, expected: Callable[[], dict], how_near: str) -> int:
    """A cross-check's command: say how many leaves agree and which do not; the exit code."""
    try:
        count, problems = crosscheck(file.read_text(encoding="utf-8"), expected)
    except (OSError, ValueError) as error:
        print(f"broken: {file.name} cannot be read: {error}", file=sys.stderr)
        return 2
    for problem in problems:
        print(problem, file=sys.stderr)
    agree = f"{count - len(problems)} of {count} leaves of {file.name} agree"
    print(f"{agree} with {DIGITS}-digit arithmetic ({how_near})")
    return 1 if problems else 0
