"""The position dial: its dot products are sums of cosines, and depend on the distance alone."""

import math
import re

import pytest

from .samples import alts, call, displayed, table

STATES = {f"{i},{j}": (p, b) for i, p in enumerate((0, 5, 23)) for j, b in enumerate((10, 10_000))}


def dot(distance, base):
    """cos a cos b + sin a sin b = cos(a - b), for each of the four pairs."""
    return sum(math.cos(distance * base ** (-2 * pair / 8)) for pair in range(4))


def test_the_words_say_the_dot_products():
    told = alts("position_dial")
    assert told.keys() == STATES.keys()
    for state, (position, base) in STATES.items():
        far = 23 if position < 12 else position
        rate = "10,000" if base == 10_000 else "10"
        assert told[state] == (
            f"Waves, a peak at {position}, base {rate}: 4.00, next {dot(1, base):.2f}, "
            f"at {far if position != 5 else 18} {dot(far if position != 5 else 18, base):.2f}."
        )


def curve(svg):
    """The points of the dot product's line: the only one with a vertex for each position below."""
    paths = re.findall(r'<path d="(M [^"]*)"', svg)
    lines = [re.findall(r"[ML] (\S+) (\S+)", path) for path in paths]
    whole = [[(float(x), float(y)) for x, y in line] for line in lines if len(line) == 24]
    return whole[-1]  # after the three sines


def test_moving_the_position_moves_the_curve_and_leaves_its_shape():
    from .samples import frames

    shown = frames("position_dial")
    left, middle = curve(shown["0,1"]["svg"]), curve(shown["1,1"]["svg"])
    heights = [y for _, y in left]
    moved = [y for _, y in middle]
    assert moved[5:] == pytest.approx(heights[:19], abs=1e-4)  # the distances 0 to 18
    assert moved[:6] == pytest.approx(heights[5::-1], abs=1e-4)  # and 5 to 0 on the other side
    assert min(heights) == heights[0]  # y grows downwards: the peak is at the position


def test_another_base_is_another_shape():
    from .samples import frames

    shown = frames("position_dial")
    assert curve(shown["0,0"]["svg"]) != curve(shown["0,1"]["svg"])


def test_the_start_is_the_first_of_each_also_when_the_dial_sorts_them():
    from .samples import output

    data, _ = output("position_dial", "en", positions=(5, 0), bases=(100, 10, 1000))
    assert "a peak at 5, base 100:" in data["text/plain"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"positions": (0, 24)}, "positions must be from 0 to 23; got 24"),
        ({"positions": (0, 1.5)}, "positions must be from 0 to 23; got 1.5"),
        ({"table": lambda base: [[0.0] * 4] * 9}, r"3 pairs of columns; got shape \(9, 4\)"),
        ({"table": lambda base: [[0.0] * 7] * 9}, r"got shape \(9, 7\)"),
        ({"positions": tuple(range(13))}, "26 pictures are too many"),
    ],
)
def test_what_cannot_be_drawn_is_refused(changes, message):
    with displayed(), pytest.raises(ValueError, match=message):
        call("position_dial", "en", **changes)


def test_live_every_position_is_offered(live_view):
    (position, base), picture = live_view("position_dial")
    assert list(position.options) == [str(p) for p in range(24)]
    position.value, base.value = "7", "10"
    assert f"a peak at 7, base 10: 4.00, next {dot(1, 10):.2f}" in picture.value
    assert len(table(10)) == 24
