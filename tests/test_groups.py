"""Tests that share costly work stay in one process: pytest and xdist agree about groups."""

import pytest

pytestmark = pytest.mark.xdist_group("together")


@pytest.mark.parametrize("place", range(4))
def test_a_group_is_seen_by_what_hands_out_the_tests(request, place):
    if not hasattr(request.config, "workerinput"):
        pytest.skip("one process does all")
    assert request.node.nodeid.endswith("@together")
