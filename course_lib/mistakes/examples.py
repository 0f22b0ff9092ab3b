"""Worked examples: hold a small function to known numbers, and show the first it misses."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from course_lib.report import ClauseResult, ContractReport, ContractViolation, Mismatch
from course_lib.text import localized

_EXAMPLE_TEXTS = {
    "meaning": {"en": "the number of the worked example", "ru": "число из разобранного примера"},
    "raised": {
        "en": "it raised {error}: {message}",
        "ru": "возникла ошибка {error}: {message}",
    },
}


def check_examples(
    candidate: Callable[..., float],
    examples: Mapping[str, tuple[Mapping[str, Any], float]],
    relative: float = 1e-6,
) -> ContractReport:
    """Call a function on worked examples and compare, up to rounding; inf equals inf.

    Args:    examples: name -> (the arguments by name, the number that is right)
    Raises:  ContractViolation at the first example that gives another number, or an error
    """
    meaning, rows = localized(_EXAMPLE_TEXTS["meaning"]), []
    for name, (arguments, right) in examples.items():
        facts, cause = "", None
        try:
            got: Any = candidate(**arguments)
        except NotImplementedError:
            return ContractReport("check_examples", attempted=False)
        except Exception as error:
            got, cause = type(error).__name__, error
            facts = localized(_EXAMPLE_TEXTS["raised"], error=got, message=error)
        if not _is_the_number(got, right, relative):
            failed = ClauseResult(name, meaning, str(got), str(right))
            wrong = () if cause else (Mismatch("result", (), got, right),)
            raise ContractViolation(
                "check_examples", failed, dict(arguments), wrong, facts
            ) from cause
        rows.append(ClauseResult(name, meaning, f"{got:g}", f"{right:g}"))
    return ContractReport("check_examples", tuple(rows), {"right": len(rows)})


def _is_the_number(got: Any, right: float, relative: float) -> bool:
    try:
        return math.isclose(float(got), right, rel_tol=relative)
    except (TypeError, ValueError):
        return False
