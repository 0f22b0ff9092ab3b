"""The contract of the sampling distribution accepts what is right and refuses what is wrong."""

import functools
import math

import pytest

from course_lib import text
from course_lib.contracts import ContractViolation, check_sampling_contract
from course_lib.contracts import _sampling_case as cases
from course_lib.contracts._sampling_case import SamplingCase
from course_lib.sampling import token_distribution

from .samplers import RIGHT_SAMPLERS, WRONG_SAMPLERS, by_sets

CLAUSES = [
    *("result_form", "arguments_unchanged", "repeatable", "softmax", "temperature", "top_k"),
    *("top_k_ties", "top_p", "exact_boundaries", "top_p_ends", "temperature_first"),
    *("top_k_then_top_p", "extreme_logits", "large_vocabulary", "bad_arguments"),
]
ONE_FOR_EACH_CLAUSE = {clause: name for name, (_, clause) in WRONG_SAMPLERS.items()}


def violation(distribution):
    with pytest.raises(ContractViolation) as caught:
        check_sampling_contract(distribution)
    return caught.value


@functools.cache
def refused(name):
    """The English violation of a wrong variant, worked out once for all the tests that read it."""
    return violation(WRONG_SAMPLERS[name][0])


@pytest.mark.parametrize("distribution", RIGHT_SAMPLERS, ids=lambda f: f.__name__)
def test_right_distributions_written_differently_are_accepted(distribution):
    assert check_sampling_contract(distribution).attempted


def test_the_courses_own_distribution_is_accepted_on_every_clause():
    report = check_sampling_contract(token_distribution)
    assert [clause.name for clause in report.clauses] == CLAUSES
    assert max(report.values()) < 1e-12


def assert_fits_a_screen(caught):
    lines = str(caught).split("\n")
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 84


@pytest.mark.parametrize("name", WRONG_SAMPLERS)
def test_wrong_distributions_are_refused_by_the_right_clause(name):
    assert refused(name).clause == WRONG_SAMPLERS[name][1]
    assert_fits_a_screen(refused(name))


@pytest.mark.parametrize(
    "name", {clause: name for name, (_, clause) in WRONG_SAMPLERS.items()}.values()
)
def test_russian_messages_fit_a_screen_too(name, monkeypatch):
    monkeypatch.setattr(text, "LANGUAGE", "ru")
    assert_fits_a_screen(violation(WRONG_SAMPLERS[name][0]))


def test_every_clause_is_the_one_that_refuses_some_wrong_distribution():
    assert {clause for _, clause in WRONG_SAMPLERS.values()} == set(CLAUSES)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("temperature ignored", "the temperature were ignored"),
        ("temperature multiplied", "multiplied by the temperature"),
        ("temperature twice", "divided by the temperature twice"),
        ("temperature after top-p", "the nucleus was chosen at temperature 1"),
        ("k + 1 kept", "k + 1 tokens were kept"),
        ("ties kept", "every token that ties with the k-th were kept"),
        ("higher ids kept", "the higher ids were kept"),
        ("crossing token dropped", "the token that crosses top_p were dropped"),
        ("one token past p", "when the sum equals top_p exactly"),
        ("top_p before top_k", "measured on the whole distribution"),
        ("not renormalised", "the survivors were not renormalised"),
        ("sorted output", "came back sorted"),
        ("exp without the maximum", "it raised OverflowError"),
        ("one list for all", "changed the list that an earlier call had returned"),
    ],
)
def test_the_diagnosis_states_what_was_measured(name, words):
    assert words in refused(name).diagnosis


def test_the_failing_call_is_cut_down_and_shows_the_fault_again():
    distribution, _ = WRONG_SAMPLERS["ties kept"]
    given = violation(distribution).failing_input
    assert given == {"logits": [3.0, 3.0, 3.0], "top_k": 2}
    assert distribution(**given) != by_sets(**given)


def test_a_stub_is_not_attempted():
    def stub(logits, temperature=1.0, top_k=None, top_p=None):
        raise NotImplementedError

    assert str(check_sampling_contract(stub)) == "○ check_sampling_contract: not attempted"


def test_something_that_is_no_function_is_an_error_at_the_door():
    with pytest.raises(TypeError, match="token_distribution must be a function, got list"):
        check_sampling_contract([])


def test_the_references_know_the_answers_worked_out_by_hand():
    two = math.log(2.0)
    assert cases.sampling_by_loops(SamplingCase((two, 0.0, 0.0), top_p=0.75)) == pytest.approx(
        [2 / 3, 1 / 3, 0.0]
    )
    assert cases.sampling_by_loops(SamplingCase((1.0, 3.0, 3.0, 3.0), top_k=2)) == [0, 0.5, 0.5, 0]


def test_references_that_disagree_stop_the_contract(monkeypatch):
    monkeypatch.setattr(cases, "sampling_by_library", lambda case: [0.0] * len(case.logits))
    with pytest.raises(RuntimeError, match="two references for sampling disagree"):
        check_sampling_contract(by_sets)
