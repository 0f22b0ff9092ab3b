"""The contract of causal attention in lists accepts what is right and refuses what is wrong."""

from functools import partial

import numpy as np
import pytest

from course_lib.contracts import check_causal_attention_contract
from course_lib.contracts.attention.causal_attention import (
    causal_attention_by_library,
    causal_attention_by_loops,
    drawn,
)

from .trial import verdict, violation_of
from .variants_causal_attention import in_loops

violation = partial(violation_of, check_causal_attention_contract)


def test_two_keys_by_hand():
    """Equal scores at the second position: the mean of both values, the first reads itself."""
    text = {"queries": [[5.0], [0.0]], "keys": [[1.0], [2.0]], "values": [[3.0], [7.0]]}
    for attention in (causal_attention_by_loops, causal_attention_by_library):
        assert attention(**text, d_head=1) == [[3.0], [5.0]]


def test_the_figures_tell_the_error_and_the_leak():
    report = check_causal_attention_contract(in_loops)
    assert set(dict(report)) == {"output_max_error", "leak"}
    assert report["leak"] == 0.0
    assert report["output_max_error"] < 1e-9


def test_the_failing_text_is_cut_down_to_two_positions_of_one_number():
    caught = verdict("causal_attention", "mistake", "one_ahead").violation
    assert [len(caught.failing_input[name]) for name in ("queries", "keys", "values")] == [2] * 3
    assert caught.failing_input["d_head"] == 1


def test_an_output_that_moves_with_the_future_is_called_a_leak():
    def attention(queries, keys, values, d_head):
        rows = np.array(in_loops(queries, keys, values, d_head))
        return rows + (1e-3 * max(max(row) for row in values) > 0.5)

    caught = violation(attention)
    assert caught.clause == "future_unread"
    assert "only later positions were changed" in caught.diagnosis


def test_the_two_references_agree():
    for sizes in ((6, 3), (1, 1), (9, 5)):
        text = drawn(*sizes).arguments()
        one, other = causal_attention_by_loops(**text), causal_attention_by_library(**text)
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("result", "measured", "allowed"),
    [
        (None, "NoneType", "list[list[float]]"),
        ([[1.0, None], (2.0,)], "list[list[NoneType | float] | tuple[float]]", "list[list[float]]"),
        ([], "[0]", "[1, 1]"),
        ([[1.0], [2.0, 3.0]], "[1, 2]", "[1]"),
    ],
)
def test_what_came_is_spelled_out_beside_what_is_wanted(result, measured, allowed):
    caught = violation(lambda *text: result)
    assert caught.clause == "result_form"
    assert f"measured: {measured}; tolerated: {allowed}" in " ".join(str(caught).split())
