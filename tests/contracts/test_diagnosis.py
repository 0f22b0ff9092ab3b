"""A wrong candidate gets the same name, whoever was diagnosed before it."""

from course_lib.contracts.engine.diagnosis import diagnose
from course_lib.contracts.engine.mistake import Mistake
from course_lib.contracts.engine.watch import Probe


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
    calls, known = [], {}

    def make():
        return lambda x: calls.append(x) or -x

    catalogue = [Mistake("negative", "", make, {"en": "turns"}, {"en": "x"})]
    for _ in range(2):
        named_so = diagnose(lambda x: -x, catalogue, PROBES, lambda x: x, known).names
        assert named_so == ("negative",)
    assert calls == [1, 1, 1, 1, 2, 2, 2, 2]  # each probe once, and thrice to see it steady
