"""Findings are said in reading order, once each, and name the cell that asked."""

import random

import pytest

from course_build.base.findings import CourseError, Finding, in_reading_order, stop_if_broken


def finding(path="a.py", line=1, key="k", rule="r", message="m", **more):
    return Finding(path, line, key, rule, message, "mend it", **more)


ORDERED = [
    finding(path="a.py", line=2, key=None),
    finding(path="a.py", line=10, key=None),
    finding(path="a.py", line=10, key="a", rule="z"),
    finding(path="a.py", line=10, key="b", rule="a", message="z"),
    finding(path="a.py", line=10, key="b", rule="b", message="a"),
    finding(path="a.py", line=10, key="b", rule="b", message="b"),
    finding(path="b.py", line=1),
]


@pytest.mark.parametrize("seed", range(5))
def test_findings_come_in_reading_order_and_once(seed):
    mixed = ORDERED * 2
    random.Random(seed).shuffle(mixed)
    assert list(in_reading_order(mixed)) == ORDERED


def test_a_finding_says_where_what_and_how_to_mend_it():
    shown = str(finding(line=7, key="cell", rule="a-rule", message="one\n\ntwo"))
    assert shown == 'a.py:7: cell "cell": [a-rule]\n    one\n\n    two\n    -> mend it'
    assert str(finding(key=None)) == "a.py:1: [r]\n    m\n    -> mend it"


def test_the_error_says_all_its_findings():
    with pytest.raises(CourseError, match=r"a\.py:2:(.|\n)*b\.py:1:"):
        raise CourseError(reversed(ORDERED))


def test_only_what_is_broken_stops():
    stop_if_broken([])
    stop_if_broken([finding(stale=True)])
    with pytest.raises(CourseError, match="m") as caught:
        stop_if_broken([finding(stale=True), finding(line=2)])
    assert len(caught.value.findings) == 2


def test_a_finding_in_another_file_names_the_cell_that_asked_for_it():
    error = CourseError([finding(key=None), finding(key="own")])
    said = [str(found).split(" [")[0] for found in error.in_cell("asked")]
    assert said == ['a.py:1: cell "asked":', 'a.py:1: cell "own":']


def test_a_fault_that_several_cells_meet_is_said_once_and_names_them():
    error = CourseError([finding(key=None)])
    met = [found for key in ("z", "b", "b", "a") for found in error.in_cell(key)]
    [found] = in_reading_order(met)
    assert str(found) == "a.py:1: [r]\n    m\n    this stops 3 cells: z, b, a\n    -> mend it"
    assert in_reading_order([found, *met]) == (found,)


def test_a_finding_about_a_whole_folder_has_no_line():
    assert str(finding(path="a", line=None, key=None)) == "a: [r]\n    m\n    -> mend it"
    assert in_reading_order([finding(), finding(line=None)])[0].line is None
