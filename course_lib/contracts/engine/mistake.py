"""One entry of the catalogue: a mistake that people really made, as something that runs."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from course_lib.text import both, localized, say

_TOLD = "{name}: {what} (fix: {fix}) | {name}: {what} (исправление: {fix})"


@dataclass(frozen=True)
class Mistake:
    """A known mistake: its name, where it was reported, a candidate that makes it, the fix.

    `make` returns a fresh candidate each time, so that one with a memory starts without any.
    `what` says in one clause what the candidate does; `fix` says what to write instead.
    """

    name: str
    source: str
    make: Callable[[], Any]
    what: dict[str, str]
    fix: dict[str, str]

    def told(self) -> str:
        """The name, the explanation and the fix, in the reader's language."""
        what, fix = localized(self.what), localized(self.fix)
        return say(_TOLD, name=self.name, what=what, fix=fix)


def both_mistakes(one: Mistake, other: Mistake) -> Callable[[], Any] | None:
    """Build a candidate that makes two mistakes at once; None if they change the same step.

    Only mistakes that are `partial(function, step=...)` of one function can be put together.
    """
    first, second = one.make, other.make
    if not (isinstance(first, partial) and isinstance(second, partial)):
        return None
    if first.func is not second.func or first.keywords.keys() & second.keywords.keys():
        return None
    return partial(first.func, **first.keywords, **second.keywords)


def mistakes(
    build: Callable[..., Any] | None, **entries: tuple[str, Any, Any, Any]
) -> tuple[Mistake, ...]:
    """A catalogue: name = (where it was reported, what it does, the fix, what is wrong).

    What is wrong is a dict of the steps of `build` that it replaces, or else a function that makes
    the whole candidate (if all are, `build` is None). Without a report the mistake is one that a
    change of right code makes.
    """
    return tuple(
        Mistake(
            name,
            source or "a mutation of right code",
            partial(build, **wrong) if build and isinstance(wrong, dict) else wrong,
            both(what),
            both(fix),
        )
        for name, (source, what, fix, wrong) in entries.items()
    )


def remade(build: Callable[..., Any], found: Iterable[Mistake]) -> tuple[Mistake, ...]:
    """The same wrong steps in another function that has these steps."""
    steps = ((each, each.make) for each in found)
    return tuple(
        replace(each, make=partial(build, **make.keywords))
        for each, make in steps
        if isinstance(make, partial)
    )
