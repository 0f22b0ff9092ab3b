"""The causal mask's contract accepts what is right and refuses what is wrong."""

from functools import partial

import torch

from course_lib.contracts import check_causal_mask_contract
from course_lib.contracts.masks import causal_mask
from course_lib.masks import causal_allowed

from .trial import verdict, violation_of

violation = partial(violation_of, check_causal_mask_contract)


def test_the_figures_count_the_readable_places():
    report = check_causal_mask_contract(causal_allowed)
    assert dict(report) == {"full_mask_true": 15, "wrong_cache_mask_true": 1, "cache_mask_true": 5}


def test_the_failing_call_is_cut_down_to_the_smallest():
    caught = verdict("causal_mask", "mistake", "offset_ignored").violation
    assert caught.failing_input == {"t_q": 1, "t_k": 2, "query_offset": 1}
    assert caught.mismatches[0] == ("allowed", (0, 1), False, True)


def test_the_two_references_agree():
    for size in ((5, 5), (1, 5, 4), (3, 2, 1)):
        call = causal_mask.make(*size)
        assert torch.equal(causal_mask.by_loops(call), causal_mask.by_library(call))
    call = causal_mask.make(2, 5, 3)
    assert causal_mask.by_loops(call).tolist() == [[True] * 4 + [False], [True] * 5]
