"""Calls on which wrong generations differ, and the mistakes that give the same answers."""

from dataclasses import replace
from functools import partial
from typing import Any

import torch

from course_lib.contracts.engine.diagnosis import Diagnosis, Probe, diagnose
from course_lib.contracts.generation._generation_model import GenerationCase, generation_by_rule
from course_lib.contracts.generation.mistakes import GENERATION_MISTAKES


def explain_generation(generate: Any, *, as_tensor: bool) -> Diagnosis:
    """Name the catalogued mistakes that give the candidate's answers on fresh calls."""
    plain = GenerationCase((4, 1), 4, max_length=11, rule="script", script=tuple(range(9)))
    sums = GenerationCase((3, 1, 4), 4, None, 10, 9)
    script = partial(replace, plain, vocab_size=9)
    core = [
        sums,
        GenerationCase((5,), 3, None, 9, 8, training=False),
        replace(sums, level=500.0),
        GenerationCase((2, 6), 3, 99, 9, 8, "place"),
        script(eos_id=4, max_new_tokens=6),
        script(eos_id=2),
        script(prompt=(8, 4, 8), eos_id=8, max_new_tokens=3),
        script(eos_id=5),
        script(prompt=(4, 1, 2, 2), max_length=6, eos_id=5, max_new_tokens=5),
        script(prompt=(4, 1, 2), max_length=6, max_new_tokens=9),
        script(prompt=(4, 1, 2), max_length=6, max_new_tokens=3),
        script(prompt=(4, 1, 2, 3), max_length=4, max_new_tokens=2),
        script(max_new_tokens=0),
        script(prompt=(4, 1, 2, 3), max_length=4, max_new_tokens=0),
        script(prompt=(1,), eos_id=0, script=(3, 2, 1, 0, 4, 5), max_new_tokens=4),
        script(prompt=(1,), script=(3, 2, 1, 0, 4, 5), max_new_tokens=4, name_eos=False),
    ]
    long = [
        script(prompt=(1, 2, 3, 4, 5), max_length=4, max_new_tokens=2),
        script(prompt=(1, 2, 3, 4, 5, 6, 7), max_length=4, max_new_tokens=5),
    ]
    probes = [Probe(partial(_generation_answer, case=case, as_tensor=as_tensor)) for case in core]
    for case in long:
        probes.append(Probe(partial(_generation_long, case=case, as_tensor=as_tensor)))
    for case in (sums, replace(sums, training=False)):
        probes.append(Probe(partial(_generation_flag, case=case, as_tensor=as_tensor)))
    refused = replace(long[0], training=True)
    probes.append(
        Probe(partial(_generation_refused, case=refused, as_tensor=as_tensor), core=False)
    )
    probes.append(Probe(partial(_generation_fed, case=core[8], as_tensor=as_tensor), core=False))
    probes.append(Probe(partial(_generation_prompt, case=sums, as_tensor=as_tensor)))
    return diagnose(generate, GENERATION_MISTAKES, probes, _generation_reference)


def _generation_reference(
    model: Any, prompt: Any, max_new_tokens: int, eos_id: Any = None
) -> tuple:
    """Right, by the rule of the model alone."""
    given = tuple(int(token) for token in prompt)
    case = replace(model.case, prompt=given, max_new_tokens=max_new_tokens, eos_id=eos_id)
    return generation_by_rule(case)


def generation_arguments(case: GenerationCase, *, as_tensor: bool) -> tuple[list[Any], dict]:
    """The arguments of a call: a fresh model and a fresh prompt."""
    prompt = torch.tensor(case.prompt) if as_tensor else list(case.prompt)
    keywords = {"eos_id": case.eos_id} if case.name_eos else {}
    return [case.model(), prompt, case.max_new_tokens], keywords


def _generation_answer(generate: Any, case: GenerationCase, as_tensor: bool) -> list:
    arguments, keywords = generation_arguments(case, as_tensor=as_tensor)
    if case.eos_id is None:  # an earlier EOS must not be remembered, nor taken for a default
        generate(case.model(), arguments[1], 1, 10**6)
        arguments, keywords = generation_arguments(case, as_tensor=as_tensor)
    new_ids, reason = generate(*arguments, **keywords)
    return [[int(token) for token in new_ids], str(reason)]


def _generation_long(generate: Any, case: GenerationCase, as_tensor: bool) -> str:
    """Whether too long a prompt is answered, whatever the answer is."""
    arguments, keywords = generation_arguments(case, as_tensor=as_tensor)
    generate(*arguments, **keywords)
    return "answered"


def _generation_flag(generate: Any, case: GenerationCase, as_tensor: bool) -> bool:
    arguments, keywords = generation_arguments(case, as_tensor=as_tensor)
    generate(*arguments, **keywords)
    return arguments[0].training


def _generation_refused(generate: Any, case: GenerationCase, as_tensor: bool) -> str:
    """In which mode a refusal leaves the model."""
    arguments, keywords = generation_arguments(case, as_tensor=as_tensor)
    try:
        generate(*arguments, **keywords)
    except ValueError:
        return "refused" if arguments[0].training else "refused in eval mode"
    return "answered"


def _generation_fed(generate: Any, case: GenerationCase, as_tensor: bool) -> bool:
    """Whether the model got more than it can hold."""
    arguments, keywords = generation_arguments(case, as_tensor=as_tensor)
    generate(*arguments, **keywords)
    return max(arguments[0].lengths, default=0) > case.max_length


def _generation_prompt(generate: Any, case: GenerationCase, as_tensor: bool) -> bool:
    arguments, keywords = generation_arguments(case, as_tensor=as_tensor)
    generate(*arguments, **keywords)
    return [int(token) for token in arguments[1]] == list(case.prompt)
