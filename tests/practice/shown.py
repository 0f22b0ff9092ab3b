"""What a cell puts out: its mimebundles, and its HTML as a tree."""

from types import SimpleNamespace
from xml.etree import ElementTree

from course_lib.practice import _practice_output


class Outputs(list):
    """The mimebundles that were displayed, as a kernel would send them."""

    @property
    def page(self):
        """The last one's HTML as a tree; it must be well-formed."""
        return ElementTree.fromstring(self[-1]["text/html"])

    @property
    def text(self):
        return self[-1]["text/plain"]


def collect(monkeypatch):
    """Pretend to be in IPython and collect what is displayed."""
    outputs = Outputs()
    monkeypatch.setattr(_practice_output, "get_ipython", SimpleNamespace)

    def display(data, *, raw):
        assert raw
        outputs.append(data)

    monkeypatch.setattr(_practice_output, "display", display)
    return outputs


def words(node):
    """The text of a tree, white space collapsed."""
    return " ".join("".join(node.itertext()).split())
