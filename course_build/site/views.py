"""A view as a page shows it: the figure, native controls, and a file for each other picture.

Without scripts a reader sees the figure alone. With them views.js shows the controls and changes
the picture; all words are the notebook's.
"""

import html
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from course_build.outputs.views import Control, Frame, View, read_view


def clean_view(data: Mapping[str, Any], clean_svg: Callable[[str], str]) -> View | None:
    """The view in an output's data with its drawings cleaned; None when one of them is none."""
    view = read_view(data)
    if view is None:
        return None
    frames = {s: Frame(clean_svg(frame.svg), frame.alt) for s, frame in view.frames.items()}
    return replace(view, frames=frames) if all(f.svg for f in frames.values()) else None


def view_html(view: View, figure: str, name: str) -> tuple[str, dict[str, bytes]]:
    """Put the HTML of a view together from that of its figure; and its files, {name: content}.

    Args:    name: of the figure's file; those of the other pictures lie beside it
    """
    folder, _, file_name = name.rpartition("/")
    stem = file_name.removesuffix(".svg")
    names = {state: f"{stem}.{state.replace(',', '-')}.svg" for state in view.frames}
    names[view.start] = file_name
    files = {
        f"{folder}/{names[state]}": frame.svg.encode()
        for state, frame in view.frames.items()
        if state != view.start
    }
    controls = "\n".join(
        _control(control, f"{stem}-control-{number}")
        for number, control in enumerate(view.controls, 1)
    )
    told = {state: [names[state], frame.alt] for state, frame in view.frames.items()}
    frames = html.escape(json.dumps(told, ensure_ascii=False))
    return (
        f'<div class="view" data-frames="{frames}">\n'
        f'<div class="view-controls" hidden>\n{controls}\n</div>\n'
        f'{figure}\n<p class="view-words" aria-live="polite"></p>\n</div>',
        files,
    )


def _control(control: Control, name: str) -> str:
    label = f'<label for="{name}">{html.escape(control.label)}</label>'
    values = [html.escape(value) for value in control.values]
    if control.kind == "choice":
        options = "".join(
            f"<option{' selected' if place == control.start else ''}>{value}</option>"
            for place, value in enumerate(values)
        )
        return f'{label}<select id="{name}" autocomplete="off">{options}</select>'
    shown = values[control.start]
    every = html.escape(json.dumps(control.values, ensure_ascii=False))
    return (
        f'{label}<input id="{name}" type="range" min="0" max="{len(values) - 1}" step="1" '
        f'value="{control.start}" autocomplete="off" aria-valuetext="{shown}" '
        f'data-values="{every}"><output for="{name}">{shown}</output>'
    )
