"""What the outputs of a notebook may put on a page: words, tables, pictures; nothing that runs.

An output is data from whoever wrote the notebook. Of the kinds that one offers, the best that can
be made harmless is shown; scripts, widgets and kinds that nobody knows never are.
"""

import binascii
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any
from xml.etree import ElementTree

import nh3
from markdown_it import MarkdownIt

from course_build.outputs.executed import joined
from course_build.outputs.views import VIEW
from course_build.site.views import clean_view

SVG = "image/svg+xml"
PICTURES = ("image/png", "image/jpeg", "image/gif")
SVG_SPACE = "{http://www.w3.org/2000/svg}"
XLINK = "{http://www.w3.org/1999/xlink}href"
ElementTree.register_namespace("", SVG_SPACE[1:-1])
ElementTree.register_namespace("xlink", XLINK[1:-5])

TAGS = {
    "a", "b", "blockquote", "br", "caption", "code", "dd", "del", "details", "div", "dl", "dt",
    "em", "hr", "i", "kbd", "label", "li", "ol", "p", "pre", "progress", "s", "samp", "small",
    "span", "strong", "sub", "summary", "sup", "table", "tbody", "td", "tfoot", "th", "thead",
    "tr", "u", "ul", "var",
}  # fmt: skip
FORGOTTEN = {  # with all that is in them
    "embed", "frame", "iframe", "math", "noembed", "noframes", "noscript", "object",
    "plaintext", "script", "select", "style", "svg", "template", "textarea", "title", "xmp",
}  # fmt: skip
ATTRIBUTES = {
    "*": {"style"},
    "a": {"href", "title"},
    "ol": {"start"},
    "progress": {"max", "value"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
}
CLASSES = {"p": {"course-call"}}  # of course_lib/practice; course.css hides it
STYLES = {
    "background", "border", "border-collapse", "color", "font", "font-style", "font-weight",
    "padding", "text-align", "white-space",
}  # fmt: skip
SHAPES = {
    "circle", "clipPath", "defs", "desc", "ellipse", "g", "image", "line", "linearGradient",
    "marker", "mask", "path", "pattern", "polygon", "polyline", "radialGradient", "rect",
    "stop", "style", "svg", "symbol", "text", "textPath", "title", "tspan", "use",
}  # fmt: skip
FUNCTIONS = {
    "hsl", "hsla", "matrix", "rgb", "rgba", "rotate", "scale", "skewx", "skewy", "translate",
}  # fmt: skip
CONTROLS = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
CALL = re.compile(r"([\w-]*)\s*\(\s*(#?)")
PIXELS = re.compile(r"data:image/(?:png|jpeg);base64,[\w+/=\s]*")


def clean_output(output: Mapping[str, Any]) -> dict[str, Any] | None:
    """Leave of an output what a page may show, of one kind; None when that is nothing."""
    kind = output.get("output_type")
    if kind == "stream":
        text = clean_text(joined(output["text"]))
        return {"output_type": kind, "name": output["name"], "text": text}
    if kind == "error":
        told = {key: clean_text(output[key]) for key in ("ename", "evalue")}
        traceback = [clean_text(line) for line in output["traceback"]]
        return {"output_type": kind, **told, "traceback": traceback}
    if kind not in ("display_data", "execute_result"):
        return None
    for offered, (shown, clean) in KINDS.items():
        if offered in output["data"]:
            content = clean(joined(output["data"][offered]))
            if content:
                data, metadata = {shown: content}, _metadata(output, offered)
                if offered == SVG and (view := clean_view(output["data"], clean_svg)):
                    data[VIEW] = view
                return {"output_type": "display_data", "data": data, "metadata": metadata}
    return None


def _metadata(output: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """What is said about a picture: its words, its size."""
    told = output.get("metadata", {}).get(kind, {})
    if not isinstance(told, Mapping) or kind not in (SVG, *PICTURES):
        return {}
    sizes = {key: told[key] for key in ("width", "height") if isinstance(told.get(key), int)}
    return {kind: {"alt": str(told.get("alt", "")), **sizes}}


def clean_text(text: str) -> str:
    """Take out what only a terminal understands: colours, links, movements of its cursor."""
    return CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def clean_html(text: str) -> str:
    """Keep words, tables and their looks; no script, style sheet, picture, form, id, own class."""
    return nh3.clean(
        text,
        tags=TAGS,
        clean_content_tags=FORGOTTEN,
        attributes=ATTRIBUTES,
        allowed_classes=CLASSES,
        attribute_filter=lambda _, name, value: (
            value if name != "style" or is_passive(value) else None
        ),
        filter_style_properties=STYLES,
        url_schemes={"http", "https"},
        url_relative="deny",
    ).strip()


def is_passive(css: str) -> bool:
    """Is this CSS that loads nothing? It calls known functions, and names only what is beside it.

    No escape may hide a name, and no rule that starts with @ may import a sheet or a font.
    """
    calls = ((name.lower(), local) for name, local in CALL.findall(css))
    return not re.search(r"[\\@]", css) and all(
        name in FUNCTIONS or (name == "url" and local) for name, local in calls
    )


def clean_markdown(text: str) -> str:
    """Make HTML of Markdown that holds none, nor directives or roles, and clean that."""
    return clean_html(_markdown().render(text))


@cache
def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table")


def clean_svg(text: str) -> str:
    """Write a drawing anew from its shapes: no script, link, animation, foreign or outer content.

    A page shows it as an image, where nothing would run; who opens the file alone is safe too.
    Returns "" for what is no SVG, or is nested deeper than any drawing.
    """
    try:
        root = ElementTree.fromstring(text)  # forgets comments, instructions and the doctype
        if root.tag != f"{SVG_SPACE}svg":
            return ""
        _clean_shape(root)
        return ElementTree.tostring(root, encoding="unicode") + "\n"
    except (ElementTree.ParseError, ValueError, RecursionError):
        return ""


def _clean_shape(shape: ElementTree.Element) -> None:
    for name, value in list(shape.attrib.items()):
        if not _may_keep(shape.tag, name, value):
            del shape.attrib[name]
    for child in list(shape):
        name = child.tag.removeprefix(SVG_SPACE)
        known = name in SHAPES and name != child.tag
        if known and (name != "style" or is_passive("".join(child.itertext()))):
            _clean_shape(child)
        else:
            shape.remove(child)


def _may_keep(tag: str, name: str, value: str) -> bool:
    """A shape is passive: only its handlers, its links and its CSS could reach out."""
    if name in ("href", XLINK):
        pixels = tag == f"{SVG_SPACE}image" and PIXELS.fullmatch(value)
        return value.startswith("#") or bool(pixels)
    if name.startswith("aria-"):
        return True
    return not name.lower().startswith("on") and name[0] != "{" and is_passive(value)


def _pixels(text: str) -> str:
    try:
        binascii.a2b_base64(text)
    except ValueError:
        return ""
    return text


KINDS: dict[str, tuple[str, Callable[[str], str]]] = {  # in order of preference
    SVG: (SVG, clean_svg),
    "text/html": ("text/html", clean_html),
    **{kind: (kind, _pixels) for kind in PICTURES},
    "text/markdown": ("text/html", clean_markdown),
    "text/latex": ("text/latex", str),  # MathJax's own filter is on (conf.py)
    "text/plain": ("text/plain", clean_text),
}
