"""The causal mask's contract accepts what is right and refuses what is wrong."""

import functools

import pytest
import torch

from course_lib import text
from course_lib.contracts import ContractViolation, causal_mask, check_causal_mask_contract
from course_lib.contracts._causal_mask_case import MaskCase, mask_by_library, mask_by_loops
from course_lib.masks import causal_allowed

from .masks_and_heads import RIGHT_MASKS, WRONG_MASKS, candidate, mask_by_tril

CLAUSES = [
    *("result_form", "diagonal", "default_offset", "geometry", "cached_rows", "long_contexts"),
    *("independent_results", "negative_offset"),
]
ONE_FOR_EACH_CLAUSE = {clause: name for name, (_, clause) in WRONG_MASKS.items()}


def violation(mask):
    with pytest.raises(ContractViolation) as caught:
        check_causal_mask_contract(candidate(mask))
    return caught.value


@functools.cache
def refused(name):
    """The English violation of a wrong variant, worked out once for all the tests that read it."""
    return violation(WRONG_MASKS[name][0])


@pytest.mark.parametrize("mask", RIGHT_MASKS, ids=lambda f: f.__name__)
def test_right_masks_written_differently_are_accepted(mask):
    assert check_causal_mask_contract(mask).attempted


def test_the_courses_own_mask_is_accepted_on_every_clause():
    report = check_causal_mask_contract(causal_allowed)
    assert [clause.name for clause in report.clauses] == CLAUSES
    assert dict(report) == {"full_mask_true": 15, "wrong_cache_mask_true": 1, "cache_mask_true": 5}


def assert_fits_a_screen(caught):
    lines = str(caught).split("\n")
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 84


@pytest.mark.parametrize("name", WRONG_MASKS)
def test_wrong_masks_are_refused_by_the_clause_that_names_the_fault(name):
    assert refused(name).clause == WRONG_MASKS[name][1]
    assert_fits_a_screen(refused(name))


@pytest.mark.parametrize(
    "name", {clause: name for name, (_, clause) in WRONG_MASKS.items()}.values()
)
def test_russian_messages_fit_a_screen_too(name, monkeypatch):
    monkeypatch.setattr(text, "LANGUAGE", "ru")
    assert_fits_a_screen(violation(WRONG_MASKS[name][0]))


def test_every_clause_is_the_one_that_refuses_some_wrong_mask():
    assert {clause for _, clause in WRONG_MASKS.values()} == set(CLAUSES)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("inverted", "True meant hidden"),
        ("blind to itself", "could not read itself"),
        ("sees the next", "could read the next one"),
        ("offset ignored", "query_offset were ignored"),
        ("lower right corner", "aligned at its lower right corner"),
        ("offset subtracted", "subtracted instead of added"),
        ("floats", "the mask is torch.float32"),
        ("shared table", "wrote into an earlier result, and it came back"),
    ],
)
def test_the_diagnosis_states_what_was_measured(name, words):
    assert words in refused(name).diagnosis


def test_the_failing_call_is_cut_down_to_the_smallest():
    caught = refused("offset ignored")
    assert caught.failing_input == {"t_q": 1, "t_k": 2, "query_offset": 1}
    assert caught.mismatches[0] == ("allowed", (0, 1), False, True)


def test_a_stub_is_not_attempted():
    def stub(t_q, t_k, *, query_offset=0):
        raise NotImplementedError

    assert str(check_causal_mask_contract(stub)) == "○ check_causal_mask_contract: not attempted"


def test_an_error_of_the_candidate_is_chained():
    def mask(t_q, t_k, *, query_offset=0):
        1 // (t_k - 3)
        return mask_by_tril(t_q, t_k, query_offset=query_offset)

    caught = violation(mask)
    assert isinstance(caught.__cause__, ZeroDivisionError)
    assert caught.measured == "ZeroDivisionError"


def test_something_that_is_no_function_is_an_error_at_the_door():
    with pytest.raises(TypeError, match="causal_allowed must be a function, got str"):
        check_causal_mask_contract("tril")


def test_the_two_references_agree():
    for case in (MaskCase(5, 5), MaskCase(1, 5, 4), MaskCase(3, 2, 1)):
        assert torch.equal(mask_by_loops(case), mask_by_library(case))
    assert mask_by_loops(MaskCase(2, 5, 3)).tolist() == [[True] * 4 + [False], [True] * 5]


def test_references_that_disagree_stop_the_contract(monkeypatch):
    monkeypatch.setattr(causal_mask, "mask_by_loops", lambda case: ~mask_by_library(case))
    with pytest.raises(RuntimeError, match="two references for the causal mask disagree"):
        check_causal_mask_contract(mask_by_tril)
