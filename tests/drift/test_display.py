"""What a cell displays as HTML or Markdown is compared, not the name of its class."""

import pytest

from course_build.drift.accepted import shown


@pytest.mark.parametrize("kind", ["text/html", "text/markdown", "text/latex"])
def test_a_changed_display_is_seen(kind):
    def read(text):
        data = {"text/plain": "<IPython.core.display.HTML object>", kind: text}
        output = {"output_type": "display_data", "metadata": {}, "data": data}
        cell = {"id": "a", "cell_type": "code", "metadata": {}, "outputs": [output]}
        return shown({"metadata": {}, "cells": [cell]})

    (one,), (other,) = read("loss 1"), read("loss 2")
    assert (one.kind, one.text) == (kind, "loss 1")
    assert one != other
