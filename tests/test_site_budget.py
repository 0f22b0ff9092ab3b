"""What a page costs is measured as a reader's browser would ask for it, and kept below a limit."""

from dataclasses import fields, replace

import pytest

from course_build.base.findings import CourseError
from course_build.site.budget import MOST, Cost, check_budget, cost

PAGE = """<!doctype html><html><head><link rel="stylesheet" href="look.css">
<link rel="next" href="other.html"><link rel="canonical" href="other.html">
<link rel="alternate" hreflang="x" href="other.html"><link rel="search" href="other.html">
<script src="run.js?v=1"></script></head>
<body><img src="figure.svg" alt="a"><img src="figure.svg" alt="b"><a href="other.html">o</a>
<img src="data:image/png;base64,AAAA" alt="c"><a href="big.ipynb">n</a></body></html>"""


@pytest.fixture
def page(tmp_path):
    (tmp_path / "page.html").write_text(PAGE)
    for name, size in (("look.css", 4000), ("run.js", 3000), ("figure.svg", 2000)):
        (tmp_path / name).write_text("x" * size)
    for name in ("other.html", "big.ipynb"):
        (tmp_path / name).write_bytes(bytes(range(256)) * 1000)
    return tmp_path / "page.html"


def test_a_page_costs_itself_and_what_it_loads_each_once(page):
    told = cost(page)
    assert told.html == len(PAGE)
    assert told.elements == PAGE.count("<") - PAGE.count("</") - 1  # the doctype
    assert told.requests == 1 + 3
    assert told.compressed < told.transfer < told.compressed + 200
    assert 0 < told.largest_image < 100


def test_no_page_may_ever_hold_more_than_two_megabytes():
    assert MOST.html <= 2_000_000


def test_a_picture_that_is_compressed_already_counts_as_it_is(page):
    (page.parent / "photo.png").write_bytes(b"x" * 5000)
    page.write_text(PAGE.replace("figure.svg", "photo.png"))
    assert cost(page).largest_image == 5000


@pytest.mark.parametrize("name", [field.name for field in fields(Cost)])
def test_a_page_over_any_limit_is_named_with_what_is_too_much(name):
    over = replace(MOST, **{name: getattr(MOST, name) + 1})
    check_budget({"en/good.html": MOST})
    told = rf"en/bad\.html.*\n?.*{name}: {getattr(over, name)}, at most"
    with pytest.raises(CourseError, match=told):
        check_budget({"en/good.html": MOST, "en/bad.html": over})
