"""A live view's widgets, for tests that turn its dials."""

import pytest

from course_lib.views import base

from .samples import output


def is_row(control):
    """Is it a list with a slider beside it?"""
    return type(control).__name__ == "HBox"


@pytest.fixture
def live_view(monkeypatch):
    """Show a view live; return its lists and other controls, and the picture they change."""

    def show(name, language="en", **changes):
        boxes = []
        make = base.live_box
        monkeypatch.setattr(base, "live_box", lambda *given: boxes.append(make(*given)) or boxes[0])
        data, _ = output(name, language, live=True, **changes)
        assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == boxes[0].model_id
        *made, picture = boxes[0].children
        return [each.children[0] if is_row(each) else each for each in made], picture

    return show
