"""A wrong candidate gets the same name, whoever was diagnosed before it."""

import functools
import itertools
from types import SimpleNamespace

import torch

from course_lib.contracts.engine.diagnosis import by_catalogue, diagnose
from course_lib.contracts.engine.mistake import Mistake
from course_lib.contracts.engine.watch import Probe, look_once


def keeping_the_first():
    """Answer every call with the argument of the first."""
    kept = []

    def answer(x):
        kept.append(x)
        return kept[0]

    return answer


CATALOGUE = [
    Mistake("first_kept", "", keeping_the_first, {"en": "keeps"}, {"en": "keep nothing"}),
    Mistake("doubled", "", lambda: lambda x: 2 * x, {"en": "doubles"}, {"en": "do not"}),
]
PROBES = [Probe(lambda answer: answer(1)), Probe(lambda answer: answer(2))]


def named(candidate, known):
    return diagnose(candidate, CATALOGUE, PROBES, lambda x: x, known).names


def test_a_mistake_with_a_memory_is_named_also_after_another_candidate_was_diagnosed():
    known = {}
    assert named(lambda x: -x, known) == ()
    assert named(keeping_the_first(), known) == ("first_kept",)
    assert named(lambda x: 2 * x, known) == ("doubled",)


def test_what_is_known_of_a_mistake_is_not_looked_at_again():
    calls = []

    def make():
        return lambda x: calls.append(x) or -x

    catalogue = [Mistake("negative", "", make, {"en": "turns"}, {"en": "x"})]
    explain = by_catalogue(catalogue, lambda subject: PROBES, lambda x: x)
    for _ in range(2):
        assert explain(SimpleNamespace(candidate=lambda x: -x)).names == ("negative",)
    assert calls == [1, 2, 1, 1, 1, 2, 2, 2]  # each probe once, and thrice to see it steady


def test_a_mistake_that_one_look_tells_from_the_candidate_is_not_looked_at_again():
    calls = []

    def make():
        return lambda x: calls.append(x) or -x

    catalogue = [Mistake("negative", "", make, {"en": "turns"}, {"en": "x"})]
    assert diagnose(lambda x: 3 * x, catalogue, PROBES, lambda x: x).names == ()
    assert calls == [1]


def turning_now_and_then(turns):
    """Change the sign at the calls with these numbers; give the argument at all others."""
    count = itertools.count(1)
    return lambda x: -x if next(count) in turns else x


def named_as_one_that(make, candidate, probes):
    catalogue = [Mistake("suspect", "", make, {"en": "does"}, {"en": "do not"})]
    return diagnose(candidate, catalogue, probes, lambda x: x).names


def test_a_mistake_that_is_right_or_wrong_by_turns_names_no_steady_candidate():
    """Its first look is the candidate's answer, in ordinary calls and in special ones."""
    for core in (True, False):
        probes = [Probe(PROBES[0].look, core)]
        suspect = functools.partial(turning_now_and_then, {1, 3, 5})
        assert named_as_one_that(suspect, lambda x: -x, probes) == ()


def test_a_mistake_by_turns_that_differs_in_a_special_call_names_nothing_in_ordinary_ones():
    probes = [Probe(PROBES[0].look), Probe(lambda answer: answer(5), core=False)]

    def by_turns():
        turned = turning_now_and_then({1, 3, 5})
        return lambda x: 0 if x == 5 else turned(x)

    def always():
        return lambda x: 0 if x == 5 else -x

    assert named_as_one_that(always, lambda x: -x if x < 5 else 7, probes) == ("suspect",)
    assert named_as_one_that(by_turns, lambda x: -x if x < 5 else 7, probes) == ()


def test_what_one_candidate_switches_on_does_not_reach_the_next():
    def flags(switch):
        found = torch.get_default_dtype(), torch.is_grad_enabled()
        switch()
        return found

    def switch():
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)

    try:
        seen = [look_once(switch, Probe(flags)) for _ in range(2)]
    finally:
        torch.set_default_dtype(torch.float32)
    assert seen == [[torch.float32, True]] * 2
    assert torch.is_grad_enabled()
