"""Views in executed notebooks: whole or nothing, and every picture is looked at."""

import copy
import json

import pytest

from course_build.base.findings import CourseError
from course_build.drift.accepted import Shown, shown
from course_build.outputs import figures
from course_build.outputs.views import VIEW, Control, Frame, read_view
from course_build.translation.untranslated import shown_texts

ALT = "A plain grid in which nothing at all is written, state {}."


def svg(state):
    alt = ALT.format(state)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" aria-label="{alt}" width="9" height="5">'
        f"<text>drawn {state}</text></svg>"
    )


TOLD = {
    "name": "toy",
    "controls": [
        {"name": "a", "label": "First", "kind": "choice", "values": ["one", "two"], "start": 1},
        {"name": "b", "label": "Second", "kind": "range", "values": ["x", "y", "z"], "start": 0},
    ],
    "frames": {
        f"{a},{b}": {"svg": svg(f"{a},{b}"), "alt": ALT.format(f"{a},{b}")}
        for a in range(2)
        for b in range(3)
    },
}


def data(told=TOLD, start="1,0"):
    return {"image/svg+xml": svg(start), "text/plain": ALT.format(start), VIEW: told}


def notebook(told=TOLD, start="1,0"):
    metadata = {"image/svg+xml": {"name": "toy", "alt": ALT.format(start)}}
    output = {"output_type": "display_data", "data": data(told, start), "metadata": metadata}
    cell = {"id": "see", "cell_type": "code", "metadata": {}, "source": "", "outputs": [output]}
    return {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def changed(*path, to):
    told = copy.deepcopy(TOLD)
    place = told
    for step in path[:-1]:
        place = place[step]
    if to is None:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    return told


def test_a_whole_view_is_read_in_the_order_of_its_states_however_a_file_sorted_them():
    view = read_view(json.loads(json.dumps(data(), sort_keys=True)))
    assert view.controls == (
        Control("First", "choice", ("one", "two"), 1),
        Control("Second", "range", ("x", "y", "z"), 0),
    )
    assert list(view.frames) == ["0,0", "0,1", "0,2", "1,0", "1,1", "1,2"]
    assert view.frames["1,2"] == Frame(svg("1,2"), ALT.format("1,2"))
    assert view.start == "1,0"


def test_ten_and_more_states_come_in_the_order_of_their_numbers():
    told = {
        "name": "toy",
        "controls": [{**TOLD["controls"][0], "values": [str(i) for i in range(12)]}],
        "frames": {str(i): {"svg": svg(i), "alt": ALT.format(i)} for i in reversed(range(12))},
    }
    assert list(read_view({VIEW: told}).frames) == [str(i) for i in range(12)]


BROKEN = {
    "no name": changed("name", to=None),
    "controls of another kind": changed("controls", to=3),
    "no controls": changed("controls", to=[]),
    "a kind nobody knows": changed("controls", 0, "kind", to="button"),
    "a start beyond the values": changed("controls", 1, "start", to=3),
    "a start that is True": changed("controls", 1, "start", to=True),
    "a value that is a number": changed("controls", 1, "values", to=["x", "y", 3]),
    "a frame too few": changed("frames", "1,1", to=None),
    "a frame too many": changed("frames", "2,0", to=TOLD["frames"]["0,0"]),
    "a frame without words": changed("frames", "1,1", "alt", to=None),
    "a frame that is a text": changed("frames", "1,1", to="<svg>"),
    "frames that are a list": changed("frames", to=[1]),
    "a text": "<script>",
    "too many states": changed("controls", 0, "values", to=[str(i) for i in range(10**6)]),
}
each_broken = pytest.mark.parametrize("told", BROKEN.values(), ids=BROKEN.keys())


@each_broken
def test_a_view_that_is_not_whole_is_none(told):
    assert read_view(data(told)) is None
    assert read_view({}) is None


@each_broken
def test_figures_refuse_a_view_that_is_not_whole(told):
    with pytest.raises(CourseError, match="'toy' is not whole") as error:
        figures.figures_in("module_01_x.ipynb", json.dumps(notebook(told)).encode())
    assert [finding.rule for finding in error.value.findings] == ["figure-view"]


def test_figures_refuse_a_view_that_begins_with_another_picture_than_its_figure():
    with pytest.raises(CourseError, match="does not begin with its figure"):
        figures.figures_in("module_01_x.ipynb", json.dumps(notebook(start="0,0")).encode())


@pytest.mark.parametrize(
    ("path", "to", "message"),
    [
        (("frames", "0,1", "alt"), " ", "has no alt text"),
        (("frames", "0,1", "svg"), "<svg", "is not XML"),
        (("frames", "0,1", "svg"), svg("0,2"), "does not carry its alt text"),
    ],
)
def test_figures_hold_every_picture_to_what_they_ask_of_one(path, to, message):
    told = changed(*path, to=to)
    with pytest.raises(CourseError, match=message):
        figures.figures_in("module_01_x.ipynb", json.dumps(notebook(told)).encode())


def test_the_figure_of_a_view_is_one_figure():
    (figure,) = figures.figures_in("module_01_x.ipynb", json.dumps(notebook()).encode())
    assert (figure.file_name, figure.svg) == ("module_01-toy.svg", svg("1,0"))


def test_drift_sees_the_words_of_every_picture():
    lines = "\n".join(f"{state}: {ALT.format(state)}" for state in TOLD["frames"])
    assert shown(notebook()) == [Shown("see", "view toy", lines)]
    other = changed("frames", "0,1", "alt", to="Something else")
    assert shown(notebook(other)) != shown(notebook())


def test_all_that_a_reader_meets_in_a_view_is_searched_for_words_left_untranslated():
    texts = [text.text for text in shown_texts(notebook())]
    assert {"First", "Second", "one", "z", "drawn 0,2", ALT.format("1,1")} <= set(texts)
