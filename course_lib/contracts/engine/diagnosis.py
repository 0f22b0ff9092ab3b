"""Name a wrong candidate: hold what it does against what every catalogued mistake does."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from course_lib.contracts.engine.mistake import Mistake, both_mistakes
from course_lib.contracts.engine.watch import (
    UNSTEADY,
    Probe,
    alike,
    is_unsteady,
    look_once,
    watch,
    watch_all,
)
from course_lib.text import say

_LINKS = {
    "everywhere": "on fresh inputs it behaves exactly like {told} | "
    "на новых входах функция ведёт себя в точности как {told}",
    "core": "in ordinary calls it behaves exactly like {told} | "
    "в обычных вызовах функция ведёт себя в точности как {told}",
    "or": " — or, indistinguishable here, like {told} |  — или, что здесь неотличимо, как {told}",
    "and": " — and also like {told} |  — и вдобавок как {told}",
}
MORE = "; not every wrong answer is explained by this | ; этим объясняются не все неверные ответы"

Answers = Sequence[Any]  # what is seen in each probe


class Diagnosis(NamedTuple):
    """The catalogued mistakes that a candidate equals, each with what links it to those before.

    `more` says that there are wrong answers that none of them gives. The words are made when they
    are asked for, in the language of that moment.
    """

    linked: tuple[tuple[str, Mistake], ...] = ()
    more: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the mistakes."""
        return tuple(mistake.name for _, mistake in self.linked)

    @property
    def text(self) -> str:
        """The mistakes and their fixes in words; empty if there are none."""
        told = [say(_LINKS[link], told=mistake.told()) for link, mistake in self.linked]
        return "".join(told) + (say(MORE) if self.more else "")


class _Suspicion(NamedTuple):
    """Mistakes and the numbers of the probes on which they show; the candidate equals them all."""

    mistakes: tuple[Mistake, ...]
    shows: frozenset[int]


def diagnose(
    candidate: Any,
    catalogue: Sequence[Mistake],
    probes: Sequence[Probe],
    reference: Any,
    known: dict[str, Any] | None = None,
) -> Diagnosis:
    """Find the mistakes whose every wrong answer the candidate gives too; say nothing if none.

    Args:    reference: a right candidate; a mistake shows where it differs from this one
             known: what was seen in these very probes already, kept by the caller
    """
    known = {} if known is None else known
    if "what is right" not in known:
        known["what is right"] = watch_all(reference, probes)
    right, given = known["what is right"], watch_all(candidate, probes)
    wrong = {n for n in range(len(probes)) if not alike(right[n], given[n])}
    core = {n for n, probe in enumerate(probes) if probe.core}
    if not wrong:
        return Diagnosis()
    unsteady = is_unsteady(given[0])
    found = partial(_unsteady_answers, candidate=candidate) if unsteady else _answers_of
    answers = [(each, found(each, probes, right, given, known)) for each in catalogue]
    everywhere = _suspicions(answers, right, given, set(range(len(probes))))
    if wrong & core <= _explained(everywhere):
        return _diagnosis_in_words(everywhere, wrong, core, "everywhere")
    ordinary = _suspicions(answers, right, given, core)
    if not wrong & core <= _explained(ordinary):
        # what else is wrong in ordinary calls may be the reason for these too
        seen = [each for each, done in answers if any(not alike(done[n], right[n]) for n in core)]
        pairs = list(_suspected_pairs(seen, probes, right, given, wrong & core))
        ordinary = pairs if len(pairs) <= 3 else []
    told = [each.mistakes for each in ordinary]
    special = [
        each
        for each in everywhere
        if each.mistakes not in told and (ordinary or not each.shows & core)
    ]
    key = "core" if ordinary else "everywhere"
    return _diagnosis_in_words([*ordinary, *special], wrong, core, key)


def by_catalogue(
    catalogue: Sequence[Mistake], probes: Callable[[Any], Sequence[Probe]], reference: Any
) -> Callable[[Any], Diagnosis]:
    """Explain a contract's subjects by these mistakes, each watched in the probes made for it.

    The probes of all subjects must be alike: what a mistake does in them is looked at once.
    """
    known: dict[str, Any] = {}
    return lambda subject: diagnose(subject.candidate, catalogue, probes(subject), reference, known)


def _explained(suspicions: Sequence[_Suspicion]) -> frozenset[int]:
    return frozenset().union(*(each.shows for each in suspicions))


