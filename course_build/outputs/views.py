"""A view in an output: its controls, and the picture of each state that they can choose.

course_lib/views writes it beside the figure, which is the picture of the state shown first.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

VIEW = "application/vnd.course.view+json"
KINDS = ("range", "choice")
MOST_FRAMES = 24


@dataclass(frozen=True)
class Control:
    """What a reader chooses: what it is called, the labels to choose from, the place of the first.

    A `range` is to slide through, a `choice` is a list.
    """

    label: str
    kind: str
    values: tuple[str, ...]
    start: int


@dataclass(frozen=True)
class Frame:
    """The picture of one state: its SVG, and its description."""

    svg: str
    alt: str


@dataclass(frozen=True)
class View:
    """Controls, and a frame for each state: "0,2" is the first value of one, the third of two."""

    name: str
    controls: tuple[Control, ...]
    frames: Mapping[str, Frame]

    @property
    def start(self) -> str:
        """The state that is shown first."""
        return ",".join(str(control.start) for control in self.controls)


def read_view(data: Mapping[str, Any]) -> View | None:
    """The view that an output's data holds; None when it holds none that is whole."""
    told = data.get(VIEW)
    if not isinstance(told, Mapping) or not isinstance(told.get("name"), str):
        return None
    controls, frames = told.get("controls"), told.get("frames")
    if not isinstance(controls, Sequence) or not isinstance(frames, Mapping):
        return None
    known = [_read_control(control) for control in controls]
    if not known or None in known:
        return None
    states = itertools.product(*(range(len(control.values)) for control in known))
    wanted = [",".join(map(str, state)) for state in itertools.islice(states, MOST_FRAMES + 1)]
    if frames.keys() != set(wanted) or len(wanted) > MOST_FRAMES:
        return None
    pictures = {state: _read_frame(frames[state]) for state in wanted}  # a file sorts them as text
    return None if None in pictures.values() else View(told["name"], tuple(known), pictures)


def _read_control(told: Any) -> Control | None:
    if not isinstance(told, Mapping):
        return None
    label, kind, values, start = (told.get(key) for key in ("label", "kind", "values", "start"))
    right = isinstance(label, str) and kind in KINDS and isinstance(values, list)
    if not right or not all(isinstance(value, str) for value in values):
        return None
    if type(start) is not int or not 0 <= start < len(values):
        return None
    return Control(label, kind, tuple(values), start)


def _read_frame(told: Any) -> Frame | None:
    if not isinstance(told, Mapping):
        return None
    svg, alt = told.get("svg"), told.get("alt")
    return Frame(svg, alt) if isinstance(svg, str) and isinstance(alt, str) else None
