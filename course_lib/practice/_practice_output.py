"""One output in every form at once: for a page, for a terminal, and alive where one can click."""

import html
import textwrap
from collections.abc import Sequence
from typing import Any

from IPython import get_ipython
from IPython.display import display

from course_lib.live import load_widgets
from course_lib.practice._practice_texts import practice_words

_PRACTICE_VIEW = "application/vnd.jupyter.widget-view+json"
_PRACTICE_COLUMNS = 84  # as many as a page shows without scrolling
# A choice of `ipywidgets` has one line of fixed height: a long one would lie over the next.
_PRACTICE_STYLE = (
    "<style>.course-choices .widget-radio-box label {display: flex; flex-flow: row-reverse; "
    "justify-content: flex-end; align-items: flex-start; height: auto; line-height: 1.4; "
    "white-space: normal; margin-bottom: .3em}</style>"
)


def practice_show(page: str, text: str, controls: Any = None) -> None:
    """Show HTML, plain text, and controls if there are any, as one output; print outside IPython.

    Args:    controls: a widget of `ipywidgets`; a saved notebook still shows the HTML
    """
    if get_ipython() is None:
        print(text)
        return
    data = {"text/html": page, "text/plain": text}
    if controls is not None:
        view = {"version_major": 2, "version_minor": 0, "model_id": controls.model_id}
        data[_PRACTICE_VIEW] = view
    display(data, raw=True)


def practice_say(text: str) -> None:
    """Print a sentence in lines that a page shows whole."""
    print(textwrap.fill(text, _PRACTICE_COLUMNS, break_long_words=False, break_on_hyphens=False))


def practice_page(*parts: str) -> str:
    """Put pieces of a page together; they name no colour, so they read on light and dark."""
    return f'<div style="color:inherit;background:transparent">{"".join(parts)}</div>'


def practice_paragraph(text: str, *, strong: bool = False) -> str:
    """A paragraph with these words."""
    words = html.escape(text)
    return f"<p><strong>{words}</strong></p>" if strong else f"<p>{words}</p>"


def practice_call(text: str) -> str:
    """A paragraph for those who can run code; a site, where nobody can, hides its class."""
    return f'<p class="course-call">{html.escape(text)}</p>'


def practice_table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column names its rows; nothing when there are none."""
    if not rows:
        return ""
    cell = "border:1px solid currentColor;padding:.2em .6em;text-align:left;color:inherit;"
    plain = "background:transparent;"

    def written(tag: str, words: str) -> str:
        return f'<{tag} style="{cell}">{html.escape(words)}</{tag[:2]}>'

    lines = ["".join(written('th scope="col"', words) for words in head)]
    lines += [
        written('th scope="row"', row[0]) + "".join(written("td", words) for words in row[1:])
        for row in rows
    ]
    body = "".join(f'<tr style="{plain}">{line}</tr>' for line in lines)
    style = f"border-collapse:collapse;font:inherit;color:inherit;{plain}"
    title = f'<caption style="text-align:left;color:inherit">{html.escape(caption)}</caption>'
    return f'<table style="{style}">{title}{body}</table>'


def practice_bar(label: str, done: int, count: int) -> str:
    """A bar that says its own name and how far it is."""
    words = html.escape(label)
    return (
        f"<p><label>{words} "
        f'<progress value="{done}" max="{count}">{done}/{count}</progress></label></p>'
    )


def practice_lines(title: str, rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows of a table as lines of text under a title; nothing when there are none."""
    return [title, *("  " + " · ".join(row) for row in rows)] if rows else []


def practice_title(text: str) -> Any:
    """A question in bold above its controls, and the look of these."""
    return load_widgets().HTML(practice_paragraph(text, strong=True) + _PRACTICE_STYLE)


def practice_status(text: str) -> str:
    """What a click brought about, as HTML that a screen reader announces."""
    return f'<p role="status">{html.escape(text)}</p>'


def practice_choices(options: Sequence[tuple[str, Any]], value: Any) -> Any:
    """Radio buttons, each with its words, under a label; none is chosen when value is None."""
    widgets = load_widgets()
    radio = widgets.RadioButtons(
        options=options,
        value=value,
        description=practice_words("your_choice"),
        style={"description_width": "initial"},
        layout=widgets.Layout(width="auto"),
    )
    radio.add_class("course-choices")
    return radio
