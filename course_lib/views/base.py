"""What all views share: controls that choose a state, a picture of it, and where it is shown.

A view is a function from the state that its controls choose to a figure and its description. Where
a reader can click, the controls are widgets. Elsewhere the first picture stands still, and those
of the other states lie beside it in the same output, for a page to show.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from IPython import get_ipython
from IPython.display import display
from matplotlib.figure import Figure

from course_lib.live import is_live, load_widgets
from course_lib.plots.show import figure_svg, image_html, one_line_alt

VIEW_KIND = "application/vnd.course.view+json"
MOST_FRAMES = 24


@dataclass(frozen=True)
class Control:
    """One thing that a reader chooses.

    Args:    label: what the reader is told to choose; kind: an order to slide through, or a list
             options: what the reader sees -> the value that it means; start: the one chosen first
             finer: more options, for where each picture is drawn when it is asked for
    """

    name: str
    label: str
    kind: Literal["range", "choice"]
    options: Mapping[str, Any]
    start: str
    finer: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for options in (self.options, self.finer or self.options):
            if self.start not in options:
                raise ValueError(f"{self.name} starts at {self.start!r}, not in {list(options)}")


@dataclass(frozen=True)
class View:
    """A picture of a state, in words too; `draw` and `describe` take {control: value}."""

    name: str
    controls: Sequence[Control]
    draw: Callable[[Mapping[str, Any]], Figure]
    describe: Callable[[Mapping[str, Any]], str]

    @property
    def start(self) -> dict[str, Any]:
        """Return the state that is shown first."""
        return {control.name: control.options[control.start] for control in self.controls}

    def picture(self, state: Mapping[str, Any]) -> tuple[str, str]:
        """Return the SVG of a state, and what a reader who cannot see it must know."""
        alt = one_line_alt(self.describe(state))
        return figure_svg(self.draw(state), self.name, alt), alt


Show = Callable[[Mapping[str, Any]], None]  # what a panel's widgets call with a new state


def show_view(view: View, panel: Callable[[View, Show], list] | None = None) -> None:
    """Show a view with controls where a reader can click; else its first picture, and the others.

    Outside IPython the first picture's description is printed.

    Args:    panel: makes widgets of its own for a live view, in place of one for each control
    """
    if get_ipython() is None:
        print(one_line_alt(view.describe(view.start)))
        return
    if is_live():
        svg, alt = view.picture(view.start)
        moving = _live_data(view, panel or dials, image_html(svg, alt))
    else:
        frames = view_frames(view)
        svg, alt = frames["frames"][_start_key(view)].values()
        moving = {VIEW_KIND: frames}
    still = {"image/svg+xml": svg, "text/html": image_html(svg, alt), "text/plain": alt}
    told = {"image/svg+xml": {"alt": alt, "name": view.name}}
    display({**still, **moving}, metadata=told, raw=True)


def view_frames(view: View) -> dict[str, Any]:
    """Draw the picture of every state: {name, controls, frames by the places of their options}."""
    count = math.prod(len(control.options) for control in view.controls)
    if count > MOST_FRAMES:
        raise ValueError(f"{count} pictures are too many to keep; offer at most {MOST_FRAMES}")
    names = [control.name for control in view.controls]
    chosen = itertools.product(*(enumerate(c.options.values()) for c in view.controls))
    frames = {}
    for options in chosen:
        places, values = zip(*options, strict=True)
        svg, alt = view.picture(dict(zip(names, values, strict=True)))
        frames[",".join(map(str, places))] = {"svg": svg, "alt": alt}
    return {"name": view.name, "controls": list(map(_told, view.controls)), "frames": frames}


def _start_key(view: View) -> str:
    return ",".join(str(list(c.options).index(c.start)) for c in view.controls)


def _told(control: Control) -> dict[str, Any]:
    labels = list(control.options)
    return {
        "name": control.name,
        "label": control.label,
        "kind": control.kind,
        "values": labels,
        "start": labels.index(control.start),
    }


def _live_data(view: View, panel: Callable[[View, Show], list], first: str) -> dict[str, Any]:
    widgets = load_widgets()
    picture = widgets.HTML(first)

    def show(state: Mapping[str, Any]) -> None:
        picture.value = image_html(*view.picture(state))

    box = live_box(panel(view, show), picture)
    kept = {"image/svg+xml", "text/html", "text/plain"}  # of the figure: what a saved copy shows
    made = box._repr_mimebundle_()
    return {kind: value for kind, value in made.items() if kind not in kept}


def live_box(controls: list, picture: Any) -> Any:
    """Put a live view together: its controls above its picture."""
    return load_widgets().VBox([*controls, picture])


def dials(view: View, show: Show) -> list:
    """Make a list for each control, with a slider if it has an order; they choose what is shown."""
    made = {control.name: dial(control) for control in view.controls}
    finer = {control.name: control.finer or control.options for control in view.controls}

    def changed(_: Any) -> None:
        show({name: finer[name][widget.value] for name, widget in made.items()})

    for widget in made.values():
        widget.observe(changed, "value")
    return [
        _beside_slider(made[control.name]) if control.kind == "range" else made[control.name]
        for control in view.controls
    ]


def dial(control: Control) -> Any:
    """Make the list of one control, which a screen reader calls by the control's label."""
    return load_widgets().Dropdown(
        options=list(control.finer or control.options),
        value=control.start,
        description=control.label,
        style={"description_width": "initial"},
        layout={"width": "max-content", "max_width": "100%"},
    )


def _beside_slider(choice: Any) -> Any:
    """Put a slider beside a list, to choose the same: the slider alone would have no name."""
    widgets = load_widgets()
    slider = widgets.SelectionSlider(
        options=choice.options,
        value=choice.value,
        readout=False,
        layout={"flex": "1 1 12em", "width": "auto", "max_width": "24em"},
    )
    widgets.link((choice, "index"), (slider, "index"))
    return widgets.HBox([choice, slider], layout={"flex_flow": "row wrap"})
