"""Which cells a cell needs."""

import pytest

from course_build.teaching.needs import names_read, needed_cells


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("y = x", {"x"}),
        ("def f(a):\n    return a + b", {"b"}),
        ("def f(a):\n    b = a\n    return b", set()),
        ("z = [i for i in row]", {"row"}),
        ("import os\nos.sep", set()),
        ("%pip install x\ny", {"y"}),
        ("f = adopt(mine, f)\nf()", {"adopt", "mine", "f"}),
        ("n += 1", {"n"}),
        ("from module import f\nf = adopt(f)", {"adopt"}),
    ],
)
def test_names_from_outside_are_read_the_cells_own_are_not(text, names):
    assert names_read(text) == names


def test_the_nearest_binding_above_is_needed_and_what_that_needs():
    cells = [("a", "x = 1"), ("b", "x = 2\ny = base"), ("base", "base = 0"), ("c", "print(x)")]
    assert needed_cells(cells, ["c"]) == {"b", "c"}
    assert needed_cells([cells[2], *cells[:2], cells[3]], ["c"]) == {"base", "b", "c"}


def test_what_an_end_needs_is_left_out():
    cells = [("a", "x = 1"), ("stub", "f = x"), ("check", "f")]
    assert needed_cells(cells, ["check"], end=["stub"]) == {"stub", "check"}
