"""A learner's own contract is scored: on right functions, and on the catalogue's wrong ones."""

import pytest

from course_lib.contracts import ContractViolation, check_cache_contract, check_sampling_contract
from course_lib.mistakes import cache_panel, sampling_panel
from course_lib.mistakes.cache_panel import CACHE_PANEL
from course_lib.mistakes.sampling_panel import SAMPLING_PANEL
from course_lib.sampling import token_distribution

PANELS = {"sampling": SAMPLING_PANEL, "cache": CACHE_PANEL}
each_panel = pytest.mark.parametrize("panel", PANELS.values(), ids=PANELS)


def check_cache(model):
    sizes = {"vocab_size": model.vocab_size, "context_length": model.context_length}
    return check_cache_contract(model.full_logits, model.cached_logits, **sizes)


CHECKS = {"sampling": check_sampling_contract, "cache": check_cache}
MEMBERS = [(name, who) for name, panel in PANELS.items() for who in panel.right]


def violation_of(panel, my_contract):
    with pytest.raises(ContractViolation) as caught:
        panel.score(my_contract)
    return caught.value


@pytest.mark.parametrize(("name", "who"), MEMBERS, ids=str)
def test_the_right_ones_are_right_by_the_course_s_contract_too(name, who):
    assert CHECKS[name](PANELS[name].right[who]()).attempted


def test_a_panel_has_what_its_exercise_says():
    sizes = {name: (len(panel.right), len(panel.wrong)) for name, panel in PANELS.items()}
    assert sizes == {"sampling": (6, 57), "cache": (6, 43)}


@each_panel
def test_what_accepts_everything_is_told_one_wrong_function_and_not_its_name(panel):
    said = violation_of(panel, lambda candidate: None)
    assert said.clause == "wrong_functions"
    assert said.measured == f"0/{len(panel.wrong)}"
    assert panel.wrong[0].what["en"] in said.diagnosis
    assert not any(each.name in str(said) or each.fix["en"] in str(said) for each in panel.wrong)


@each_panel
def test_what_refuses_everything_is_told_which_right_one_and_by_what(panel):
    def mine(candidate):
        assert candidate is None, "nothing pleases me"

    said = violation_of(panel, mine)
    assert (said.clause, said.measured) == ("right_functions", "0/6")
    assert "nothing pleases me" in said.diagnosis
    assert "assert candidate is None" in said.diagnosis
    assert f"wrong ones refused: {len(panel.wrong)} of {len(panel.wrong)}" in said.diagnosis


def test_what_compares_without_a_tolerance_refuses_what_only_rounds_otherwise():
    def mine(candidate):
        assert candidate([0.3, 1.7]) == token_distribution([0.3, 1.7])

    assert violation_of(SAMPLING_PANEL, mine).clause == "right_functions"


@pytest.mark.parametrize("name", PANELS)
def test_the_course_s_own_contract_cannot_be_handed_in(name):
    said = violation_of(PANELS[name], CHECKS[name])
    assert said.clause == "right_functions"
    assert "no help here" in said.diagnosis
    assert CHECKS[name](next(iter(PANELS[name].right.values()))()).attempted  # afterwards it works


def test_an_answer_instead_of_an_error_refuses_nothing_and_is_told():
    assert "with assert" in str(violation_of(SAMPLING_PANEL, lambda candidate: False))


def test_a_stub_is_not_attempted_and_what_is_no_function_is_an_error():
    def mine(candidate):
        raise NotImplementedError

    assert not SAMPLING_PANEL.score(mine).attempted
    with pytest.raises(TypeError, match="my_contract must be a function, got str"):
        SAMPLING_PANEL.score("assert")


def test_both_modules_call_it_by_one_name():
    assert sampling_panel.score_contract == SAMPLING_PANEL.score
    assert cache_panel.score_contract == CACHE_PANEL.score
