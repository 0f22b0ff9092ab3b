"""The figures of cost: growth with its slopes, the cache against the weights, the roofline.

What every figure must keep (its bytes, its words, its card) is in test_plots.py, for these too.
"""

import numpy as np
import pytest

from course_lib.plots.cache_growth import draw_cache_growth
from course_lib.plots.card import SERIES_LOOKS
from course_lib.plots.growth import draw_growth
from course_lib.plots.roofline import draw_roofline

WORDS = {"title": "Title", "x_label": "across", "y_label": "up"}
GROWTH = {
    "lengths": [1, 10, 100],
    "costs": {"naive": [2.0, 200.0, 20_000.0], "cached": [3.0, 40.0, 300.0]},
    "slopes": [2.0, 1.0],
    "slope_labels": ["slope 2", "slope 1"],
    **WORDS,
}
CACHE = {
    "tokens": [1, 10, 100, 1000],
    "models": {"small": (0.5, 20.0), "large": (4.0, 1000.0)},
    "legend": ["weights", "equal"],
    **WORDS,
}
ROOF = {
    "bandwidth": 30.0,
    "peak": 240.0,
    "points": {
        "decode": [("1", 0.5, 15.0), ("32", 16.0, 200.0)],
        "prefill": [("64", 64.0, 240.0)],
    },
    "legend": ["roof", "balance"],
    **WORDS,
}
VERBS = {
    "growth": (draw_growth, GROWTH),
    "cache": (draw_cache_growth, CACHE),
    "roof": (draw_roofline, ROOF),
}


def draw(name, **changes):
    verb, arguments = VERBS[name]
    return verb(**{**arguments, **changes})


def panel_of(name, **changes):
    return draw(name, **changes).get_axes()[0]


def data_of(line):
    return [np.asarray(values, dtype=float).tolist() for values in line.get_data()]


# --- that they show the numbers ---


def test_growth_draws_every_cost_as_a_point_on_log_axes():
    panel = panel_of("growth")
    points = panel.get_lines()[::2]
    assert [data_of(line) for line in points] == [
        [GROWTH["lengths"], cost] for cost in GROWTH["costs"].values()
    ]
    assert [line.get_linestyle() for line in points] == ["None", "None"]
    assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
    ticks = [(t.get_position()[0], t.get_text()) for t in panel.get_xticklabels()]
    assert ticks == [(1, "1"), (10, "10"), (100, "100")]


def test_growth_draws_the_line_that_least_squares_would():
    lines = panel_of("growth", slopes=[2.0, 1.0]).get_lines()[1::2]
    assert lines[0].get_ydata() == pytest.approx([2.0, 200.0, 20_000.0])
    x, y = np.log(GROWTH["lengths"]), np.log(GROWTH["costs"]["cached"])
    fitted = np.exp(np.polyval(np.polyfit(x, y, 1), x))
    assert lines[1].get_ydata() == pytest.approx(fitted)  # its slope is exactly 1 here


@pytest.mark.parametrize(("name", "axes"), [("growth", "y"), ("cache", "xy"), ("roof", "xy")])
def test_log_axes_are_written_in_plain_numbers(name, axes):
    panel = panel_of(name)
    for axis in axes:
        low, high = getattr(panel, f"get_{axis}lim")()
        ticks = getattr(panel, f"get_{axis}ticks")()
        words = [tick.get_text() for tick in getattr(panel, f"get_{axis}ticklabels")()]
        written = [word for at, word in zip(ticks, words, strict=True) if low <= at <= high]
        assert len(written) >= 2
        assert all(word.isdecimal() or float(word) < 1 for word in written)


def test_the_marks_of_a_cache_stay_inside_the_picture():
    tokens = [2**power for power in range(11)]
    line = panel_of("cache", tokens=tokens).get_lines()[0]
    start, every = line.get_markevery()
    marked = range(len(tokens))[start::every]
    assert len(marked) == 2
    assert 0 < marked[0] < marked[-1] < len(tokens) - 1


def test_a_single_series_may_be_drawn():
    lines = panel_of("growth", costs={"a": [1, 2, 3]}, slopes=[1], slope_labels=["b"]).get_lines()
    assert len(lines) == 2


def test_the_cache_grows_in_proportion_and_meets_its_own_weights_in_the_circle():
    lines = panel_of("cache").get_lines()
    for turn, (cache, weights) in enumerate(CACHE["models"].values()):
        grown, level, circle = lines[3 * turn : 3 * turn + 3]
        assert data_of(grown) == [CACHE["tokens"], [cache * n for n in CACHE["tokens"]]]
        assert set(level.get_ydata()) == {weights}
        assert data_of(circle) == [[weights / cache], [weights]]
        assert circle.get_marker() == "o"
        assert grown.get_color() == level.get_color() == SERIES_LOOKS[turn]["color"]


def test_the_roof_rises_with_the_bandwidth_and_bends_at_the_balance():
    roof, balance, *points = panel_of("roof").get_lines()
    assert data_of(roof) == [[0.25, 8.0, 128.0], [7.5, 240.0, 240.0]]
    assert set(balance.get_xdata()) == {8.0}
    assert [data_of(line) for line in points] == [[[0.5, 16.0], [15.0, 200.0]], [[64.0], [240.0]]]