def _answers_of(
    mistake: Mistake,
    probes: Sequence[Probe],
    right: Answers,
    given: Answers,
    known: dict[str, Any],
) -> list[Any]:
    """What a mistake does in every probe; nothing more once the candidate cannot be making it.

    One look at each probe settles most mistakes; only the others are watched, whether they do it
    every time. One that differs in a special probe may still be what ordinary calls show.

    What is known goes with who did it: a mistake with a memory, made anew halfway, would do
    something else, and what is named would hang on who was diagnosed before. So the one that is
    looked at and the one that is watched each meet the probes in the same order, whoever asks.
    """
    core = [n for n, probe in enumerate(probes) if probe.core]
    special = [n for n, probe in enumerate(probes) if not probe.core]
    glanced, watched = known.setdefault(mistake.name, [(mistake.make(), {}) for _ in range(2)])
    seen = list(right)

    def differs(
        look: Callable[[Any, Probe], Any], who: tuple[Any, dict[int, Any]], numbers: Iterable[int]
    ) -> bool:
        suspect, done = who
        for n in numbers:
            done[n] = seen[n] = done[n] if n in done else look(suspect, probes[n])
            if not alike(seen[n], right[n]) and not alike(seen[n], given[n]):
                return True
        return False

    if differs(look_once, glanced, core):
        return seen
    shows = any(not alike(seen[n], right[n]) for n in core)
    elsewhere = differs(look_once, glanced, special)
    if shows or not elsewhere:
        differs(watch, watched, core if elsewhere else core + special)
    return seen


def _suspicions(
    answers: Answers, right: Answers, given: Answers, within: set[int]
) -> list[_Suspicion]:
    """The mistakes that the candidate equals on every one of these probes on which they show."""
    found = []
    for mistake, seen in answers:
        shows = frozenset(n for n in within if not alike(seen[n], right[n]))
        if shows and all(alike(seen[n], given[n]) for n in shows):
            found.append(_Suspicion((mistake,), shows))
    return found


def _suspected_pairs(
    catalogue: Sequence[Mistake],
    probes: Sequence[Probe],
    right: Answers,
    given: Answers,
    wrong: set[int],
) -> Iterator[_Suspicion]:
    """Two mistakes at once, if together they give all the wrong answers of ordinary calls."""
    ordinary = [n for n, probe in enumerate(probes) if probe.core]
    if all(str(given[n]).startswith("raised ") for n in ordinary):
        return  # nothing came back that could tell one pair from another: there are thousands
    for one, other in itertools.combinations(catalogue, 2):
        make = both_mistakes(one, other)
        if make is None or not wrong:
            continue
        both, alone = make(), (one.make(), other.make())
        if all(alike(look_once(both, probes[n]), given[n]) for n in ordinary) and all(
            any(not alike(watch(part, probes[n]), right[n]) for n in wrong) for part in alone
        ):
            yield _Suspicion((one, other), frozenset(wrong))


def _diagnosis_in_words(
    suspicions: list[_Suspicion], wrong: set[int], core: set[int], key: str
) -> Diagnosis:
    """The widest suspicions: those that show on the same probes are one another's "or".

    Of very many, those that show in ordinary calls are told, or those of the first three probes.
    """
    widest = [
        each for each in suspicions if not any(each.shows < other.shows for other in suspicions)
    ]
    groups: dict[frozenset[int], list[_Suspicion]] = {}
    for each in widest:
        groups.setdefault(each.shows, []).append(each)
    if len(groups) > 3:
        ordinary = {shows: group for shows, group in groups.items() if shows & core}
        first = dict(sorted(groups.items(), key=lambda item: min(item[0]))[:3])
        groups = ordinary or first
    if not 0 < len(groups) <= 3 or any(len(group) > 3 for group in groups.values()):
        return Diagnosis()
    linked: list[tuple[str, Mistake]] = []
    for group in groups.values():
        for place, suspicion in enumerate(group):
            for mistake in suspicion.mistakes:
                link = "or" if place and mistake is suspicion.mistakes[0] else "and"
                linked.append((link if linked else key, mistake))
    explained = frozenset().union(*groups)
    return Diagnosis(tuple(linked), not wrong <= explained)


def _unsteady_answers(
    mistake: Mistake,
    probes: Sequence[Probe],
    right: Answers,
    given: Answers,
    known: dict[str, Any],
    *,
    candidate: Any,
) -> list[Any]:
    """Whether a mistake is unsteady as the candidate is; which way, is not worth more looks."""
    if given[0] == UNSTEADY[1]:
        answer = _unsteady_by_chance(mistake.make(), candidate, probes)
    else:
        name = f"{mistake.name} twice in a row"  # whoever asks
        if name not in known:
            suspect = mistake.make()
            pairs = ([look_once(suspect, probe) for _ in range(2)] for probe in probes)
            known[name] = "steady" if all(alike(*pair) for pair in pairs) else UNSTEADY[0]
        answer = known[name]
    return [answer] * len(probes)


def _unsteady_by_chance(suspect: Any, candidate: Any, probes: Sequence[Probe]) -> str:
    for probe in probes:
        answer = watch(suspect, probe)
        if is_unsteady(answer):
            return answer
        if is_unsteady(watch(candidate, probe)):
            break
    return "steady"
