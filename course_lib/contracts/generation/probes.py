"""Calls on which wrong generations differ, and the mistakes that give the same answers."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from course_lib.contracts.engine.diagnosis import Diagnosis, diagnose
from course_lib.contracts.engine.look import Look, outcome, probed
from course_lib.contracts.engine.subject import Subject
from course_lib.contracts.engine.watch import Probe
from course_lib.contracts.generation.mistakes import GENERATION_MISTAKES
from course_lib.contracts.generation.model import GenerationCase, generation_by_rule


def explain(subject: Subject) -> Diagnosis:
    """Name the catalogued mistakes that give the candidate's answers on fresh calls."""
    return diagnose(subject.seen, GENERATION_MISTAKES, _probes(), _reference)


def _probes() -> list[Probe]:
    plain = GenerationCase((4, 1), 4, max_length=11, rule="script", script=tuple(range(9)))
    sums = GenerationCase((3, 1, 4), 4, None, 10, 9)
    script = partial(replace, plain, vocab_size=9)
    ends = script(prompt=(1,), script=(3, 2, 1, 0, 4, 5), max_new_tokens=4)
    crowded = script(prompt=(4, 1, 2, 2), max_length=6, eos_id=5, max_new_tokens=5)
    answers = [
        sums,
        GenerationCase((5,), 3, None, 9, 8, training=False),
        replace(sums, level=500.0),
        GenerationCase((2, 6), 3, 99, 9, 8, "place"),
        script(eos_id=4, max_new_tokens=6),
        script(eos_id=2),
        script(prompt=(8, 4, 8), eos_id=8, max_new_tokens=3),
        script(eos_id=5),
        crowded,
        script(prompt=(4, 1, 2), max_length=6, max_new_tokens=9),
        script(prompt=(4, 1, 2), max_length=6, max_new_tokens=3),
        script(prompt=(4, 1, 2, 3), max_length=4, max_new_tokens=2),
        script(max_new_tokens=0),
        script(prompt=(4, 1, 2, 3), max_length=4, max_new_tokens=0),
        replace(ends, eos_id=0),
        replace(ends, name_eos=False),
    ]
    long = [
        script(prompt=(1, 2, 3, 4, 5), max_length=4, max_new_tokens=2),
        script(prompt=(1, 2, 3, 4, 5, 6, 7), max_length=4, max_new_tokens=5),
    ]
    return [
        *probed(*answers, look=_answer),
        *probed(*long, look=_answered),
        *probed(
            sums, replace(sums, training=False), look=_after(lambda given: given["model"].training)
        ),
        *probed(replace(long[0], training=True), look=_refused, core=False),
        *probed(crowded, look=_after(lambda given: given["model"].overfed), core=False),
        *probed(sums, look=_after(_prompt_kept)),
    ]


def _reference(model: Any, prompt: Any, max_new_tokens: int, eos_id: Any = None) -> tuple:
    """Right, by the rule of the model alone."""
    case = replace(model.case, prompt=tuple(prompt), max_new_tokens=max_new_tokens, eos_id=eos_id)
    return generation_by_rule(case)


def _answer(case: GenerationCase, generate: Any) -> list:
    if case.eos_id is None:  # an earlier EOS must not be remembered, nor taken for a default
        generate(case.model(), list(case.prompt), 1, 10**6)
    new_ids, reason = outcome(case, generate)
    return [[int(token) for token in new_ids], str(reason)]


def _answered(case: GenerationCase, generate: Any) -> str:
    """Whether too long a prompt is answered, whatever the answer is."""
    outcome(case, generate)
    return "answered"


def _after(seen: Callable[[dict[str, Any]], Any]) -> Look:
    """A look: what has become of the arguments."""

    def look(case: GenerationCase, generate: Any) -> Any:
        given = case.fresh()
        given.to(generate)
        return seen(given.values)

    return look


def _refused(case: GenerationCase, generate: Any) -> str:
    """In which mode a refusal leaves the model."""
    given = case.fresh()
    try:
        given.to(generate)
    except ValueError:
        return "refused" if given.values["model"].training else "refused in eval mode"
    return "answered"


def _prompt_kept(given: dict[str, Any]) -> bool:
    return tuple(given["prompt"]) == given["model"].case.prompt
