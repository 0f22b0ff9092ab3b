"""Show a figure as one SVG that reads everywhere, and reads aloud."""

import base64
import html
import io
import re

import matplotlib
from IPython import get_ipython
from IPython.display import display
from matplotlib.figure import Figure

from course_lib.plots.card import card_style


def one_line_alt(alt: str) -> str:
    """Join the lines of an alt text; refuse a blank one, and what no screen reader can say."""
    if not isinstance(alt, str):
        raise TypeError(f"alt must be a str; got {type(alt).__name__}")
    line = re.sub(r"[ \t\r\n]+", " ", alt).strip()
    if not line:
        raise ValueError("alt is blank; say in a sentence or two what the figure shows")
    if re.search(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", line):
        raise ValueError(f"alt holds a character that no screen reader can say: {line!r}")
    return line


def _check_figure_name(figure: Figure, name: str | None) -> None:
    if not isinstance(figure, Figure):
        raise TypeError(
            f"figure must be a matplotlib Figure, as the draw_* functions return; "
            f"got {type(figure).__name__}"
        )
    if name is None:
        return
    if not isinstance(name, str):
        raise TypeError(f"name must be a str; got {type(name).__name__}")
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise ValueError(
            f"name becomes part of a file's name: use a-z, 0-9 and single hyphens; got {name!r}"
        )


def figure_svg(figure: Figure, name: str, alt: str) -> str:
    """Write a figure as an SVG that carries its description; the name salts its ids."""
    drawn = io.StringIO()
    # Salted ids and no date: the same figure has the same bytes in every run.
    unnamed = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with card_style(), matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(drawn, format="svg", metadata=unnamed)
    head, body = re.search(r"(<svg [^>]*>)(.*)", drawn.getvalue(), re.DOTALL).groups()
    box = re.search(r'viewBox="([^"]*)"', head).group(1)
    width, height = (round(float(points) * 4 / 3) for points in box.split()[2:])
    # JupyterLab looks for xmlns before the first ">": it stays ahead of the reader's words.
    root = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'role="img" aria-label="{html.escape(alt)}" viewBox="{box}" '
        f'width="{width}" height="{height}" style="max-width:100%;height:auto">'
    )
    lines = [line.strip() for line in body.splitlines() if line.strip()]
    return "\n".join([root, f"<title>{html.escape(alt, quote=False)}</title>", *lines, ""])


def show_figure(figure: Figure, *, name: str | None, alt: str) -> None:
    """Show a figure as an SVG that carries its own description.

    Jupyter drops the description of a bare SVG, so an <img> with alt goes into the same output.
    Outside IPython the description is printed.

    Args:    name: short and unique in the notebook, as "loss", or None for a figure of numbers
             that were measured in this run: it has no file, since the next run draws another;
             alt: what a reader who cannot see the figure must know, in the notebook's language.
    Raises:  TypeError or ValueError for a name that no file may have, or a blank alt.
    """
    _check_figure_name(figure, name)
    words = one_line_alt(alt)
    svg = figure_svg(figure, name or words, words)
    if get_ipython() is None:
        print(words)
        return
    kind = {"measured": True} if name is None else {"name": name}
    display(
        {"image/svg+xml": svg, "text/html": image_html(svg, words), "text/plain": words},
        metadata={"image/svg+xml": {"alt": words, **kind}},
        raw=True,
    )


def image_html(svg: str, alt: str) -> str:
    """Return an <img> that holds the whole SVG, and its alt text."""
    packed = base64.b64encode(svg.encode("utf-8")).decode("ascii")
    return f'<img alt="{html.escape(alt)}" src="data:image/svg+xml;base64,{packed}">'
