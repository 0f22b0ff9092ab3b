"""The contract of the sampling distribution accepts what is right and refuses what is wrong."""

import math
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.contracts import check_sampling_contract
from course_lib.contracts.sampling.references import by_library, by_loops
from course_lib.contracts.sampling.sampling import SAMPLING
from course_lib.contracts.sampling.sampling_mistakes import SAMPLING_MISTAKES

from .trial import verdict, violation_of
from .variants_sampling import WRONG, by_sets, distribution_with

violation = partial(violation_of, check_sampling_contract)


def test_the_figures_are_the_largest_errors():
    report = verdict("sampling", "right", "the course's own").report
    assert set(report) == {
        *("probability_max_error", "temperature_max_error", "top_k_max_error", "top_p_max_error")
    }
    assert max(report.values()) < 1e-12


@pytest.mark.parametrize(
    ("name", "mistake"),
    [
        ("temperature ignored", "temperature_ignored"),
        ("temperature multiplied", "temperature_multiplied"),
        ("temperature twice", "temperature_twice"),
        ("temperature clamped", "temperature_clamped"),
        ("temperature after top-p", "temperature_after_filters"),
        ("k + 1 kept", "one_more_kept"),
        ("k - 1 kept", "one_less_kept"),
        ("least likely kept", "least_likely_kept"),
        ("top_k ignored", "top_k_ignored"),
        ("ties kept", "ties_kept"),
        ("higher ids kept", "higher_ids_kept"),
        ("crossing token dropped", "crossing_dropped"),
        ("one token past p", "extra_on_equality"),
        ("top_p ignored", "top_p_ignored"),
        ("p = 1 filters", "p_one_filters"),
        ("p = 1 is greedy", "p_one_is_greedy"),
        ("top_p before top_k", "top_p_of_whole_mass"),
        ("p of the whole mass", "top_p_of_whole_mass"),
        ("not renormalised", "not_renormalised"),
        ("softmax again", "softmax_again"),
        ("sorted output", "sorted_result"),
        ("list sorted", "logits_sorted_in_place"),
        ("list divided", "logits_divided_in_place"),
        ("exp without the maximum", "no_maximum_subtracted"),
        ("one list for all", "one_list_for_all"),
        ("k cut to V", "top_k_over_v_accepted"),
    ],
)
def test_a_mistake_written_by_another_hand_has_the_same_name(name, mistake):
    assert verdict("sampling", "wrong", name).violation.mistakes == (mistake,)


def test_without_any_check_the_main_mistake_is_still_named():
    bare = distribution_with(
        check=lambda *arguments: None, cut_k=lambda ranked, k, logits: ranked[: k + 1]
    )
    assert violation(bare).mistakes[0] == "one_more_kept"


def test_two_mistakes_at_once_are_both_named():
    both = distribution_with(
        warm=lambda z, t: z * t, cut_k=lambda ranked, k, logits: ranked[: k + 1]
    )
    assert violation(both).mistakes == ("temperature_multiplied", "one_more_kept")


def test_the_failing_call_is_cut_down_and_shows_the_fault_again():
    distribution, _ = WRONG["ties kept"]
    given = violation(distribution).failing_input
    assert given == {"logits": [3.0, 3.0, 3.0], "top_k": 2}
    assert distribution(**given) != by_sets(**given)


def test_the_references_know_the_answers_worked_out_by_hand():
    two = math.log(2.0)
    assert by_loops((two, 0.0, 0.0), top_p=0.75) == pytest.approx([2 / 3, 1 / 3, 0.0])
    assert by_loops((1.0, 3.0, 3.0, 3.0), top_k=2) == [0, 0.5, 0.5, 0]


def test_the_references_remove_the_same_tokens_however_improbable_the_others_are():
    _, clauses = SAMPLING.prepare(by_sets)
    legal = [call for clause in clauses for call in clause.calls if clause.allowed]
    assert len(legal) > 600
    for call in legal:
        loops, library = by_loops(**call.args), by_library(**call.args)
        assert [prob > 0 for prob in loops] == [prob > 0 for prob in library], str(call)


SOUND = ["temperature_twice", "one_more_kept", "ties_kept", "crossing_dropped", "min_p_instead"]
LOGITS = st.lists(st.integers(-40, 40).map(lambda n: n / 4), min_size=1, max_size=9)


@settings(deadline=None, max_examples=150, derandomize=True)
@given(LOGITS, st.sampled_from([0.3, 1.0, 2.5]), st.sampled_from(SOUND), st.data())
def test_a_mistaken_filter_still_gives_a_distribution(logits, temperature, name, data):
    mistake = next(mistake for mistake in SAMPLING_MISTAKES if mistake.name == name)
    top_k = data.draw(st.one_of(st.none(), st.integers(1, len(logits))))
    top_p = data.draw(st.one_of(st.none(), st.sampled_from([0.1, 0.5, 0.9, 1.0])))
    probs = mistake.make()(logits, temperature, top_k, top_p)
    assert len(probs) == len(logits)
    assert math.fsum(probs) == pytest.approx(1.0)
    assert min(probs) >= 0
