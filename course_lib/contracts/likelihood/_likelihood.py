"""Bridge until the other losses are ported: the old way of choosing mistakes by their names."""

from collections.abc import Callable, Iterable

from course_lib.contracts.engine.mistake import Mistake, mistakes
from course_lib.contracts.likelihood.step_mistakes import STEP_MISTAKES


def likelihood_mistakes(
    build: Callable[..., Callable[..., float]], names: Iterable[str]
) -> tuple[Mistake, ...]:
    """The named mistakes, each in one step of the formula that `build` puts together."""
    return mistakes(build, **{name: STEP_MISTAKES[name] for name in names})