def test_the_names_stand_below_the_first_series_and_above_the_second():
    names = {text.get_text(): text for text in panel_of("roof").texts}
    assert {name: (text.xy, text.get_va()) for name, text in names.items()} == {
        "1": ((0.5, 15.0), "top"),
        "32": ((16.0, 200.0), "top"),
        "64": ((64.0, 240.0), "bottom"),
    }
    assert names["1"].get_position()[1] < 0 < names["64"].get_position()[1]


def test_points_far_below_the_roof_stay_in_the_picture():
    points = {"decode": [("1", 0.5, 0.2), ("2", 500.0, 1.0)]}
    panel = panel_of("roof", points=points)
    assert panel.get_ylim()[0] < 0.2
    assert panel.get_xlim() == (0.25, 1000.0)


def test_a_point_above_the_roof_stays_in_the_picture():
    panel = panel_of(
        "roof", points={"decode": [("1", 0.5, 15.0)], "prefill": [("64", 64.0, 900.0)]}
    )
    assert panel.get_ylim()[1] > 900


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("growth", ["naive", "slope 2", "cached", "slope 1"]),
        ("cache", ["small", "large", "weights", "equal"]),
        ("roof", ["roof", "balance", "decode", "prefill"]),
    ],
)
def test_a_legend_names_everything_in_the_order_given(name, words):
    legend = draw(name).legends[0]
    assert [text.get_text() for text in legend.get_texts()] == words
    assert len(legend.legend_handles) == len(words)


@pytest.mark.parametrize("name", VERBS)
def test_series_differ_without_colour(name):
    # Horizontal and vertical lines explain themselves; of the others no two look alike.
    looks = [
        (line.get_linestyle(), line.is_dashed(), str(line.get_marker()), line.get_markersize())
        for line in panel_of(name).get_lines()
        if len(set(line.get_ydata())) > 1 or len(line.get_xdata()) == 1
    ]
    circles = [look for look in looks if look[3] == 11]  # one sign, explained once
    assert len(set(looks)) == len(looks) - max(0, len(circles) - 1)


# --- errors that teach ---


@pytest.mark.parametrize(
    ("name", "changes", "error", "message"),
    [
        ("growth", {"lengths": [0, 1, 2]}, ValueError, r"lengths\[0\] is 0; the axis is log"),
        ("growth", {"costs": {}}, ValueError, "must map one or two labels to costs"),
        ("growth", {"costs": [1.0]}, ValueError, "must map one or two labels to costs"),
        ("growth", {"costs": {"a": [1, 2]}}, ValueError, "one cost for each length: 3; got 2"),
        ("growth", {"costs": {"a": [1, 2, -3]}}, ValueError, r"costs\['a'\]\[2\] is -3"),
        ("growth", {"costs": {" ": [1, 2, 3]}}, ValueError, "a label of costs is blank"),
        ("growth", {"slopes": [1.0]}, ValueError, "slopes must hold 2 numbers, one for each"),
        ("growth", {"slopes": [1.0, np.nan]}, ValueError, r"slopes\[1\] is nan"),
        ("growth", {"slope_labels": ["a"]}, ValueError, "2 labels, one for each series; got 1"),
        ("growth", {"title": " "}, ValueError, "title is blank"),
        ("cache", {"tokens": [0, 1]}, ValueError, r"tokens\[0\] is 0"),
        ("cache", {"models": {}}, ValueError, "must map 1 to 4 labels"),
        ("cache", {"models": {"a": (1.0,)}}, ValueError, r"must be \(cache of a token, weights\)"),
        ("cache", {"models": {"a": (1.0, 0.0)}}, ValueError, r"models\['a'\]\[1\] is 0"),
        ("cache", {"models": {"": (1.0, 2.0)}}, ValueError, "a label of models is blank"),
        ("cache", {"legend": ["a"]}, ValueError, r"one for each sign \(level, circle\); got 1"),
        ("roof", {"bandwidth": 0}, ValueError, r"bandwidth and peak\[0\] is 0"),
        ("roof", {"peak": -1}, ValueError, r"bandwidth and peak\[1\] is -1"),
        ("roof", {"points": {}}, ValueError, "must map one or two labels to points"),
        ("roof", {"points": {"a": []}}, ValueError, r"\(name, intensity, rate\) each"),
        ("roof", {"points": {"a": [("1", 2.0)]}}, ValueError, r"\(name, intensity, rate\) each"),
        ("roof", {"points": {"a": [(1, 2.0, 3.0)]}}, TypeError, r"\[0\] must be a str; got int"),
        ("roof", {"points": {"a": [("1", 0.0, 3.0)]}}, ValueError, r"intensities .*\[0\] is 0"),
        ("roof", {"points": {"a": [("1", 1.0, 0.0)]}}, ValueError, r"rates .*\[0\] is 0"),
        ("roof", {"points": {" ": [("1", 1.0, 1.0)]}}, ValueError, "a label of points is blank"),
        ("roof", {"legend": ["a"]}, ValueError, r"one for each sign \(roof, balance\); got 1"),
    ],
)
def test_wrong_arguments_are_refused_in_words(name, changes, error, message):
    with pytest.raises(error, match=message):
        draw(name, **changes)
