"""Prose twins have one shape: what a stamp cannot see in a half-finished translation."""

from collections import Counter

from course_build.findings import Finding
from course_build.prose import parse_prose
from course_build.twins import Unit

COUNTED = {
    "list_item_open": "list items",
    "tr_open": "table rows",
    "blockquote_open": "quotations",
    "fence": "code blocks",
    "math_block": "displayed formulas",
    "math_inline_double": "displayed formulas",
    "link_open": "links",
    "image": "images",
}


def check_structure_alike(unit: Unit) -> list[Finding]:
    """Compare headings, lists, tables, formulas, links and images of every translation."""
    first = unit.first
    wanted = _shape(first.text)
    findings = []
    for cell in unit.cells[1:]:
        shape = _shape(cell.text)
        for what in sorted(wanted.keys() | shape.keys()):
            if shape[what] != wanted[what]:
                message = f"{shape[what]} {what} in {cell.lang}, {wanted[what]} in {first.lang}"
                mend = f"translate the {what} too, or remove them from both"
                findings.append(cell.finding("twin-structure", message, mend))
    return findings


def _shape(text: str) -> Counter[str]:
    """How many there are of each thing that a translation keeps."""
    shape: Counter[str] = Counter()
    for token in parse_prose(text):
        if token.type == "heading_open":
            shape[f"headings of level {token.tag[1:]}"] += 1
        for part in (token, *(token.children or ())):
            if part.type in COUNTED:
                shape[COUNTED[part.type]] += 1
    return shape
