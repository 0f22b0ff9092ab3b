"""What all views share: start, frames, widgets, and one output that holds what each place shows."""

import subprocess
import sys

import pytest
from matplotlib.figure import Figure

from course_build.run.jobs import ROOT
from course_lib.views import base
from course_lib.views.base import Control, View, show_view, view_frames

from .samples import displayed


def view(sizes=(2, 3), drawn=None):
    """A view whose picture is empty and whose words name the state."""

    def draw(state):
        if drawn is not None:
            drawn.append(dict(state))
        return Figure(figsize=(1, 1))

    options = [{f"{n}{i}": i for i in range(size)} for n, size in zip("ab", sizes, strict=True)]
    controls = [
        Control("a", "First", "choice", options[0], "a0"),
        Control("b", "Second", "range", options[1], "b1", {**options[1], "b9": 9}),
    ]
    return View("toy", controls, draw, lambda state: f"a is {state['a']}, b is {state['b']}.")


def test_there_is_a_frame_for_each_state_in_order_and_the_start_among_them():
    drawn = []
    told = view_frames(view(drawn=drawn))
    assert list(told["frames"]) == ["0,0", "0,1", "0,2", "1,0", "1,1", "1,2"]
    assert drawn == [{"a": a, "b": b} for a in range(2) for b in range(3)]
    assert [frame["alt"] for frame in told["frames"].values()] == [
        f"a is {a}, b is {b}." for a in range(2) for b in range(3)
    ]
    assert told["name"] == "toy"
    first, second = told["controls"]
    assert first == {
        "name": "a", "label": "First", "kind": "choice", "values": ["a0", "a1"], "start": 0,
    }  # fmt: skip
    assert second["values"] == ["b0", "b1", "b2"]
    assert second["start"] == 1


def test_too_many_frames_are_refused_before_one_is_drawn():
    drawn = []
    with pytest.raises(ValueError, match="25 pictures are too many to keep; offer at most 24"):
        view_frames(view((5, 5), drawn))
    assert drawn == []


def test_a_static_output_is_the_start_with_all_frames_and_no_widget():
    drawn = []
    with displayed() as shown:
        show_view(view(drawn=drawn))
    ((data, told),) = shown
    frame = data[base.VIEW_KIND]["frames"]["0,1"]
    assert list(data) == ["image/svg+xml", "text/html", "text/plain", base.VIEW_KIND]
    assert (data["image/svg+xml"], data["text/plain"]) == (frame["svg"], frame["alt"])
    assert told["metadata"] == {"image/svg+xml": {"alt": "a is 0, b is 1.", "name": "toy"}}
    assert len(drawn) == 6  # none twice


def test_a_live_output_is_the_start_with_widgets_and_draws_nothing_else():
    drawn = []
    with displayed(live=True) as shown:
        show_view(view(drawn=drawn))
    ((data, told),) = shown
    assert set(data) == {
        "image/svg+xml", "text/html", "text/plain", "application/vnd.jupyter.widget-view+json",
    }  # fmt: skip
    assert data["text/plain"] == "a is 0, b is 1."
    assert told["metadata"]["image/svg+xml"]["name"] == "toy"
    assert drawn == [{"a": 0, "b": 1}]


def test_each_control_becomes_a_labelled_list_that_redraws_by_name():
    states = []
    first, second = base.dials(view(), states.append)
    choice, _ = second.children
    assert [type(widget).__name__ for widget in (first, choice)] == ["Dropdown", "Dropdown"]
    assert (first.description, choice.description) == ("First", "Second")
    assert list(choice.options) == ["b0", "b1", "b2", "b9"]
    choice.value = "b9"
    first.value = "a1"
    assert states == [{"a": 0, "b": 9}, {"a": 1, "b": 9}]


def test_what_has_an_order_can_be_slid_too_and_draws_once_a_step():
    states = []
    _, second = base.dials(view(), states.append)
    choice, slider = second.children
    assert type(slider).__name__ == "SelectionSlider"
    assert (slider.options, slider.value) == (choice.options, choice.value)
    slider.value = "b9"
    assert (choice.value, states) == ("b9", [{"a": 0, "b": 9}])
    choice.value = "b0"
    assert (slider.value, len(states)) == ("b0", 2)


def test_a_start_that_is_not_offered_is_refused():
    with pytest.raises(ValueError, match=r"b starts at 'b7', not in \['b0'\]"):
        Control("b", "Second", "range", {"b0": 0}, "b7")
    with pytest.raises(ValueError, match=r"b starts at 'b0', not in \['b1'\]"):
        Control("b", "Second", "range", {"b0": 0}, "b0", {"b1": 1})


def test_no_view_imports_ipywidgets_or_pyplot_before_it_is_shown():
    code = (
        "import sys\n"
        "from course_lib.views import mask_painter, sampling_dial, position_dial\n"
        "from course_lib.views import cache_steps, roofline_batch, surprisal_box\n"
        "print({'ipywidgets', 'torch', 'matplotlib.pyplot'} & set(sys.modules))\n"
    )
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("set()\n", "")
