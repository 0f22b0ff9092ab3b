"""The contract of multi-head attention accepts what is right and refuses what is wrong."""

import functools
import math

import pytest
import torch

from course_lib import text
from course_lib.attention import MultiHeadSelfAttention
from course_lib.contracts import ContractViolation, check_multi_head_contract
from course_lib.contracts import _multi_head_case as cases

from .masks_and_heads import RIGHT_HEADS, WRONG_HEADS, candidate, heads_by_sdpa, heads_in_numpy

CLAUSES = [
    *("result_form", "arguments_unchanged", "repeatable", "one_head", "permutation"),
    *("many_heads", "future_blind", "causal", "padding_content", "row_in_batch", "padding"),
    *("without_padding", "extreme_logits", "float32_inputs", "gradients"),
]
ONE_FOR_EACH_CLAUSE = {clause: name for name, (_, clause) in WRONG_HEADS.items()}


def violation(multi_head):
    with pytest.raises(ContractViolation) as caught:
        check_multi_head_contract(candidate(multi_head))
    return caught.value


@functools.cache
def refused(name):
    """The English violation of a wrong variant, worked out once for all the tests that read it."""
    return violation(WRONG_HEADS[name][0])


@pytest.mark.parametrize("multi_head", RIGHT_HEADS, ids=lambda f: f.__name__)
def test_right_heads_written_differently_are_accepted(multi_head):
    assert check_multi_head_contract(multi_head).attempted


def test_every_clause_holds_for_the_librarys_attention():
    report = check_multi_head_contract(heads_by_sdpa)
    assert [clause.name for clause in report.clauses] == CLAUSES
    assert report.unchecked == ()
    assert max(report.values()) < 1e-8


@pytest.mark.parametrize(
    ("language", "words"),
    [("en", "as wide as the input, finite"), ("ru", "той же ширины, что вход, конечный")],
)
def test_the_report_says_how_wide_the_result_must_be(language, words, monkeypatch):
    monkeypatch.setattr(text, "LANGUAGE", language)
    report = check_multi_head_contract(heads_by_sdpa)
    assert words in report.clauses[0].meaning
    assert max(map(len, str(report).split("\n"))) <= 88


def test_the_courses_own_module_is_accepted():
    def multi_head(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
        module = MultiHeadSelfAttention(x.shape[-1], n_heads, causal=causal).to(x.dtype)
        weights = {"qkv.weight": torch.cat([w_q.T, w_k.T, w_v.T]), "out.weight": w_o.T}
        options = {"token_valid": token_valid, "empty_row": "zero"}
        return torch.func.functional_call(module, weights, (x,), options)

    assert check_multi_head_contract(multi_head).unchecked == ()


def assert_fits_a_screen(caught):
    lines = str(caught).split("\n")
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 84


@pytest.mark.parametrize("name", WRONG_HEADS)
def test_wrong_heads_are_refused_by_the_clause_that_names_the_fault(name):
    assert refused(name).clause == WRONG_HEADS[name][1]
    assert_fits_a_screen(refused(name))


@pytest.mark.parametrize(
    "name", {clause: name for name, (_, clause) in WRONG_HEADS.items()}.values()
)
def test_russian_messages_fit_a_screen_too(name, monkeypatch):
    monkeypatch.setattr(text, "LANGUAGE", "ru")
    assert_fits_a_screen(violation(WRONG_HEADS[name][0]))


def test_every_clause_is_the_one_that_refuses_some_wrong_heads():
    assert {clause for _, clause in WRONG_HEADS.values()} == set(CLAUSES)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("root of d_model", "divided by √d_model instead of √d_head"),
        ("heads cut by view", "cut with view(B, H, T, d_head), without a transpose"),
        ("heads merged by view", "joined with view(B, T, d_model), without a transpose"),
        ("heads interleaved", "head h took every H-th column"),
        ("q and k swapped", "w_q made the keys and w_k the queries"),
        ("weights transposed", "applied as x @ w.T"),
        ("no output projection", "w_o were left out"),
        ("never causal", "causal=True changed nothing"),
        ("causal, not itself", "could not read itself"),
        ("padding read", "padding were read"),
        ("padding inverted", "True in token_valid meant padding"),
        ("first item's lengths", "the first item's token_valid were used"),
        ("NaN for padded rows", "rows [1] of item 0 are not finite"),
        ("no_grad inside", "the output is cut off from its inputs"),
    ],
)
def test_the_diagnosis_states_what_was_measured(name, words):
    assert words in refused(name).diagnosis


def test_the_failing_input_of_a_violation_shows_the_fault_again():
    multi_head, _ = WRONG_HEADS["padding read"]
    given = violation(multi_head).failing_input
    other = given | {"x": torch.where(given["token_valid"][..., None], given["x"], 7.0)}
    real = given["token_valid"]
    assert not torch.equal(multi_head(**given)[real], multi_head(**other)[real])
    assert given["x"].numel() <= 4


def test_a_function_outside_torch_is_forward_only_and_the_report_says_so():
    report = check_multi_head_contract(heads_in_numpy)
    assert report.unchecked == ("gradients",)
    assert math.isnan(report["gradient_max_error"])


def test_a_stub_is_not_attempted():
    def stub(x, w_q, w_k, w_v, w_o, n_heads, *, causal, token_valid):
        raise NotImplementedError

    assert str(check_multi_head_contract(stub)) == "○ check_multi_head_contract: not attempted"


def test_something_that_is_no_function_is_an_error_at_the_door():
    with pytest.raises(TypeError, match="multi_head must be a function, got NoneType"):
        check_multi_head_contract(None)


def test_the_two_references_agree_to_rounding():
    case = cases.heads_case(1, 2, 4, 3, 2, causal=True, valid=[[0, 1, 1, 1], [1, 1, 0, 1]])
    gap = cases.heads_by_loops(case) - cases.heads_by_library(case)
    assert gap.abs().max() < 1e-14


def test_references_that_disagree_stop_the_contract(monkeypatch):
    wrong = cases.heads_by_library
    monkeypatch.setattr(cases, "heads_by_library", lambda case: wrong(case) + 1)
    with pytest.raises(RuntimeError, match="two references for multi-head attention disagree"):
        check_multi_head_contract(heads_by_sdpa)
