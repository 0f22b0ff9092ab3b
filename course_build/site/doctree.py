"""What becomes of a page between its source and its HTML: names of places, and code in bulk."""

from typing import Any

from docutils import nodes
from sphinx.transforms import SphinxTransform

LONG = 20_000  # characters of code: what nobody reads through is shown without its colours
LOSING = (nodes.raw, nodes.table, nodes.math_block)  # written without their name, or with it twice


class PlacesByKey(SphinxTransform):
    """Let a place be named by its cell's key alone, and by nothing made of the heading's words.

    It runs after docutils has moved the targets to what they stand before, and before Sphinx
    collects them as labels: those would have to differ from page to page.
    """

    default_priority = 700

    def apply(self, **kwargs: Any) -> None:
        explicit = {name for name, given in self.document.nametypes.items() if given}
        for node in list(self.document.findall(nodes.Element)):
            keys = [name for name in node.get("names", ()) if name in explicit]
            if isinstance(node, nodes.target) and node.get("refid"):
                node.parent.remove(node)
            elif keys and isinstance(node, LOSING):
                node["ids"], node["names"] = [], []
                node.parent.insert(node.parent.index(node), nodes.target(ids=keys))
            elif keys:
                node["ids"] = keys
            elif "cell_metadata" in node and "key" in node["cell_metadata"]:
                node["ids"] = [node["cell_metadata"]["key"]]
        for name in explicit:
            self.document.nametypes[name] = False


class LongTitle(SphinxTransform):
    """Let a section's page be called together with its module, where it is named alone.

    So it is among the results of a search.
    """

    default_priority = 720

    def apply(self, **kwargs: Any) -> None:
        title = self.config.course_titles.get(self.env.docname)
        if title:
            self.document["title"] = title


class PlainLongCode(SphinxTransform):
    """Write long code as one piece of text: coloured it would be tens of thousands of elements."""

    default_priority = 710

    def apply(self, **kwargs: Any) -> None:
        for block in self.document.findall(nodes.literal_block):
            if len(block.astext()) > LONG:
                block["language"] = "none"
