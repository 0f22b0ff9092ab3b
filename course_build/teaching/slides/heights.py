"""How high things will be on a slide of 1280 x 720 pixels: near enough to decide what goes where.

What turns out higher after all is made to fit by the style sheet: code and outputs scroll.
"""

import math
import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from course_build.site.clean import SVG

PROSE_LINE, PROSE_WIDTH = 37, 84  # pixels, characters
CODE_LINE, OUTPUT_LINE = 25, 22
GAP = 18
MOST = 420  # of one figure, one piece of code, one output: more scrolls
FORMULA = re.compile(r"\$\$.+?\$\$", re.DOTALL)
LINK = re.compile(r"\[([^][]*)\]\([^)]*\)")


def height_of_prose(text: str) -> int:
    """Lines as they wrap; a displayed formula takes three, a row of a table one and a half."""
    formulas = FORMULA.findall(text)
    height = GAP + 3 * PROSE_LINE * len(formulas)
    for line in FORMULA.sub("", LINK.sub(r"\1", text)).split("\n"):
        if line.strip():
            rows = math.ceil(len(line) / PROSE_WIDTH)
            height += round(PROSE_LINE * (1.5 if line.startswith("|") else rows + 0.4))
    return height


def height_of_code(text: str) -> int:
    """A line each, up to where it begins to scroll."""
    return min(MOST, GAP + 20 + CODE_LINE * (text.count("\n") + 1))


def height_of_output(output: Mapping[str, Any]) -> int:
    """Of a figure what it says of itself; of a text its lines; of a table its rows."""
    data = output.get("data", {})
    if SVG in data:
        height = ElementTree.fromstring(data[SVG]).get("height", "")
        points = re.match(r"[\d.]+", height)
        return min(MOST, GAP + round(float(points[0]) * 4 / 3)) if points else MOST
    if "text/html" in data:
        rows = data["text/html"].count("<tr") or data["text/html"].count("<p") + 1
        return min(MOST, GAP + rows * (OUTPUT_LINE + 12))
    text = output.get("text") or data.get("text/plain", "")
    return min(MOST, GAP + 16 + OUTPUT_LINE * (text.rstrip().count("\n") + 1))
