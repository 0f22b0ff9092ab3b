"""The mask painter: its weights are a softmax over what is open, and a click changes one cell."""

import math
import re

import pytest

from course_lib.views import base

from .samples import CAUSAL, EVERY, MASKS, SCORES, STRICT, alts, call, displayed, output, weigh

LABELS = MASKS["en"]["labels"].split(",")
TOKENS = ("sun", "moon", "eclipse")


def drawn(data):
    """The digits in the cells of both grids, in reading order."""
    texts = re.findall(r">([01]|\d\.\d\d|nan)</text>", data["image/svg+xml"])
    return texts[:9], texts[9:]


def softmax(row):
    total = sum(math.exp(score) for score in row)
    return [math.exp(score) / total for score in row]


def test_the_first_picture_is_the_first_mask_with_its_weights():
    data, _ = output("mask_painter", "en")
    mask, weights = drawn(data)
    assert mask == list("100110111")
    second = softmax(SCORES[1][:2])
    third = softmax(SCORES[2])
    expected = ["1.00", "0", "0", *(f"{w:.2f}" for w in second), "0", *(f"{w:.2f}" for w in third)]
    assert weights == expected


def test_each_grid_has_its_title_and_its_axes_are_named():
    data, _ = output("mask_painter", "en")
    texts = re.findall(r">([^<]+)</text>", data["image/svg+xml"])
    names = ("who may read whom", "attention weights", "key", "query")
    assert [texts.count(name) for name in names] == [1, 1, 2, 1]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_words_say_each_rows_weights(place):
    mask = (CAUSAL, EVERY, STRICT)[place]
    told = alts("mask_painter")[str(place)]
    assert f"mask {LABELS[place]} " in told
    for query, scores, row in zip(TOKENS, SCORES, mask, strict=True):
        keys = [key for key in range(3) if row[key]]
        weights = softmax([scores[key] for key in keys])
        pairs = zip(keys, weights, strict=True)
        reads = ", ".join(f"{TOKENS[key]} {weight:.2f}" for key, weight in pairs)
        said = f"{query.capitalize()} reads {reads or 'nothing, weights NaN'}"
        assert said in told


def test_an_empty_row_is_shown_as_the_attention_made_it():
    nan, _ = output("mask_painter", "en", presets={"strict": STRICT})
    assert drawn(nan)[1][:3] == ["nan"] * 3

    def zeros(allowed):
        return [[0.0 if math.isnan(w) else w for w in row] for row in weigh(allowed)]

    zero, _ = output("mask_painter", "en", weigh=zeros, presets={"strict": STRICT})
    assert drawn(zero)[1][:3] == ["0"] * 3
    assert "Sun reads nothing, weights 0." in zero["text/plain"]
    frames = [data["image/svg+xml"].count("stroke-dasharray") for data in (nan, zero)]
    whole, _ = output("mask_painter", "en", presets={"every": EVERY})
    assert min(frames) == whole["image/svg+xml"].count("stroke-dasharray") + 2  # one in each grid


def test_a_weight_that_leaks_through_the_mask_is_drawn_too():
    leaky, _ = output("mask_painter", "en", weigh=lambda allowed: [[0.25, 0.25, 0.5]] * 3)
    assert drawn(leaky)[1] == ["0.25", "0.25", "0.50"] * 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"presets": {"x": [[True, False]]}}, r"presets\['x'\] must be bool \[3, 3\].*\[1, 2\]"),
        ({"presets": {"x": [[1, 0, 0]] * 3}}, r"presets\['x'\] must be bool .* got int64"),
        ({"presets": {}}, "presets must map labels to masks"),
        ({"presets": [EVERY]}, "presets must map labels to masks"),
        ({"token_labels": ["a"]}, "1 tokens make no grid to paint"),
        ({"token_labels": ["a", " ", "c"]}, r"token_labels\[1\] is blank"),
        ({"weigh": lambda allowed: [[1.0]]}, r"weigh must return \[3, 3\]; got \[1, 1\]"),
        ({"presets": {str(i): EVERY for i in range(25)}}, "25 pictures are too many"),
    ],
)
def test_what_cannot_be_drawn_is_refused(changes, message):
    with displayed(), pytest.raises(ValueError, match=message):
        call("mask_painter", "en", **changes)


# --- live ---


@pytest.fixture
def painter(monkeypatch):
    """The widgets of a live painter, and how many pictures it has drawn."""
    boxes = []
    make = base.live_box
    monkeypatch.setattr(base, "live_box", lambda *given: boxes.append(make(*given)) or boxes[0])
    data, _ = output("mask_painter", "en", live=True)
    assert "application/vnd.jupyter.widget-view+json" in data
    preset, hint, grid, picture = boxes[0].children
    assert hint.value == "Press a cell to open or hide it"
    rows = [grid.children[4 * row + 1 : 4 * row + 4] for row in (1, 2, 3)]
    return preset, rows, picture


def values(rows):
    return [[button.value for button in row] for row in rows]


def test_a_cell_is_painted_by_pressing_its_button(painter):
    preset, rows, picture = painter
    assert values(rows) == CAUSAL
    assert [b.description for row in rows for b in row] == list("100110111")
    before = picture.value
    seen = []
    picture.observe(seen.append, "value")
    rows[0][2].value = True
    assert len(seen) == 1
    assert picture.value != before
    assert "mask painted by you" in picture.value
    first = softmax([SCORES[0][0], SCORES[0][2]])
    assert f"Sun reads sun {first[0]:.2f}, eclipse {first[1]:.2f}" in picture.value
    assert rows[0][2].description == "1"
    assert preset.value is None


def test_a_mask_of_the_list_sets_every_button_and_draws_once(painter):
    preset, rows, picture = painter
    seen = []
    picture.observe(seen.append, "value")
    preset.value = LABELS[2]
    assert values(rows) == STRICT
    assert len(seen) == 1
    assert f"mask {LABELS[2]} " in picture.value
    rows[1][0].value = False
    preset.value = LABELS[2]
    assert values(rows) == STRICT


def test_each_button_says_which_cell_it_is(painter):
    _, rows, _ = painter
    assert [[b.tooltip for b in row] for row in rows] == [
        [f"{query} → {key}" for key in TOKENS] for query in TOKENS
    ]
