"""Putting definitions in an order in which Python can run them, the same order every time."""

import heapq
from collections.abc import Mapping, Sequence

from course_build.library.definitions import Definition

Needs = Mapping[Definition, frozenset[Definition]]


class CircularNeed(Exception):
    """These definitions need each other while they are being defined."""

    def __init__(self, circle: Sequence[Definition]) -> None:
        self.circle = tuple(circle)
        super().__init__(", ".join(definition.name for definition in circle))


def dependencies_first(needs: Needs, at_once: Needs) -> list[Definition]:
    """Sort definitions: what is needed first, else by module and line.

    Functions and classes may need each other when called; such a circle stays together, in an
    order that respects what each needs at once, while it is being defined.
    """
    waiting = dict(needs)
    missing = {d: sum(want in needs for want in wants) for d, wants in needs.items()}
    users: dict[Definition, list[Definition]] = {d: [] for d in needs}
    for definition, wants in needs.items():
        for want in wants & needs.keys():
            users[want].append(definition)
    rank = {d: (_place(d), number) for number, d in enumerate(needs)}
    by_rank = {rank[d]: d for d in needs}
    ready = [rank[d] for d, count in missing.items() if not count]
    heapq.heapify(ready)
    ordered: list[Definition] = []
    while waiting:
        chosen = [by_rank[heapq.heappop(ready)]] if ready else _circle(waiting, at_once)
        ordered += chosen
        for definition in chosen:
            del waiting[definition]
        for user in (user for definition in chosen for user in users[definition]):
            missing[user] -= 1
            if not missing[user] and user in waiting:
                heapq.heappush(ready, rank[user])
    return ordered


def _circle(waiting: Needs, at_once: Needs) -> list[Definition]:
    """The definitions of a circle that needs nothing else that waits, in an order that runs."""
    reached = [_reachable(definition, waiting) for definition in waiting]
    # Whoever needs a circle from outside reaches more than the circle does.
    circle = min(reached, key=lambda members: (len(members), min(map(_place, members))))
    left = sorted(circle, key=_place)
    if any(definition.is_value for definition in left):
        raise CircularNeed(left)
    ordered: list[Definition] = []
    while left:
        ready = [d for d in left if not at_once[d] & set(left)]
        if not ready:
            raise CircularNeed(left)
        ordered.append(ready[0])
        left.remove(ready[0])
    return ordered


def _place(definition: Definition) -> tuple[str, int]:
    return definition.place


def _reachable(start: Definition, needs: Needs) -> frozenset[Definition]:
    reached: set[Definition] = set()
    border = {start}
    while border:
        border = {d for at in border for d in needs[at] if d in needs} - reached
        reached |= border
    return frozenset(reached)
