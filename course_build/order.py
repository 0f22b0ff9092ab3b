"""Putting definitions in an order in which Python can run them, the same order every time."""

from collections.abc import Mapping, Sequence

from course_build.library import Definition

Needs = Mapping[Definition, frozenset[Definition]]


class CircularNeed(Exception):
    """These definitions need each other while they are being defined."""

    def __init__(self, circle: Sequence[Definition]) -> None:
        self.circle = tuple(circle)
        super().__init__(", ".join(definition.name for definition in circle))


def dependencies_first(needs: Needs, at_once: Needs) -> list[Definition]:
    """Sort definitions: what is needed first, else by module and line.

    Functions and classes may need each other when called; they then stand in an order that
    respects what each needs at once, while it is being defined.
    """
    waiting = dict(needs)
    ordered: list[Definition] = []
    while waiting:
        ready = [d for d, wants in waiting.items() if not wants & waiting.keys()]
        chosen = min(ready or _ready_in_a_circle(waiting, at_once), key=lambda d: d.place)
        ordered.append(chosen)
        del waiting[chosen]
    return ordered


def _ready_in_a_circle(waiting: Needs, at_once: Needs) -> list[Definition]:
    """Of definitions that only need each other, those whose needs at once are fulfilled."""
    reached = {definition: _reachable(definition, waiting) for definition in waiting}
    # Whoever needs a circle from outside reaches more than the circle does.
    circle = min(reached.values(), key=lambda s: (len(s), min(d.place for d in s)))
    members = sorted(circle, key=lambda d: d.place)
    ready = [d for d in members if not at_once[d] & waiting.keys()]
    if not ready or any(d.is_value for d in members):
        raise CircularNeed(members)
    return ready


def _reachable(start: Definition, needs: Needs) -> frozenset[Definition]:
    reached: set[Definition] = set()
    border = {start}
    while border:
        border = {d for at in border for d in needs[at] if d in needs} - reached
        reached |= border
    return frozenset(reached)
