"""The strided loss's contract accepts every way of laying windows and counts every token."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from course_lib.contracts import check_strided_nll_contract
from course_lib.contracts.likelihood.strided_nll import STRIDED_NLL
from course_lib.contracts.likelihood.windows import (
    WindowScore,
    asked,
    counted_weights,
    mean_by_places,
    mean_by_windows,
    strided,
)

from .trial import verdict, violation_of
from .variants_strided_nll import RIGHT, by_ends, by_starts, moved_back, token_by_token

violation = partial(violation_of, check_strided_nll_contract)


def test_the_figures_tell_how_much_is_read():
    assert dict(check_strided_nll_contract(by_starts)) == {
        "windows_22_8_4": 5,
        "tokens_read_22_8_4": 38,
    }
    assert check_strided_nll_contract(token_by_token)["windows_22_8_4"] == 21


def test_the_failing_call_is_small_and_can_be_made_again():
    caught = verdict("strided_nll", "mistake", "overlap_counted_again").violation
    given_call = caught.failing_input
    assert len(given_call["ids"]) <= 4
    right = by_starts(**given_call)
    assert caught.mismatches[0].expected == pytest.approx(right)
    assert caught.mismatches[0].got != pytest.approx(right)


def test_an_unknown_bug_gets_facts_and_no_name():
    def strided_nll(score, ids, max_length, stride):
        return by_starts(score, ids, max_length, stride) + 0.01 * (len(ids) % 7)

    caught = violation(strided_nll)
    assert caught.mistakes == ()
    assert "behaves exactly" not in caught.diagnosis
    assert caught.diagnosis


@given(st.integers(2, 40), st.integers(2, 12), st.data())
@settings(max_examples=60, deadline=None)
def test_all_ways_of_laying_windows_count_once_and_keep_the_context(length, max_length, data):
    case = strided(length, max_length, data.draw(st.integers(1, max_length - 1)))
    want = mean_by_places(case).item()
    assert mean_by_windows(case).item() == pytest.approx(want, rel=1e-12)
    for candidate in RIGHT.values():
        assert asked(candidate, case)[0].item() == pytest.approx(want)
        subject, clauses = STRIDED_NLL.prepare(candidate)
        judge = next(clause.judge for clause in clauses if clause.name == "context")
        assert judge(subject, case, 0.0) == 0.0


def test_the_weights_of_right_windows_are_one_and_the_first_token_weighs_nothing():
    for candidate in (by_starts, by_ends, moved_back):
        weights = counted_weights(candidate, strided(11, 5, 3))
        assert weights == pytest.approx([0, *[1] * 10])


def test_a_stride_of_a_whole_window_is_told_and_not_judged():
    def refusing(score, ids, max_length, stride):
        if stride >= max_length:
            raise ValueError("the windows must overlap")
        return by_starts(score, ids, max_length, stride)

    (note,) = check_strided_nll_contract(refusing).notes
    assert "ValueError" in note
    (note,) = check_strided_nll_contract(by_starts).notes
    assert "4 of 8 tokens are never counted" in note
    assert check_strided_nll_contract(token_by_token).notes == ()


@pytest.mark.parametrize(
    "add_up",
    [
        sum,
        math.fsum,
        np.sum,
        torch.sum,
        lambda nats: nats.sum(),
        lambda nats: nats.mean() * len(nats),
        lambda nats: np.mean(nats) * len(nats),
        lambda nats: np.asarray(nats).sum(),
        lambda nats: np.array(nats).sum(),
        lambda nats: torch.tensor([float(each) for each in nats]).sum(),
        lambda nats: torch.cat([nats[:1], nats[1:]]).sum(),
        lambda nats: sum(nats.tolist()),
        lambda nats: torch.stack(list(nats)).sum(0),
    ],
)
def test_what_score_returns_can_be_added_up_in_any_manner(add_up):
    nats = WindowScore(lambda token, before: float(token))(torch.tensor([2, 5, 8]))
    assert float(add_up(nats)) == pytest.approx(13.0)


def test_score_takes_one_window_and_no_batch():
    score = WindowScore()
    assert len(score([])) == len(score([4])) == 0
    assert len(score(np.array([1, 2, 3]))) == len(score([torch.tensor(1), 2, 3])) == 2
    with pytest.raises(ValueError, match="score takes one window of token ids"):
        score(torch.tensor([[1, 2, 3]]))
